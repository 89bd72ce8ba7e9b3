# SPDX-License-Identifier: Apache-2.0
"""Memory of the image that the port declares as read-only: clients may name it, as they do with TVM's linked
parameters, but nothing of theirs writes there."""

from __future__ import annotations

from struct import pack

import pytest
from minrpc.wire.requests import CallFunc, CopyFromRemote, CopyToRemote, Request, RpcCode, Syscall, free_data
from minrpc.wire.values import DLTensor

from tests.runtime.host import F32, Host, tensor

VALUES = pack("<4f", 1.5, -2.0, 3.0, 4.0)
DEAD = "no live tensor"


def constants(host: Host, first: int, count: int, offset: int = 0) -> DLTensor:
    place = host.door.address("host_constants") + 4 * first
    return tensor(place, count, offset, F32)


def tick(host: Host, place: DLTensor) -> Request:
    return CallFunc(host.function("tick"), (place,))


def copying(source: DLTensor, target: DLTensor) -> Request:
    return Syscall(RpcCode.COPY_AMONG_REMOTE, (source, target, None))


def test_they_can_be_arguments_and_be_read(host: Host) -> None:
    whole = constants(host, 0, 4)
    assert host.result(CopyFromRemote(whole, 16)) == VALUES
    # The copy may begin anywhere in it.
    for place in (whole, constants(host, 2, 2), constants(host, 1, 2, 4)):
        assert host.result(tick(host, place)) is None
    assert host.functions.calls == 3


def test_not_a_byte_outside_of_them(host: Host) -> None:
    one = constants(host, 0, 1)
    for place, text in [
        (constants(host, 0, 5), "20 bytes at 0 in an allocation of 16"),
        (constants(host, 3, 2), "8 bytes at 0 in an allocation of 4"),
        (constants(host, 0, 1, 16), "4 bytes at 16"),
        (constants(host, 0, 1, (1 << 64) - 1), ""),
        (constants(host, 4, 0), DEAD),
        (one._replace(data=one.data - 1), DEAD),
        (constants(host, 0, -1), "shape"),
        (one._replace(data=one.data + 1), "unaligned"),
    ]:
        assert text in host.error(tick(host, place))
    assert host.functions.calls == 0


def test_nothing_writes_there(host: Host) -> None:
    source, target = tensor(host.alloc(16), 4, dtype=F32), constants(host, 0, 4)
    for request in (
        CallFunc(host.function("exp"), (source, target)),
        CallFunc(host.function("add"), (source, source, target)),
        CallFunc(host.find("tvm.contrib.random.random_fill"), (target,)),
        CopyToRemote(target, b"\x77" * 16),
        copying(source, target),
    ):
        assert DEAD in host.error(request)
    # In the other direction the constant is a source like any other.
    assert host.result(copying(target, source)) is None
    assert host.call(host.function("exp"), target, source) is None
    assert host.serves()


@pytest.mark.parametrize("is_null", [False, True])
def test_a_device_may_declare_none(host: Host, is_null: bool) -> None:
    place = tensor(0, 1, dtype=F32) if is_null else constants(host, 0, 1)
    host.config.read_only = host.config.read_only_size = 0
    assert DEAD in host.error(tick(host, place))


def test_blocks_that_functions_keep(host: Host) -> None:
    """A client can't name a function's own constants, but can name shared constants."""
    door = host.door
    own, shared = (
        door.call("minrpc_arena_alloc", host.arena, 16, 1, door.constant(kind), result="P")
        for kind in ("MINRPC_ARENA_LIBRARY", "MINRPC_ARENA_SHARED")
    )
    place = tensor(own, 4, dtype=F32)
    assert DEAD in host.error(tick(host, place))
    assert DEAD in host.error(CopyToRemote(place, b"\x77" * 16))
    host.write(shared, b"sixteen bytes ..")
    assert door.read(shared, 16) == b"sixteen bytes .."
    assert DEAD in host.error(free_data(shared))
    host.open(0x24)
    assert host.blocks() == 2
