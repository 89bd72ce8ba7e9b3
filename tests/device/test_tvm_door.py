# SPDX-License-Identifier: Apache-2.0
"""Clients of TVM over TCP, before v0.21 and since, on every device."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from minrpc import Device
from minrpc.library import firmware_of, program_facts, toolset_of
from minrpc.wire.dtypes import DataType
from minrpc.wire.requests import CallFunc, CopyToRemote, RpcCode, Syscall
from minrpc.wire.values import DLDevice, DLTensor, Function, Handle, Module

from tests.device.tvm_client import LentDevice, RefusedError, TvmClient, served

INT8 = DataType(0, 8)
FLOAT = DataType(2, 32)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def source(device: Device) -> LentDevice:
    return LentDevice(device)


@pytest.fixture
def port(source: LentDevice, said: list[str]) -> Iterator[int]:
    with served(source, said) as number:
        yield number


@pytest.fixture(params=[True, False], ids=["today", "before v0.21"])
def client(request: pytest.FixtureRequest, port: int) -> Iterator[TvmClient]:
    with TvmClient(port, request.param) as opened:
        yield opened


def add(client: TvmClient) -> bytes:
    a = client.array(DLTensor(0, INT8, (2,)), b"\x02\x03")
    b = client.array(DLTensor(0, INT8, (1,)), b"\x04")
    c = client.array(DLTensor(0, INT8, (2,)), b"\0\0")
    assert client.call(client.library_function("add"), a, b, c) is None
    return client.read(c)


def test_add(client: TvmClient) -> None:
    assert add(client) == b"\x06\x07"


def test_scalars(client: TvmClient) -> None:
    assert client.call(client.library_function("inc"), 41) == 42
    assert client.call(client.library_function("inc"), True) == 2


def test_a_long_array_comes_back(need_memory: Callable[[int], None], client: TvmClient) -> None:
    need_memory(24_000)
    data = np.arange(5000, dtype=np.float32).tobytes()
    array = client.array(DLTensor(0, FLOAT, (50, 100)), data)
    assert client.read(array) == data


def test_a_time_evaluator(client: TvmClient) -> None:
    evaluator = client.function("runtime.RPCTimeEvaluator")
    library = client.call(client.function("ffi.SystemLib" if client.today else "runtime.SystemLib"))
    timed = client.call(evaluator, library, "inc", 1, 0, 5, 3, 0, 100, 0, 1, 0, "")  # type: ignore[arg-type]
    assert isinstance(timed, Function)
    seconds = client.call(timed.handle, 1)
    assert isinstance(seconds, bytes)
    times = struct.unpack("<3d", seconds)
    assert all(0 < time < 60 for time in times)


def test_errors_have_the_devices_text_and_the_session_goes_on(client: TvmClient) -> None:
    inc = client.library_function("inc")
    with pytest.raises(RefusedError, match="inc: argument 0: expected int, got str"):
        client.call(inc, "one")
    with pytest.raises(RefusedError, match="0x123"):
        client.call(0x123)
    assert client.function("no.such.function") == 0
    assert client.call(inc, 1) == 2


def test_attributes_of_the_device(client: TvmClient, source: LentDevice) -> None:
    """The attributes are the same as of TVM's own CPU: it exists and has memory; all others are unknown."""

    def attribute(kind: int) -> object:
        return client.syscall(Syscall(RpcCode.DEV_GET_ATTR, (DLDevice(1, 0), kind)))

    info = source.device.info()
    assert [attribute(kind) for kind in (0, 1, 14)] == [1, None, info.arena_size]
    assert attribute(15) == info.arena_size - source.device.info().arena_used


def test_the_packet_size_is_ours(client: TvmClient) -> None:
    size = client.call(client.function("tvm.rpc.server.GetCRTMaxPacketSize"))
    assert size == 1 << 20


def test_handles_are_given_back(client: TvmClient, source: LentDevice) -> None:
    inc = client.library_function("inc")
    free = (Handle(inc),) if client.today else (Handle(inc), 10)
    client.syscall(Syscall(RpcCode.FREE_HANDLE, free))
    client.syscall(
        Syscall(RpcCode.FREE_HANDLE, (Handle(1 << 62),) if client.today else (Handle(1 << 62), 10))
    )
    assert client.call(client.library_function("inc"), 1) == 2


def test_the_next_client_finds_nothing_of_the_one_before(port: int, source: LentDevice) -> None:
    with TvmClient(port, True) as first:
        assert first.function("runtime.SystemLib")
        used = source.device.info().arena_used
        first.array(DLTensor(0, INT8, (1000,)), bytes(1000))
        assert source.device.info().arena_used > used
    with TvmClient(port, False) as second:
        assert add(second) == b"\x06\x07"
    with TvmClient(port, True) as third:
        assert third.function("runtime.SystemLib")
        assert source.device.info().arena_used == used


def test_a_client_that_dies_in_mid_copy(port: int) -> None:
    with TvmClient(port, True) as dying:
        dying.connection.sendall(struct.pack("<Qi", 1 << 20, RpcCode.COPY_TO_REMOTE) + bytes(100))
    with TvmClient(port, True) as client:
        assert add(client) == b"\x06\x07"


@pytest.mark.parametrize(
    ("garbage", "why"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "begins with 0x20544547"),
        (struct.pack("<ii", 0xFF270, 4) + b"abcd", "begins with 0xff270"),
        (struct.pack("<ii", 0xFF271, -5), "a key of -5 bytes"),
        (struct.pack("<iiQ", 0xFF271, 0, 1 << 60), "a packet of 1152921504606846976 bytes"),
    ],
)
def test_garbage(port: int, said: list[str], garbage: bytes, why: str) -> None:
    """The connection is closed, the server logs the reason, and the next client is served."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as stranger:
        stranger.sendall(garbage)
        with suppress(ConnectionResetError):
            while stranger.recv(100):
                pass
    with TvmClient(port, True) as client:
        assert add(client) == b"\x06\x07"
    assert any(why in line for line in said)


def test_packets_that_mean_nothing_are_answered(client: TvmClient) -> None:
    inc = client.library_function("inc")
    for code, body in ((99, bytes(26)), (13, bytes(26)), (3, b"\xff" * 16)):
        client.connection.sendall(struct.pack("<Qi", len(body) + 4, code) + body)
        with pytest.raises(RefusedError, match="the request can't be read"):
            client.answer()
    assert client.call(inc, 1) == 2


def test_sizes_that_can_not_be(client: TvmClient) -> None:
    for shape in ((1 << 62, 1 << 62), (1 << 40,), (1 << 31,), (-1,), (-1, -4)):
        with pytest.raises(RefusedError, match=r"4 GiB|largest free"):
            client.array(DLTensor(0, INT8, shape), b"")
    array = client.array(DLTensor(0, INT8, (4,)), b"1234")
    with pytest.raises(RefusedError, match="a copy of 1125899906842624 bytes, and the tensor has 4"):
        client.read_bytes(array, 1 << 50)
    with pytest.raises(RefusedError, match="a copy of 1048576 bytes, and the tensor has 4"):
        client.syscall(CopyToRemote(array, bytes(1 << 20)))
    with pytest.raises(RefusedError):
        client.call(client.library_function("add"), array._replace(shape=(1 << 40,)), array, array)
    assert client.read(array) == b"1234"


EMPTY_FUNCTION = b"int __tvm_ffi_f(void *self, void *args, int count, void *result) { return 0; }\n"


@pytest.fixture
def can_load(device: Device) -> None:
    if not device.rpc.global_function("minrpc.code_load"):
        pytest.skip("its firmware can't load code")


def foreign_object(device: Device) -> bytes:
    """The header of an ELF file for another machine, without content."""
    machine = 0xF3 if program_facts(toolset_of(firmware_of(device)).elf).machine == "EM_ARM" else 40
    return struct.pack("<16sHHIIIIIHHHHHH", b"\x7fELF\1\1\1", 1, machine, 1, 0, 0, 0, 0, 52, 0, 0, 0, 0, 0)


@pytest.mark.usefixtures("can_load")
def test_files_that_are_no_modules(client: TvmClient, device: Device) -> None:
    server = "tvm.rpc.server."
    upload, load = client.function(f"{server}upload"), client.function(f"{server}load_module")
    download, remove = client.function(f"{server}download"), client.function(f"{server}remove")
    for name in ("../m.o", "/tmp/m.o", "", "..", "a\0.o", "x" * 300):
        with pytest.raises(RefusedError, match=r"a file is named without a directory|is no name of a file"):
            client.call(upload, name, b"")
    for name, content, text in (
        ("m.o", b"", "m.o is no ELF object"),
        ("m.o", b"\x7fELF", "m.o is damaged or cut off"),
        ("m.o", foreign_object(device), r"m\.o is code for \w+, 32 bits; the device is \w+, \d\d bits"),
        ("m.c", b"int x", r"(?s)m\.c does not compile\s+m\.c:1:"),
        ("m.tar", b"text", "m.tar is no archive"),
        ("m.exe", b"MZ", "m.exe: a module is a file"),
    ):
        client.call(upload, name, content)
        with pytest.raises(RefusedError, match=text):
            client.call(load, name)
    assert client.call(download, "m.exe") == b"MZ"
    client.call(remove, "m.exe")
    with pytest.raises(RefusedError, match=r"there is no file m\.exe"):
        client.call(download, "m.exe")
    client.call(upload, "m.c", EMPTY_FUNCTION)
    assert isinstance(client.call(load, "m.c"), Module)


@pytest.mark.usefixtures("can_load")
def test_a_crash_names_no_directory_of_the_server(client: TvmClient) -> None:
    source = EMPTY_FUNCTION.replace(b"{", b"{ __builtin_trap();", 1)
    client.call(client.function("tvm.rpc.server.upload"), "m.c", source)
    module = client.call(client.function("tvm.rpc.server.load_module"), "m.c")
    assert isinstance(module, Module)
    found = client.call(client.function("tvm.rpc.server.ModuleGetFunction"), module, "f", True)
    assert isinstance(found, Function)
    with pytest.raises(RefusedError) as caught:
        client.call(found.handle)
    assert "/m.c" not in str(caught.value)


@pytest.mark.usefixtures("can_load")
def test_a_cache_that_cant_be_written(
    client: TvmClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client gets the error, and is served as before."""
    client.call(client.function("tvm.rpc.server.upload"), "m.c", EMPTY_FUNCTION + b"int other;")
    (tmp_path / "minrpc").mkdir()
    (tmp_path / "minrpc" / "scratch").write_text("no directory")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(RefusedError, match="the cache can't be written"):
        client.call(client.function("tvm.rpc.server.load_module"), "m.c")
    assert client.call(client.library_function("inc"), 1) == 2


@pytest.mark.usefixtures("can_load")
def test_a_function_outlives_its_module(client: TvmClient, source: LentDevice) -> None:
    """Functions of a module keep the module, as in TVM; after them its memory is freed."""
    client.call(client.function("tvm.rpc.server.upload"), "m.c", EMPTY_FUNCTION)
    used = source.device.info().arena_used
    module = client.call(client.function("tvm.rpc.server.load_module"), "m.c")
    assert isinstance(module, Module)
    find = client.function("tvm.rpc.server.ModuleGetFunction")
    functions = [client.call(find, module, "f", True) for _ in range(2)]
    timed = client.call(
        client.function("runtime.RPCTimeEvaluator"), module, "f", 1, 0, 1, 1, 0, 0, 0, 1, 0, ""
    )
    client.free(module)
    for function in (*functions, timed):
        assert isinstance(function, Function)
        client.call(function.handle)
        client.free(function)
    client.call(client.library_function("inc"), 1)
    assert source.device.info().arena_used == used


def test_who_is_no_client_is_sent_away(port: int, said: list[str]) -> None:
    with pytest.raises(ConnectionResetError), TvmClient(port, True, key="x" * 5000):
        pass
    with TvmClient(port, True) as client:
        assert add(client) == b"\x06\x07"
    assert any("a key of 5000 bytes" in line for line in said)


def test_a_client_that_leaves_while_its_request_runs_interrupts_the_device(
    port: int, source: LentDevice
) -> None:
    with TvmClient(port, True) as leaving:
        leaving.send(CallFunc(leaving.function("test.wait"), []))
        assert source.waits.wait(60)
        assert not source.interrupted.is_set()
    assert source.interrupted.wait(60)


def test_a_session_lasts_as_long_as_its_client_wanted(port: int, source: LentDevice) -> None:
    with TvmClient(port, True, key="client:x -timeout=0.2") as client:
        client.send(CallFunc(client.function("test.wait"), []))
        assert source.interrupted.wait(60)


def test_one_client_at_a_time(port: int) -> None:
    """The second waits for its answer until the first has left."""
    with TvmClient(port, True) as first:
        assert add(first) == b"\x06\x07"
        second = threading.Thread(target=lambda: answers.append(add_as_client(port)))
        answers: list[bytes] = []
        second.start()
        assert add(first) == b"\x06\x07"
        assert answers == []
    second.join(60)
    assert answers == [b"\x06\x07"]


def add_as_client(port: int) -> bytes:
    with TvmClient(port, False) as client:
        return add(client)
