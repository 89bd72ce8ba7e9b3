# SPDX-License-Identifier: Apache-2.0
"""The memory block on the device for the arrays and structs of calls; it grows, and is kept between calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final
from zlib import crc32

from minrpc.client import memory
from minrpc.client.array import RemoteArray
from minrpc.client.conversation import Conversation
from minrpc.client.filling import CHECKSUM
from minrpc.client.function import RemoteFunction
from minrpc.client.rpc import RpcClient
from minrpc.client.session import Session
from minrpc.library.arguments import CallPlan
from minrpc.library.checked_calls import check_of, checked
from minrpc.library.frame import ALIGNMENT
from minrpc.library.kept_pointers import KeptPointers
from minrpc.library.lent_pointers import Lent
from minrpc.library.repeated import FrameLayout
from minrpc.library.scalars import Address
from minrpc.library.structs import replace_bytes
from minrpc.program.c_types import CType
from minrpc.replay import MemoryCheck
from minrpc.wire.dtypes import to_dtype
from minrpc.wire.values import DLTensor, Handle

_LEAST: Final = 1024
BYTES: Final = to_dtype("uint8")


class _Growing:
    """A memory block on the device that grows."""

    def __init__(self, session: Session, least: int) -> None:
        """least: its size at first, in bytes."""
        self._session = session
        self._least = least
        self.array: RemoteArray | None = None

    def address(self, size: int, alignment: int = ALIGNMENT) -> int:
        """Its address, a multiple of `alignment`, with `size` bytes at least."""
        array = self.array
        if array is not None and array.nbytes >= size and array.usable_on(self._session.rpc):
            address = array.address
            if not address % alignment:
                return address
        self.free()
        nbytes = max(self._least, 1 << (size - 1).bit_length())
        array = self.array = self._session.aligned(nbytes, alignment)
        return array.address

    def free(self) -> None:
        """Free the memory."""
        array, self.array = self.array, None
        if array is not None:
            array.free()


class CallMemory:
    """Runs planned calls, one at a time, since they share the memory."""

    def __init__(self, session: Session, kept: KeptPointers | None = None) -> None:
        """kept: finds pointers to a call's arguments that stay behind; None: they are not looked for."""
        self._session = session
        self._room = _Growing(session, _LEAST)
        self._window = _Growing(session, ALIGNMENT)
        # The memory of the last call, and of calls that Python makes while a function waits.
        self._lent: list[Lent] = []
        self.kept = kept
        self.check = check_of(session)

    @property
    def is_there(self) -> bool:
        """See `Owner`."""
        room = self._room.array
        return room is not None and room.usable_on(self._session.rpc)

    def run_checked(self, packed: RemoteFunction, plan: CallPlan, check: MemoryCheck) -> Any:  # noqa: ANN401
        """Run the call as `run` does, and judge its accesses to memory. Raises as `checked` does."""
        rpc = self._session.rpc
        with rpc.lock:
            rpc.ready()
            base = self._base_of(plan) if plan.frame.size else 0
            return checked(check, rpc, plan, base, self._room.array, lambda: self.run(packed, plan))

    def run(self, packed: RemoteFunction, plan: CallPlan) -> Any:  # noqa: ANN401 - a C function's result
        """Send the frame, call the function, read the written blocks back.

        For a long block that is only read, the device sends a checksum, and the bytes only if it differs.
        """
        rpc = self._session.rpc
        self._require(plan, self if plan.frame.size else None)
        if not plan.frame.size:
            return plan.finish(packed(*plan.arguments(0)))
        with rpc.lock:
            base = self._send(plan)
            result = packed(*plan.arguments(base))
            shared = rpc.facts.direct
            cheap = shared.usable and base in shared.live
            begin, size = plan.frame.comes_back(cheap=cheap)
            if not _is_unchanged(rpc, base, plan.frame.unread(begin)):
                begin, size = 0, plan.frame.size
            data = download(rpc, base, begin, size) if size else memoryview(b"")
        plan.frame.take(data, begin, base, plan.function.name)
        if self.kept is not None and plan.frame.guard:
            self.kept.require(plan.function.name, base, plan.frame.size, lambda: plan.frame)
        got = plan.finish(result)
        self._note_all(got)
        return got

    def note(self, address: Address) -> None:
        """Note a pointer of C that points into the arguments of the last call, or of one that runs."""
        if self.kept is not None:
            for lent in self._lent:
                if lent.has(address) and lent.owner.is_there:
                    address.lend(lent)

    def pointer(self, address: int, ctype: CType) -> Address:
        """A pointer in memory of the device, noted."""
        made = Address(address, ctype)
        self.note(made)
        return made

    def _note_all(self, got: object) -> None:
        """Note each pointer of a result: its own, and those of `out()`."""
        if isinstance(got, Address):
            self.note(got)
        elif isinstance(got, tuple | list):
            for item in got:
                self._note_all(item)

    def _require(self, plan: CallPlan, user: CallMemory | None) -> None:
        """Raise GuardError for a pointer into memory that was used again, or that this call uses itself.

        user: this object, if the call's frame lies in its memory.
        """
        for lent in plan.frame.lent:
            lent.require(plan.function.name, user)
        if self.kept is not None:
            self.kept.before_call()

    def run_again(
        self, packed: RemoteFunction, layout: FrameLayout, args: Sequence[Any], plan: Callable[[], CallPlan]
    ) -> Any:  # noqa: ANN401 - a C function's result
        """Runs a call whose layout is known, through memory that the device shares with this process.

        plan: makes the same call's plan, for a device that shares no memory, and for the error if a guard or
            a constant was overwritten.
        """
        rpc = self._session.rpc
        size = len(layout.template)
        with rpc.lock:
            if not rpc.idle:
                rpc.ready()
            if self.kept is not None:
                self.kept.before_call()
            base = self._base(size, packed.name)
            shared = rpc.facts.direct.reached(base, size)
            if shared is None:
                return self.run(packed, plan())
            sent = layout.filled(args)
            shared.write(base, memoryview(sent))
            result = packed.call_with(layout.arguments(args, base))
            received = shared.read(base, size)
        if not layout.hand_back(sent, received, args):
            plan().frame.take(memoryview(received), 0, base, packed.name)
        if self.kept is not None:
            self.kept.require(packed.name, base, size, lambda: plan().frame)
        return result

    def time(self, timer: Callable[..., Any], plan: CallPlan) -> Any:  # noqa: ANN401 - the timer's result
        """Send the frame, and time calls with it."""
        with self._session.rpc.lock:
            self._require(plan, self if plan.frame.size else None)
            base = self._send(plan) if plan.frame.size else 0
            return timer(*plan.arguments(base))

    def read(self, base: int, offset: int, size: int) -> memoryview:
        """Bytes of an allocation at `base`."""
        with self._session.rpc.lock:
            self._session.rpc.ready_for_memory()
            return download(self._session.rpc, base, offset, size)

    def write(self, base: int, offset: int, data: bytes) -> None:
        """Overwrite bytes of an allocation at `base`."""
        with self._session.rpc.lock:
            self._session.rpc.ready_for_memory()
            upload(self._session.rpc, base, offset, data)

    def peek(self, copy: Callable[[], RemoteFunction], address: int, size: int) -> memoryview:
        """Bytes of memory that only the device's own code can reach. copy: (to, from, size)."""
        rpc = self._session.rpc
        with rpc.lock:
            if rpc.conversation is not None:
                return memoryview(rpc.conversation.deepest.read(address, size))
            rpc.ready()
            window = self._window.address(size)
            copy()(Handle(window), Handle(address), size)
            return download(rpc, window, 0, size)

    def poke(self, copy: Callable[[], RemoteFunction], address: int, data: bytes) -> None:
        """Overwrite memory that only the device's own code can reach. copy: as for `peek`."""
        rpc = self._session.rpc
        with rpc.lock:
            if rpc.conversation is not None:
                rpc.conversation.deepest.write(address, data)
                return
            rpc.ready()
            window = self._window.address(len(data))
            upload(rpc, window, 0, data)
            copy()(Handle(address), Handle(window), len(data))

    def run_inside(self, waiting: Conversation, thunk: int, plan: CallPlan) -> Any:  # noqa: ANN401 - a C function's result
        """Run a call while a function waits for Python: its frame is on the device's stack.

        thunk: the address of the function's thunk.
        """
        self._require(plan, None)
        size = plan.frame.size
        alignment = plan.frame.alignment
        room = waiting.reserve(size + alignment) if size else 0
        base = -(-room // alignment) * alignment
        for offset, data in plan.frame.image(base):
            waiting.write(base + offset, data)
        if size:
            there = [lent for lent in self._lent if lent.owner.is_there]
            self._lent = [*there, Lent(waiting, plan.function.name, base, size)]
        result = waiting.call(plan.function.name, thunk, plan.arguments(base))
        if size:
            plan.frame.take(memoryview(waiting.read(base, size)), 0, base, plan.function.name)
        for storage in plan.frame.passed:
            if storage.place is not None:
                replace_bytes(storage, 0, waiting.read(storage.place.address, len(storage.data)))
        if size and self.kept is not None:
            self.kept.require(plan.function.name, base, size, lambda: plan.frame)
        got = plan.finish(result)
        self._note_all(got)
        return got

    def free(self) -> None:
        """Free the memory."""
        self._room.free()
        self._window.free()

    def _send(self, plan: CallPlan) -> int:
        rpc = self._session.rpc
        rpc.ready()
        base = self._base_of(plan)
        for offset, data in plan.frame.image(base):
            upload(rpc, base, offset, data)
        return base

    def _base_of(self, plan: CallPlan) -> int:
        return self._base(plan.frame.size, plan.function.name, plan.frame.alignment)

    def _base(self, size: int, function: str, alignment: int = ALIGNMENT) -> int:
        base = self._room.address(size, alignment)
        same = self._lent[0] if len(self._lent) == 1 else None
        if same is None or same.noted or (same.owner, same.base, same.size) != (self, base, size):
            for lent in self._lent:
                lent.over = True
            same = Lent(self, function, base, size)
            self._lent = [same]
        same.function = function
        return base


def _is_unchanged(rpc: RpcClient, base: int, sent: bytes) -> bool:
    """True if the memory at `base` has these bytes, by its checksum; False on a device without checksums."""
    if not sent:
        return True
    checksum = rpc.global_function(CHECKSUM)
    tensor = DLTensor(base, BYTES, (len(sent),), 0)
    return bool(checksum) and rpc.call(checksum, (tensor,), f"call {CHECKSUM}") == crc32(sent)


def upload(rpc: RpcClient, base: int, offset: int, data: bytes | bytearray) -> None:
    """Copy bytes into an allocation on the device."""
    memory.upload(rpc, DLTensor(base, BYTES, (len(data),), offset), memoryview(data))


def download(rpc: RpcClient, base: int, offset: int, size: int) -> memoryview:
    """Copy bytes of an allocation on the device."""
    return memoryview(memory.download(rpc, DLTensor(base, BYTES, (size,), offset), size))
