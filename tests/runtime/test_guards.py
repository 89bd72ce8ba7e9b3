# SPDX-License-Identifier: Apache-2.0
"""Functions that write beside their arrays: the call that wrote fails with the reason, the device goes on."""

from __future__ import annotations

from minrpc.wire.replies import RemoteException, decode_reply
from minrpc.wire.requests import CallFunc, free_data
from minrpc.wire.session_layer import MessageType

from tests.runtime.host import V8, Host


def beside(host: Host, address: int) -> CallFunc:
    """A call of a function that changes the byte at an address."""
    host.functions.where = address
    return CallFunc(host.function("beside"), ())


def test_a_byte_beside_an_array_fails_the_call_that_wrote_it(host: Host) -> None:
    other, data = host.alloc(100), host.alloc(100)
    host.alloc(100)
    content = bytes([1, 2, 3]).ljust(100, b"\0")
    host.write(data, content)
    for address, text in [
        (data + 100, f"past the array at {data:#x}"),
        (data - 1, f"before the array at {data:#x}"),
        (other + 107, f"past the array at {other:#x}"),
    ]:
        assert f"beside wrote {text}" in host.error(beside(host, address))
    # Nothing is lost: the array is unchanged, and the next call goes well.
    assert host.read(data, 100) == content
    assert host.result(beside(host, data + 99)) is None
    assert host.serves()


def test_a_timed_function_is_named(host: Host) -> None:
    data = host.alloc(100)
    # And one write before: three writes in all, so the byte stays changed.
    timing = host.evaluator("beside", number=2)
    host.functions.where = data + 100
    assert f"beside wrote past the array at {data:#x}" in host.fails(timing)
    assert host.serves()


def is_last(host: Host, request: CallFunc, part: str) -> bool:
    """True if the call's answer is an exception with that text, and then the session ends."""
    host.send(request)
    answer = decode_reply(host.take_next().body, V8)
    ended = host.take_next().kind == MessageType.TERMINATE
    host.silent()
    return isinstance(answer, RemoteException) and part in answer.text and ended


def test_damage_beyond_the_guards_restarts_the_device(host: Host) -> None:
    """The block after the guard is lost: the device restarts, or frees all memory."""
    data, following = host.alloc(100), host.alloc(100)
    assert is_last(host, beside(host, following - 16), "beside wrote far beside the array at 0x")
    # This port's reset comes back: everything has been forgotten.
    assert host.is_.resets == 1
    assert host.blocks() == 0
    host.open(0x24)
    assert "no live tensor" in host.error(free_data(data))
    assert host.serves()


def test_objects_of_lost_memory_are_forgotten(host: Host) -> None:
    """The objects are lost with their memory: no list refers to them any more."""
    door = host.door
    timing = host.evaluator("beside")
    request = beside(host, host.alloc(100) - 16)

    def spoil(*_: int) -> bool:
        door.write(host.server.objects, b"\x5a" * (door.bits // 8))
        header = host.functions.where
        door.write(header, bytes([door.read(header, 1)[0] ^ 0x10]))
        return True

    functions, module = door.new("minrpc_function"), door.new("minrpc_module")
    functions.name, functions.run = door.memory(b"beside\0"), door.callback(spoil)
    module.functions, module.count = functions.address, 1
    host.config.library.modules, host.config.library.count = module.address, 1
    assert is_last(host, CallFunc(0x80008000, request.args), "")
    assert host.server.objects == 0
    host.open(0x24)
    assert "no live function" in host.fails(timing)
    assert host.blocks() == 0


def test_code_in_memory_of_its_own_is_guarded_too(host: Host) -> None:
    host.config.code, host.config.code_size = host.door.aligned(4096), 4096
    host.reboot()
    block = host.handle_of(host.call(host.find("minrpc.code_alloc"), 100))
    assert f"past the array at {block:#x}" in host.error(beside(host, block + 100))
    assert host.result(beside(host, block + 50)) is None
    assert is_last(host, beside(host, block - 16), "far beside")
    host.open(0x24)
    assert host.serves()


def test_workspace_is_looked_at_when_it_is_given_back(host: Host) -> None:
    host.functions.log_size = 16
    assert host.call(host.function("overrun")) is None
    host.functions.log_size = 17
    assert "wrote past its workspace" in host.fails(host.function("overrun"))
    assert "not its newest workspace" in host.fails(host.function("crossed"))
    assert host.arena.top == host.arena.size
    assert host.serves()


def test_workspace_does_not_depend_on_arrays(host: Host) -> None:
    """The same calls with no arrays and with 400: workspace is at the same place."""
    leak = host.function("leak")
    host.call(leak)
    used = host.arena.peak - host.arena.used
    for _ in range(400):
        host.alloc(1)
    host.arena.peak = 0
    host.call(leak)
    assert host.arena.peak - host.arena.used == used
    assert host.arena.top == host.arena.size
