# SPDX-License-Identifier: Apache-2.0
"""TVM's own devices: each knows one dialect and one evaluator, and stops at a message that it can't read."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from minrpc import DialectError, RemoteError
from minrpc.wire.framing import Deframer, Frame
from minrpc.wire.requests import CallFunc, CopyFromRemote, CopyToRemote, RpcCode, Syscall
from minrpc.wire.values import Dialect

from tests.unit.client.conftest import Bench
from tests.unit.client.device_model import (
    OURS,
    TVM_0_7_0,
    TVM_0_8_0,
    TVM_0_11_0,
    TVM_0_18_0,
    Traits,
)

ALL = {"ours": OURS, "0.7.0": TVM_0_7_0, "0.8.0": TVM_0_8_0, "0.11.0": TVM_0_11_0, "0.18.0": TVM_0_18_0}
every_device = pytest.mark.parametrize("traits", ALL.values(), ids=ALL)


@every_device
def test_add_and_time_it(make_bench: Callable[..., Bench], traits: Traits) -> None:
    bench = make_bench(traits, boot=True)
    device = bench.device
    a, b = device.array(np.array([2, 3], np.int8)), device.array(np.array([4], np.int8))
    c = device.empty((2,), np.int8)
    library = device.system_lib()
    library["add"](a, b, c)
    timing = library.time_evaluator("add", number=20, repeat=3, min_repeat_ms=40)(a, b, c)
    assert c.numpy().tolist() == [6, 7]
    assert timing.results == (1e-6, 2e-6, 3e-6)
    assert device.rpc.facts.dialect is traits.dialects[0]
    assert not bench.model.dead


@every_device
def test_a_cool_down_that_the_device_has_not_is_said(
    make_bench: Callable[..., Bench], traits: Traits
) -> None:
    library = make_bench(traits).device.system_lib()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        library.time_evaluator("inc", number=1)
        library.time_evaluator("inc", number=1, cooldown_interval_ms=5)
    said = [str(item.message) for item in caught if "cool-down" in str(item.message)]
    assert len(said) == (max(traits.arities) < 10)
    assert {item.filename for item in caught if "cool-down" in str(item.message)} <= {__file__}


@every_device
@pytest.mark.parametrize("shape", [(1,), (1977,), (2000,), (64, 128), (3, 5, 7, 11)])
def test_copies_are_cut_to_what_the_device_takes(
    make_bench: Callable[..., Bench], traits: Traits, shape: tuple[int, ...]
) -> None:
    bench = make_bench(traits)
    data = np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8)
    array = bench.device.array(data)
    np.testing.assert_array_equal(array.numpy(), data)
    assert not bench.model.dead
    frames = [event for wire in bench.transport.written for event in Deframer().feed(wire)]
    assert max(len(frame.payload) for frame in frames if isinstance(frame, Frame)) <= traits.max_packet


def test_a_packet_is_filled_to_the_last_byte(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(TVM_0_8_0)
    bench.device.array(np.zeros((2, 1977), np.int8)).numpy()
    sizes = [len(request.data) for request in bench.model.requests if isinstance(request, CopyToRemote)]
    asked = [request.nbytes for request in bench.model.requests if isinstance(request, CopyFromRemote)]
    # 2048 - 11 - (44 + 8 * 2), as TVM's own client cuts.
    assert sizes == asked == [1977, 1977]


def test_our_device_sends_any_number_of_bytes_at_once(bench: Bench) -> None:
    bench.device.array(np.zeros(100_000, np.int8)).numpy()
    asked = [request.nbytes for request in bench.model.requests if isinstance(request, CopyFromRemote)]
    assert asked == [100_000]


def test_where_the_packet_size_is_not_known_the_smallest_is_taken(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(replace(TVM_0_7_0, max_packet=2048))
    data = np.arange(5000, dtype=np.int16)
    np.testing.assert_array_equal(bench.device.array(data).numpy(), data)
    assert not bench.model.dead


def test_a_packet_too_small_for_any_copy_is_an_error(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(TVM_0_8_0)
    bench.model.globals["tvm.rpc.server.GetCRTMaxPacketSize"] = lambda _: 52
    with pytest.raises(DialectError, match="packets of 52 bytes: too small for a copy"):
        bench.device.array(np.zeros(1, np.int8))


@pytest.mark.parametrize(
    ("traits", "asked"), [(TVM_0_18_0, [12]), (TVM_0_11_0, [12, 11]), (TVM_0_8_0, [12, 11, 10, 8])]
)
def test_the_arity_of_the_evaluator_is_asked_once(
    make_bench: Callable[..., Bench], traits: Traits, asked: list[int]
) -> None:
    bench = make_bench(traits)
    library = bench.device.system_lib()
    for _ in range(2):
        library.time_evaluator("inc", repeat=2)(1)
    calls = [request.args for request in bench.model.requests if isinstance(request, CallFunc)]
    assert [len(args) for args in calls if len(args) >= 8] == [*asked, asked[-1]]


def test_our_device_is_asked_with_all_arguments(bench: Bench) -> None:
    library = bench.device.system_lib()
    library.time_evaluator("inc", number=2, min_repeat_ms=3, cooldown_interval_ms=4, repeats_to_cooldown=5)
    args = next(r.args for r in bench.model.requests if isinstance(r, CallFunc) and len(r.args) == 12)
    assert list(args[1:]) == ["inc", 1, 0, 2, 1, 3, 100, 4, 5, 0, ""]


@every_device
def test_an_evaluator_that_no_arity_gives_is_the_devices_error(
    make_bench: Callable[..., Bench], traits: Traits
) -> None:
    library = make_bench(traits).device.system_lib()
    with pytest.raises(RemoteError):
        library.time_evaluator("nope")
    assert library["inc"](1) == 2


@every_device
def test_everything_is_given_back_at_the_end(make_bench: Callable[..., Bench], traits: Traits) -> None:
    bench = make_bench(traits)
    with bench.device as device:
        kept = device.array(np.zeros(10, np.int8))
        device.system_lib()["inc"](1)
    # On this project's device the session's end frees all objects; TVM's devices keep objects that the client
    # does not free.
    assert bool(bench.model.memory) == traits.ours
    assert kept.freed != traits.ours


@every_device
def test_copies_between_arrays(make_bench: Callable[..., Bench], traits: Traits) -> None:
    device = make_bench(traits).device
    source, target = device.array(np.array([5, 6], np.int8)), device.empty((2,), "int8")
    target.copy_from(source)
    assert target.numpy().tolist() == [5, 6]


@every_device
def test_a_returned_array_is_read_in_the_devices_dialect(
    make_bench: Callable[..., Bench], traits: Traits
) -> None:
    device = make_bench(traits).device
    data = np.array([[1, 2], [3, 4]], np.int8)
    array = device.array(data)
    returned = device.system_lib()["array"](array)
    np.testing.assert_array_equal(returned.numpy(), data)


def test_the_dialect_is_found_again_in_each_session(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(TVM_0_7_0)
    bench.device.array(np.zeros(1, np.int8))
    bench.device.reset()
    assert bench.device.rpc.facts.dialect is None
    bench.device.array(np.zeros(1, np.int8))
    assert bench.device.rpc.facts.dialect is Dialect.V0_7_0


@every_device
def test_a_copy_on_the_device_is_told_in_its_dialect(
    make_bench: Callable[..., Bench], traits: Traits
) -> None:
    """The oldest devices have a request of nine values, later devices have a request of two tensors and a
    stream."""
    bench = make_bench(traits)
    source, target = (bench.device.array(np.full(8, value, np.int8)) for value in (1, 2))
    target.copy_from(source)
    (asked,) = [
        request
        for request in bench.model.requests
        if isinstance(request, Syscall) and request.code is RpcCode.COPY_AMONG_REMOTE
    ]
    assert len(asked.args) == (9 if traits is TVM_0_7_0 else 3)
    assert (target.numpy() == 1).all()
