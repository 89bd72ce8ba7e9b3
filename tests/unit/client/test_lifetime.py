# SPDX-License-Identifier: Apache-2.0
"""Arrays and functions are freed automatically: never within a call, never in another session."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import TypeGuard

import numpy as np
import pytest
from minrpc import ConfigurationError
from minrpc.wire.requests import RpcCode, Syscall
from minrpc.wire.values import Handle

from tests.unit.client.conftest import Bench
from tests.unit.client.device_model import OURS


def freed(bench: Bench, code: RpcCode = RpcCode.DEV_FREE_DATA) -> int:
    return sum(isinstance(request, Syscall) and request.code is code for request in bench.model.requests)


def test_free_is_sent_before_the_next_request(bench: Bench) -> None:
    array = bench.device.array(np.zeros(4, np.int8))
    inc = bench.device.system_lib()["inc"]
    sent = len(bench.transport.written)
    array.free()
    array.free()
    assert array.freed
    assert len(bench.transport.written) == sent
    inc(1)
    assert bench.model.memory == {}
    assert freed(bench) == 1


def test_a_view_has_the_memory_of_its_array_and_ends_with_it(bench: Bench) -> None:
    array = bench.device.array(np.arange(6, dtype=np.int16).reshape(3, 2))
    view = array.view("int32")
    assert (view.shape, view.address) == ((3, 1), array.address)
    np.testing.assert_array_equal(view.numpy(), np.arange(6, dtype=np.int16).reshape(3, 2).view(np.int32))
    assert array.view("uint8", 12).numpy().tolist()[:4] == [0, 0, 1, 0]
    for wrong in ("int64", ("int32", 2)):
        with pytest.raises(ValueError, match="has 12 bytes"):
            array.view(*((wrong,) if isinstance(wrong, str) else wrong))
    del array
    gc.collect()
    assert view.numpy().size == 3
    again = view.view("int16")
    view.free()
    assert again.freed
    del view, again
    gc.collect()
    bench.device.connect()
    assert bench.model.memory == {}
    assert freed(bench) == 1


def test_an_array_that_is_freed_ends_its_views(bench: Bench) -> None:
    array = bench.device.array(np.arange(4, dtype=np.uint8))
    view = array.view("int32")
    array.free()
    with pytest.raises(ValueError, match="has been freed"):
        view.numpy()


def test_the_end_of_a_with_block_frees(bench: Bench) -> None:
    with bench.device.array(np.zeros(4, np.int8)) as array:
        assert array.numpy().sum() == 0
    bench.device.connect()
    assert bench.model.memory == {}


def test_what_nobody_references_is_freed(bench: Bench) -> None:
    bench.device.array(np.zeros(4, np.int8))
    bench.device.get_function("tvm.rpc.server.GetCRTMaxPacketSize")
    gc.collect()
    bench.device.connect()
    assert bench.model.memory == {}
    assert freed(bench, RpcCode.FREE_HANDLE) == 1


def test_the_garbage_collector_sends_nothing(bench: Bench) -> None:
    """A collection in the middle of a request must not put another frame between it and its answer."""
    bench.device.connect()
    cycle: list[object] = [bench.device.array(np.zeros(4, np.int8))]
    cycle.append(cycle)
    receive = bench.model.receive

    def collect_and_receive(data: bytes) -> bytes:
        gc.collect()
        return receive(data)

    bench.model.receive = collect_and_receive  # type: ignore[method-assign]
    del cycle
    sent = len(bench.transport.written)
    assert bench.device.get_function("tvm.rpc.server.GetCRTMaxPacketSize")() == 2037
    assert len(bench.transport.written) == sent + 3  # look up, free, call
    assert bench.model.memory == {}


def test_memory_is_given_back_before_more_is_asked_for(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(OURS)
    for _ in range(50):
        bench.device.array(np.zeros(100_000, np.int8))
    assert len(bench.model.memory) <= 1


def test_handles_of_a_session_that_ended_are_not_sent_to_the_next(bench: Bench) -> None:
    array = bench.device.array(np.zeros(4, np.int8))
    bench.device.reset()
    array.free()
    bench.device.array(np.zeros(4, np.int8))
    assert freed(bench) == 0


def test_a_free_that_the_device_refuses_does_not_disturb_the_next_call(bench: Bench) -> None:
    array = bench.device.array(np.zeros(4, np.int8))
    inc = bench.device.system_lib()["inc"]
    bench.model.memory.clear()
    array.free()
    assert inc(1) == 2


def test_the_system_library_is_never_given_back(bench: Bench) -> None:
    bench.device.system_lib().free()
    bench.device.connect()
    handles = [request.args[0] for request in bench.model.requests if isinstance(request, Syscall)]
    assert Handle(0x8000) not in handles


def test_a_function_of_a_module_is_its_users_to_give_back(bench: Bench) -> None:
    library = bench.device.system_lib()
    echo = library["echo"]
    module = echo(library)
    with module.get_function("inc") as function:
        assert function(1) == 2
    before = len(bench.transport.written)
    echo(1)
    assert len(bench.transport.written) == before + 2


def test_what_a_module_gave_goes_before_it_in_whatever_order_the_collector_finds_them(bench: Bench) -> None:
    library = bench.device.system_lib()
    module = library["echo"](library)
    cycle: list[object] = [module, *(module.get_function("inc") for _ in range(3))]
    cycle.append(cycle)
    handle = Handle(module.handle)
    del module, cycle
    gc.collect()
    bench.device.connect()
    frees = [request.args[0] for request in bench.model.requests if freeing(request)]
    assert len(frees) == 4
    assert frees[-1] == handle


def test_an_evaluator_keeps_its_module(bench: Bench) -> None:
    library = bench.device.system_lib()
    module = library["echo"](library)
    evaluator = module.time_evaluator("inc")
    del module
    gc.collect()
    evaluator(1)
    assert not any(map(freeing, bench.model.requests))


def freeing(request: object) -> TypeGuard[Syscall]:
    return isinstance(request, Syscall) and request.code is RpcCode.FREE_HANDLE


def test_a_module_does_not_grow_by_what_was_given_back(bench: Bench) -> None:
    library = bench.device.system_lib()
    module = library["echo"](library)

    def ends() -> int:
        gc.collect()
        return sum(isinstance(item, weakref.finalize) for item in gc.get_objects())

    before = ends()
    for _ in range(20):
        module.get_function("inc")
    assert ends() == before


def test_a_link_that_is_lent_is_nobodys_here(bench: Bench) -> None:
    inc = bench.device.system_lib()["inc"]
    link = bench.device.rpc.link
    link.lend("a friend")
    before = len(bench.transport.written)
    for use in (lambda: inc(1), bench.device.connect, lambda: link.listen(0.0)):
        with pytest.raises(ConfigurationError, match="is lent to a friend"):
            use()
    assert len(bench.transport.written) == before
    link.take_back()
    assert bench.device.system_lib()["inc"](1) == 2
