# SPDX-License-Identifier: Apache-2.0
"""The client on a device of this project: arrays, functions, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
from minrpc import (
    DeadlineError,
    Device,
    DeviceMemoryError,
    DialectError,
    FunctionNotFoundError,
    NothingHeardError,
    RemoteArray,
    RemoteError,
    RemoteFunction,
    RemoteModule,
    SessionTerminatedError,
    Target,
)
from minrpc.client import memory
from minrpc.client.time_evaluator import EvaluatorOptions
from minrpc.wire import dtypes
from minrpc.wire.dtypes import DataType, to_dtype
from minrpc.wire.replies import CopyAck
from minrpc.wire.values import DLDevice, DLTensor, Handle, UInt

from tests.unit.client.conftest import TIMEOUT_S, Bench
from tests.unit.client.device_model import OURS, TVM_0_8_0


def test_add_on_the_device(bench: Bench) -> None:
    device = bench.device
    a = device.array(np.array([2, 3], np.int8))
    b = device.array(np.array([4], np.int8))
    c = device.empty((2,), np.int8)
    assert a.numpy().tolist() == [2, 3]
    assert device.system_lib()["add"](a, b, c) is None
    assert c.numpy().tolist() == [6, 7]


def test_in_chunks_of_any_size(make_bench: Callable[..., Bench]) -> None:
    for chunk in (1, 2, 7):
        device = make_bench(chunk=chunk).device
        assert device.system_lib()["inc"](-2) == -1


ARRAYS: list[npt.NDArray[Any]] = [
    np.arange(-3, 3, dtype=np.int8),
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.arange(24, dtype=np.int64).reshape(2, 3, 4),
    np.array([True, False]),
    np.array(7, np.uint16),
    np.zeros((0, 3), np.float64),
    np.arange(10, dtype=np.int16)[::3],
    np.asfortranarray(np.arange(6, dtype=np.float16).reshape(2, 3)),
]


@pytest.mark.parametrize("data", ARRAYS, ids=lambda data: f"{data.dtype}{data.shape}")
def test_arrays_come_back_as_they_went(bench: Bench, data: npt.NDArray[Any]) -> None:
    array = bench.device.array(data)
    back = array.numpy()
    assert back.dtype == data.dtype
    assert back.shape == data.shape == array.shape
    np.testing.assert_array_equal(back, data)
    back.fill(0)  # A copy that the caller may change.


def test_big_endian_data_keeps_its_values(bench: Bench) -> None:
    array = bench.device.array(np.array([1, 2], ">i4"))
    assert array.numpy().tolist() == [1, 2]
    assert array.numpy().dtype == np.dtype("<i4")


def test_the_dtype_can_be_said(bench: Bench) -> None:
    array = bench.device.array([1, 2, 3], dtype="float32")
    assert array.dtype == DataType(2, 32)
    assert array.numpy().tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("data", "dtype", "error", "told"),
    [
        ([300, -1], "int8", OverflowError, "300 is out of int8's range, -128 to 127"),
        ([-1, 3], "uint16", OverflowError, "-1 is out of uint16's range, 0 to 65535"),
        (np.array([1 << 63], np.uint64), "int64", OverflowError, f"{1 << 63} is out of int64's range"),
        (1 << 70, "int64", OverflowError, f"{1 << 70} is out of int64's range"),
        (float(1 << 63), "int64", OverflowError, "is out of int64's range"),
        (np.inf, "int8", OverflowError, "inf is out of int8's range"),
        ([1.0, np.nan], "int8", ValueError, "nan is no integer, which int8 is"),
        ([[1, 1.5]], "int8", ValueError, "1.5 is no integer"),
        ([1j], "float32", TypeError, "elements of complex128 can't be converted to float32"),
        (np.array(["2026-01-01"], "M8[D]"), "int64", TypeError, "can't be converted to int64"),
        (["7"], "float32", TypeError, "can't be converted to float32"),
        (np.ma.masked_array([1, 2], [True, False]), None, TypeError, r"pass \.filled\(\.\.\.\) or \.data"),
    ],
)
def test_an_element_that_its_type_can_not_hold_is_refused(
    bench: Bench,
    data: Any,  # noqa: ANN401 - any elements
    dtype: str | None,
    error: type[Exception],
    told: str,
) -> None:
    with pytest.raises(error, match=told):
        bench.device.array(data, dtype)
    assert bench.transport.written == []


@pytest.mark.parametrize(
    ("data", "dtype", "expected"),
    [
        ([-128, 127], "int8", [-128, 127]),
        ([2.0, -3.0], "int8", [2, -3]),
        ([True, False], "uint8", [1, 0]),
        (np.array([(1 << 64) - 1, 7], object), "uint64", [(1 << 64) - 1, 7]),
        (np.array([1, 300], ">i2"), "int16", [1, 300]),
        ([0.1, np.nan], "float32", np.array([0.1, np.nan], np.float32)),
        ([], "int8", []),
    ],
)
def test_elements_that_fit_another_type_are_converted(
    bench: Bench,
    data: Any,  # noqa: ANN401 - any elements
    dtype: str,
    expected: Any,  # noqa: ANN401
) -> None:
    np.testing.assert_array_equal(bench.device.array(data, dtype).numpy(), expected)


def test_masked_elements_are_not_compared_or_copied(bench: Bench) -> None:
    array = bench.device.array(np.array([1, 2], np.int8))
    masked = np.ma.masked_array(np.array([1, 2], np.int8), [True, False])
    for way in (array.copy_from, lambda item: bench.device.assert_equal(array, item)):
        with pytest.raises(TypeError, match="a masked array has no element where it is masked"):
            way(masked)


def test_lanes_are_the_last_dimension(bench: Bench) -> None:
    data = np.arange(8, dtype=np.float32).reshape(2, 4)
    array = bench.device.array(data, dtype="float32x4")
    assert (array.shape, array.nbytes, str(array.dtype)) == ((2,), 32, "float32x4")
    np.testing.assert_array_equal(array.numpy(), data)
    with pytest.raises(ValueError, match="last dimension of 4"):
        bench.device.array(data[:, :3], dtype="float32x4")


def test_types_without_one_in_numpy_travel_as_bits(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that imports ml_dtypes, as TVM does, has a bfloat16."""
    monkeypatch.setattr(dtypes, "_numpy_knows", lambda _: False)
    bits = np.array([0x3F80, 0x4000], np.uint16)
    array = bench.device.array(bits, dtype="bfloat16")
    assert array.numpy().view(np.uint16).tolist() == bits.tolist()
    with pytest.raises(TypeError, match="bfloat16 is held as"):
        bench.device.array(np.array([1.0, 2.0]), dtype="bfloat16")
    assert bench.device.empty((2, 2), "int24").numpy().nbytes == 12


def test_an_array_is_overwritten_from_the_host(bench: Bench) -> None:
    array = bench.device.empty((2,), "int8")
    array.copy_from(np.array([5, 6], np.int8))
    assert array.numpy().tolist() == [5, 6]
    with pytest.raises(TypeError, match="elements of int16 can't be copied to an array of int8"):
        array.copy_from(np.array([5, 6], np.int16))
    for other in ([5, 6, 7], [5]):
        with pytest.raises(ValueError, match=rf"shape \({len(other)},\)"):
            array.copy_from(np.array(other, np.int8))
    assert array.numpy().tolist() == [5, 6]


def test_functions_of_numpy_get_the_elements(bench: Bench) -> None:
    """`np.array_equal(array, expected)` was False, `np.asarray(array)` an array of one object."""
    array = bench.device.array(np.array([5, 6], np.int8))
    assert (np.array_equal(array, [5, 6]), np.asarray(array, np.float32).tolist()) == (True, [5.0, 6.0])
    assert (bench.device.array(array).numpy() == array).tolist() == [True, True]
    with pytest.raises(ValueError, match="in the device's memory: numpy gets a copy"):
        array.__array__(copy=False)


def test_an_array_is_overwritten_from_another(bench: Bench) -> None:
    source, target = bench.device.array(np.array([5, 6], np.int8)), bench.device.empty((2,), "int8")
    target.copy_from(source)
    assert target.numpy().tolist() == [5, 6]
    with pytest.raises(ValueError, match="can't be copied"):
        target.copy_from(bench.device.empty((3,), "int8"))


def test_nothing_is_sent_for_an_array_that_cannot_be(bench: Bench) -> None:
    for data in (np.array(["text"]), np.array([1j]), np.array([object()])):
        with pytest.raises(TypeError, match="no type on the wire"):
            bench.device.array(data)
    with pytest.raises(ValueError, match="negative"):
        bench.device.empty((2, -1))
    with pytest.raises(ValueError, match="more bytes than any device"):
        bench.device.empty((2**40, 2**40))
    assert bench.transport.written == []


def test_arguments_of_every_kind(bench: Bench) -> None:
    echo = bench.device.system_lib()["echo"]
    for value in (0, -5, 2**63 - 1, 1.5, "text", b"bytes", None, Handle(5), DLDevice(1, 0), DataType(0, 8)):
        assert echo(value) == value
    assert echo(True) == 1
    assert echo(np.int8(-3)) == -3
    assert echo(np.float32(0.5)) == 0.5
    assert echo(np.bool_(True)) == 1
    assert echo(bytearray(b"x")) == b"x"
    assert echo(UInt(5)) == 5


def test_objects_of_the_device_as_arguments_and_results(bench: Bench) -> None:
    library = bench.device.system_lib()
    function = library["echo"](library["inc"])
    assert isinstance(function, RemoteFunction)
    assert function(4) == 5
    module = library["echo"](library)
    assert isinstance(module, RemoteModule)
    assert module["inc"](4) == 5
    data = bench.device.array(np.array([1, 2], np.int8))
    array = library["array"](data)
    assert isinstance(array, RemoteArray)
    assert array.numpy().tolist() == [1, 2]


def test_arguments_as_they_travel_have_the_same_results(bench: Bench) -> None:
    library = bench.device.system_lib()
    echo = library["echo"]
    assert echo.call_with((5,)) == 5
    assert echo.call_with((UInt(5),)) == 5
    function = echo.call_with((library["inc"].argument,))
    assert isinstance(function, RemoteFunction)
    assert function.call_with((4,)) == 5


@pytest.mark.parametrize("value", [np.zeros(2), [1, 2], (1, 2)])
def test_data_of_the_host_is_not_an_argument(bench: Bench, value: object) -> None:
    echo = bench.device.system_lib()["echo"]
    sent = len(bench.transport.written)
    with pytest.raises(TypeError, match=r"not on the device: copy it there with device.array\(\)"):
        echo(value)
    with pytest.raises(TypeError, match="a set can't be sent"):
        echo({1})
    with pytest.raises(ValueError, match="does not fit"):
        echo(2**63)
    assert len(bench.transport.written) == sent


def test_a_freed_array_is_refused_before_anything_is_sent(bench: Bench) -> None:
    array = bench.device.array(np.array([1], np.int8))
    echo = bench.device.system_lib()["echo"]
    array.free()
    bench.device.connect()
    sent = len(bench.transport.written)
    for use in (array.numpy, lambda: echo(array), lambda: array.copy_from(np.array([1], np.int8))):
        with pytest.raises(ValueError, match=r"RemoteArray\(shape=\(1,\), dtype=int8\) has been freed"):
            use()
    assert len(bench.transport.written) == sent


def test_an_array_of_another_device_is_refused(bench: Bench, make_bench: Callable[..., Bench]) -> None:
    array = make_bench().device.array(np.array([1], np.int8))
    with pytest.raises(ValueError, match="is on model, not on model"):
        bench.device.system_lib()["echo"](array)


def test_a_remote_error_has_the_devices_text_and_the_session_goes_on(bench: Bench) -> None:
    library = bench.device.system_lib()
    with pytest.raises(RemoteError) as caught:
        library["fail"]()
    assert caught.value.text == "boom"
    assert caught.value.stage == "call fail"
    assert library["inc"](1) == 2
    assert bench.device.sessions == 1


def test_a_call_that_does_not_fit_the_device_is_not_sent(bench: Bench) -> None:
    echo = bench.device.system_lib()["echo"]
    most = bench.device.info().max_packet
    with pytest.raises(ValueError, match="send large data as arrays"):
        echo(bytes(most))
    assert max(map(len, bench.transport.written)) < 100
    assert len(echo(bytes(most // 2))) == most // 2


def test_functions_that_are_not_there(bench: Bench) -> None:
    with pytest.raises(FunctionNotFoundError, match="the system library has no function 'nope'"):
        bench.device.system_lib()["nope"]
    with pytest.raises(FunctionNotFoundError, match="no global function 'nope'"):
        bench.device.get_function("nope")
    with pytest.raises(LookupError):
        bench.device.get_function("nope")


def test_a_device_that_answers_a_name_with_nothing_has_no_such_function(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.model, "_syscall", lambda code, args: None)
    with pytest.raises(FunctionNotFoundError, match="no global function 'inc'"):
        bench.device.get_function("inc")


def test_global_functions(bench: Bench) -> None:
    assert bench.device.get_function("tvm.rpc.server.GetCRTMaxPacketSize")() == 2037


def test_a_function_is_looked_up_once(bench: Bench) -> None:
    library = bench.device.system_lib()
    assert library["inc"] is library["inc"]
    assert bench.device.system_lib() is library
    library["inc"].free()
    assert library["inc"](1) == 2


def test_out_of_memory_is_an_error_of_its_own(make_bench: Callable[..., Bench]) -> None:
    device = make_bench(replace(OURS, memory=100)).device
    with pytest.raises(DeviceMemoryError, match="asked for 101 bytes"):
        device.empty((101,), "int8")
    assert device.array(np.zeros(100, np.int8)).numpy().sum() == 0


@pytest.mark.parametrize(("nbytes", "too_long"), [((1 << 32) - 1, False), (1 << 32, True)])
def test_an_array_that_no_32_bits_count_is_refused_with_the_reason(
    bench: Bench, nbytes: int, too_long: bool
) -> None:
    """A smaller array may fit after something is freed, or on another device."""
    with pytest.raises(DeviceMemoryError) as caught:
        bench.device.empty((nbytes,), "int8")
    assert ("an array takes less than 4 GiB" in caught.value.message) == too_long
    assert ("out of memory" in caught.value.message) != too_long


def test_info(bench: Bench, make_bench: Callable[..., Bench]) -> None:
    info = bench.device.info()
    assert (info.version, info.max_packet, info.arena_size, info.timer_hz) == (4, 8192, 2, 100)
    assert (info.crc_errors, info.stale_messages, info.rx_overruns, info.stack_peak) == (6, 10, 11, 13)
    with pytest.raises(DialectError, match="does not run this project's runtime"):
        make_bench(TVM_0_8_0).device.info()


def test_reset_starts_a_new_session_and_old_arrays_say_so(bench: Bench) -> None:
    array = bench.device.array(np.array([1], np.int8))
    library = bench.device.system_lib()
    inc = library["inc"]
    bench.device.reset()
    for use in (array.numpy, lambda: inc(1), lambda: library["inc"]):
        with pytest.raises(ValueError, match="belonged to a session that has ended"):
            use()
    assert bench.device.system_lib()["inc"](1) == 2


def test_calling_the_reset_function_ends_the_session(bench: Bench) -> None:
    with pytest.raises(SessionTerminatedError, match="restarted"):
        bench.device.get_function("tvm.testing.reset_server")()
    assert bench.device.system_lib()["inc"](1) == 2


def test_logs_and_boot_text_are_kept(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.transport.say(b"*** Booting ***\r\n")
    bench.device.connect()
    bench.model.logs = ["warming up", "hot"]
    with caplog.at_level("INFO", "minrpc.device"):
        bench.device.system_lib()["inc"]
    assert caplog.messages == ["warming up", "hot"]
    assert bench.device.console_text == "*** Booting ***\nwarming up\nhot\n"
    with pytest.raises(RemoteError) as caught:
        bench.device.system_lib()["fail"]()
    assert "hot" in str(caught.value)


def test_close_ends_the_session_and_is_done_once(make_bench: Callable[..., Bench]) -> None:
    made = make_bench()
    with made.device as device:
        device.connect()
    assert made.transport.written[-1] == bytes.fromhex("fffd030000000000026677")
    assert made.transport.closed
    made.device.close()


def test_pieces_of_a_copy_keep_the_tensors_own_offset(bench: Bench) -> None:
    """A function may return an array that is a view into another array."""
    whole = bench.device.array(np.arange(60_000, dtype=np.uint16).view(np.uint8))
    rpc = bench.device.rpc
    view = DLTensor(whole._tensor.data, to_dtype("uint8"), (50_000,), byte_offset=1000)
    data = np.random.default_rng(1).integers(0, 256, 50_000, np.uint8)
    memory.upload(rpc, view, data.data)
    assert bytes(memory.download(rpc, view, 50_000)) == data.tobytes()
    there = whole.numpy()
    assert (there[1000:51_000] == data).all()
    untouched = np.arange(60_000, dtype=np.uint16).view(np.uint8)
    assert (there[:1000] == untouched[:1000]).all()
    assert (there[51_000:] == untouched[51_000:]).all()


@pytest.mark.parametrize("nbytes", [960, 6720])
@pytest.mark.parametrize("upload", [True, False])
def test_a_copy_has_the_time_that_the_slowest_link_takes(bench: Bench, nbytes: int, upload: bool) -> None:
    """The time at 9600 baud is added to the limit of a call."""
    host = np.zeros(nbytes, np.uint8)
    array = bench.device.array(host)
    bench.model.dead = True
    began = bench.transport.clock.s
    with pytest.raises(DeadlineError):
        array.copy_from(host) if upload else array.numpy()
    assert bench.transport.clock.s - began == pytest.approx(TIMEOUT_S + nbytes / 960, rel=1e-3)


def test_what_a_device_says_of_itself(bench: Bench, make_bench: Callable[..., Bench]) -> None:
    device = bench.device
    assert repr(device) == f"Device({bench.transport.name!r})"
    assert (device.name, device.call_timeout_s) == (bench.transport.name, TIMEOUT_S)
    device.call_timeout_s = 5.0
    assert device.call_timeout_s == 5.0
    clock = device.clock()
    assert clock is not None
    assert clock.ticks_hz == 100
    assert make_bench(TVM_0_8_0).device.clock() is None


def test_what_is_on_a_device_knows_its_client(bench: Bench) -> None:
    library = bench.device.system_lib()
    for item in (library, library["inc"], bench.device.empty((1,))):
        assert item.rpc is bench.device.rpc
        assert not item.freed


def test_limits_are_those_of_a_device_that_a_target_opens(bench: Bench) -> None:
    """A `Device` that the user constructs has the same limits as a device from `open_device`."""
    device, target = Device(bench.transport, bench.transport.owner), Target.named("posix")
    assert device.call_timeout_s == target.call_timeout_s
    began = bench.transport.clock.s
    bench.transport.spoil = lambda _: b""
    with pytest.raises(NothingHeardError):
        device.connect()
    assert bench.transport.clock.s - began == pytest.approx(target.session_timeout_s, abs=0.1)


def test_numbered_requests_are_for_who_asks_for_them(bench: Bench) -> None:
    """Links inside a machine lose nothing, and the client sends no unneeded requests."""
    device = Device(bench.transport, bench.transport.owner)
    assert not device.resend
    device.connect()
    assert device.link is bench.transport
    device.close()
    assert bench.transport.closed


def test_a_restart_begins_another_session_where_one_runs(bench: Bench) -> None:
    array = bench.device.array(np.array([1], np.int8))
    before = bench.device.sessions
    bench.device.rpc.restart()
    assert bench.device.sessions == before + 1
    with pytest.raises(ValueError, match="belonged to a session that has ended"):
        array.numpy()


@pytest.mark.parametrize("came", [b"", b"123", b"12345"])
def test_a_copy_of_another_length_than_was_asked_for_is_none(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, came: bytes
) -> None:
    array = bench.device.array(np.zeros(4, np.uint8))
    monkeypatch.setattr(bench.device.rpc, "exchange", lambda *_: CopyAck(memoryview(came)))
    with pytest.raises(DialectError, match="4 bytes were asked for, another answer came"):
        array.numpy()


@pytest.mark.parametrize("seconds", ["x", -1, 0, True, None, float("nan"), float("inf")])
def test_a_limit_that_is_none_is_refused(bench: Bench, seconds: Any) -> None:  # noqa: ANN401 - any type
    device = bench.device
    before = device.call_timeout_s
    with pytest.raises(ValueError, match="call_timeout_s is a number of seconds above 0, and at most "):
        device.call_timeout_s = seconds
    assert device.call_timeout_s == before


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_a_functions_own_limit_is_finite(bench: Bench, seconds: float) -> None:
    lib = bench.device.system_lib()
    for attempt in (
        lambda: lib["inc"].with_timeout(seconds),
        lambda: lib.measure("inc", timeout_s=seconds),
        lambda: lib.time_evaluator("inc", timeout_s=seconds),
        lambda: bench.device.info(seconds),
    ):
        with pytest.raises(ValueError, match="is a number of seconds above 0, and at most "):
            attempt()
    assert lib["inc"](41) == 42


@pytest.mark.parametrize("alignment", [0, -8, 3, 1.5, None])
def test_an_alignment_is_a_power_of_two(bench: Bench, alignment: Any) -> None:  # noqa: ANN401
    with pytest.raises(ValueError, match="an alignment is a power of two, not "):
        bench.device.aligned(8, alignment)


def test_a_text_with_a_nul_is_refused(bench: Bench) -> None:
    lib = bench.device.system_lib()
    with pytest.raises(ValueError, match=r"a text ends at its NUL character: 'inc\\x00x'; give bytes"):
        lib["inc\0x"]
    with pytest.raises(ValueError, match="a text ends at its NUL character"):
        lib["inc"]("a\0b")
    assert lib["inc"](41) == 42


def test_a_function_as_an_attribute_of_the_system_library_names_the_item(bench: Bench) -> None:
    with pytest.raises(AttributeError, match=r"its functions are items, system_lib\(\)\['add'\]"):
        _ = bench.device.system_lib().add


@pytest.mark.parametrize("seed", ["x", 1.5, None, True])
def test_a_seed_is_a_whole_number(bench: Bench, seed: Any) -> None:  # noqa: ANN401
    with pytest.raises(TypeError, match="a seed is a whole number, not "):
        bench.device.random((1,), "int8", seed=seed)


@pytest.mark.parametrize("name", [5, None, b"inc"])
def test_a_functions_name_is_a_text(bench: Bench, name: Any) -> None:  # noqa: ANN401 - any type
    lib = bench.device.system_lib()
    ways: list[Callable[[], object]] = [
        lambda: lib[name],
        lambda: lib.get_function(name),
        lambda: lib.measure(name),
        lambda: lib.time_evaluator(name),
        lambda: bench.device.get_function(name),
    ]
    for way in ways:
        with pytest.raises(TypeError, match="a function's name is a text, not "):
            way()
    assert lib["inc"](41) == 42


@pytest.mark.parametrize("dtype", [None, "int9"])
def test_a_type_that_is_none_makes_no_array(bench: Bench, dtype: Any) -> None:  # noqa: ANN401 - any type
    array = bench.device.array(np.arange(4, dtype=np.int8))
    ways: list[Callable[[], object]] = [
        lambda: bench.device.empty((3,), dtype),
        lambda: array.view(dtype),
    ]
    for way in ways:
        with pytest.raises(TypeError, match=r"type of elements|bits are"):
            way()
    assert array.numpy().tolist() == [0, 1, 2, 3]


def test_integers_of_numpy_are_integers(bench: Bench) -> None:
    for shape in (np.int64(6), np.array(6)[()], (np.int8(2), 3)):
        assert prod(bench.device.empty(cast(Any, shape)).shape) == 6
    number: Any = np.int64(10)
    bench.device.system_lib().time_evaluator("inc", number=number)
    assert type(EvaluatorOptions(number=number).number) is int
