# SPDX-License-Identifier: Apache-2.0
"""`minrpc time` and `minrpc compare`: arguments, files, exit status. The device is a real device, on
posix."""

import re
from pathlib import Path

import numpy as np
import pytest
from minrpc import ConfigurationError
from minrpc.cli import main
from minrpc.cli.call_arguments import Array, call_arguments, parse_argument
from minrpc.timing import TimingRecord
from minrpc.timing.record import dump, parse

from tests.unit.timing.samples import WALL, recorded

TIME = ["time", "--platform", "posix", "--repeat", "6"]


def test_arguments_as_they_are_typed() -> None:
    assert parse_argument("float32[16,64]") == Array("float32", (16, 64))
    assert parse_argument("int8 [4x2]") == Array("int8", (4, 2))
    assert (parse_argument("3"), parse_argument("-0.5")) == (3, -0.5)
    assert call_arguments("add", [], "8", "int8") == [Array("int8", (8,))] * 3
    assert call_arguments("exp", [], None, None) == [Array("float32", (1024,))] * 2
    assert call_arguments("mine", ["3", "010", "0x1F", "-0x1", "18446744073709551615"], None, None) == [
        *(3, 10, 31, -1, 18446744073709551615)
    ]
    assert call_arguments("mine", [], None, None) == []


@pytest.mark.parametrize(
    ("function", "given", "shape", "message"),
    [
        ("mine", [], "4", "the arguments of mine are not known"),
        ("add", ["x"], None, "neither an array nor a number"),
        ("add", ["float31[4]"], None, "float31 is no type"),
        ("add", ["3"], "4", "--arg gives the shape and the type already"),
        ("add", [], "4,", "is no shape"),
        ("add", [], "", "'' is no shape"),
        ("add", ["3"], "", "--arg gives the shape and the type already"),
    ],
)
def test_arguments_that_make_no_sense(
    function: str, given: list[str], shape: str | None, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        call_arguments(function, given, shape, None)


def test_a_function_without_arguments_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TIME, "testing.count"]) == 0
    assert "testing.count() on posix" in capsys.readouterr().out


def test_a_function_that_wants_arguments_says_so_and_how(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TIME, "inc"]) == 1
    said = capsys.readouterr().err
    assert "inc: expected 1 argument, got 0" in said
    assert "next: give each argument with --arg" in said


@pytest.mark.parametrize("count", [10**15, 10**30])
def test_an_array_that_is_too_large_for_this_machine(count: int) -> None:
    with pytest.raises(ConfigurationError, match="does not fit into this machine's memory"):
        Array("int16", (count,)).host(np.random.default_rng(1))


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint16", "float64"])
def test_elements_are_small_and_the_same_each_time(dtype: str) -> None:
    first, again = (Array(dtype, (50,)).host(np.random.default_rng(1)) for _ in range(2))
    assert first.dtype == dtype
    assert (first == again).all()
    assert (np.abs(first.astype(float)) <= 5).all()


def test_a_time_is_shown_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "times.json"
    assert main([*TIME, "add", "--shape", "64", "--json", str(kept)]) == 0
    assert main([*TIME, "inc", "--arg", "5", "--net", "--json", str(kept)]) == 0
    shown = capsys.readouterr().out
    assert "add(float32[64], float32[64], float32[64]) on posix" in shown
    assert "wall: CLOCK_MONOTONIC, 1 GHz, resolution 1 ns" in shown
    first, second = parse(kept.read_text())
    assert (first.call, second.call) == ("add(float32[64], float32[64], float32[64])", "inc(5)")
    assert first.firmware is not None
    assert first.firmware.compiler
    assert "-O2" in first.firmware.flags


@pytest.mark.extra("plot")
def test_a_time_is_drawn(tmp_path: Path) -> None:
    drawn = tmp_path / "times.svg"
    assert main([*TIME, "inc", "--arg", "5", "--plot", str(drawn)]) == 0
    assert drawn.read_text().lstrip().startswith("<?xml")


def test_an_empty_file_is_as_good_as_none(tmp_path: Path) -> None:
    kept = tmp_path / "times.json"
    kept.write_text("\n")
    assert main(["time", "inc", "--arg", "1", "--platform", "posix", "--json", str(kept)]) == 0
    assert [item.measurement.name for item in parse(kept.read_text())] == ["inc"]


def test_many_repeats_are_asked_for_in_parts(tmp_path: Path) -> None:
    kept = tmp_path / "times.json"
    asked = ["--repeat", "16000", "--number", "1", "--json", str(kept)]
    assert main(["time", "--platform", "posix", "inc", "--arg", "5", *asked]) == 0
    (record,) = parse(kept.read_text())
    assert len(record.measurement.samples) == 16000


def test_until_goes_on_where_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each request doubles the number of repeats, and begins with the batch size of the request before."""
    kept = tmp_path / "times.json"
    options = ["--until", "0.000001%", "--max-repeats", "100", "--number", "1", "--min-repeat-ms", "1"]
    assert main([*TIME, "spin", "--arg", "100", *options, "--json", str(kept)]) == 1
    said = re.findall(r"(\d+) repeats: the median is known to .*, about", capsys.readouterr().err)
    assert said == ["6", "12", "24", "48", "96"]
    (record,) = parse(kept.read_text())
    batches = [sample.batches for sample in record.measurement.samples]
    assert max(batches[:6]) > 1
    assert min(batches[6:]) == 1


def test_until_it_is_known_well_enough(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TIME, "spin", "--arg", "100", "--until", "500%"]) == 0
    status = main(
        [*TIME, "inc", "--arg", "1", "--number", "1", "--until", "0.000001%", "--max-repeats", "12"]
    )
    assert status == 1
    assert "--until 0.000001% not reached in 12 repeats" in capsys.readouterr().err


def test_processes_that_do_not_tell_enough_are_counted_and_more_are_advised(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*TIME, "inc", "--arg", "1", "--until", "500%", "--processes", "3"]) == 1
    said = capsys.readouterr().err
    assert "--until 500% not reached in 3 processes: the median's interval is not known;" in said
    assert said.endswith("  next: about 6 processes would do: --processes 6\n")


def test_a_broken_bound_fails_only_where_that_was_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "minrpc.toml"
    table.write_text("[platforms.posix.time_bounds]\ninc = [1e3, 2e3]\n")
    asked = [*TIME, "inc", "--arg", "1", "--platforms-file", str(table)]
    assert main(asked) == 0
    assert "outside" in capsys.readouterr().err
    assert main([*asked, "--strict-timing"]) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--until", "1"], "not a percentage"),
        (["--plot", "x.gif"], "a plot is one of"),
        (["--json", "/nowhere/x.json"], "can't be written"),
        (["--repeat", "0"], "--repeat is at least 1"),
        (["--dtype="], " is no type"),
        (["--max-repeats", "12"], "--max-repeats: of no use without --until\n  next: add --until 1%"),
        (["--tries", "200"], "--tries: of no use without --constant-time\n  next: add --constant-time"),
        (["--flags=-O3", "--define", "N=1"], "--flags, --define: of no use without --source\n"),
        (
            ["--constant-time", "--secret", "1", "--json", "x.json", "--repeat", "5", "--net"],
            "--repeat, --net, --json: of no use with --constant-time\n",
        ),
    ],
)
def test_wrong_usage(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TIME, "add", *options]) == 2
    assert message in capsys.readouterr().err


def test_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, head = tmp_path / "base.json", tmp_path / "head.json"
    base.write_text(dump([recorded([1000] * 6)]))
    head.write_text(dump([recorded([2000] * 6)]))
    assert main(["compare", str(base), str(head)]) == 0
    assert "### Timings: 1 of 1 slower" in capsys.readouterr().out
    assert main(["compare", str(base), str(head), "--fail"]) == 1
    assert main(["compare", str(head), str(base), "--fail"]) == 0


@pytest.mark.parametrize(
    ("base", "head", "reason"),
    [
        ([], [], "neither file has a call"),
        ([recorded([1000])], [], "on bare_mps2_an385: gone"),
        (
            [recorded([1000])],
            [recorded([1000], clock=WALL)],
            "on bare_mps2_an385: not comparable, base exact",
        ),
        ([recorded([1000] * 3, clock=WALL)] * 2, [recorded([1000] * 3, clock=WALL)], "can't tell, too few"),
    ],
)
def test_compare_nothing_is_no_success(
    tmp_path: Path,
    base: list[TimingRecord],
    head: list[TimingRecord],
    reason: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = [str(tmp_path / name) for name in ("base.json", "head.json")]
    for file, records in zip(files, (base, head), strict=True):
        Path(file).write_text(dump(records))
    assert main(["compare", *files]) == 0
    assert "### Timings: nothing could be compared" in capsys.readouterr().out
    assert main(["compare", *files, "--fail"]) == 1
    said = capsys.readouterr().err
    assert "nothing could be compared" in said
    assert reason in said


@pytest.mark.extra("plot")
def test_compare_draws(tmp_path: Path) -> None:
    base, picture = tmp_path / "base.json", tmp_path / "both.png"
    base.write_text(dump([recorded([1000] * 6)]))
    assert main(["compare", str(base), str(base), "--plot", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("content", "message"), [(None, "there is no file"), ("{}", "holds no timings")])
def test_compare_what_is_not_there(
    tmp_path: Path, content: str | None, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    base = tmp_path / "base.json"
    if content is not None:
        base.write_text(content)
    assert main(["compare", str(base), str(base)]) == 2
    assert message in capsys.readouterr().err


def test_the_drift_of_a_clock(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--platform", "posix", "--drift", "0.2"]) == 0
    shown = capsys.readouterr().out
    assert "wall: CLOCK_MONOTONIC, 1 GHz" in shown
    assert re.search(r"[+-][\d.]+ ± [\d.]+ ppm over [\d.]+ s", shown)


@pytest.mark.parametrize("seconds", ["-1", "0", "nan", "inf", "1e30"])
def test_a_drift_needs_a_time_that_ends(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--platform", "posix", "--drift", seconds]) == 2
    assert "minrpc: --drift is a number of seconds above 0, and at most " in capsys.readouterr().err


def test_a_drift_is_watched_within_the_total_limit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--platform", "posix", "--drift", "3", "--total-timeout", "2"]) == 2
    assert "--drift 3 is not within the limit for everything, --total-timeout 2" in capsys.readouterr().err


FROZEN = """#define _POSIX_C_SOURCE 200809L
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	*now = (struct timespec){.tv_sec = 5};
	return 0;
}
"""


@pytest.mark.slow
def test_a_counter_that_stands_still_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "frozen.c").write_text(FROZEN)
    (tmp_path / "minrpc.toml").write_text('[platforms.frozen]\nextends = "posix"\nsources = ["frozen.c"]\n')
    monkeypatch.chdir(tmp_path)
    assert main(["info", "--platform", "frozen"]) == 1
    shown = capsys.readouterr()
    assert "clock     wall: CLOCK_MONOTONIC, 1 GHz" in shown.out
    assert "overhead" not in shown.out
    assert "the counter stands still at 5,000,000,000" in shown.err
    assert "the firmware's port starts its counter" in shown.err


def test_net_times_of_two_platforms_are_net_in_the_table_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tabled: list[TimingRecord] = []
    monkeypatch.setattr("minrpc.cli.time.side_by_side", tabled.extend)
    assert main(["time", "inc", "--arg", "5", "--net", "--platform", "posix,bare_mps2_an385"]) == 0
    assert "subtracted" in capsys.readouterr().out
    assert len(tabled) == 2
    exact = tabled[1].measurement
    assert exact.overhead is not None
    assert exact.summary.median < exact.overhead.call


def test_a_report_measures_as_time_does(tmp_path: Path) -> None:
    timed, reported = tmp_path / "time.json", tmp_path / "report.json"
    given = ["inc", "--arg", "5", "--platform", "bare_mps2_an385"]
    assert main(["time", *given, "--json", str(timed)]) == 0
    assert main(["report", *given, "--json", str(reported)]) == 0
    item, other = (parse(file.read_text(), "report")[0].measurement for file in (timed, reported))
    assert item.typical_ticks == pytest.approx(other.typical_ticks, rel=0.01)


def test_calls_with_other_elements_of_a_file_are_other_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times of other data are no change of the code."""
    monkeypatch.chdir(tmp_path)
    texts = []
    for first in (0, 1, 0):
        np.save("x.npy", np.array([first, 2], np.uint8))
        texts.append(str(parse_argument("x.npy")))
    assert texts[0].startswith("uint8[2] #")
    assert texts[0] == texts[2] != texts[1]
