# SPDX-License-Identifier: Apache-2.0
"""Records that are kept, compared, and shown."""

import dataclasses
import json
import math
import random

import pytest
from minrpc import Sample
from minrpc.timing import MeasuredCode, MemoryUse, TimingRecord
from minrpc.timing.compare import compare, comparison_json, tolerance
from minrpc.timing.comparison_text import comparison_markdown, difference_text, headline
from minrpc.timing.record import content, dump, merged, parse
from minrpc.timing.text import record_text

from tests.unit.timing.samples import EXACT, WALL, recorded, with_measured


def noisy(seed: int, factor: float, count: int = 20) -> list[int]:
    rng = random.Random(seed)
    return [round(1e6 * factor * (1 + rng.expovariate(50))) for _ in range(count)]


def test_what_is_kept_comes_back() -> None:
    kept = [recorded([1000, 1001]), recorded(noisy(1, 1.0), clock=WALL)]
    assert parse(dump(kept)) == kept


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ("[]", "did not write it"),
        (json.dumps({"format": "minrpc timings", "version": 1}), "did not write it"),
        (json.dumps({"format": "minrpc", "version": 9}), "of version 9, this program reads 3"),
        (
            json.dumps({"format": "minrpc", "version": 3, "command": "check"}),
            "`minrpc check --json` wrote it",
        ),
        (json.dumps({"format": "minrpc", "version": 3, "command": "time", "timings": [{}]}), "has no key"),
    ],
)
def test_a_file_that_is_none_of_ours(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse(text)


def test_a_new_record_takes_the_place_of_the_old() -> None:
    first, second = recorded([1000]), dataclasses.replace(recorded([5]), platform="other")
    again = recorded([2000])
    assert merged([first, second], again) == [again, second]
    assert merged([second], first) == [second, first]


def counted(number: int, estimate: str = "", **counters: int) -> TimingRecord:
    """A record of one repeat, with counters of a batch."""
    record = recorded([1000], number=number)
    samples = tuple(dataclasses.replace(sample, columns=counters) for sample in record.measurement.samples)
    return with_measured(record, samples=samples, estimate=estimate)


def changed_counters(base: TimingRecord, head: TimingRecord) -> list[str]:
    (change,) = compare([base], [head]).changes
    return [counter.name for counter in change.counters]


def test_bytes_may_differ_by_eight_an_instruction_of_the_timers() -> None:
    """Batches of 10 and 20 calls differ by half a batch's share of the timer: 12.15 ticks a call."""
    instructions = 12.15 / float(EXACT.ticks_per_instruction or 1)
    few, many = 10 * 100, 20 * round(100 + 4 * instructions)
    assert changed_counters(counted(10, loads=few), counted(20, loads=many)) == ["loads"]
    assert changed_counters(counted(10, loaded_bytes=few), counted(20, loaded_bytes=many)) == []


def called(ticks: int, instructions: int, inclusive: float) -> TimingRecord:
    """A record of 10 calls with these ticks and instructions together, and instructions of a call's own."""
    record = with_measured(recorded([ticks] * 6), inclusive={"instructions": inclusive})
    samples = tuple(
        dataclasses.replace(sample, columns={"instructions": instructions})
        for sample in record.measurement.samples
    )
    return with_measured(record, samples=samples)


@pytest.mark.parametrize(
    ("head", "verdict"),
    [
        (called(1160, 350, 20.0), "same"),  # 5 instructions more a call, all of them in calling it
        (called(1160, 350, 25.0), "slower"),  # in the function
        (called(1160, 300, 20.0), "slower"),  # time without instructions: it waits
    ],
)
def test_the_verdict_is_of_the_functions_own_time(head: TimingRecord, verdict: str) -> None:
    (change,) = compare([called(1000, 300, 20.0)], [head]).changes
    assert change.verdict == verdict


def test_equal_code_whose_first_call_is_longer_is_the_same() -> None:
    """The inclusive figure is the mean of all repeats, and the typical time is that of the shortest."""

    def of_repeats(repeats: int) -> TimingRecord:
        instructions = [3300, *[300] * (repeats - 1)]
        record = recorded([8 * each for each in instructions])
        mean = sum(instructions) / repeats / 10 - 10
        samples = tuple(
            dataclasses.replace(sample, columns={"instructions": each})
            for sample, each in zip(record.measurement.samples, instructions, strict=True)
        )
        return with_measured(record, samples=samples, inclusive={"instructions": mean})

    for base, head in ((10, 4), (4, 10)):
        (change,) = compare([of_repeats(base)], [of_repeats(head)]).changes
        assert change.verdict == "same"


def test_cycles_of_two_cores_are_no_change() -> None:
    base, head = (counted(10, estimate, cycles=n, loads=n) for estimate, n in (("M3", 50), ("M4", 70)))
    assert changed_counters(base, head) == ["loads"]
    assert changed_counters(base, counted(10, "M3", cycles=70, loads=50)) == ["cycles"]


def test_a_change_from_nothing_has_no_share() -> None:
    comparison = compare([recorded([0, 0, 0])], [recorded([100, 100, 100])])
    (change,) = comparison.changes
    assert (change.verdict, difference_text(change)) == ("slower", "+10 ticks")
    (row,) = comparison_json(comparison)["changes"]
    assert (row["change_ticks"], row["change_ratio"]) == (10, None)
    base, head = recorded([0] * 20, clock=WALL), recorded(noisy(1, 1.0), clock=WALL)
    (noisy_change,) = compare([base], [head]).changes
    assert difference_text(noisy_change).startswith("from 0 ticks (p = ")


def test_exact_times_to_the_cycle() -> None:
    (change,) = compare([recorded([1000, 1001, 1000])], [recorded([1010, 1010, 1010])]).changes
    assert change.verdict == "slower"
    assert change.ticks == pytest.approx(1.0)
    assert change.exact


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        # An interrupt in more of the repeats moves the median, and not the shortest.
        ([1000] * 4 + [1016] * 6, [1000] * 6 + [1016] * 4, "same"),
        ([1000] * 6 + [1016] * 4, [1010] * 6 + [1026] * 4, "slower"),
        # One more interrupt changes the shortest repeat, and not the median: a real change moves both.
        ([1000] * 10, [900] + [1000] * 9, "same"),
        ([900] + [1000] * 9, [1000] * 10, "same"),
        # The shortest one way, the median the other.
        ([900] + [1000] * 9, [950] * 9 + [920], "same"),
    ],
)
def test_an_exact_change_moves_the_shortest_and_the_median(
    base: list[int], head: list[int], verdict: str
) -> None:
    assert compare([recorded(base)], [recorded(head)]).changes[0].verdict == verdict


def test_a_smaller_firmware_is_not_worse() -> None:
    comparison = compare([recorded([1000], flash=20016)], [recorded([1000])])
    assert [size.grown for size in comparison.sizes] == [-16, 0]
    assert not comparison.worse(strict=True)
    assert "bare_mps2_an385 flash -16 bytes" in headline(comparison)


def test_the_timer_share_of_fewer_calls_is_no_change() -> None:
    """The timer's own 243 ticks, spread over 10 calls and over 100."""
    base, head = recorded([243 + 10 * 500] * 3), recorded([243 + 100 * 500] * 3, number=100)
    (change,) = compare([base], [head]).changes
    assert change.verdict == "same"


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "same"), (1.05, "slower"), (0.95, "faster")])
def test_other_times_by_significance(factor: float, verdict: str) -> None:
    base, head = recorded(noisy(1, 1.0), clock=WALL), recorded(noisy(2, factor), clock=WALL)
    (change,) = compare([base], [head]).changes
    assert change.verdict == verdict
    assert change.p_value is not None
    assert change.relative == pytest.approx(factor - 1, abs=0.02)


def test_different_clocks_do_not_compare() -> None:
    other = dataclasses.replace(EXACT, icount_shift=5)
    (change,) = compare([recorded([1000])], [recorded([1000], clock=other)]).changes
    assert change.verdict == "not comparable"
    assert "icount shift 5" in change.note


def test_net_and_gross_times_do_not_compare() -> None:
    gross = recorded([1000] * 6)
    net = dataclasses.replace(gross, measurement=gross.measurement.net())
    (change,) = compare([gross], [net]).changes
    assert (change.verdict, change.note) == ("not comparable", "base gross; head net")
    assert compare([net], [net]).changes[0].verdict == "same"
    # A file keeps it; without the key a time is gross.
    assert parse(dump([net, gross])) == [net, gross]
    entry = net.to_json()
    assert entry.pop("net")
    assert TimingRecord.from_json(entry) == gross


def at(hour: int, record: TimingRecord) -> TimingRecord:
    """The record of a measurement at this hour."""
    return dataclasses.replace(record, when=f"2026-01-01T{hour:02}:00:00+00:00")


def test_the_newest_record_of_a_call_is_compared_wherever_it_stands() -> None:
    code = [MeasuredCode(30, {"add": 30}, "GNU C17 12", level) for level in ("-O2", "-Os")]
    old, new = (
        at(hour, with_measured(recorded([ticks] * 6), code=each))
        for hour, ticks, each in zip((1, 2), (1000, 2000), code, strict=True)
    )
    other = dataclasses.replace(at(1, old), platform="other")
    for head in ([new, old, other], [old, new, other]):
        comparison = compare([old, other], head)
        assert [(change.platform, change.verdict) for change in comparison.changes] == [
            (new.platform, "slower"),
            ("other", "same"),
        ]
        assert [size.platform for size in comparison.sizes if size.own is not None] == [new.platform, "other"]
        assert [change.head for change in comparison.builds] == ["-Os"]


def test_the_firmware_of_the_newest_record_is_compared() -> None:
    """Calls that were not measured again keep their place, and the firmware of their time."""
    add, inc = at(1, recorded([1000])), at(1, with_measured(recorded([10]), name="inc"))
    head = merged([add, inc], at(2, recorded([1000], flash=20016)))
    assert [size.grown for size in compare([add, inc], head).sizes] == [16, 0]


def test_only_what_is_exact_fails_unless_asked() -> None:
    slower = compare([recorded(noisy(1, 1.0), clock=WALL)], [recorded(noisy(2, 1.5), clock=WALL)])
    assert not slower.worse(strict=False)
    assert slower.worse(strict=True)
    assert compare([recorded([1000])], [recorded([2000])]).worse(strict=False)
    assert compare([recorded([1000])], [recorded([1000], flash=20016)]).worse(strict=False)
    assert not compare([recorded([1000])], [recorded([1000])]).worse(strict=True)


def test_the_table() -> None:
    text = comparison_markdown(compare([recorded([10_000] * 6)], [recorded([10_500] * 6, flash=20016)]))
    assert text.startswith("### Timings: 1 of 1 slower; bare_mps2_an385 flash +16 bytes\n")
    assert "1,000 ticks | 1,050 ticks | +50 ticks (+5 %) |" in text
    assert "| bare_mps2_an385 | flash    | 20,000 | 20,016 |    +16 |" in text
    assert "GNU C11 12.2 -Os" in text
    assert len({line.count("|") for line in text.splitlines() if line.startswith("|")}) == 2


def test_new_and_gone_have_one_side() -> None:
    old, new = recorded([1000]), with_measured(recorded([1000]), arguments=("int8[4]",))
    gone, came = compare([old], [new]).changes
    assert (gone.verdict, gone.call, gone.base, gone.head) == ("gone", old.call, old.measurement, None)
    assert (came.verdict, came.call, came.base, came.head) == ("new", new.call, None, new.measurement)
    for row in comparison_json(compare([old], [new]))["changes"]:
        assert (row["change_ticks"], row["change_ratio"]) == (None, None)
    text = comparison_markdown(compare([old], [new]))
    assert text.startswith("### Timings: nothing could be compared; 1 gone; 1 new\n")


def test_what_was_not_compared_is_counted_beside_what_was() -> None:
    old, other = recorded([1000]), dataclasses.replace(recorded([5]), platform="other")
    assert headline(compare([old], [old])) == "Timings: none of 1 slower"
    assert headline(compare([old], [old, other])) == "Timings: none of 1 slower; 1 new"
    assert compare([old], [old, other]).compared == 1


def test_cycles_that_are_a_device_s_own_counter_are_no_core_s() -> None:
    (sample,) = recorded([1000]).measurement.samples
    base, head = (
        with_measured(recorded([1000]), samples=(dataclasses.replace(sample, columns={"cycles": count}),))
        for count in (40, 8000)
    )
    assert "\n  cycles        4 a call\n" in record_text(base)
    assert "| cycles " in comparison_markdown(compare([base], [head]))


def test_a_record_as_text() -> None:
    text = record_text(recorded([1000, 1000, 1001, 1000, 1000, 1000, 9000]))
    assert "add(float32[1024], float32[1024], float32[1024]) on bare_mps2_an385" in text
    assert "exact: SysTick, 25 MHz" in text
    assert "outliers      1, kept (repeat 7: 900 ticks)" in text
    assert "not subtracted" in text
    assert "it takes 6 repeats" in record_text(recorded([1000]))
    for ticks, known in ((595, "don't tell the call from an empty one"), (1000, "known to")):
        record = recorded([ticks] * 5 + [ticks + 20])
        assert known in record_text(dataclasses.replace(record, measurement=record.measurement.net()))


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        (recorded([1000]), recorded([2000]), "slower"),
        (recorded([1000]), recorded([1000]), "same"),
        (recorded([1000]), recorded([1000], clock=WALL), "not comparable"),
        (recorded([1000] * 3, clock=WALL), recorded([1000] * 3, clock=WALL), "can't tell"),
        (recorded([1000] * 20, clock=WALL), recorded([2000] * 20, clock=WALL), "slower"),
    ],
)
def test_a_change_says_what_it_is_of(base: TimingRecord, head: TimingRecord, verdict: str) -> None:
    (change,) = compare([base], [head]).changes
    assert (change.platform, change.call, change.verdict) == (base.platform, base.call, verdict)
    assert (change.base, change.head) == (base.measurement, head.measurement)
    assert (change.p_value is None) == (verdict == "not comparable" or base.measurement.clock.exact)
    assert bool(change.note) == (verdict in ("not comparable", "can't tell"))
    assert (change.note == "too few repeats") == (verdict == "can't tell")


def test_equal_noisy_times_are_the_same_and_the_shift_is_told() -> None:
    base = recorded([1000 + 10 * rank for rank in range(20)], clock=WALL)
    head = recorded([1500 + 10 * rank for rank in range(20)], clock=WALL)
    (change,) = compare([base], [head]).changes
    assert (change.verdict, change.ticks, change.note) == ("slower", 50.0, "")
    assert change.p_value == pytest.approx(2 / math.comb(40, 20), rel=1e-6)
    (back,) = compare([head], [base]).changes
    assert (back.verdict, back.ticks) == ("faster", -50.0)
    assert compare([base], [base]).changes[0].verdict == "same"


def test_the_largest_change_comes_first() -> None:
    names = ("a", "b", "c", "from nothing")
    cycles_of = (1000, 1000, 1000, 0)
    base = [
        dataclasses.replace(recorded([cycles] * 6), platform=name)
        for name, cycles in zip(names, cycles_of, strict=True)
    ]
    head = [
        dataclasses.replace(recorded([cycles] * 6), platform=name)
        for name, cycles in zip(names, (2000, 4000, 3000, 500), strict=True)
    ]
    assert [change.platform for change in compare(base, head).changes] == ["from nothing", "b", "c", "a"]


def test_what_exact_times_may_differ_by() -> None:
    """The tolerance is a step of the clock in each, over 10 calls, without the timer's share that is equal in
    both."""
    item, longer = recorded([1000] * 3).measurement, recorded([1000] * 3, number=100).measurement
    assert tolerance(item, item) == pytest.approx(0.2)
    assert tolerance(item, longer) == pytest.approx(0.1 + 0.01 + 24.3 - 2.43)
    no_calls = dataclasses.replace(item, samples=(Sample(1000, 0),))
    assert tolerance(item, no_calls) == pytest.approx(0.1 + 1 + 243 - 24.3)
    # Under the limit the verdict is "same"; over the limit it is not.
    assert compare([recorded([1000] * 3)], [recorded([1001] * 3)]).changes[0].verdict == "same"
    assert compare([recorded([1000] * 3)], [recorded([1003] * 3)]).changes[0].verdict == "slower"


def test_a_byte_more_is_bigger() -> None:
    comparison = compare([recorded([1000])], [recorded([1000], flash=20001)])
    assert comparison.worse(strict=False)
    assert [size.region for size in comparison.sizes] == ["flash", "RAM"]


def test_symbols_are_kept_once_for_each_firmware_that_has_them() -> None:
    """A time of a board has no known firmware."""
    first, board = recorded([10, 20]), dataclasses.replace(recorded([10, 20]), firmware=None)
    assert first.firmware is not None
    known = dataclasses.replace(first.firmware, symbols={"add": (40, 0)})
    looked_at = dataclasses.replace(first, firmware=known)
    document = content([looked_at, looked_at, board, first])
    assert document["symbol_bytes"] == {known.content_hash: {"add": (40, 0)}}
    assert len(document["timings"]) == 4


def beside(base: float, head: float, name: str) -> tuple[TimingRecord, TimingRecord]:
    """Two sets of ten calls each, so that a cycle per call is ten."""
    item, other = recorded([round(base * 10)] * 6), recorded([round(head * 10)] * 6)
    return dataclasses.replace(item, platform=name), dataclasses.replace(other, platform=name)


def test_small_changes_and_what_stayed_are_folded_below_the_others() -> None:
    pairs = [
        beside(1000, 1100, "big"),
        beside(1000, 1015, "small"),
        beside(1000, 980.1, "less"),
        beside(1000, 1000, "as it was"),
    ]
    text = comparison_markdown(compare([base for base, _ in pairs], [head for _, head in pairs]))
    shown, small, same = text.split("<details>")[:3]
    assert "| big " in shown
    assert "| small " not in shown
    assert small.startswith("<summary>2 of less than 2%</summary>")
    assert {"| small " in small, "| less " in small, "| as it was " in small} == {True, False}
    assert same.startswith("<summary>1 unchanged</summary>")
    assert "| as it was " in same


def test_a_median_that_did_not_move_is_the_same_however_sure() -> None:
    """Twenty samples each: their ranks differ significantly, but their shift is 0, since most are equal."""
    base = recorded([1000] * 60 + [900] * 39, clock=WALL)
    head = recorded([1000] * 99, clock=WALL)
    (change,) = compare([base], [head]).changes
    assert change.p_value is not None
    assert change.p_value < 1e-6
    assert (change.verdict, change.ticks) == ("same", 0.0)


def test_code_that_was_loaded_for_a_call_is_a_size_where_both_have_it() -> None:
    old = with_measured(recorded([1000]), code=MeasuredCode(symbols={"scale": 20, "table": 8}))
    new = with_measured(recorded([1000]), code=MeasuredCode(symbols={"scale": 32}))
    (loaded,) = [size for size in compare([old], [new]).sizes if size.region not in ("flash", "RAM")]
    region = f"code loaded for {old.call}"
    assert (loaded.platform, loaded.region, loaded.base, loaded.head) == (old.platform, region, 28, 32)
    for base, head in ((old, recorded([1000])), (recorded([1000]), new)):
        assert [size.region for size in compare([base], [head]).sizes] == ["flash", "RAM"]


@pytest.mark.parametrize(("size", "worse"), [(12, False), (16, True)])
def test_a_neighbour_in_loaded_code_makes_no_function_worse(size: int, worse: bool) -> None:
    old = MeasuredCode(12, {"clear": 12})
    new = MeasuredCode(size, {"clear": size, "unrelated": 4})
    base, head = (with_measured(recorded([1000]), code=code) for code in (old, new))
    comparison = compare([base], [head])
    assert comparison.sizes[-1].grown == size - 8
    assert comparison.worse(strict=False) == worse


@pytest.mark.parametrize(("step", "shown"), [(1, False), (2, True), (125, True)])
def test_a_clock_that_advances_by_more_than_a_cycle_says_so(step: int, shown: bool) -> None:
    record = recorded([1000] * 6, clock=WALL)
    overhead = dataclasses.replace(record.measurement.overhead, step=step)
    record = with_measured(record, overhead=overhead)
    assert (f"; advances by {step} ns at once" in record_text(record)) == shown


def test_a_stack_beyond_the_compilers_bound_is_an_error_of_one_of_them() -> None:
    def shown(memory: MemoryUse) -> str:
        return record_text(with_measured(recorded([1000] * 6), memory=memory))

    assert "64 bytes; the compiler's bound is 32, which is impossible" in shown(MemoryUse(stack=64, bound=32))
    for within in (MemoryUse(stack=32, bound=32), MemoryUse(stack=8, bound=64), MemoryUse(stack=64)):
        assert "can't be" not in shown(within)
    assert not MemoryUse(bound=32).beyond_bound
    assert not MemoryUse(stack=48, bound=32).beyond_bound
    assert MemoryUse(stack=49, bound=32).beyond_bound
    assert not MemoryUse(stack=16, bound=32).within_bound
    assert MemoryUse(stack=15, bound=32).within_bound


def test_one_process_does_not_tell_of_another_on_the_hosts_clock() -> None:
    """Repeats of one process are alike: they are one value. Ten processes have ten."""
    base, head = (
        with_measured(recorded([ticks + each for each in range(6)] * 2, clock=WALL)) for ticks in (1000, 1100)
    )
    (change,) = compare([base], [head]).changes
    assert change.verdict == "slower"
    one = [replace_process(record, 0) for record in (base, head)]
    (change,) = compare([one[0]], [one[1]]).changes
    assert (change.verdict, change.note) == ("can't tell", "of one process: measure with --processes 10")
    assert "in this process" in record_text(one[0])
    assert "12 of 10 calls, in 12 processes" in record_text(base)
    assert parse(dump([base])) == [base]


@pytest.mark.parametrize(
    ("percent", "verdict"), [(0.23, "same"), (-0.9, "same"), (1.1, "slower"), (-2, "faster")]
)
def test_a_small_change_on_the_hosts_clock_is_none(percent: float, verdict: str) -> None:
    """A board's time of the same size is another."""
    board = dataclasses.replace(WALL, mode="board")
    for clock, expected in ((WALL, verdict), (board, "slower" if percent > 0 else "faster")):
        base, head = (
            recorded([round(100_000 * factor) + each for each in range(10)], clock=clock)
            for factor in (1, 1 + percent / 100)
        )
        (change,) = compare([base], [head]).changes
        assert change.verdict == expected
        assert change.p_value is not None
        assert change.p_value < 0.01


def test_the_summary_of_processes_tells_processes() -> None:
    """Ten processes of ten repeats, each slower by 1 % of the first: nine steps lead to the last."""
    samples = [Sample(10_000 + 100 * place, 1, process=place) for place in range(10) for _ in range(10)]
    record = with_measured(recorded([1], clock=WALL), samples=tuple(samples))
    assert "drift         +8.61 % from the first process to the last (p = " in record_text(record)
    samples[70:80] = [Sample(90_000, 1, process=7)] * 10
    text = record_text(with_measured(record, samples=tuple(samples)))
    assert "outliers      1, kept (process 8: 90,000 ticks)" in text
    text = record_text(with_measured(record, samples=tuple(samples[:30])))
    assert "it takes 6 processes" in text
    assert "it takes 4 processes" in text
    steps = recorded([1000 + 10 * place for place in range(10)])
    assert "+8.61 % from the first repeat to the last" in record_text(steps)


def replace_process(record: TimingRecord, process: int) -> TimingRecord:
    return dataclasses.replace(record, measurement=record.measurement.of_process(process))
