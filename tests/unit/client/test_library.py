# SPDX-License-Identifier: Apache-2.0
"""Functions of the system library: by one question on this project's devices, by TVM's questions on
others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from minrpc import DialectError, FunctionNotFoundError
from minrpc.wire.requests import RpcCode, Syscall

from tests.unit.client.conftest import Bench
from tests.unit.client.device_model import OURS, TVM_0_7_0, TVM_0_8_0, TVM_0_18_0, Traits


def asked(bench: Bench) -> list[str]:
    """The requested names of global functions, in order."""
    return [
        str(request.args[0])
        for request in bench.model.requests
        if isinstance(request, Syscall) and request.code is RpcCode.GET_GLOBAL_FUNC
    ]


def test_one_question_on_our_own_devices(bench: Bench) -> None:
    assert bench.device.system_lib()["inc"](1) == 2
    assert len(bench.model.requests) == 2
    assert asked(bench) == [":inc"]


@pytest.mark.parametrize("traits", [TVM_0_7_0, TVM_0_8_0, TVM_0_18_0])
def test_others_are_asked_so_once_in_a_session(make_bench: Callable[..., Bench], traits: Traits) -> None:
    bench = make_bench(traits)
    library = bench.device.system_lib()
    assert library["inc"](1) == 2
    assert library["echo"](5) == 5
    assert asked(bench) == [
        ":inc",
        "minrpc.device_info",
        "tvm.rpc.server.ModuleGetFunction",
        "runtime.SystemLib",
    ]


@pytest.mark.parametrize("traits", [OURS, TVM_0_18_0])
def test_a_global_function_is_none_of_the_library(make_bench: Callable[..., Bench], traits: Traits) -> None:
    library = make_bench(traits).device.system_lib()
    for name in ("runtime.SystemLib", "nope", ":inc", ""):
        with pytest.raises(FunctionNotFoundError):
            library[name]
    assert library["inc"](1) == 2


def test_a_function_that_our_device_lacks_does_not_change_how_the_next_is_found(bench: Bench) -> None:
    library = bench.device.system_lib()
    with pytest.raises(FunctionNotFoundError):
        library["nope"]
    bench.model.requests.clear()
    assert library["inc"](1) == 2
    assert asked(bench) == [":inc"]


def test_no_system_library(bench: Bench) -> None:
    del bench.model.globals["runtime.SystemLib"]
    with pytest.raises(DialectError, match="no system library"):
        bench.device.system_lib()["nope"]
