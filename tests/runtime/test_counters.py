# SPDX-License-Identifier: Apache-2.0
"""Counters beside a time, of a port with scripted counters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from struct import iter_unpack, pack, unpack_from

import pytest
from minrpc.wire.framing import encode_frame
from minrpc.wire.requests import Answer, CallFunc, Request
from minrpc.wire.session_layer import MessageType
from minrpc.wire.values import TypeCode

from tests.runtime.host import SYSTEM_LIB, Host, message, numbered, packet

LIMIT = 0x08000000


@dataclass
class Scripted:
    """A counter with a value before and after each batch."""

    bits: int
    before: int
    after: int
    unit: str = ""
    reads: int = 0
    starts: int = 0
    stops: int = 0
    refuses: bool = False
    stays: bool = False  # can't be stopped

    def read(self) -> int:
        self.reads += 1
        return self.before if self.reads % 2 else self.after

    def enable(self, on: bool) -> bool:
        if on and self.refuses:
            return False
        self.starts += on
        self.stops += not on
        return on or not self.stays


class Counters:
    """Scripted counters of a port, by name."""

    def __init__(self, host: Host) -> None:
        self.narrow = Scripted(8, 250, 4, "cycles")
        self.word = Scripted(32, 0xFFFFFFF0, 0x10)
        self.full = Scripted(64, 1, 1 << 40)
        self.later = Scripted(16, 7, 9)
        self._names = list(vars(self))
        read = host.door.callback(lambda context, *_: self._at(context).read())
        enable = host.door.callback(lambda context, on, *_: self._at(context).enable(bool(on & 1)))
        rows = [(name, self._at(i + 1).unit, self._at(i + 1).bits) for i, name in enumerate(self._names)]
        provide(host, [(*row, read, enable, i) for i, row in enumerate(rows, 1)])

    def _at(self, number: int) -> Scripted:
        counter = getattr(self, self._names[number - 1])
        assert isinstance(counter, Scripted)
        return counter


def provide(host: Host, rows: Iterable[tuple[str, str, int, int, int, int]]) -> None:
    """Gives the port counters: name, unit, width, functions to read and to enable, context."""
    door = host.door
    words = [
        (door.memory(name.encode() + b"\0"), door.memory(unit.encode() + b"\0"), *rest)
        for name, unit, *rest in rows
    ]
    size = len(door.new("minrpc_counter").content())
    table = host.config.counters = door.memory(size * (len(words) + 1))
    for i, row in enumerate(words):
        counter = door.at(table + size * i, "minrpc_counter")
        counter.name, counter.unit, counter.bits, counter.read, counter.enable, counter.context = row


@pytest.fixture
def counters(host: Host) -> Counters:
    counters = Counters(host)
    host.reboot()
    return counters


def creating(host: Host, name: str, chosen: str, repeat: int = 1) -> Request:
    return CallFunc(host.find("minrpc.time_evaluator"), (SYSTEM_LIB, name, 1, 1, 1, repeat, 0, chosen))


def running(host: Host, name: str, chosen: str, repeat: int = 1) -> Request:
    """A run of a new evaluator."""
    return CallFunc(host.handle_of(host.result(creating(host, name, chosen, repeat))), ())


def answer(host: Host, name: str, chosen: str) -> bytes:
    result = host.result(running(host, name, chosen))
    assert isinstance(result, bytes)
    return result


def columns(host: Host, name: str, chosen: str) -> list[int]:
    """Counts of the only repeat."""
    result = answer(host, name, chosen)
    size, count = unpack_from("<HH", result, 2)[0], unpack_from("<H", result, 6)[0]
    found = [value for (value,) in iter_unpack("<Q", result[size + 16 :])]
    assert len(found) == count == chosen.count(",") + bool(chosen)
    return found


def test_differences_are_modulo_a_counters_width(host: Host, counters: Counters) -> None:
    assert columns(host, "tick", "narrow,word,full,later") == [10, 0x20, (1 << 40) - 1, 2]
    assert (counters.narrow.starts, counters.narrow.stops) == (1, 1)


@pytest.mark.parametrize("difference", [0, 1, 127, 128, 129, 200, 255])
def test_differences_of_half_a_counters_width(host: Host, counters: Counters, difference: int) -> None:
    """The top bit of a width counts, and differences may be half of the range or more."""
    for counter, before, step in [
        (counters.narrow, 100, 1),
        (counters.later, 0xFFFF, 0x100),
        (counters.word, 1, 1 << 24),
        (counters.full, (1 << 64) - 1, 1 << 56),
    ]:
        counter.before, counter.after = before, (before + step * difference) & (1 << 64) - 1
    wanted = [difference, difference << 24, difference << 56, difference << 8]
    assert columns(host, "tick", "narrow,word,full,later") == wanted


def test_the_32nd_counter_is_not_known(host: Host) -> None:
    """31 counters are known, the runtime's five among them. A set has no room for the next counter: that bit
    means that interrupts are masked."""
    names = [f"c{i:02}" for i in range(27)]
    read = host.door.callback(lambda *_: 0)
    provide(host, [(name, "", 32, read, 0, 0) for name in names])
    listed = host.call(host.find("minrpc.counters"))
    assert isinstance(listed, bytes)
    # The peaks of stack and heap are missing, since this port does not have them.
    assert listed.endswith(b"c25,,32\n")
    assert columns(host, "tick", "c25") == [0]
    columns(host, "tick", ",".join([*names[:26], "link_sent", "link_received", "arena_bytes"]))
    assert "no counter c26" in host.error(creating(host, "tick", "c26"))


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        ("word", b"word".ljust(8, b"\0")),
        ("word,full", b"word\0full".ljust(16, b"\0")),
        ("narrow", b"narrow".ljust(8, b"\0")),
        # The names are in the order of their numbers.
        ("narrow,later,full", b"narrow\0full\0later".ljust(24, b"\0")),
    ],
)
@pytest.mark.usefixtures("counters")
def test_names_are_filled_up_with_zeros(host: Host, chosen: str, names: bytes) -> None:
    """Names and zeros up to a multiple of 8, over any bytes."""
    host.door.write(host.arena.base + host.arena.end, b"\xa5" * 1000)
    header = answer(host, "tick", chosen)
    assert unpack_from("<H", header, 2)[0] == 16 + len(names)
    assert header[16:].startswith(names)


@pytest.mark.usefixtures("counters")
def test_the_links_bytes_are_counted(host: Host) -> None:
    """Bytes of the link in a batch in which a function logs: frames and all."""
    host.functions.log_size = 100
    # ff fd, the length, a session header, the text, the CRC.
    assert columns(host, "talk", "link_sent,link_received") == [0, 2 + 4 + 3 + 100 + 2]
    before = host.server.link_received
    host.give(b"noise")
    assert host.server.link_received == before + len(b"noise")


def test_those_before_one_that_can_not_be_had_are_stopped(host: Host, counters: Counters) -> None:
    counters.full.refuses = True
    assert "no slot for the counter full" in host.error(running(host, "tick", "later,full,word,narrow"))
    for counter in (counters.narrow, counters.word):
        assert (counter.starts, counter.stops) == (1, 1)
    # Stopping a counter that does not run would stop its other user.
    assert counters.full.stops == counters.later.starts == counters.later.stops == 0
    assert counters.narrow.reads == 0
    assert host.serves()


def test_counters_stop_when_the_timed_function_fails(host: Host, counters: Counters) -> None:
    host.functions.fail_at = 2
    host.error(running(host, "fail_at", "narrow,later"))
    assert counters.narrow.starts == counters.narrow.stops == counters.later.stops == 1


@pytest.mark.usefixtures("counters")
def test_only_whole_names_are_known(host: Host) -> None:
    running(host, "tick", "narrow,")
    for name in ("narro", "narrowed", ",", "narrow,wor"):
        assert "no counter " in host.error(creating(host, "tick", name))
    assert host.serves()


@pytest.mark.parametrize(
    "chosen",
    ["", "narrow", "link_received,link_sent", "narrow,word,full,later,arena_bytes,link_received,link_sent"],
)
def test_results_with_columns_that_do_not_fit_are_exceptions(
    host: Host, counters: Counters, chosen: str
) -> None:
    """A row has 16 bytes and 8 for each counter: with two or more the largest repeat is over 4 GiB."""
    used = host.arena.used
    for repeat in (8192, 1 << 20, 0x04000000, 0x05555556, LIMIT - 1, LIMIT):
        run = running(host, "tick", chosen, repeat)
        assert isinstance(run, CallFunc)
        assert "out of device memory" in host.error(run)
        host.free_handle(run.handle, TypeCode.FUNCTION)
    text = host.error(creating(host, "tick", chosen, LIMIT + 1))
    assert "argument 5: expected 1 to 134217728" in text
    assert host.functions.calls == counters.narrow.starts == 0
    assert host.arena.used == used
    assert host.serves()


@pytest.mark.parametrize("chosen", ["", "link_sent", "link_received,link_sent"])
@pytest.mark.usefixtures("counters")
def test_results_with_columns_up_to_the_arenas_end(host: Host, chosen: str) -> None:
    """The largest repeat that fits the arena, and one more."""
    row = 16 + 8 * (chosen.count(",") + bool(chosen))
    repeat = 64000 // row

    def fits() -> bool:
        run = running(host, "tick", chosen, repeat)
        reply = host.request(run)
        host.blocks()
        assert isinstance(run, CallFunc)
        host.free_handle(run.handle, TypeCode.FUNCTION)
        return "out of device memory" not in str(reply)

    while fits():
        repeat += 1
    assert repeat * row > 65000


@pytest.mark.usefixtures("counters")
def test_a_calls_peak_is_above_what_was_in_use(host: Host) -> None:
    """The peak of use stays the same."""
    host.free(host.alloc(30000))
    peak = host.arena.peak
    assert 1000 <= columns(host, "leak", "arena_bytes")[0] < 1100
    assert host.arena.peak == peak
    assert columns(host, "tick", "arena_bytes") == [0]


def test_a_counter_that_can_not_be_stopped_is_no_failure(host: Host, counters: Counters) -> None:
    counters.narrow.stays = True
    assert columns(host, "tick", "narrow,word")[0] == 10
    assert counters.word.starts == counters.word.stops


@pytest.mark.usefixtures("counters")
def test_peaks_of_stack_and_heap(host: Host) -> None:
    """The port has a stack of 1,000 bytes, and a heap with 100 bytes in use before the call."""
    peaks = {"stack": 999, "heap": 164}
    paints: list[int] = []

    def put(address: int, number: int) -> None:
        host.door.write(address, number.to_bytes(4, "little"))

    def stack_use(_context: int, size: int, peak: int, *_: int) -> None:
        put(size, 1000)
        put(peak, peaks["stack"])

    def heap_use(_context: int, used: int, peak: int, reset: int, *_: int) -> None:
        put(used, 100)
        put(peak, 100 if reset & 1 else peaks["heap"])

    host.platform.stack_paint = host.door.callback(lambda *_: paints.append(1))
    host.platform.stack_use = host.door.callback(stack_use)
    host.platform.heap_use = host.door.callback(heap_use)
    assert columns(host, "tick", "stack_bytes") == [999]
    peaks["stack"] = 1000
    assert "used all 1000 bytes of the stack" in host.error(running(host, "tick", "stack_bytes"))
    assert columns(host, "tick", "heap_bytes") == [64]
    memory, painted = host.find("minrpc.memory"), len(paints)
    assert (host.call(memory, 0), len(paints)) == (pack("<2I", 100, 164), painted)
    assert (host.call(memory, 1), len(paints)) == (pack("<2I", 100, 100), painted + 1)
    peaks["heap"] = 60  # the call freed memory of other blocks
    assert columns(host, "tick", "heap_bytes") == [0]


def test_the_list_tells_which_can_not_be_had(host: Host, counters: Counters) -> None:
    counters.word.refuses = True
    listed = host.call(host.find("minrpc.counters"))
    assert isinstance(listed, bytes)
    assert b"arena_bytes,bytes,32\n" in listed
    assert b"narrow,cycles,8\nword,,0\nfull,,64\nlater,,16\n" in listed
    assert b"heap_bytes" not in listed
    assert counters.narrow.starts == counters.narrow.stops


class Mask:
    """The port's mask of interrupts."""

    def __init__(self, host: Host) -> None:
        self.masked = self.unmasked = 0
        host.platform.interrupts_mask = host.door.callback(self._mask)

    def _mask(self, _context: int, now: int, *_: int) -> None:
        assert self.masked - self.unmasked == (0 if now & 1 else 1)
        self.masked += now & 1
        self.unmasked += not now & 1

    @property
    def times(self) -> tuple[int, int]:
        return self.masked, self.unmasked


def test_interrupts_are_masked_around_a_batch(host: Host) -> None:
    """Around each batch, also a batch that fails, or is not timed; and never without a request."""
    assert "no counter interrupts_masked" in host.error(creating(host, "tick", "interrupts_masked"))
    mask = Mask(host)
    looks: list[bool] = []
    read = host.door.callback(lambda *_: looks.append(mask.masked != mask.unmasked))
    provide(host, [("look", "", 32, read, 0, 0)])
    host.reboot()
    columns(host, "tick", "look")
    assert mask.times == (0, 0)
    assert not any(looks)
    host.result(running(host, "tick", "look,interrupts_masked"))
    assert mask.times == (1, 1)
    assert looks[-1]
    host.functions.calls, host.functions.fail_at = 0, 2
    host.error(running(host, "fail_at", "interrupts_masked"))
    assert mask.times == (2, 2)
    host.platform.clock_begin = host.door.callback(lambda *_: -1)
    assert "timer error" in host.error(running(host, "tick", "interrupts_masked"))
    assert mask.times == (3, 3)
    assert host.serves()


def test_interrupts_are_unmasked_when_the_client_ends_the_function(host: Host) -> None:
    """The client answers the warm-up call, and ends the call in the batch."""
    mask = Mask(host)

    def answers_once(turn: int) -> bytes:
        host.take_next()
        return message(host.session, MessageType.NORMAL, packet(Answer(b"7" if turn == 0 else b"")))

    host.on_wait(answers_once)
    assert "the client ended the function" in host.error(running(host, "ask", "interrupts_masked"))
    assert mask.times == (1, 1)
    assert host.serves()


def test_a_long_list_is_kept_where_it_fits(host: Host) -> None:
    """The largest number of counters, in a session whose answers are kept to be sent again."""
    found = host.find("minrpc.counters")
    array = host.alloc(8)
    host.door.write(array, b"\x5a" * 8)
    name = "a_counter_of_an_application_with_a_name_of_its_own"
    read = host.door.callback(lambda *_: 0)
    provide(host, [(name, "cycles", 8, read, 0, 0)] * 27)
    host.give(encode_frame(numbered(host.session, 1, packet(CallFunc(found, ())))))
    for _ in range(2):
        assert host.take_numbered(1).endswith(b"cycles,8\n")
        host.give(message(host.session, MessageType.PROBE, b"\1"))
    host.blocks()
    assert host.door.read(array, 8) == b"\x5a" * 8
    host.take_next()
    assert host.serves()


@pytest.mark.usefixtures("counters")
def test_a_list_needs_memory(host: Host) -> None:
    """If there is no room for it, the call fails, and the next call does not."""
    found = host.find("minrpc.counters")
    everything = host.alloc(host.arena.size - 200)
    assert "out of device memory" in host.fails(found)
    host.free(everything)
    assert isinstance(host.call(found), bytes)
