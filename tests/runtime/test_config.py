# SPDX-License-Identifier: Apache-2.0
"""Every size of buffer that a port may have, and fields of the configuration with a wrong value."""

from __future__ import annotations

from collections.abc import Iterator
from struct import unpack_from

import pytest
from minrpc.wire.replies import RemoteException
from minrpc.wire.requests import CopyFromRemote, CopyToRemote

from tests.runtime.door import Door, Place
from tests.runtime.host import V7, Host, tensor

RECEIVE_MIN, MAX_PACKET, BUILD_ID_MAX = 512, 8192, 32
PLATFORM = ["write", "clock_describe", "clock_sample", "sleep_ms", "clock_begin", "clock_end"]


@pytest.mark.parametrize("size", [512, 513, 514, 515, 519, 520, 1000, 8191, 8192])
def test_receive_buffers(door: Door, size: int) -> None:
    host = Host(door, size, 64)
    info = host.find("minrpc.device_info")
    data = host.alloc(20000)
    assert host.serves()
    answer = host.call(info)
    assert isinstance(answer, bytes)
    assert unpack_from("<I", answer, 16)[0] == size
    # The longest message that fits, and the shortest that does not; only v0.7's form may exceed the buffer.
    for count in range(size - 60, size + 9):
        content = bytes([count & 0xFF]) * count
        assert host.result(CopyToRemote(tensor(data, count), content), V7) is None
        assert host.result(CopyFromRemote(tensor(data, count), count), V7) == content
    # Arguments that fill it leave no room for their decoded values.
    assert "receive buffer" in host.fails(0x80008000, "x" * (size - 39))
    host.stop()


def test_send_buffers(door: Door) -> None:
    for size in range(1, 70):
        host = Host(door, 512, size, 4096)
        assert host.serves()
        host.stop()


@pytest.mark.parametrize("size", [1, 15, 16, 31, 32, 33, 47, 48, 64, 100, 200, 4096])
def test_arenas(door: Door, size: int) -> None:
    host = Host(door, 512, 64, size)
    create = host.evaluating("tick")
    assert host.serves()
    live = 0
    while not isinstance(reply := host.request(create), RemoteException):
        live += 1
    assert "memory" in reply.text
    assert host.blocks() == live
    assert host.serves()
    host.open(0x24)
    assert host.blocks() == 0
    host.stop()


def test_every_seed_of_nonces(door: Door) -> None:
    """A message of the previous session is never taken for a message of this session."""
    host = Host(door, 512, 64, 64)
    for seed in range(256):
        host.config.nonce_seed = seed
        host.reboot()
        for _ in range(4):
            last = host.session
            host.open()
            assert host.session != last
    host.stop()


@pytest.fixture
def small(door: Door) -> Iterator[Host]:
    host = Host(door, 512, 64, 64)
    yield host
    host.stop()


def copied(host: Host, of: Place, ctype: str, **fields: int) -> Place:
    """A copy of a record with other values in some fields."""
    copy = host.door.new(ctype)
    host.door.write(copy.address, of.content())
    for field, value in fields.items():
        setattr(copy, field, value & (1 << host.door.bits) - 1)
    return copy


def starts(host: Host, config: Place) -> bool:
    """True if the server takes the configuration."""
    return bool(host.door.call("minrpc_server_init", host.server, config, result="?"))


def is_wrong(host: Host, config: Place, field: str) -> bool:
    """True if the server tells the field's name, before any byte is sent."""
    door, text = host.door, host.door.memory(b"x")
    host.is_.sent.size = 0
    assert not starts(host, config)
    assert door.call("minrpc_server_log", host.server, text, 1) == -1
    door.call("minrpc_server_last_words", host.server, text, 1)
    assert host.is_.sent.size == 0
    return field in host.server.error.content().split(b"\0")[0].decode()


@pytest.mark.parametrize("field", PLATFORM)
def test_a_platform_without_a_function_is_refused(small: Host, field: str) -> None:
    platform = copied(small, small.platform, "minrpc_platform", **{field: 0})
    assert is_wrong(
        small, copied(small, small.config, "minrpc_config", platform=platform.address), "platform"
    )


def test_a_wrong_field_is_refused(small: Host) -> None:
    """A port with a wrong field gets its name."""
    buffer = small.config.receive_buffer
    for fields, name in [
        ({"platform": 0}, "platform"),
        *[({"receive_buffer": place}, "receive_buffer") for place in (0, buffer + 4)],
        *[({"receive_size": size}, "receive_buffer") for size in (0, RECEIVE_MIN - 1, MAX_PACKET + 1)],
        *[({field: 0}, "send_buffer") for field in ("send_buffer", "send_size")],
        # The last two wrap round the end of the address space.
        *[({"arena": place}, "arena") for place in (0, -63)],
        ({"arena_size": 0}, "arena"),
        *[({"read_only": place}, "read_only") for place in (0, -15)],
        ({"code": buffer}, "code"),
        ({"code_page": 96}, "code_page"),
        *[({"build_id_size": size}, "build_id") for size in (BUILD_ID_MAX + 1, 1)],
    ]:
        assert is_wrong(small, copied(small, small.config, "minrpc_config", **fields), name), fields


def test_a_wrong_library_is_refused(small: Host) -> None:
    door = small.door
    config = copied(small, small.config, "minrpc_config")
    config.library.modules = 0
    assert is_wrong(small, config, "library")
    config.library.count = 1
    assert is_wrong(small, config, "library")
    module = door.new("minrpc_module")
    config.library.modules, module.count = module.address, 1
    assert is_wrong(small, config, "library")
    module.functions = function = door.new("minrpc_function")
    assert is_wrong(small, config, "library")
    function.name = door.memory(b"nothing\0")
    assert is_wrong(small, config, "library")


def test_a_port_may_leave_out_fields(small: Host) -> None:
    config = copied(small, small.config, "minrpc_config", read_only=0, read_only_size=0)
    assert starts(small, config)
    config.read_only_size = 1
    assert not starts(small, config)
    assert starts(small, small.config)
    small.is_.sent.size = 0
    small.open()
    assert small.serves()
