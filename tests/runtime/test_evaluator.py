# SPDX-License-Identifier: Apache-2.0
"""The time evaluator, with a scripted clock: it advances by `host.functions.cost` with each call of tick."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import calcsize, iter_unpack, unpack_from

import pytest
from minrpc.wire.framing import encode_frame
from minrpc.wire.requests import CallFunc, Request
from minrpc.wire.session_layer import MessageType
from minrpc.wire.values import Argument, Function, Module, TypeCode

from tests.runtime.host import SYSTEM_LIB, Host, free, message, packet

PLAIN, COUNTING = "runtime.RPCTimeEvaluator", "minrpc.time_evaluator"
LIMIT = 0x08000000
I64_MIN, I64_MAX = -(1 << 63), (1 << 63) - 1
OPTIONS = ["number", "repeat", "min_repeat_ms", "limit_zero", "cooldown_ms", "repeats_to_cooldown"]


@dataclass
class Options:
    """Arguments of an evaluator. arity: their number, 8 in TVM v0.8, 10 in v0.9, 11 in v0.10, 12 in v0.14."""

    number: int = 1
    repeat: int = 1
    min_repeat_ms: int = 0
    limit_zero: int = 0
    cooldown_ms: int = 0
    repeats_to_cooldown: int = 0
    arity: int = 12

    def arguments(self, name: str, module: Module = SYSTEM_LIB) -> list[Argument]:
        return [
            module,
            name,
            1,
            0,
            self.number,
            self.repeat,
            self.min_repeat_ms,
            *([self.limit_zero] if self.arity >= 11 else []),
            *([self.cooldown_ms, self.repeats_to_cooldown] if self.arity >= 10 else []),
            *([4096] if self.arity >= 12 else []),
            "",
        ]


def creating(host: Host, name: str, options: Options, function: str = PLAIN) -> Request:
    return CallFunc(host.find(function), options.arguments(name))


def made(host: Host, name: str, options: Options, function: str = PLAIN) -> int:
    evaluator = host.result(creating(host, name, options, function))
    assert isinstance(evaluator, Function)
    return evaluator.handle


def seconds(host: Host, evaluator: int) -> list[float]:
    """Results of a run."""
    result = host.call(evaluator)
    assert isinstance(result, bytes)
    return [value for (value,) in iter_unpack("<d", result)]


def counted(host: Host, evaluator: int) -> list[tuple[int, int, int, int]]:
    """Rates, cycles, numbers and batches of a run."""
    result = host.call(evaluator)
    assert isinstance(result, bytes)
    header, hz = unpack_from("<QQ", result)
    # Version, its size, the stride, no further columns.
    assert header == 0x0000001000100001
    return [(hz, *row) for row in iter_unpack("<QII", result[calcsize("<QQ") :])]


@pytest.mark.parametrize("arity", [8, 10, 11, 12])
def test_one_untimed_call_then_number_calls_a_repeat(host: Host, arity: int) -> None:
    evaluator = made(host, "tick", Options(7, 3, repeats_to_cooldown=1, arity=arity))
    host.functions.cost = 5
    assert seconds(host, evaluator) == [5e-6] * 3  # five cycles of a microsecond
    assert host.functions.calls == 1 + 3 * 7
    host.functions.cost = 1
    assert seconds(host, made(host, "tick", Options(20, 3, 40, 100, 0, 1, arity))) == [1e-6] * 3


def test_other_numbers_of_arguments_are_exceptions(host: Host) -> None:
    create = host.find(PLAIN)
    for count in {*range(20)} - {8, 10, 11, 12}:
        arguments: list[Argument] = [SYSTEM_LIB, "tick", *[1] * 17, "tick"]
        arguments[max(count - 1, 0) : -1] = []
        assert "arguments" in host.fails(create, *arguments[:count])
    assert host.arena.used == 0


def test_batches_grow_until_the_time_is_reached(host: Host) -> None:
    # A call of 10 us: 1 ms takes 100 of them.
    evaluator = made(host, "tick", Options(1, 2, min_repeat_ms=1, arity=8))
    host.functions.cost = 10
    # 1, then 101, in each repeat: an evaluator's batch size does not leak into the next.
    for _ in range(2):
        host.functions.calls = 0
        assert seconds(host, evaluator) == [1e-5] * 2
        assert host.functions.calls == 1 + 2 * 102


def test_a_short_function_under_a_coarse_clock(host: Host) -> None:
    """The case on which TVM's devices time out or answer zero: 26 ns, a clock of whole microseconds."""
    evaluator = made(host, "tick", Options(20, 3, min_repeat_ms=4, arity=8))
    host.clock.info.cycles_hz = 1000000000
    host.clock.granule = 1000
    host.functions.cost = 26
    assert seconds(host, evaluator) == pytest.approx([26e-9] * 3, rel=1e-3)


def test_a_zero_reading_grows_too(host: Host) -> None:
    evaluator = made(host, "tick", Options(min_repeat_ms=1, limit_zero=5))
    # No time ever passes: 1, 2, 4, 7 and 11 calls, then it gives up.
    host.functions.cost = 0
    assert seconds(host, evaluator) == [0.0]
    assert host.functions.calls == 1 + 1 + 2 + 4 + 7 + 11


def test_a_clock_that_moves_late_is_waited_for(host: Host) -> None:
    evaluator = made(host, "tick", Options(min_repeat_ms=1, limit_zero=100))
    # A tick of the clock is a millisecond, a call a microsecond.
    host.clock.granule = 1000
    assert seconds(host, evaluator)[0] > 0.0


@pytest.mark.parametrize(
    ("cooldown_ms", "repeats", "sleeps"), [(7, 1, 5), (7, 2, 3), (7, 5, 1), (7, 0, 0), (0, 1, 0), (0, 0, 0)]
)
def test_cooling_down(host: Host, cooldown_ms: int, repeats: int, sleeps: int) -> None:
    options = Options(1, 5, cooldown_ms=cooldown_ms, repeats_to_cooldown=repeats, arity=10)
    assert len(seconds(host, made(host, "tick", options))) == 5
    assert (host.is_.sleeps, host.is_.slept_ms) == (sleeps, cooldown_ms * sleeps)


@pytest.mark.parametrize(
    "options",
    [
        *[Options(number=number) for number in (0, -1, I64_MAX, 1 << 32)],
        *[Options(repeat=repeat) for repeat in (0, -1, I64_MAX, (1 << 32) + 1, I64_MIN)],
        Options(min_repeat_ms=-1),
        Options(limit_zero=-1),
        Options(cooldown_ms=-1),
        Options(repeats_to_cooldown=I64_MIN),
    ],
)
def test_numbers_that_make_no_sense_are_exceptions(host: Host, options: Options) -> None:
    assert "time evaluator" in host.error(creating(host, "tick", options))
    assert host.arena.used == 0
    assert host.serves()


@pytest.mark.parametrize("function", [PLAIN, COUNTING])
@pytest.mark.parametrize("option", OPTIONS)
def test_each_option_has_a_limit(host: Host, option: str, function: str) -> None:
    """The largest value of each option is taken, the next is refused, with any values of the others."""
    options = Options(arity=11)
    setattr(options, option, LIMIT)
    host.find(COUNTING)  # This client has none of TVM's limits.
    host.free_handle(made(host, "tick", options, function), TypeCode.FUNCTION)
    setattr(options, option, LIMIT + 1)
    least = int(option == "repeat" or (option == "number" and function == PLAIN))
    text = f"argument {OPTIONS.index(option) + 4}: expected {least} to {LIMIT}"
    assert text in host.error(creating(host, "tick", options, function))
    assert host.arena.used == 0


@pytest.mark.parametrize("function", [PLAIN, COUNTING])
@pytest.mark.parametrize(
    "repeat", [9000, *[1 << shift for shift in (20, 24, 27, 28, 29, 30)], LIMIT - 1, 0x7FFFFFFF]
)
def test_results_that_do_not_fit_are_exceptions(host: Host, repeat: int, function: str) -> None:
    """For any number of results: a result that does not fit the arena is an exception."""
    create = creating(host, "tick", Options(repeat=repeat, arity=8), function)
    if repeat > LIMIT:
        host.error(create)
    else:
        evaluator = host.result(create)
        assert isinstance(evaluator, Function)
        assert "memory" in host.fails(evaluator.handle)
        host.free_handle(evaluator.handle, TypeCode.FUNCTION)
    assert host.functions.calls == 0
    assert host.arena.used == 0
    assert host.serves()


def test_more_results_than_tvms_client_can_take_are_refused(host: Host) -> None:
    for arity, repeat in [(8, 251), (10, 251), (11, 250), (12, 250)]:
        host.free_handle(made(host, "tick", Options(repeat=repeat, arity=arity)), TypeCode.FUNCTION)
    many = Options(repeat=251)
    assert "repeat is over 250" in host.error(creating(host, "tick", Options(repeat=251, arity=11)))
    assert "repeat is over 250" in host.error(creating(host, "tick", many))
    # A client that has asked for this runtime's own functions has no such limit.
    host.find("minrpc.device_info")
    assert len(seconds(host, made(host, "tick", many))) == 251
    # The next session's client has not asked.
    host.open(0x31)
    assert "repeat is over 250" in host.error(creating(host, "tick", many))


def test_a_failure_anywhere_stops_the_timer(host: Host) -> None:
    evaluator = made(host, "fail_at", Options(4, 2))
    for at in range(1, 10):
        host.functions.calls = 0
        host.functions.fail_at = at
        assert "-1" in host.fails(evaluator)
        assert host.functions.calls == at
        assert host.clock.begun == host.clock.ended
        assert not host.server.timer.running
    host.functions.fail_at = 0
    assert len(seconds(host, evaluator)) == 2


def test_the_failing_functions_own_text_is_told(host: Host) -> None:
    assert "no luck" in host.fails(made(host, "fail_text", Options(4, 2)))


def test_a_clock_that_does_not_begin_is_told(host: Host) -> None:
    evaluator = made(host, "tick", Options())
    host.clock.begin_result = -1
    assert "timer" in host.fails(evaluator)
    host.clock.begin_result = 0
    assert len(seconds(host, evaluator)) == 1


def test_a_timer_that_runs_already_is_told(host: Host) -> None:
    evaluator = made(host, "tick", Options())
    host.server.timer.running = True
    assert "0x504" in host.fails(evaluator)
    host.server.timer.running = False
    assert len(seconds(host, evaluator)) == 1


def test_many_evaluators_live_at_once(host: Host) -> None:
    evaluators = [made(host, "tick", Options(1 + i)) for i in range(100)]
    for i, evaluator in enumerate(evaluators):
        host.functions.calls = 0
        host.call(evaluator)
        assert host.functions.calls == 2 + i
    # They are freed from the middle outwards.
    for i in range(100):
        host.free_handle(evaluators[49 - i // 2 if i % 2 == 0 else 50 + i // 2], TypeCode.FUNCTION)
    assert host.arena.used == 0


def test_a_freed_evaluator_is_gone(host: Host) -> None:
    evaluator = made(host, "tick", Options())
    host.free_handle(evaluator, TypeCode.FUNCTION)
    assert "0x" in host.fails(evaluator)
    assert "0x" in host.error(free(evaluator, TypeCode.FUNCTION))
    # The next evaluator has another handle.
    assert made(host, "tick", Options()) != evaluator


def test_evaluators_end_with_their_session(host: Host) -> None:
    evaluator = made(host, "tick", Options())
    host.open(0x77)
    assert "0x" in host.fails(evaluator)
    assert host.arena.used == 0


@pytest.mark.parametrize(("name", "number", "repeat", "times"), [("tick", 1, 100, 200), ("leak", 10, 1, 50)])
def test_results_and_workspace_are_freed(host: Host, name: str, number: int, repeat: int, times: int) -> None:
    """After results were sent; and workspace that a timed function keeps."""
    evaluator = made(host, name, Options(number, repeat))
    used = host.arena.used
    for _ in range(times):
        host.call(evaluator)
        assert host.arena.used == used


def test_what_the_timed_function_returns_is_not_the_result(host: Host) -> None:
    evaluator = made(host, "ret", Options(3))
    host.functions.type_code = TypeCode.STRING
    host.functions.value.v_str = host.door.memory(b"mine\0")
    assert len(seconds(host, evaluator)) == 1


def test_unknown_functions_and_modules_are_exceptions(host: Host) -> None:
    assert "nothing" in host.error(creating(host, "nothing", Options(arity=8)))
    for module in (0, 0x8001, 0x100008000, (1 << 64) - 1):
        arguments = Options(arity=8).arguments("tick", Module(module))
        assert "module" in host.fails(host.find(PLAIN), *arguments)


# ---------------------------------------------------------------- counting


def test_counts_of_every_repeat(host: Host) -> None:
    options = Options(1, 2, min_repeat_ms=1, limit_zero=9)
    host.functions.cost = 10
    assert counted(host, made(host, "tick", options, COUNTING)) == [(1000000, 1010, 101, 2)] * 2


def test_the_empty_name_times_the_call_and_no_calls_the_timer(host: Host) -> None:
    empty = made(host, "", Options(9), COUNTING)
    timer = made(host, "", Options(0), COUNTING)
    host.clock.per_sample = 3
    assert counted(host, empty)[0][2] == 9
    assert counted(host, timer)[0][1:3] == (3, 0)
    host.error(creating(host, "", Options(arity=8)))


def test_what_the_coarse_clock_timed_says_so(host: Host) -> None:
    """A counter that stands still: the coarse clock has the time, and each result shows it by its top bit."""
    counting = made(host, "tick", Options(4, 2), COUNTING)
    plain = made(host, "tick", Options(4, 2))
    host.functions.cost = 0
    host.clock.info.coarse_hz = 1000
    host.clock.coarse_per_sample = 7
    assert counted(host, counting) == [(1000000, 7000, 4, 1 | 1 << 31)] * 2
    assert seconds(host, plain)[1] == 0.007 / 4
    # If the two agree, the time is the counter's again, without the mark.
    host.clock.per_sample = 7001
    assert counted(host, counting)[1] == (1000000, 7001, 4, 1)


# ---------------------------------------------------------------- abandoning

START = b"\x77\0\0\1"
NEVER = 1 << 40


class Waiting:
    """Bytes that wait on the link from a look on, in several pieces, as in a ring."""

    def __init__(self, host: Host, payload: bytes = START, look: int = NEVER, piece: int = 1 << 20) -> None:
        self.wire = b"\x55" + encode_frame(payload)
        self.looks = 0
        self._host, self._look, self._piece = host, look, piece
        self.memory = host.door.memory(self.wire)
        host.platform.pending = host.door.callback(self._pending)

    def _pending(self, _context: int, begin: int, data: int, *_: int) -> int:
        begin &= 0xFFFFFFFF
        self.looks += begin == 0
        self._host.door.write(data, (self.memory + begin).to_bytes(self._host.door.bits // 8, "little"))
        return 0 if self.looks < self._look else min(len(self.wire) - begin, self._piece)

    def replaces(self, evaluator: int) -> None:
        """The client that waited for the evaluator goes: no answer, and its successor is served."""
        host = self._host
        host.send(CallFunc(evaluator, ()))
        host.silent()
        assert host.clock.begun == host.clock.ended
        host.give(self.wire)
        reply = host.take_next()
        assert reply.kind == MessageType.START_REPLY
        host.session = reply.session
        assert host.serves()
        assert host.blocks() == 0


LONG = Options(number=1 << 27)


def test_a_new_session_ends_a_long_batch(host: Host) -> None:
    """A call takes 0.1 s, so two or three lie between two looks: the third look comes within ten."""
    waiting = Waiting(host, look=3)
    evaluator = made(host, "tick", LONG, COUNTING)
    host.functions.cost = 100000
    waiting.replaces(evaluator)
    assert host.functions.calls <= 10


def test_a_new_session_ends_batches_that_grow(host: Host) -> None:
    waiting = Waiting(host, look=3)
    waiting.replaces(made(host, "tick", Options(1, 5, 100000, 9), COUNTING))
    assert host.functions.calls < 600000


def test_a_new_session_ends_a_cool_down(host: Host) -> None:
    waiting = Waiting(host, look=5)
    waiting.replaces(made(host, "tick", Options(1, 3, 0, 0, 1 << 27, 1), COUNTING))
    assert host.is_.slept_ms <= 500


@pytest.mark.parametrize("size", range(1, 16))
def test_a_session_start_in_two_pieces_of_a_ring_is_seen(host: Host, size: int) -> None:
    waiting = Waiting(host, look=1, piece=size)
    evaluator = made(host, "tick", LONG, COUNTING)
    host.functions.cost = 1000000
    waiting.replaces(evaluator)
    assert host.functions.calls <= 2


def test_bytes_are_looked_for_after_a_call_that_they_came_in(host: Host) -> None:
    """Bytes arrive in each call: the first look follows the untimed call, the third the second timed call."""
    waiting = Waiting(host, look=3)
    evaluator = made(host, "tick", LONG, COUNTING)
    host.server.received = host.functions.address  # the number of calls is its first member
    waiting.replaces(evaluator)
    assert host.functions.calls == 3


def test_a_batch_that_bytes_interrupt_has_all_its_calls(host: Host) -> None:
    """Bytes that come in during each call stop the batch for a look. They start no session, so the rest of
    the batch's calls is made, and the time is the time of all calls."""
    waiting = Waiting(host)
    evaluator = made(host, "tick", Options(50, 3), COUNTING)
    host.platform.received = host.server.received = host.functions.address
    host.functions.cost = 10
    assert counted(host, evaluator) == [(1000000, 500, 50, 1)] * 3
    assert host.functions.calls == 151
    # There was a look after each call except a batch's last, and a look after each batch.
    assert waiting.looks == 1 + 3 * 50


def test_no_look_falls_into_a_batch_while_nothing_comes_in(host: Host) -> None:
    """A look is code that a time would hold: one follows the untimed call, and one each repeat."""
    waiting = Waiting(host)
    evaluator = made(host, "tick", Options(1000, 2), COUNTING)
    host.platform.received = host.server.received = host.door.memory(4)
    host.functions.cost = 100000
    host.call(evaluator)
    assert host.functions.calls == 2001
    assert waiting.looks == 3
    assert host.serves()


def test_a_session_start_right_behind_the_request_is_seen(host: Host) -> None:
    """It came with the request, in one piece, so the port does not have it any more."""
    waiting = Waiting(host)
    evaluator = made(host, "tick", LONG, COUNTING)
    host.functions.cost = 1000000
    call = message(host.session, MessageType.NORMAL, packet(CallFunc(evaluator, ())))
    host.give(call + waiting.wire)
    assert host.functions.calls <= 2
    reply = host.take_next()
    assert reply.kind == MessageType.START_REPLY
    host.session = reply.session
    assert host.serves()


def test_looks_are_a_quarter_of_a_second_apart(host: Host) -> None:
    """A device's first run, in which nothing has been timed before, has them, too: a call takes 1 ms."""
    waiting = Waiting(host)
    evaluator = made(host, "tick", Options(1000, 2), COUNTING)
    host.functions.cost = 1000
    assert counted(host, evaluator)[1][2] == 1000
    # Three looks in each batch, one after each batch, and one after the untimed call.
    assert waiting.looks == 2 * 4 + 1


def test_calls_between_two_looks_under_a_clock_that_stands_still(host: Host) -> None:
    """The time of a call is unknown: looks happen all the same, and the batch ends."""
    Waiting(host)
    evaluator = made(host, "tick", Options(100000, 2), COUNTING)
    host.clock.info.cycles_hz = 0xFFFFFFFF
    assert counted(host, evaluator)[1][2] == 100000
    assert host.functions.calls == 200001


def flip_end(wire: bytes) -> bytes:
    return wire[:-1] + bytes([wire[-1] ^ 1])


@pytest.mark.parametrize(
    ("payload", "change"),
    [
        (b"\x77\0\1\1", bytes),
        (b"\0\0\0\1", bytes),
        (b"\x77\0\x10\1", bytes),
        (START[:3], bytes),
        (START, flip_end),
        (START, lambda wire: wire[:-1]),
    ],
)
def test_other_bytes_end_nothing(host: Host, payload: bytes, change: Callable[[bytes], bytes]) -> None:
    """Other waiting bytes, and a damaged start, do not end the measurement."""
    waiting = Waiting(host, payload, look=1)
    waiting.wire = change(waiting.wire)
    host.door.write(waiting.memory, waiting.wire)
    evaluator = made(host, "tick", Options(50, 2), COUNTING)
    host.functions.cost = 100000
    assert counted(host, evaluator)[1][2] == 50
    assert host.functions.calls == 101
    assert waiting.looks > 20
