# SPDX-License-Identifier: Apache-2.0
"""Functions as TVM's C generator writes them, linked beside ours: generated/operators.c and registry.c."""

from __future__ import annotations

from struct import pack, unpack

import pytest
from minrpc.wire.requests import CallFunc, CopyToRemote
from minrpc.wire.values import DLTensor, Handle

from tests.runtime.host import F32, Host, tensor


@pytest.fixture
def host(host: Host) -> Host:
    """A device with the linker's memory as read-only, as a port on this machine declares it."""
    host.door.call("door_use_generated", host.is_)
    return host


def array(host: Host, first: float, count: int = 300) -> DLTensor:
    """An array of floats that count up."""
    place = tensor(host.alloc(4 * count), count, dtype=F32)
    host.write(place.data, pack(f"<{count}f", *[first + i for i in range(count)]))
    return place


def floats(host: Host, place: DLTensor) -> tuple[float, ...]:
    return unpack("<300f", host.read(place.data, 1200))


def parameter(host: Host) -> DLTensor:
    """The linked parameter."""
    lookup = host.function("_lookup_linked_param")
    assert host.call(lookup, 7) is None
    found = host.call(lookup, 0)
    assert isinstance(found, Handle)
    return tensor(found.value, 300, dtype=F32)


def test_a_generated_function_runs_on_tensors(host: Host) -> None:
    source, target = array(host, 1.0), array(host, 0.0)
    used = host.arena.used
    assert host.call(host.function("generated_double"), source, target) is None
    assert floats(host, target) == tuple(2.0 * (1 + i) for i in range(300))
    assert host.arena.used == used


def test_a_byte_offset_is_folded_into_the_address(host: Host) -> None:
    """Generated code does not look at byte_offset."""
    whole, target = array(host, 0.0, 320), array(host, 0.0)
    part = tensor(whole.data, 300, 80, F32)
    assert host.call(host.function("generated_double"), part, target) is None
    assert floats(host, target)[::299] == (40.0, 638.0)


def test_a_generated_function_that_fails_leaves_no_workspace(host: Host) -> None:
    fail = host.function("generated_fail")
    for _ in range(100):
        text = host.fails(fail)
        assert "memory" in text
        assert "1000000000" in text
        assert host.arena.used == 0
    assert host.serves()


@pytest.mark.parametrize("name", ["generated_subtract_one", "generated_indirect"])
def test_generated_functions_return_values_and_call_each_other(host: Host, name: str) -> None:
    assert host.call(host.function(name), 43) == 42


def test_both_libraries_are_there(host: Host) -> None:
    assert host.function("generated_double") == 0x80008000
    assert host.function("add") > 0x80008000
    assert host.serves()


def test_linked_parameters_are_tensors_of_calls_but_not_of_copies(host: Host) -> None:
    source, target = parameter(host), array(host, 0.0)
    assert host.call(host.function("generated_double"), source, target) is None
    assert floats(host, target)[:3] == (2.0, 5.0, 0.0)
    assert "0x" in host.error(CopyToRemote(source, bytes(4)))


def test_linked_parameters_are_not_written(host: Host) -> None:
    """It writes to no parameter, for any tensors of a client: parameters may lie in flash."""
    source, target = (place._replace(shape=(4,)) for place in (array(host, 0.0), parameter(host)))
    for name, sources in [("exp", 1), ("add", 2), ("mul", 2)]:
        host.error(CallFunc(host.function(name), [*[source] * sources, target]))
    assert "0x" in host.fails(host.find("tvm.contrib.random.random_fill"), target)
