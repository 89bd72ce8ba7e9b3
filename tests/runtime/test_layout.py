# SPDX-License-Identifier: Apache-2.0
"""Where arrays and code lie, changed in a session: live blocks stay, or nothing changes."""

from __future__ import annotations

import pytest
from minrpc.wire.framing import encode_frame
from minrpc.wire.replies import RemoteException, Reply, Return, decode_reply
from minrpc.wire.requests import CallFunc, alloc_data
from minrpc.wire.values import Handle

from tests.runtime.host import I8, V8, Host, numbered, packet

MORE = 4096


class Memory:
    """A device with further memory for arrays, at `more`. at, size: of the configuration's arena."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.at = host.config.arena
        self.size = host.config.arena_size
        self.more = host.config.more_memory = host.door.aligned(MORE)
        host.config.more_memory_size = MORE

    def request(self, arena: int, size: int, code: int = 0, code_size: int = 0) -> CallFunc:
        """A new layout."""
        signed = size - (1 << 64) if size >> 63 else size
        layout = self.host.find("minrpc.layout")
        return CallFunc(layout, (Handle(arena), signed, Handle(code), code_size))

    def lays_out(self, arena: int, size: int, code: int = 0, code_size: int = 0) -> bool:
        """True if the layout is taken, False if live blocks are in the way."""
        return bool(self.host.result(self.request(arena, size, code, code_size)))

    def refusal(self, arena: int, size: int, code: int = 0, code_size: int = 0) -> str:
        """The text of the exception."""
        return self.host.error(self.request(arena, size, code, code_size))

    def code_block(self) -> int:
        """A block for code."""
        return self.host.handle_of(self.host.call(self.host.find("minrpc.code_alloc"), 64))


@pytest.fixture
def memory(host: Host) -> Memory:
    return Memory(host)


def test_a_smaller_arena_keeps_what_is_in_it(host: Host, memory: Memory) -> None:
    data = host.alloc(100)
    host.write(data, b"\7" * 100)
    assert memory.lays_out(memory.at, 4096)
    assert host.arena.size == host.arena.top == 4096
    assert host.blocks() == 1
    assert "of 4096; enlarge the arena" in host.error(alloc_data(4096, I8, 64))
    assert host.read(data, 100) == b"\7" * 100
    # The layout goes back: the arena's end is free again.
    assert memory.lays_out(memory.at, memory.size)
    host.free(host.alloc(8192))
    host.free(data)
    assert host.serves()


def test_blocks_in_the_way_leave_all_as_it_was(host: Host, memory: Memory) -> None:
    data = host.alloc(8192)
    before = host.arena.content()
    assert not memory.lays_out(memory.at, 4096)
    assert not memory.lays_out(memory.more, MORE)
    # Code would fit; the arrays' place is refused.
    assert not memory.lays_out(memory.more, MORE, memory.at + 32768, 4096)
    assert host.arena.content() == before
    assert host.server.code.size == 0
    host.free(data)
    assert memory.lays_out(memory.more, MORE)
    assert memory.more <= host.alloc(100) < memory.more + MORE
    assert host.serves()


def test_what_lies_behind_a_gap_is_in_the_way(host: Host, memory: Memory) -> None:
    first, behind = host.alloc(8192), host.alloc(16)
    size = host.arena.size
    # Few bytes are used, but they end beyond the requested arena.
    host.free(first)
    assert host.arena.used < 4096
    assert not memory.lays_out(memory.at, 4096)
    assert host.arena.size == size
    host.free(behind)
    assert memory.lays_out(memory.at, 4096)
    assert host.serves()


def test_a_layout_begins_the_arenas_peak_anew(host: Host, memory: Memory) -> None:
    host.free(host.alloc(8192))
    assert host.arena.peak >= 8192
    assert memory.lays_out(memory.at, 4096)
    assert host.arena.peak <= 4096


def test_code_gets_memory_of_its_own_and_goes_back_among_the_arrays(host: Host, memory: Memory) -> None:
    half = memory.size // 2
    before = memory.code_block()
    arrays, codes = range(memory.at, memory.at + half), range(memory.at + half, memory.at + 2 * half)
    assert before in arrays
    assert memory.lays_out(memory.at, half, memory.at + half, half)
    code = memory.code_block()
    assert code in codes
    assert host.alloc(64) in arrays
    # Blocks from the time before it had this memory are given back, too.
    host.free(before)
    assert not memory.lays_out(memory.at, 2 * half)
    host.free(code)
    assert memory.lays_out(memory.at, 2 * half)
    assert memory.code_block() in arrays


def test_code_lies_in_memory_that_the_port_gave_for_it_only(host: Host, memory: Memory) -> None:
    code = host.config.code = host.door.aligned(2048)
    host.config.code_size = 2048
    text = memory.refusal(memory.at, 4096, memory.at + 8192, 4096)
    assert "no memory for code: 4096 bytes" in text
    assert memory.lays_out(memory.at, 4096, code + 1024, 1024)
    assert code + 1024 <= memory.code_block() < code + 2048
    host.open(9)
    assert host.server.code.size == 2048
    assert code <= memory.code_block() < code + 1024


def test_what_is_no_memory_is_refused(host: Host, memory: Memory) -> None:
    at, size = memory.at, memory.size
    before = host.arena.content()
    for arguments, text in [
        ((at, size + 16), "no memory for arrays"),
        ((at + 16, size), "no memory for arrays"),
        ((at - 16, 1024), "no memory for arrays"),
        ((at, 0), "no memory for arrays: 0 bytes"),
        ((at, 31), "no memory for arrays: 31 bytes"),
        ((at, (1 << 64) - 1), "no memory for arrays"),
        ((0, 1024), "no memory for arrays: 1024 bytes at 0x0"),
        ((memory.more + 16, MORE), "no memory for arrays"),
        ((at, 4096, at + size - 16, 1024), "no memory for code"),
        ((at, 4096, 0, 1024), "no memory for code"),
        ((at, 4096, at + 4080, 1024), "would overlap"),
        ((at + 1008, 4096, at, 1024), "would overlap"),
        ((at, 4096, at, 4096), "would overlap"),
    ]:
        assert text in memory.refusal(*arguments)
    assert host.arena.content() == before
    assert host.server.code.size == 0
    # Side by side they do not overlap.
    assert memory.lays_out(at, 4096, at + 4096, 1024)
    assert memory.lays_out(at + 1024, 4096, at, 1024)
    assert host.serves()


@pytest.mark.parametrize("kept", [0, 100, 1000])
def test_an_arena_has_room_for_what_each_request_needs(host: Host, memory: Memory, kept: int) -> None:
    """In the smallest arena that is taken, with and without blocks, the session goes on."""
    sequence = 0
    if kept:
        host.alloc(kept)

    def laid_out(size: int) -> Reply:
        nonlocal sequence
        sequence += 1
        request = packet(memory.request(memory.at, size))
        host.give(encode_frame(numbered(host.session, sequence, request)))
        reply = decode_reply(host.take_numbered(sequence), V8)
        assert isinstance(reply, Return | RemoteException)
        return reply

    size = 0
    while not (isinstance(reply := laid_out(size), Return) and reply.values[1] == 1):
        size += 16
    assert host.arena.size == size
    assert size < 700 + 2 * kept
    host.blocks()
    assert isinstance(laid_out(memory.size), Return)
    assert host.arena.size == memory.size
    assert "too little memory for arrays: 96 bytes" in memory.refusal(memory.at, 96)
    assert host.serves()


def test_the_next_session_has_the_configurations(host: Host, memory: Memory) -> None:
    assert memory.lays_out(memory.more, 1024, memory.at, 8192)
    host.alloc(64)
    memory.code_block()
    host.open(9)
    assert (host.arena.base, host.arena.size) == (memory.at, memory.size)
    assert host.server.code.size == 0
    assert host.blocks() == 0
    assert host.serves()


def test_what_functions_keep_between_sessions_stays_where_it_is(host: Host, memory: Memory) -> None:
    door = host.door
    library = door.constant("MINRPC_ARENA_LIBRARY")
    assert memory.lays_out(memory.more, MORE)
    kept = door.call("minrpc_arena_alloc", host.arena, 64, 16, library, result="P")
    assert kept
    host.open(9)
    assert host.arena.base == memory.more
    assert door.call("minrpc_arena_free", host.arena, kept, library, result="?")
    host.open(10)
    assert host.arena.base == memory.at


def test_a_numbered_request_takes_memory_for_its_answer_anew(host: Host, memory: Memory) -> None:
    request = packet(memory.request(memory.more, MORE))
    host.give(encode_frame(numbered(host.session, 1, request)))
    host.take_numbered(1)
    assert host.arena.base == memory.more
    assert host.server.spare == 0
