# SPDX-License-Identifier: Apache-2.0
"""Answers one TVM client's requests by a device's session.

The device always uses microTVM's packing, for clients of any packing. Copies are split to fit the device's
packets, lost requests are sent again, and a deadline ends hanging calls, as for the project's own client.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from minrpc.client import memory
from minrpc.client.info import DeviceInfo
from minrpc.client.rpc import MAX_PACKET_SIZE
from minrpc.errors import RemoteError
from minrpc.pipeline import Device
from minrpc.tvm.uploads import Files, without_places
from minrpc.wire.replies import Result, ReturnedArray, encode_copy_ack
from minrpc.wire.requests import (
    HEAD,
    CallFunc,
    CopyFromRemote,
    CopyToRemote,
    InitServer,
    Request,
    RpcCode,
    Syscall,
    free_handle,
    get_global_func,
)
from minrpc.wire.tcp_door import INITIALIZED, V0_8, Packing, recognize
from minrpc.wire.values import (
    Argument,
    Bool,
    DLTensor,
    Function,
    Handle,
    MalformedError,
    Module,
    Object,
    TypeCode,
    Value,
)

# Packet size of a client's copies, in bytes. This bridge splits them to the device's packet size.
CHUNK: Final = 1 << 20

# Functions renamed in today's TVM: new name to the device's name.
_RENAMED: Final = {
    "ffi.SystemLib": "runtime.SystemLib",
    "tvm.contrib.random.random_fill_for_measure": "tvm.contrib.random.random_fill",
}

_SHUTDOWN: Final = RpcCode.SHUTDOWN.to_bytes(4, "little")

# Attributes of a device, by TVM's numbers: among them total and free memory.
_EXISTS: Final = 0
_MEMORY: Final[dict[object, Callable[[DeviceInfo], int]]] = {
    14: lambda info: info.arena_size,
    15: lambda info: info.arena_size - info.arena_used,
}

# Handles of the bridge's own functions: bit 62 is set, so that none is an address of a device.
_OWN: Final = 1 << 62

OwnFunction = Callable[[Sequence[Argument]], Result]


class Bridge:
    """One client of `device`, from its first packet to its last.

    functions: global functions that are answered here and not on the device, by name.
    files: the files that the client uploads and loads.
    """

    def __init__(
        self, device: Device, files: Files, functions: Mapping[str, OwnFunction] | None = None
    ) -> None:
        self._device = device
        self._rpc = device.rpc
        self._files = files
        self._packing: Packing | None = None
        self._own: dict[str, OwnFunction] = {
            MAX_PACKET_SIZE: lambda _: CHUNK,
            **files.functions,
            **(functions or {}),
        }
        self._own_names = list(self._own)
        self._kinds: dict[int, TypeCode] = {}
        # A client may release a module and continue to use the module's functions.
        self._uses: Counter[int] = Counter()
        self._modules_of: dict[int, int] = {}
        self._left: set[int] = set()

    @property
    def has_asked(self) -> bool:
        """True if a request has shown how the client packs values."""
        return self._packing is not None

    def answer(self, packet: bytes) -> bytes:
        """The reply to one packet, other than a shutdown (`is_shutdown`).

        Raises errors that end the device's session, such as EmulatorExitedError; pass these to the client by
        `refusal`.
        """
        try:
            return self._answer(self._decode(packet))
        except MalformedError as error:
            return self.refusal(f"the request can't be read: {error}")
        except RemoteError as error:
            return self.refusal(error.text)
        except (ValueError, TypeError, OverflowError) as error:
            return self.refusal(str(error))

    def refusal(self, text: str) -> bytes:
        """The reply that makes the client raise an error with this text, less directories of this machine."""
        return (self._packing or V0_8).encode_exception(without_places(text))

    def _decode(self, packet: bytes) -> Request:
        if self._packing is not None:
            return self._packing.decode_request(packet)
        request, self._packing = recognize(packet)
        return request

    def _answer(self, request: Request) -> bytes:
        packing = self._packing or V0_8
        match request:
            case InitServer():
                return INITIALIZED
            case CallFunc(handle, args):
                return packing.encode_call_result(self._call(handle, args))
            case CopyToRemote(tensor, data):
                _check_size(tensor, len(data))
                memory.upload(self._rpc, tensor, memoryview(data))
                return packing.encode_return([None])
            case CopyFromRemote(tensor, nbytes):
                _check_size(tensor, nbytes)
                return encode_copy_ack(memory.download(self._rpc, tensor, nbytes))
            case Syscall(code, args):
                return packing.encode_return([self._syscall(code, args)])
        raise MalformedError("a shutdown has no answer")

    def _syscall(self, code: RpcCode, args: Sequence[Argument]) -> Value:
        if code is RpcCode.GET_GLOBAL_FUNC:
            return self._global_function(args)
        if code is RpcCode.FREE_HANDLE:
            return self._free(args)
        if code is RpcCode.DEV_GET_ATTR:
            return self._attribute(args)
        if code is RpcCode.DEV_ALLOC_DATA_WITH_SCOPE and len(args) == 2 and isinstance(args[0], DLTensor):
            return Handle(memory.allocate(self._rpc, args[0]))
        return self._rpc.syscall(
            Syscall(code, [plain(value) for value in args]), _STAGES.get(code, code.name)
        )

    def _attribute(self, args: Sequence[Argument]) -> Value:
        """A device's attribute. Like TVM's own CPU device, it only has existence and memory."""
        kind = args[1] if len(args) == 2 else None
        if kind == _EXISTS:
            return 1
        info = self._device.info() if kind in _MEMORY and self._rpc.ours else None
        return _MEMORY[kind](info) if info is not None and isinstance(kind, int) else None

    def _global_function(self, args: Sequence[Argument]) -> Value:
        name = args[0] if len(args) == 1 else None
        if not isinstance(name, str):
            raise MalformedError("a function is looked up by one name")
        if name in self._own:
            return Handle(_OWN | self._own_names.index(name))
        function = self._rpc.syscall(get_global_func(_RENAMED.get(name, name)), f"look up {name}")
        if not isinstance(function, Handle) or not function.value:
            return None
        self._given(function.value, TypeCode.FUNCTION)
        return function

    def _free(self, args: Sequence[Argument]) -> Value:
        """Frees a handle. Clients since v0.21 send no handle type, and free some after the session's end."""
        value = args[0] if args else None
        handle = value.value if isinstance(value, Handle) else 0
        if handle & _OWN or (len(args) < 2 and handle not in self._kinds):
            return None
        self._uses[handle] -= 1
        if self._uses[handle] > 0:
            return None
        if handle in self._modules_of.values():
            self._left.add(handle)
            return None
        kind = self._kinds.pop(handle, None)
        if len(args) > 1 and isinstance(args[1], int):
            kind = TypeCode(args[1]) if args[1] in list(TypeCode) else kind
        self._free_now(handle, kind)
        return None

    def _free_now(self, handle: int, kind: TypeCode | None) -> None:
        """Frees the handle, and the module that was kept only for it."""
        del self._uses[handle]
        if not self._files.release(handle) and kind is not None:
            self._rpc.syscall(free_handle(handle, kind), "free")
        module = self._modules_of.pop(handle, None)
        if module in self._left and module not in self._modules_of.values():
            self._left.remove(module)
            self._free_now(module, self._kinds.pop(module, None))

    def _given(self, handle: int, kind: TypeCode) -> None:
        """Counts one more reference of the client to the handle."""
        self._kinds[handle] = kind
        self._uses[handle] += 1
        self._left.discard(handle)

    def _call(self, handle: int, args: Sequence[Argument]) -> Result:
        if handle & _OWN:
            index = handle & ~_OWN
            if index >= len(self._own_names):
                raise ValueError(f"no function has the handle {handle:#x}")
            result = self._own[self._own_names[index]](args)
        else:
            result = self._rpc.call(handle, [plain(value) for value in args], "call")
        match result:
            case Function(made):
                self._given(made, TypeCode.FUNCTION)
                module = args[0] if args else None
                if isinstance(module, Module):
                    self._modules_of[made] = module.handle
            case Module(made):
                self._given(made, TypeCode.MODULE)
            case ReturnedArray(_, made):
                self._given(made, TypeCode.NDARRAY)
        return result


_STAGES: Final = {
    RpcCode.DEV_FREE_DATA: "free memory",
    RpcCode.DEV_ALLOC_DATA: "allocate",
    RpcCode.COPY_AMONG_REMOTE: "copy on the device",
}


def _check_size(tensor: DLTensor, nbytes: int) -> None:
    """Raise ValueError for a wrong size, before bytes are sent to a device that would refuse them."""
    if nbytes > tensor.nbytes:
        raise ValueError(f"a copy of {nbytes} bytes, and the tensor has {tensor.nbytes}")


def is_shutdown(packet: bytes) -> bool:
    """True for a client's shutdown request, which gets no answer. It is the same in each dialect."""
    return packet[HEAD.size - len(_SHUTDOWN) : HEAD.size] == _SHUTDOWN


def plain(value: Argument) -> Argument:
    """An argument in the types that every device knows: booleans become ints."""
    if isinstance(value, Bool):
        return int(value.value)
    if isinstance(value, Object):
        raise ValueError(f"an object (type index {value.type_index}) can't be sent to a device")
    return value
