# SPDX-License-Identifier: Apache-2.0
"""A bridge's requests to a device in Python, for a client's requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from minrpc import EmulatorExitedError, HarnessError
from minrpc.tvm import uploads
from minrpc.tvm.bridge import Bridge
from minrpc.tvm.uploads import Files
from minrpc.wire import ffi
from minrpc.wire.dtypes import DataType
from minrpc.wire.replies import Result, ReturnedArray
from minrpc.wire.requests import HEAD, CallFunc, RpcCode, Syscall, get_global_func
from minrpc.wire.values import Argument, DLDevice, DLTensor, Handle, Module, Object, TypeCode, Value

from tests.unit.client.conftest import Bench
from tests.unit.client.device_model import LIBRARY, OURS, TVM_0_18_0, Traits

ARRAY = ReturnedArray(DLTensor(0x100, DataType(0, 8), (2,)), 0x140)


class Client:
    """A client of today's TVM, and the handles that the bridge asked the device to free."""

    def __init__(self, traits: Traits = OURS) -> None:
        self.bench = Bench(traits)
        self.bench.device.rpc.restart()
        self.files = Files(self.bench.device)
        self.bridge = Bridge(self.bench.device, self.files, {"test.array": lambda _: ARRAY})

    def ask(self, request: CallFunc | Syscall) -> tuple[RpcCode, list[Value]]:
        reply = self.bridge.answer(ffi.encode_request(request))
        return RpcCode(HEAD.unpack_from(reply)[1]), ffi.decode_sequence(reply, HEAD.size)

    def result(self, handle: int, *args: Argument) -> Value:
        code, values = self.ask(CallFunc(handle, args))
        assert code is RpcCode.RETURN, values
        return values[1]

    def refused(self, handle: int, *args: Argument) -> Value:
        code, values = self.ask(CallFunc(handle, args))
        assert code is RpcCode.EXCEPTION
        return values[0]

    def function(self, name: str) -> int:
        request = get_global_func(name)
        assert isinstance(request, Syscall)
        _, (found,) = self.ask(request)
        assert isinstance(found, Handle)
        return found.value

    def free(self, handle: int, *kind: int) -> None:
        self.ask(Syscall(RpcCode.FREE_HANDLE, (Handle(handle), *kind)))

    @property
    def freed(self) -> list[Sequence[object]]:
        return [
            (args[0].value, args[1])
            for request in self.bench.model.requests
            if isinstance(request, Syscall) and request.code is RpcCode.FREE_HANDLE
            for args in [request.args]
            if isinstance(args[0], Handle)
        ]


@pytest.fixture
def client() -> Iterator[Client]:
    made = Client()
    yield made
    made.files.close()


def test_an_array_that_a_function_returned_is_freed(client: Client) -> None:
    client.result(client.function("test.array"))
    client.free(ARRAY.handle)
    assert client.freed == [(ARRAY.handle, TypeCode.NDARRAY)]


def test_a_function_by_its_name_is_freed_with_its_last_use(client: Client) -> None:
    for _ in range(2):
        found = client.function(":inc")
    client.free(found)
    assert client.freed == []
    client.free(found)
    client.free(found)
    assert client.freed == [(found, TypeCode.FUNCTION)]


def test_a_module_that_was_given_again_stays(client: Client) -> None:
    """A module that was released while its function was in use, then loaded again, is not freed with the
    function."""
    library, find = client.function("ffi.SystemLib"), client.function("tvm.rpc.server.ModuleGetFunction")
    assert client.result(library) == Handle(LIBRARY)
    inc = client.result(find, Module(LIBRARY), "inc", True)
    assert isinstance(inc, Handle)
    client.free(LIBRARY)
    client.result(library)
    client.free(inc.value)
    assert client.freed == [(inc.value, TypeCode.FUNCTION)]
    client.free(LIBRARY)
    assert client.freed == [(inc.value, TypeCode.FUNCTION), (LIBRARY, TypeCode.MODULE)]


def test_a_module_that_was_freed_before_its_function_goes_with_it(client: Client) -> None:
    library, find = client.function("ffi.SystemLib"), client.function("tvm.rpc.server.ModuleGetFunction")
    client.result(library)
    inc, add = (client.result(find, Module(LIBRARY), name, True) for name in ("inc", "add"))
    assert isinstance(inc, Handle)
    assert isinstance(add, Handle)
    client.free(LIBRARY)
    client.free(inc.value)
    assert client.freed == [(inc.value, TypeCode.FUNCTION)]
    client.free(add.value)
    assert client.freed[1:] == [(add.value, TypeCode.FUNCTION), (LIBRARY, TypeCode.MODULE)]


@pytest.mark.parametrize(
    ("kind", "freed"),
    [
        ((), [TypeCode.NDARRAY]),
        ((int(TypeCode.MODULE),), [TypeCode.MODULE]),
        ((99,), [TypeCode.NDARRAY]),
    ],
)
def test_the_kind_of_a_handle_is_its_clients_if_it_tells_one(
    client: Client, kind: tuple[int, ...], freed: list[TypeCode]
) -> None:
    client.result(client.function("test.array"))
    client.free(ARRAY.handle + 1)
    client.free(ARRAY.handle, *kind)
    assert client.freed == [(ARRAY.handle, item) for item in freed]


def test_a_handle_of_which_only_the_client_knows_is_freed_by_its_kind(client: Client) -> None:
    client.free(0x999, int(TypeCode.NDARRAY))
    assert client.freed == [(0x999, TypeCode.NDARRAY)]


def test_a_name_that_the_device_does_not_know_is_nothing(client: Client) -> None:
    request = get_global_func("none")
    assert isinstance(request, Syscall)
    assert client.ask(request) == (RpcCode.RETURN, [None])


def test_memory_of_a_scope_is_allocated(client: Client) -> None:
    tensor = DLTensor(0, DataType(0, 8), (2,))
    code, values = client.ask(Syscall(RpcCode.DEV_ALLOC_DATA_WITH_SCOPE, (tensor, None)))
    assert code is RpcCode.RETURN
    assert isinstance(values[0], Handle)


def test_an_object_is_nothing_for_a_device(client: Client) -> None:
    inc = client.function(":inc")
    asked = len(client.bench.model.requests)
    assert client.refused(inc, Object(75, 9)) == "an object (type index 75) can't be sent to a device"
    assert len(client.bench.model.requests) == asked


def test_text_of_the_devices_that_is_no_utf_8_comes_as_it_is(client: Client) -> None:
    client.function(":inc")
    assert client.bridge.refusal("\udcff!").endswith(b"\x02\0\0\0\0\0\0\0\xff!")


def test_all_files_are_removed_by_the_empty_name(client: Client) -> None:
    """TVM's tuner removes all files in this way."""
    server = "tvm.rpc.server."
    upload, remove = client.function(f"{server}upload"), client.function(f"{server}remove")
    for name in ("a.o", "b.o"):
        client.result(upload, name, b"x")
    client.result(remove, "")
    for name in ("a.o", "b.o"):
        assert client.refused(client.function(f"{server}download"), name) == (
            f"there is no file {name}: upload it first"
        )


@pytest.mark.parametrize("dies", [True, False])
def test_a_device_that_dies_of_a_module(client: Client, dies: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The device's death is raised to the server, which gets another device; the module's fault goes only to
    the client."""

    def load(*_: object, **__: object) -> Result:
        if dies:
            client.bench.transport.close()
            with pytest.raises(HarnessError):
                client.bench.device.rpc.call(1, [], "call")
        raise EmulatorExitedError("it has gone") if dies else HarnessError("it does not link")

    monkeypatch.setattr(uploads, "load_module", load)
    server = "tvm.rpc.server."
    client.result(client.function(f"{server}upload"), "m.o", b"x")
    loading = client.function(f"{server}load_module")
    if dies:
        with pytest.raises(EmulatorExitedError, match="it has gone"):
            client.ask(CallFunc(loading, ("m.o",)))
    else:
        assert str(client.refused(loading, "m.o")).startswith("it does not link")


def test_attributes_of_a_device_that_tells_nothing_of_itself() -> None:
    """TVM's own device has no `minrpc.device_info`: it gets no such request, and the session goes on."""
    client = Client(TVM_0_18_0)
    for kind, value in ((0, 1), (1, None), (14, None), (15, None)):
        code, values = client.ask(Syscall(RpcCode.DEV_GET_ATTR, (DLDevice(1, 0), kind)))
        assert (code, values) == (RpcCode.RETURN, [value])
    assert client.function("runtime.SystemLib")
