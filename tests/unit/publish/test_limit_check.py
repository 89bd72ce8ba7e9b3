# SPDX-License-Identifier: Apache-2.0
"""[limits] of minrpc.toml: limits, broken limits, and their messages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from minrpc import ConfigurationError, Sample
from minrpc.cli import main
from minrpc.publish.limit_check import broken_limits, idle_limits, unchecked_limits
from minrpc.targets import Platforms, load_limits, merge
from minrpc.targets.limits import Limit, limits_of
from minrpc.timing import TimingRecord
from minrpc.timing.compare import compare
from minrpc.timing.comparison_text import comparison_markdown
from minrpc.timing.record import dump

from tests.unit.publish.runs import counted
from tests.unit.timing.samples import EXACT, FIRMWARE, WALL, recorded, with_measured

PLATFORMS = ("posix", "bare_mps2_an385")


def limits(**table: object) -> tuple[Limit, ...]:
    return limits_of(table, PLATFORMS, "minrpc.toml")


@pytest.mark.parametrize(
    ("given", "kind", "value"),
    [("+2%", "share", 0.02), ("+ 200", "more", 200.0), (200, "most", 200.0), (0.5, "most", 0.5)],
)
def test_what_a_limit_may_be(given: object, kind: str, value: float) -> None:
    (limit,) = limits(exp={"loads": given})
    assert (limit.function, limit.what, limit.kind, limit.value) == ("exp", "loads", kind, value)


@pytest.mark.parametrize("value", ["2%", "-2%", "fast", -1, True, [1], "+2 s"])
def test_what_is_none(value: object) -> None:
    with pytest.raises(ConfigurationError, match=r"minrpc.toml: limits.exp.loads: .* is no limit") as caught:
        limits(exp={"loads": value})
    assert "+2%" in caught.value.next_step


def test_a_time_has_a_unit() -> None:
    (limit,) = limits(exp={"time": "3 ms"})
    assert (limit.kind, limit.value) == ("most", 0.003)
    with pytest.raises(ConfigurationError, match="is no limit"):
        limits(exp={"time": 3})


def test_a_function_that_is_linked_in_is_named_with_its_library() -> None:
    table = {"dsp": {"fir": {"instructions": "+2%"}}, "posix": {"dsp": {"fir": {"loads": 9}}}}
    found = limits_of(table, PLATFORMS, "minrpc.toml", ["dsp"])
    assert [(item.platform, item.function, item.what) for item in found] == [
        ("", "dsp.fir", "instructions"),
        ("posix", "dsp.fir", "loads"),
    ]
    assert found[0].key == "limits.dsp.fir.instructions"
    with pytest.raises(ConfigurationError, match="no library of that name"):
        limits(dsp={"fir": {"instructions": "+2%"}})
    with pytest.raises(ConfigurationError, match=r"limits.dsp.fir.loads: 'x' is no limit"):
        limits_of({"dsp": {"fir": {"loads": "x"}}}, PLATFORMS, "minrpc.toml", ["dsp"])


def test_limits_of_linked_functions_are_read_from_the_projects_file(tmp_path: Path) -> None:
    (tmp_path / "fir.c").write_text("int fir(int x) { return x; }\n")
    file = tmp_path / "minrpc.toml"
    file.write_text('[libraries.dsp]\nsources = ["fir.c"]\n[limits]\ndsp.fir.instructions = "+2%"\n')
    assert [limit.function for limit in load_limits(file)] == ["dsp.fir"]


def test_what_is_neither_a_size_nor_a_call() -> None:
    with pytest.raises(ConfigurationError, match=r"limits\.flahs: nothing is known by that name"):
        limits(flahs=3)
    for table in ({"flash": 3}, {"add": {"ticks": "+2%"}}):
        with pytest.raises(ConfigurationError, match=r"limits\.nosuchboard: there is no such platform"):
            limits(nosuchboard=table)
    with pytest.raises(ConfigurationError, match="must be a table"):
        limits_of(3, PLATFORMS, "minrpc.toml")


def test_a_platforms_own() -> None:
    found = limits(flash=10, posix={"flash": 20, "add": {"loads": "+1"}})
    assert [(item.platform, item.function, item.what) for item in found] == [
        ("", "", "flash"),
        ("posix", "", "flash"),
        ("posix", "add", "loads"),
    ]
    assert broken_limits(limits(posix={"flash": 1}), [counted([1000])]) == []


def test_growth_is_judged_against_the_base() -> None:
    base, slower = counted([1000]), counted([1030])
    for text, broken in (("+2%", True), ("+3%", False), ("+2.9", True), ("+3", False)):
        assert bool(broken_limits(limits(add={"ticks": text}), [slower], [base])) == broken, text
    # A decrease is always allowed, and without a base nothing has grown.
    assert broken_limits(limits(add={"ticks": "+2%"}), [base], [slower]) == []
    assert broken_limits(limits(add={"ticks": "+0%"}), [slower]) == []


def test_a_second_record_of_a_call_is_judged_too() -> None:
    given = limits(add={"loads": 15})
    runs = [counted([1000], loads=loads) for loads in (100, 200, 300)]
    assert [broken.head for broken in broken_limits(given, runs)] == [20]


def test_limits_that_nothing_was_held_against_are_told() -> None:
    given = limits(flash=1, ad={"time": "1 us"}, add={"tim": "+2%", "ticks": "+2%"}, posix={"ram": 1})
    idle = [idle_limit.key for idle_limit in idle_limits(given, [counted([1000])])]
    assert idle == ["limits.ad.time", "limits.add.tim", "limits.posix.ram"]


def test_the_most_itself_is_allowed() -> None:
    for most, broken in ((20000, False), (19999, True)):
        assert bool(broken_limits(limits(flash=most), [counted([1000])])) == broken, most
    for most, broken in ((100, False), (99, True)):
        assert bool(broken_limits(limits(add={"ticks": most}), [counted([1000])])) == broken, most


@pytest.mark.parametrize(
    ("limit", "base", "head"),
    [({"time": "+2%"}, 1000, 1020), ({"time": "5 us"}, 1, 1250), ({"ticks": "+0.3"}, 1, 4)],
)
def test_rounding_of_floating_point_breaks_no_limit(limit: dict[str, str], base: int, head: int) -> None:
    assert broken_limits(limits(add=limit), [counted([head])], [counted([base])]) == []
    assert broken_limits(limits(add=limit), [counted([head + 1])], [counted([base])])


def test_a_net_base_below_zero_allows_itself() -> None:
    (limit,) = limits(add={"ticks": "+2%"})
    assert limit.allows(-0.5, -0.5)
    assert not limit.allows(-0.5, 0.5)


def test_the_most_does_not_depend_on_the_base() -> None:
    """The timer's share is larger in a batch of one call: only growth is judged without it."""
    base, head = recorded([7000], number=10), recorded([1003], number=1)
    for before in ((), [base]):
        (broken,) = broken_limits(limits(add={"ticks": 1000}), [head], before)
        assert broken.head == 1003
    assert broken_limits(limits(add={"ticks": 1003}), [head], [base]) == []


@pytest.mark.parametrize("what", ["time", "ticks"])
def test_times_of_two_clocks_are_not_compared(what: str) -> None:
    base, head = recorded([1000]), recorded([5000])
    given = limits(add={what: "+2%"})
    assert broken_limits(given, [head], [base])
    net = replace(base, measurement=base.measurement.net())
    for other in (*(recorded([1000], clock=clock) for clock in (replace(EXACT, icount_shift=5), WALL)), net):
        assert broken_limits(given, [head], [other]) == []
        assert unchecked_limits(given, [head], [other]) == list(given)


def test_growth_is_over_the_newest_record_of_the_base() -> None:
    new = replace(recorded([1000], flash=20000), when="2026-01-02T00:00:00+00:00")
    for old in (recorded([2000], flash=30000), with_measured(recorded([2000], flash=30000), name="inc")):
        broken = broken_limits(limits(flash="+0", add={"ticks": "+0"}), [recorded([1500])], [new, old])
        assert [(each.limit.what, each.base) for each in broken] == [("ticks", 100)]
        broken = broken_limits(limits(flash="+0"), [recorded([1], flash=20016)], [new, old])
        assert [each.base for each in broken] == [20000]


def test_a_limit_is_of_a_call_that_several_tests_measured_too() -> None:
    run = [counted([1000], name=f"add [test_x[-O{level}]]") for level in (2, 3)]
    broken = broken_limits(limits(add={"ticks": 99}), run)
    assert [each.subject.partition("(")[0] for each in broken] == ["add [test_x[-O2]]", "add [test_x[-O3]]"]
    assert broken_limits(limits(ad={"ticks": 99}), run) == []


def test_growth_without_a_base_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = limits(flash="+2%", ram=99999, add={"ticks": "+2%", "time": "3 ms"}, mul={"ticks": "+2"})
    item = counted([1000])
    assert [limit.key for limit in unchecked_limits(given, [item])] == ["limits.flash", "limits.add.ticks"]
    assert unchecked_limits(given, [item], [item]) == []
    kept, project = tmp_path / "kept.json", tmp_path / "minrpc.toml"
    kept.write_text(dump([item]))
    project.write_text('[limits]\nadd.ticks = "+2%"\n')
    assert main(["report", "--from", str(kept), "--platforms-file", str(project)]) == 0
    assert "no base to compare with: limits.add.ticks" in capsys.readouterr().err
    assert main(["compare", str(kept), str(kept), "--platforms-file", str(project)]) == 0
    assert "not checked" not in capsys.readouterr().err


def test_what_is_told_names_both_and_the_key() -> None:
    (broken_limit,) = broken_limits(
        limits(add={"loads": "+2%"}), [counted([1000], loads=150)], [counted([1000])]
    )
    assert str(broken_limit) == (
        "add(float32[1024], float32[1024], float32[1024]) on bare_mps2_an385: loads 15, +50 % of 10; "
        "limits.add.loads allows +2%"
    )
    (size,) = broken_limits(limits(flash=19999), [counted([1000]), counted([5], name="mul")])
    assert str(size) == "bare_mps2_an385: flash 20,000; limits.flash allows 19999"
    (time,) = broken_limits(limits(add={"time": "1 us"}), [counted([1000])])
    assert "time 4 µs; limits.add.time allows 1 us" in str(time)


def test_they_are_of_the_nearest_file_and_no_platforms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_limits() == ()
    (tmp_path / "minrpc.toml").write_text('[limits]\nflash = 100\nexp.instructions = "+2%"\n')
    assert [limit.key for limit in load_limits()] == ["limits.flash", "limits.exp.instructions"]
    assert merge(Platforms({}), {"limits": {"flash": 1}}, "minrpc.toml", tmp_path) == {}


def test_compare_fails_and_tells_github(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    grown = replace(FIRMWARE, flash=20500, symbols={"f": (400, 0)})
    base = replace(counted([1000]), firmware=replace(FIRMWARE, symbols={"f": (300, 0)}))
    head = replace(counted([1100]), firmware=grown)
    (tmp_path / "base.json").write_text(dump([base]))
    (tmp_path / "head.json").write_text(dump([head]))
    assert main(["compare", "base.json", "head.json"]) == 0
    (tmp_path / "minrpc.toml").write_text('[limits]\nadd.instructions = "+2%"\nflash = 20499\n')
    capsys.readouterr()
    assert main(["compare", "base.json", "head.json"]) == 1
    caught = capsys.readouterr()
    assert "f                                            300     400    +100" in caught.out
    assert "minrpc: over the limit: bare_mps2_an385: flash 20,500, +2.5 % of 20,000" in caught.err
    assert "- **over the limit**: bare_mps2_an385: flash 20,500, +2.5 % of 20,000" in caught.out
    assert "nothing was measured" not in caught.err
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert main(["compare", "base.json", "head.json"]) == 1
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("::error ")]
    assert len(errors) == 2
    assert "::error title=limits.add.instructions::add(" in errors[0]
    assert "+10 %25 of 200" in errors[0]


def small(number: int, calls: int = 1000, *, count: bool = True) -> TimingRecord:
    """A call of `calls` instructions, 32 of them for the evaluator; the timer's 243 ticks contain 20
    instructions of the batch."""
    instructions = number * (calls + 32)
    columns = {"instructions": 20 + instructions, "loads": 7 + number * 100} if count else {}
    ticks = round(instructions * float(EXACT.ticks_per_instruction or 1) + 243)
    sample = Sample(ticks, number, columns=columns)
    item = recorded([1])
    return replace(item, measurement=replace(item.measurement, samples=(sample,) * 3))


@pytest.mark.parametrize("what", ["instructions", "loads", "ticks", "time"])
@pytest.mark.parametrize("count", [True, False])
def test_verdicts_do_not_depend_on_the_number_of_calls_in_a_batch(what: str, count: bool) -> None:
    given = limits(add={what: "+0.1%"})
    for numbers in ((10, 1), (1, 10), (10, 1000), (7, 7)):
        base, head = small(numbers[0]), small(numbers[1], count=count)
        assert broken_limits(given, [head], [base]) == [], numbers
        (change,) = compare([base], [head]).changes
        assert change.verdict == "same"
        assert change.counters == ()
    if count or what != "loads":
        more = small(10, 1100, count=count)
        assert bool(broken_limits(given, [more], [small(20)])) == (what != "loads")
        (change,) = compare([small(20)], [more]).changes
        assert change.verdict == "slower"


def test_a_difference_of_one_is_told_where_batches_are_equal() -> None:
    (change,) = compare([small(10)], [small(10, 1001)]).changes
    assert [counter.name for counter in change.counters] == ["instructions"]
    assert broken_limits(limits(add={"instructions": "+0"}), [small(10, 1001)], [small(10)])
    # The counted value and the value from the time are equal without the counts that each batch has once.
    counted_, timed = (
        broken_limits(limits(add={"instructions": 1}), [small(10, count=count)]) for count in (True, False)
    )
    assert counted_[0].head == pytest.approx(timed[0].head, abs=2.1)


def estimated(cycles: int, estimate: str = "estimate: a core's table") -> TimingRecord:
    record = small(1, cycles)
    sample = record.measurement.samples[0]
    columns = {**sample.columns, "cycles": cycles, "cycles_most": cycles}
    measured = replace(record.measurement, samples=(replace(sample, columns=columns),), estimate=estimate)
    return replace(record, measurement=measured)


def test_a_limit_of_estimated_cycles_tells_whose_they_are() -> None:
    name = estimated(1).measurement.name
    given = limits(**{name: {"cycles": 999}})
    assert "estimate: a core's table" in str(broken_limits(given, [estimated(5000)])[0])
    assert broken_limits(given, [small(1, 5000)]) == []  # No core's cycles were counted.


def test_cycles_of_two_cores_are_not_compared() -> None:
    given = limits(**{estimated(1).measurement.name: {"cycles": "+2%"}})
    assert broken_limits(given, [estimated(5000)], [estimated(1000)])
    for other in (estimated(1000, "estimate: another's"), small(1)):
        assert not broken_limits(given, [estimated(5000)], [other])
        assert unchecked_limits(given, [estimated(5000)], [other])


def test_a_comparison_tells_whose_cycles_have_changed() -> None:
    text = comparison_markdown(compare([estimated(1000)], [estimated(5000)]))
    assert "Core cycles: estimate: a core's table." in text
