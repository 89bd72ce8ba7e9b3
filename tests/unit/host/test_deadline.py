# SPDX-License-Identifier: Apache-2.0
"""Deadlines: the arithmetic with simulated clocks, the readings with real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, get_args

import pytest
from hypothesis import given, strategies as st
from minrpc import DeadlineError
from minrpc.host import ClockSample, Deadline, deadline as module, read_before, write_before
from minrpc.host.deadline import (
    ProcessClock,
    ThreadTimes,
    WallClock,
    charged_between,
    parse_schedstat,
    parse_stat,
    read_threads,
)
from minrpc.transport import memory_pair


class Now:
    """The monotonic clock, set by hand."""

    def __init__(self) -> None:
        self.s = 1000.0

    def monotonic(self) -> float:
        return self.s


class FakeClock:
    """A device's clock, set by hand; counts its readings."""

    def __init__(self, time: Now) -> None:
        self.time = time
        self.cpu_s = 0.0
        self.queued_s: float | None = 0.0
        self.runnable = False
        self.readings = 0

    def now(self) -> float:
        return self.time.s

    def sample(self, max_age_s: float = 0.0) -> ClockSample:
        self.readings += 1
        return ClockSample(self.time.s, self.cpu_s, self.queued_s, self.runnable)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Now:
    now = Now()
    monkeypatch.setattr(module, "time", now)
    return now


@pytest.fixture
def clock(now: Now) -> FakeClock:
    return FakeClock(now)


@pytest.mark.parametrize(
    ("start", "end", "charged"),
    [
        pytest.param(ClockSample(0.0), ClockSample(5.0), 5.0, id="wall"),
        pytest.param(ClockSample(0.0, 0.0, 0.0), ClockSample(5.0, 0.0, 0.0), 5.0, id="asleep"),
        pytest.param(ClockSample(0.0, 0.0, 0.0), ClockSample(5.0, 5.0, 0.0, True), 5.0, id="running alone"),
        pytest.param(
            ClockSample(0.0, 0.0, 0.0), ClockSample(5.0, 1.0, 4.0, True), 1.0, id="running, host busy"
        ),
        pytest.param(
            ClockSample(0.0, 0.0, 0.0), ClockSample(5.0, 0.1, 0.0, True), 0.1, id="queued, not counted yet"
        ),
        pytest.param(ClockSample(0.0, 2.0, 7.0), ClockSample(5.0, 2.5, 9.0), 3.0, id="part of each"),
        pytest.param(ClockSample(0.0, 0.0, 0.0), ClockSample(5.0, 0.0, 6.0), 0.0, id="two queues at once"),
        pytest.param(
            ClockSample(0.0, 0.0, 0.0), ClockSample(9.0, 2.0, 11.0), 2.0, id="ran between two queues"
        ),
        pytest.param(ClockSample(5.0), ClockSample(4.0), 0.0, id="clock stepped back"),
        pytest.param(
            ClockSample(0.0, 0.0, None), ClockSample(5.0, 1.5, None, True), 1.5, id="not counted, running"
        ),
        pytest.param(ClockSample(0.0, 0.0, None), ClockSample(5.0, 1.5, None), 5.0, id="not counted, asleep"),
        pytest.param(
            ClockSample(0.0, 0.0, None), ClockSample(1.0, 4.0, None, True), 1.0, id="several threads ran"
        ),
    ],
)
def test_charge(start: ClockSample, end: ClockSample, charged: float) -> None:
    assert charged_between(start, end) == pytest.approx(charged)


Doing = Literal["runs", "queues", "sleeps"]
_DOING = st.sampled_from(get_args(Doing))
SCHEDULES = st.lists(st.tuples(st.integers(1, 1000), _DOING, _DOING), max_size=50)
"""A schedule: milliseconds, and the states of the device and of this process in each."""


def _after(schedule: list[tuple[int, Doing, Doing]]) -> ClockSample:
    """The kernel's counts when `schedule` is over."""
    device = [(length, doing) for length, doing, _ in schedule]
    ours = [(length, doing) for length, _, doing in schedule]
    return ClockSample(
        wall_s=_spent(device, get_args(Doing)),
        cpu_s=_spent(device, ("runs",)),
        queued_s=_spent(device, ("queues",)) + _spent(ours, ("queues",)),
        runnable=device[-1][1] != "sleeps" if device else False,
    )


def _spent(slices: list[tuple[int, Doing]], doing: tuple[Doing, ...]) -> float:
    return sum(length for length, what in slices if what in doing) / 1000


@given(SCHEDULES)
def test_no_schedule_hides_what_the_device_ran(schedule: list[tuple[int, Doing, Doing]]) -> None:
    """No schedule charges time that the device waited in the queue."""
    end = _after(schedule)
    charged = charged_between(ClockSample(0.0), end)
    waited = _spent([(length, doing) for length, doing, _ in schedule], ("queues",))
    assert end.cpu_s - 1e-9 <= charged <= end.wall_s - waited + 1e-9


@given(SCHEDULES)
def test_on_a_free_host_all_time_counts(schedule: list[tuple[int, Doing, Doing]]) -> None:
    free: list[tuple[int, Doing, Doing]] = [
        (length, device, ours) for length, device, ours in schedule if "queues" not in (device, ours)
    ]
    end = replace(_after(free), runnable=False)
    assert charged_between(ClockSample(0.0), end) == pytest.approx(end.wall_s)


def test_a_device_that_runs_uses_up_its_budget_on_a_busy_host(now: Now, clock: FakeClock) -> None:
    """In each second the device runs for 0.1 s, and both processes wait in the queue for the rest."""
    deadline = Deadline("call", 0.3, clock)
    for _ in range(3):
        now.s += 1.0
        clock.cpu_s += 0.1
        clock.queued_s = (clock.queued_s or 0.0) + 1.8
    assert deadline.expired()


def test_the_clock_is_not_read_while_wall_time_is_left(now: Now, clock: FakeClock) -> None:
    deadline = Deadline("boot", 10.0, clock)
    now.s += 9.0
    assert deadline.remaining() == pytest.approx(1.0)
    assert not deadline.expired()
    assert clock.readings == 1


def test_time_in_the_queue_is_given_back(now: Now, clock: FakeClock) -> None:
    deadline = Deadline("boot", 10.0, clock)
    now.s += 100.0
    clock.queued_s = 97.0
    assert deadline.remaining() == pytest.approx(7.0)
    now.s += 7.0
    assert deadline.expired()


def test_a_starved_emulator_never_expires_but_the_total_does(now: Now, clock: FakeClock) -> None:
    total = Deadline("all", 600.0)
    deadline = Deadline("boot", 1.0, clock, total)
    now.s += 599.0
    clock.queued_s = 599.0
    assert deadline.remaining() == pytest.approx(1.0)
    now.s += 1.0
    clock.queued_s = 600.0
    assert deadline.expired()
    assert "total time limit of 600 s" in deadline.error("a reply").message


def test_the_error_tells_stage_and_times(now: Now, clock: FakeClock) -> None:
    deadline = Deadline("session", 2.0, clock)
    now.s += 3.0
    clock.cpu_s = 1.5
    error = deadline.error("the reply")
    assert (error.stage, error.waited_for, error.wall_s, error.cpu_s) == ("session", "the reply", 3.0, 1.5)
    assert "2 s" in error.message


def test_the_error_tells_a_rest_of_a_limit_in_milliseconds() -> None:
    assert "within 5 s" in str(Deadline("call", 4.99999).error("an answer"))


def test_on_a_board_no_cpu_time_is_claimed() -> None:
    assert Deadline("call", 1.0).error("a reply").cpu_s is None


def test_an_old_sample_does_not_charge_what_was_before(now: Now) -> None:
    class Stale(FakeClock):
        def sample(self, max_age_s: float = 0.0) -> ClockSample:
            age = 0.2 if max_age_s else 0.0
            return ClockSample(self.time.s - age, 0.0, 0.0)

    deadline = Deadline("call", 1.0, Stale(now))
    now.s += 1.0 - 1e-6
    assert not deadline.expired()
    now.s += 1e-6
    assert deadline.expired()


def test_a_short_budget_begins_with_a_young_sample(now: Now) -> None:
    ages = []

    class Noting(FakeClock):
        def sample(self, max_age_s: float = 0.0) -> ClockSample:
            ages.append(max_age_s)
            return super().sample(max_age_s)

    for budget_s in (0.1, 0.5, 60.0):
        Deadline("call", budget_s, Noting(now))
        assert ages.pop() == pytest.approx(min(0.25, budget_s / 50))


def test_parse_stat_with_a_name_that_misleads() -> None:
    fields = "S 1 1 1 0 -1 0 0 0 0 0 " + "250 150" + " 0" * 30
    times = parse_stat(f"42 (a) R (b) {fields}".encode())
    assert times == ThreadTimes(400 / os.sysconf("SC_CLK_TCK"), None, runnable=False)
    assert parse_stat(f"42 (x) R{fields[1:]}".encode()).runnable


def test_parse_schedstat() -> None:
    assert parse_schedstat(b"1500000000 250000000 17\n") == ThreadTimes(1.5, 0.25)


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[str]]:
    """A process that computes on request and reports when it has finished."""
    script = "import sys\nfor line in sys.stdin:\n sum(range(3_000_000)); print('done', flush=True)"
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    yield process
    process.kill()
    process.communicate()


def test_process_clock_counts_what_a_process_ran(busy: subprocess.Popen[str]) -> None:
    assert busy.stdin is not None
    assert busy.stdout is not None
    clock = ProcessClock(busy.pid)
    start = clock.sample()
    print("go", file=busy.stdin, flush=True)
    assert busy.stdout.readline() == "done\n"
    end = clock.sample()
    assert end.cpu_s > start.cpu_s
    assert 0.0 <= charged_between(start, end) <= end.wall_s - start.wall_s


@pytest.fixture
def crowded(busy: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """`busy`, on one processor with nine others that compute without end."""
    processor = min(os.sched_getaffinity(0))
    os.sched_setaffinity(busy.pid, {processor})
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(9)]
    for other in others:
        os.sched_setaffinity(other.pid, {processor})
    yield busy
    for other in others:
        other.kill()
        other.wait()


def test_a_crowded_host_is_not_charged(crowded: subprocess.Popen[str]) -> None:
    assert crowded.stdin is not None
    assert crowded.stdout is not None
    clock = ProcessClock(crowded.pid)
    start = clock.sample()
    for _ in range(4):
        print("go", file=crowded.stdin, flush=True)
        assert crowded.stdout.readline() == "done\n"
    end = clock.sample()
    assert charged_between(start, end) < (end.wall_s - start.wall_s) / 2


def test_process_clock_after_the_end(busy: subprocess.Popen[str]) -> None:
    clock = ProcessClock(busy.pid)
    before = clock.sample()
    busy.kill()
    busy.wait()
    assert charged_between(before, clock.sample()) >= 0.0
    assert read_threads(busy.pid) == {}


def test_only_the_longest_queue_of_a_process_counts() -> None:
    queueing = module._Queueing()
    queueing.add({1: ThreadTimes(0, 1.0), 2: ThreadTimes(0, 5.0)})
    threads = {1: ThreadTimes(0, 1.5), 2: ThreadTimes(0, 5.2), 3: ThreadTimes(0, 9.0)}
    assert queueing.add(threads) == pytest.approx(0.5)
    assert queueing.add({3: ThreadTimes(0, 9.3)}) == pytest.approx(0.8)
    assert queueing.add({3: ThreadTimes(0, None)}) is None


def test_wall_clock_charges_all() -> None:
    sample = WallClock().sample()
    assert (sample.cpu_s, sample.queued_s) == (0.0, 0.0)


def test_what_came_in_time_is_read_even_after_the_end() -> None:
    host, device = memory_pair()
    device.write(b"late", 0.0)
    assert read_before(host, Deadline("call", 0.0), "a reply") == b"late"
    with pytest.raises(DeadlineError, match="call"):
        read_before(host, Deadline("call", 0.0), "a reply")


def test_an_answer_that_is_soon_there_costs_no_look_at_the_clock(clock: FakeClock, now: Now) -> None:
    host, device = memory_pair()
    device.write(b"answer", 1.0)
    deadline = Deadline("call", 60.0, clock)
    now.s = 1e9
    assert read_before(host, deadline, "a reply") == b"answer"
    assert clock.readings == 1
    with pytest.raises(DeadlineError):
        read_before(host, deadline, "a reply")


def test_read_before_waits_for_the_first_byte() -> None:
    host, device = memory_pair()
    writer = threading.Thread(target=device.write, args=(b"x", 10.0))
    writer.start()
    assert read_before(host, Deadline("call", 60.0), "a byte") == b"x"
    writer.join()


def test_a_write_cut_short_says_how_much_went_out() -> None:
    host, _ = memory_pair(capacity=3)
    with pytest.raises(DeadlineError, match="copy") as caught:
        write_before(host, b"abcdefgh", Deadline("copy", 0.0))
    assert caught.value.written == 3


def test_a_write_goes_on_where_it_was_cut() -> None:
    class ThreeAtATime:
        sent = b""

        def write(self, data: bytes, timeout_s: float) -> None:
            self.sent += data[:3]
            if len(data) > 3:
                error = DeadlineError("slow")
                error.written = 3
                raise error

        def read(self, timeout_s: float) -> bytes:
            return b""

    link = ThreeAtATime()
    write_before(link, b"abcdefgh", Deadline("copy", 60.0))
    assert link.sent == b"abcdefgh"


def test_time_in_our_own_queue_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process can only see an answer after it has had its turn on the processor."""
    queued = {os.getpid(): 1.0, 4242: 5.0}
    monkeypatch.setattr(module, "read_threads", lambda pid: {pid: ThreadTimes(0.0, queued[pid])})
    clock = ProcessClock(4242)
    start = clock.sample().queued_s
    queued[os.getpid()] += 0.5
    queued[4242] += 0.25
    end = clock.sample().queued_s
    assert start is not None
    assert end is not None
    assert end - start == pytest.approx(0.75)
