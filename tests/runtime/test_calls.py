# SPDX-License-Identifier: Apache-2.0
"""Calls: arguments and results, handles, workspace, logs, the global functions, the other requests."""

from __future__ import annotations

import math
from itertools import product
from struct import pack, unpack, unpack_from

import pytest
from minrpc.wire.dtypes import DataType
from minrpc.wire.replies import CopyAck, ReturnedArray
from minrpc.wire.requests import (
    CallFunc,
    CopyFromRemote,
    InitServer,
    RpcCode,
    Syscall,
    alloc_data_with_scope,
    free_data,
)
from minrpc.wire.session_layer import MessageType
from minrpc.wire.values import (
    CPU,
    Bool,
    Dialect,
    DLDevice,
    DLTensor,
    Function,
    Handle,
    Module,
    TypeCode,
    UInt,
)

from tests.runtime.host import F32, SYSTEM_LIB, V7, V8, Host, free, message, packet, tensor

NUMBER = 0x1122334455667788
U64_MAX = (1 << 64) - 1


def returning(host: Host, code: int, value: int) -> CallFunc:
    """A call of the function that returns this value."""
    host.functions.type_code = code
    host.functions.value.v_int64 = value
    return CallFunc(host.function("ret"), ())


def byte_array(host: Host, data: int, size: int) -> int:
    """The address of a TVMByteArray."""
    array = host.door.new("TVMByteArray")
    array.data, array.size = data, size
    return array.address


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (TypeCode.INT, NUMBER),
        (TypeCode.UINT, UInt(NUMBER)),
        (TypeCode.FLOAT, unpack("<d", pack("<Q", NUMBER))[0]),
        (TypeCode.HANDLE, Handle(NUMBER)),
        (TypeCode.MODULE, Module(NUMBER)),
        (TypeCode.FUNCTION, Function(NUMBER)),
        (TypeCode.DATA_TYPE, DataType(0x88, 0x77, 0x5566)),
        (TypeCode.DEVICE, DLDevice(0x55667788, 0x11223344)),
        (TypeCode.BOOL, NUMBER),  # a code that only the newest clients know
    ],
)
def test_scalars_are_returned(host: Host, code: int, value: object) -> None:
    assert host.result(returning(host, code, NUMBER)) == value
    assert len(host.packet) == 40


def test_nothing_strings_and_bytes_are_returned(host: Host) -> None:
    assert host.result(returning(host, TypeCode.NULL, 7)) is None
    assert len(host.packet) == 32
    assert host.result(returning(host, TypeCode.STRING, host.door.memory(b"text\0"))) == "text"
    assert len(host.packet) == 44
    assert host.result(returning(host, TypeCode.STRING, host.door.memory(b"\0"))) == ""
    three = byte_array(host, host.door.memory(b"a\0b"), 3)
    assert host.result(returning(host, TypeCode.BYTES, three)) == b"a\0b"
    assert host.result(returning(host, TypeCode.BYTES, byte_array(host, 0, 0))) == b""


def test_a_reply_of_any_length_is_one_message(host: Host) -> None:
    data = b"\xff" * 60000
    array = byte_array(host, host.door.memory(data), len(data))
    assert host.result(returning(host, TypeCode.BYTES, array)) == data


@pytest.mark.parametrize("code", [TypeCode.TENSOR, TypeCode.OBJECT, TypeCode.NDARRAY, 14, 16, 99, -1])
def test_what_can_not_travel_is_an_exception(host: Host, code: int) -> None:
    """The arena knows no such array: the client could never name it again."""
    assert "can't be sent" in host.error(returning(host, code, host.door.new("DLTensor").address))


def test_no_memory_can_not_travel(host: Host) -> None:
    assert "returned str" in host.error(returning(host, TypeCode.STRING, 0))
    assert "returned bytes" in host.error(returning(host, TypeCode.BYTES, 0))
    assert "returned bytes" in host.error(returning(host, TypeCode.BYTES, byte_array(host, 0, 1)))


def set_array(host: Host, data: int, dtype: DataType, shape: tuple[int, ...]) -> None:
    """The function `array` returns this array."""
    array = host.functions.array
    array.data, array.ndim = data, len(shape)
    array.device.device_type = CPU.device_type
    array.dtype.code, array.dtype.bits, array.dtype.lanes = dtype
    array.shape = host.door.memory(pack(f"<{len(shape)}q", *shape)) if shape else 0


@pytest.mark.parametrize("dialect", [V7, V8])
def test_an_array_is_returned_in_the_clients_dialect(host: Host, dialect: Dialect) -> None:
    # The first allocation shows the client's dialect.
    found = host.result(alloc_data_with_scope(tensor(0, 24))) if dialect is V8 else Handle(host.alloc(24))
    assert isinstance(found, Handle)
    set_array(host, found.value, F32, (3, 2))
    array = host.result(CallFunc(host.function("array"), ()), dialect)
    assert isinstance(array, ReturnedArray)
    assert array.tensor == DLTensor(found.value, F32, (3, 2))
    assert len(host.packet) == 12 + 24 + 48 + (8 if dialect is V8 else 0)
    # It reads back, and is freed once.
    assert isinstance(host.request(CopyFromRemote(tensor(found.value, 24), 24), dialect), CopyAck)
    host.free_handle(array.handle, TypeCode.NDARRAY)
    assert "0x" in host.error(free(array.handle, TypeCode.NDARRAY))


def test_an_array_for_a_client_of_unknown_dialect_has_a_byte_offset(host: Host) -> None:
    """A client that has sent no tensor yet gets an answer that all clients except v0.7's understand."""
    set_array(host, 0, DataType(0, 8), (3,))
    array = host.call(host.function("array"))
    assert isinstance(array, ReturnedArray)
    assert array.tensor.byte_offset == 0
    assert len(host.packet) == 12 + 24 + 32 + 8 + 8


# ---------------------------------------------------------------- handles


@pytest.mark.parametrize(
    "handle",
    [
        *(0, 1, 0x7FFF, 0x8000, 0x80007FFF, 0x80008100, 0x8000FFFF, 0x80028100, 0x8002FFFF, 0x8003 << 16),
        *(0xBFFFFFFF, 0xC0000000, 0xFFFFFFFF, 0x100000000, 0x180008000, 0xFFFFFFFF80008000, U64_MAX),
    ],
)
def test_handles_that_nobody_gave_out_are_exceptions(host: Host, handle: int) -> None:
    assert "0x" in host.fails(handle)
    assert host.serves()


@pytest.mark.parametrize(
    ("handle", "kind"),
    [
        *[(handle, TypeCode.NDARRAY) for handle in (0, 1, U64_MAX)],
        *[(handle, TypeCode.FUNCTION) for handle in (0xC0000000, 0xFFFFFFFF, 1 << 40)],
        *[(0x8000, kind) for kind in (TypeCode.INT, TypeCode.STRING, 16, -1, (1 << 32) + TypeCode.MODULE)],
    ],
)
def test_freeing_what_is_not_live_is_an_exception(host: Host, handle: int, kind: int) -> None:
    host.error(free(handle, kind))
    assert host.serves()


def test_kinds_of_memory_are_kept_apart(host: Host) -> None:
    """An array's header can't be freed as data, nor data as an array."""
    data = host.alloc(16)
    set_array(host, data, DataType(0, 8), ())
    array = host.result(CallFunc(host.function("array"), ()), V7)
    assert isinstance(array, ReturnedArray)
    assert "0x" in host.error(free_data(array.handle))
    assert "0x" in host.error(free(data, TypeCode.NDARRAY))
    host.free(data)


# -------------------------------------------------------------- workspace


def test_workspace_is_given_back(host: Host) -> None:
    """Objects that a function leaves behind are freed for it, too."""
    workspace, leak = host.function("workspace"), host.function("leak")
    for _ in range(100):
        assert host.call(workspace) is None
        assert host.arena.used == 0
        assert host.call(leak) == 1
        assert host.arena.used == 0


def test_workspace_that_does_not_fit_says_so(host: Host) -> None:
    leak = host.function("leak")
    host.alloc(host.arena.size - 512)
    text = host.fails(leak)
    assert "memory" in text
    assert "1000" in text
    assert host.serves()


def test_workspace_that_is_not_live_is_an_exception(host: Host) -> None:
    assert "workspace" in host.fails(host.function("bad_free"))


def test_functions_call_each_other_by_name(host: Host) -> None:
    call = host.function("call_inc")

    def nested(name: bytes) -> None:
        host.functions.nested = host.door.memory(name + b"\0")

    assert host.call(call, 9) == 10
    # A function that returns nothing: the value of an earlier call is not its result.
    nested(b"spin")
    assert host.call(call, 1) is None
    # There, arguments and names are checked, too.
    assert "spin: argument 0" in host.fails(call, "text")
    nested(b"nobody")
    assert 'no function "nobody"' in host.fails(call)
    nested(b"fail_text")
    assert "no luck" in host.fails(call)


def test_an_exceptions_text_is_cut_at_its_buffer(host: Host) -> None:
    name = "n" * 3999
    assert host.find(name) == 0
    text = host.error(host.evaluating(name))
    assert "nnn" in text
    assert len(text) < len(host.server.error.content())


# -------------------------------------------------------- global functions


def test_unknown_names_are_not_errors(host: Host) -> None:
    assert host.find("nothing") == host.find("") == 0
    assert host.call(host.find("tvm.rpc.server.ModuleGetFunction"), SYSTEM_LIB, "nothing", Bool(True)) is None


def test_functions_of_the_library_are_named_after_a_colon(host: Host) -> None:
    assert host.find(":inc") == host.function("inc")
    assert host.find(":nothing") == host.find(":") == host.find(":runtime.SystemLib") == 0


def test_random_fill_is_repeatable(host: Host) -> None:
    """Two successive sessions give the same values over any memory, and no float is nan."""
    filled = []
    for before in (b"\0", b"\xff"):
        host.open(0x19)
        data = host.alloc(256)
        host.door.write(data, 256 * before)
        assert host.call(host.find("tvm.contrib.random.random_fill"), tensor(data, 64, dtype=F32)) is None
        filled.append(unpack("<64f", host.read(data, 256)))
    assert filled[0] == filled[1]
    assert filled[0][0] != filled[0][1]
    assert all(math.isfinite(value) and 2**-126 <= abs(value) < 2 for value in filled[0])


@pytest.mark.parametrize("code", range(6))
def test_random_fill_stays_inside_for_every_dtype(host: Host, code: int) -> None:
    fill = host.find("tvm.contrib.random.random_fill")
    guard = b"0123456789abcdef"
    for bits, lanes in product([1, 4, 7, 8, 12, 16, 17, 24, 32, 33, 64, 80, 128, 255], [1, 2, 3]):
        dtype = DataType(code, bits, lanes)
        before, data, after = host.alloc(16), host.alloc(3 * dtype.itemsize), host.alloc(16)
        host.door.write(before, guard)
        host.door.write(after, guard)
        assert host.call(fill, tensor(data, 3, dtype=dtype)) is None
        assert host.door.read(before, 16) == host.door.read(after, 16) == guard
        for block in (before, data, after):
            host.free(block)


def info(host: Host) -> bytes:
    answer = host.call(host.find("minrpc.device_info"))
    assert isinstance(answer, bytes)
    return answer


def test_device_info_tells_the_arena_and_the_clock(host: Host) -> None:
    host.alloc(1000)
    host.clock.now = 77
    answer = info(host)
    arena = host.arena
    free_bytes = host.door.call("minrpc_arena_largest_free", arena, result="I")
    assert unpack_from("<I", answer)[0] == 4
    assert unpack_from("<5I", answer, 16) == (8192, arena.size, arena.used, arena.peak, free_bytes)
    assert unpack_from("<Q8xQ", answer, 72) == (1000000, 77)
    text = host.fails(host.find("minrpc.device_info"), "what")
    assert text == "minrpc.device_info: expected 0 arguments, got 1"
    assert host.serves()


def test_device_info_tells_regions_options_and_build(host: Host) -> None:
    options = (
        b"numbered,streaming,random_fill,fill,error_texts,guards,counting,abandon,"
        b"config_checks,testing,code_loading,ask,layout,counters,"
    )
    build = b"\1\2\3\xff".ljust(32, b"\0")
    config = host.config
    config.build_id, config.build_id_size = host.door.memory(build), len(build)
    answer = info(host)
    # Its own size, three regions of 24 bytes, the options, the build id.
    assert unpack_from("<6H", answer, 4) == (104, 3, 24, len(options), len(build), 64)
    assert unpack_from("<" + "QQI4x" * 3, answer, 104) == (
        *(host.arena.base, host.arena.size, 1),
        *(host.door.address("host_constants"), 16, 2),
        *(config.arena, config.arena_size, 4),
    )
    assert answer[176:] == options + build
    config.build_id_size = config.read_only_size = 0
    assert len(info(host)) == 104 + 2 * 24 + len(options)


def test_a_device_that_can_not_reset_says_so(host: Host) -> None:
    reset = host.find("tvm.testing.reset_server")
    host.request(CallFunc(reset, ()))
    assert host.is_.resets == 1
    host.platform.reset = 0
    assert "reset" in host.fails(reset)


@pytest.mark.parametrize(
    "name",
    [
        "tvm.rpc.server.ModuleGetFunction",
        "runtime.RPCTimeEvaluator",
        "tvm.contrib.random.random_fill",
        "minrpc.time_evaluator",
    ],
)
def test_global_functions_check_their_arguments(host: Host, name: str) -> None:
    assert "argument" in host.fails(host.find(name))
    assert "argument" in host.fails(host.find(name), *[None] * 20)


# ---------------------------------------------------------- other requests


@pytest.mark.parametrize("code", range(RpcCode.GET_GLOBAL_FUNC, RpcCode.DEV_GET_CURRENT_STREAM + 1))
def test_system_calls_check_their_arguments(host: Host, code: int) -> None:
    for count in range(10):
        host.error(Syscall(RpcCode(code), [1.5] * count))
    assert host.serves()


def test_streams_are_one(host: Host) -> None:
    for code in (RpcCode.DEV_STREAM_SYNC, RpcCode.DEV_FREE_STREAM, RpcCode.DEV_SET_STREAM):
        assert host.result(Syscall(code, (CPU, Handle(0)))) is None
    for code in (RpcCode.DEV_CREATE_STREAM, RpcCode.DEV_GET_CURRENT_STREAM):
        assert host.result(Syscall(code, (CPU,))) == Handle(0)


def test_a_link_that_is_gone_does_not_stop_the_device(host: Host) -> None:
    call = message(host.session, MessageType.NORMAL, packet(CallFunc(host.function("tick"), ())))
    host.is_.link_gone = True
    host.give(call)
    host.give(call)
    assert host.functions.calls == 2
    assert host.door.call("minrpc_server_log", host.server, host.door.memory(b"x"), 1) == -1
    host.is_.link_gone = False
    # The next frame starts with a byte that ends the cut frame.
    host.give(call)
    assert host.door.read(host.is_.sent.data, 1) == b"\xfe"
    host.take()
    assert host.serves()


def test_the_dialect_of_a_session_is_kept(host: Host) -> None:
    """f(tensor, 0) of v0.7: the int's 8 bytes could also be the byte offset of v0.8's f(tensor)."""
    echo, data = host.function("echo"), host.alloc(64)

    def dialect(name: str) -> bool:
        return bool(host.server.dialect == host.door.constant(f"MINRPC_DIALECT_{name}"))

    assert host.result(InitServer("0.7.0")) is None
    assert dialect("0_7")
    assert host.result(CallFunc(echo, (7, tensor(data, 64))), V7) == 7
    assert dialect("0_7")
    assert host.result(InitServer("0.8.0")) is None
    assert dialect("0_8")
    host.open(0x24)
    assert dialect("UNKNOWN")
