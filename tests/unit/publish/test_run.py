# SPDX-License-Identifier: Apache-2.0
"""A run is stored completely, shown as Markdown, and exported for other programs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from minrpc import HarnessError
from minrpc.cli import main
from minrpc.publish import RunRecord, run_of
from minrpc.publish.dots import dots
from minrpc.publish.exports import action_benchmark, bencher, tvm_report
from minrpc.publish.history import histories
from minrpc.publish.html_page import html_page
from minrpc.publish.markdown_page import markdown_page
from minrpc.publish.run_record import joined
from minrpc.publish.tables import firmwares, histogram, own_sizes, own_tree, profile_tables, why
from minrpc.timing import MeasuredCode
from minrpc.timing.compare import compare
from minrpc.timing.comparison_text import comparison_markdown
from minrpc.timing.record import dump

from tests.unit.publish.runs import counted, one_test, whole
from tests.unit.timing.samples import recorded, with_measured


def test_it_is_kept_whole() -> None:
    run = whole()
    again = run_of(run.to_json())
    assert again == run
    assert json.loads(run.to_json())["passed"] is False


def test_what_time_kept_is_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "times.json"
    kept.write_text(dump(whole().records))
    assert main(["report", "--from", str(kept), "--title", "Mine", "--html", str(tmp_path / "r.html")]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("### Mine\n")
    assert "| add(float32[1024], float32[1024], float32[1024]) | posix " in shown
    assert "<title>Mine</title>" in (tmp_path / "r.html").read_text()
    assert main(["report", "--from", str(kept), "--repeat", "5", "--platform", "posix"]) == 2
    assert "--repeat, --platform: of no use with --from\n" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["{}", "no", '{"format": "minrpc", "version": 3, "command": "check"}'])
def test_another_file_is_refused(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "other.json"
    file.write_text(text)
    assert main(["report", "--from", str(file)]) == 2
    assert f"{file} holds no run" in capsys.readouterr().err
    assert main(["report"]) == 2
    assert main(["report", "add", "--from", str(file)]) == 2


def test_markdown_holds_any_text() -> None:
    page = markdown_page(whole())
    lines = [line for line in page.splitlines() if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", line)) > 2 for line in lines)
    assert r"if (a &lt; b && c \| d)" in page
    assert "wrong \\| &lt;value> |" in page
    assert "test_two</summary>\n\n<pre>\nwrong | &lt;value&gt;\nhere\n</pre>" in page
    assert page.index("test_two") < page.index("<details>") < page.index("test_one")
    # GitHub needs an empty line after each summary.
    assert re.findall(r"</summary>\n(?!\n)", page) == []


@pytest.mark.parametrize(
    ("text", "first", "whole"),
    [
        ("", "", None),
        ("no board", "no board", ""),
        ("AssertionError: assert 2 == 3\n +  where", "AssertionError: assert 2 == 3", None),
        ("AssertionError: \nArrays differ\n\nof 3\nat 1", "AssertionError: Arrays differ, of 3", None),
        ("x" * 201, "x" * 199 + "…", None),
        ("\n only one \n", "only one", ""),
        ("Error:", "Error:", ""),
    ],
)
def test_why_is_a_line_and_the_rest_is_kept(text: str, first: str, whole: str | None) -> None:
    found = why(text)
    if not text:
        assert found == ""
    else:
        assert found == (first, text.strip() if whole is None else whole)


def test_a_profile_is_of_the_function_and_the_cost_of_calling_it_is_a_note() -> None:
    (part,) = whole().platforms
    functions, lines = profile_tables(part.profiles[0])
    assert [list(row) for row in functions.rows] == [
        ["expf", "35", "38.9%", "35", "2"],
        ["add", "30", "33.3%", "90", "1"],
        ["<lambda>", "25", "27.8%", "25", "3"],
    ]
    assert functions.title == "90 instructions by function"
    assert functions.notes == ["Apart from these, 10 for calling it, and for interrupts."]
    assert len(lines.rows) == 2


def test_a_profile_by_cycles_says_so_after_reading_it_again() -> None:
    (part,) = whole().platforms
    profiles = [replace(profile, unit="cycles", spread=20) for profile in part.profiles]
    run = replace(whole(), platforms=[replace(part, profiles=profiles)])
    (again,) = run_of(run.to_json()).platforms
    tables = list(profile_tables(again.profiles[0]))
    assert [table.title for table in tables] == ["90 to 110 core cycles by function", "Core cycles by line"]
    assert tables[0].notes[1] == "Each row has the least."
    page = html_page(run, "now")
    assert "sum(int8[2]): 100 core cycles" in page
    assert "expf: 35 core cycles (35.0%)" in page


def test_a_profile_whose_function_has_another_name_in_the_tree() -> None:
    """Older documents do not tell the tree's name: without the call's, all is shown."""
    (part,) = whole().platforms
    profile = part.profiles[0]
    older = replace(profile, function="")
    assert own_tree(older) is profile.tree
    assert own_tree(replace(older, call="add(int8[2])")) == own_tree(profile) != profile.tree
    with pytest.raises(HarnessError, match="no call of mul was seen"):
        profile.tree.below("mul", "rest")
    assert profile.tree.below("evaluate", "rest").total == profile.tree.total == 100


def test_other_flags_are_told_first() -> None:
    compiler = "GNU C17 12.2.1"
    item = counted([1000])
    codes = [
        MeasuredCode(30, {"add": 30}, compiler, flags) for flags in ("-mthumb -O2 -DN=1", "-mthumb -Os -DN=2")
    ]
    base, head = (with_measured(item, code=code) for code in codes)
    page = comparison_markdown(compare([base], [head]))
    told = "- **built differently**: add(float32[1024], float32[1024], float32[1024]) on bare_mps2_an385: "
    assert page.index(f"{told}base `-O2 -DN=1`, head `-Os -DN=2`") < page.index("| call")
    assert "add loaded, GNU C17 12.2.1 -mthumb -Os -DN=2" in page
    for other in (base, counted([1000])):
        assert "built differently" not in comparison_markdown(compare([base], [other]))
    assert run_of(RunRecord("kept", records=[head]).to_json()).records == [head]


def test_another_compiler_of_the_firmware_is_told_once() -> None:
    base = [counted([1000]), counted([90], name="mul")]
    assert base[0].firmware is not None
    newer = replace(base[0].firmware, compiler="GNU C11 14")
    page = comparison_markdown(compare(base, [replace(item, firmware=newer) for item in base]))
    assert page.count("- **built differently**: firmware of bare_mps2_an385: base `") == 1


def test_own_code_is_told_by_platform() -> None:
    run = whole()
    loaded = with_measured(run.records[-1], code=MeasuredCode(symbols={"fir": 81}))
    table = own_sizes(replace(run, records=[loaded]))
    assert list(table.head) == ["symbol", "of", "bare_mps2_an385", "posix"]
    assert ["fir", "fir.c", "68", ""] in table.rows
    assert ["fir", "add", "", "81"] in table.rows


def test_html_holds_any_text() -> None:
    page = html_page(whole(), "now")
    assert "<run>" not in page
    assert "<lambda>" not in page
    assert "A &lt;run&gt; &amp; more" in page
    assert not re.findall(r"(?:src|href)=\"(?:https?:)?//", page)


def test_a_small_spread_is_none_of_zero() -> None:
    assert "± 5e-05 %" in dots([counted([1_000_000_000, 1_000_001_000])])
    assert "all the same" in dots([counted([1000, 1000])])


def test_the_line_of_dots_is_from_the_shortest_to_the_longest() -> None:
    drawn = dots([counted([1000, 1400, 1200])])
    assert re.findall(r"left:([\d.]+)%", drawn) == ["0.00", "100.00", "50.00"]
    assert "<p><span>4 µs</span><span>5.6 µs</span></p></div>" in drawn
    # The line is at least 1 % of the value long, so that a small spread looks small.
    near = dots([counted([100_000, 100_100])])
    assert re.findall(r"left:([\d.]+)%", near) == ["45.00", "55.00"]


def test_tests_of_a_single_outcome_are_open() -> None:
    assert "<details open><summary>1 passed</summary>" in html_page(one_test(), "now")
    assert "<details open>" not in html_page(whole(), "now")


@pytest.mark.parametrize(
    ("kind", "ordered"),
    [
        ("number", ["9 ticks", "10 ticks", "207,851.2 ticks"]),
        ("number", ["-1 ticks (-5 %)", "0", "+3 % (p = 0.1)", "+10 ticks (+4 %)"]),
        ("number", ["910 µs ± 2 ms", "8.3 ms ± 20 µs", "1.2 s", "4 samples", "5 million"]),
        (
            "number",
            ["990 ns 1a2b3c", "4 µs", "4.5 µs 9f", "50 mHz", "2 Hz", "1,234 or more", "2 kHz", "-", ""],
        ),
        ("", ["10 µs", "1 ms", "0.5%", "10", "10 ticks", "9 ticks", "test_10", "test_9"]),
    ],
)
def test_a_column_of_numbers_is_sorted_by_value_whatever_its_unit(kind: str, ordered: list[str]) -> None:
    """In another column only a cell that is a number alone is one."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node: apt-get install nodejs")
    functions = (
        (files("minrpc.publish") / "page.js").read_text(encoding="utf-8").partition("function sortBy")[0]
    )
    cells = [{"textContent": text} for text in sorted(ordered)]
    script = f"""{functions}
    const cells = {json.dumps(cells)};
    cells.forEach((cell) => cell.classList = {{ contains: (name) => name === "{kind}" }});
    cells.sort((one, other) => order(value(one), value(other)));
    console.log(JSON.stringify(cells.map((cell) => cell.textContent)));"""
    assert json.loads(subprocess.check_output([node, "-e", script])) == ordered


def test_a_run_of_nothing_is_a_page() -> None:
    assert markdown_page(RunRecord("Nothing")) == "### Nothing\n"
    assert "<h1>Nothing</h1>" in html_page(RunRecord("Nothing"), "now")


def test_github_action_benchmark() -> None:
    entries = json.loads(action_benchmark(whole()))
    assert all({"name", "unit", "value"} <= set(entry) for entry in entries)
    by_name = {entry["name"]: entry for entry in entries}
    assert len(by_name) == len(entries)
    call = "add(float32[1024], float32[1024], float32[1024])"
    assert by_name[f"{call} on bare_mps2_an385: loads"] == {
        "name": f"{call} on bare_mps2_an385: loads",
        "unit": "a call",
        "value": 10.0,
    }
    assert by_name["bare_mps2_an385: flash"]["value"] == 20000
    interval = whole().records[-1].measurement.summary.interval
    assert interval is not None
    # The clock's tick, a nanosecond, is the error of the value to either side.
    assert by_name[f"{call} on posix: latency"]["range"] == f"± {(interval.high - interval.low) / 2:.4g}"


def test_bencher() -> None:
    found = json.loads(bencher(whole()))
    call = found["add(float32[1024], float32[1024], float32[1024]) on posix"]
    assert call["latency"]["lower_value"] <= call["latency"]["value"] <= call["latency"]["upper_value"]
    assert found["bare_mps2_an385"] == {"flash": {"value": 20000}, "ram": {"value": 3000}}


def test_sizes_are_of_the_firmware_that_was_measured_last() -> None:
    old = recorded([10], flash=20000)
    new = replace(recorded([10], flash=20016), when="2026-01-02T00:00:00+00:00")
    for records in ([old, new], [new, old]):
        run = RunRecord("Twice", records=records)
        assert json.loads(bencher(run))["bare_mps2_an385"]["flash"] == {"value": 20016}
        assert [row[1] for row in firmwares(run).rows] == ["20,016"]


def test_tvms_profiling_report() -> None:
    found = json.loads(
        tvm_report(RunRecord("two", {"host": "here"}, [counted([1000]), counted([3000], name="mul")]))
    )
    assert set(found) == {"calls", "device_metrics", "configuration"}
    add, mul = found["calls"]
    assert add["Name"] == {"string": "add"}
    assert add["Duration (us)"] == {"microseconds": 4.0}
    assert (add["Percent"]["percent"], mul["Percent"]["percent"]) == (25.0, 75.0)
    assert add["loads"] == {"count": 10}
    (device,) = found["device_metrics"].values()
    assert device == {"Duration (us)": {"microseconds": 16.0}, "Count": {"count": 2}}


def test_in_tvms_report_shares_are_of_one_device() -> None:
    found = json.loads(tvm_report(whole()))
    shares: dict[str, float] = {}
    for call in found["calls"]:
        device = call["Device"]["string"]
        shares[device] = shares.get(device, 0.0) + call["Percent"]["percent"]
    assert shares == {"bare_mps2_an385": pytest.approx(100.0), "posix": pytest.approx(100.0)}


def test_a_histogram_in_letters() -> None:
    assert histogram([5.0, 5.0]) == ""
    drawn = histogram([0.0] * 8 + [1.0])
    assert (len(drawn), drawn[0], drawn[-1], drawn.strip("█▁")) == (24, "█", "▁", "·" * 22)


def test_runs_of_several_files_keep_all_profiles_and_titles() -> None:
    first = whole()
    (part,) = first.platforms
    other = replace(part, profiles=[replace(part.profiles[0], call="mul(int8[2])")])
    run = joined([first, replace(first, title="other", platforms=[other])])
    (both,) = run.platforms
    assert [profile.call for profile in both.profiles] == ["sum(int8[2])", "mul(int8[2])"]
    assert run.title == "A <run> & more, other"
    assert joined([replace(first, title=str(number)) for number in range(50)]).title == "0, 1, 2 and 47 more"


def test_many_runs_of_a_call_are_a_history() -> None:
    """The oldest comes first, whichever file is named first."""
    runs = [
        replace(
            with_measured(recorded([1000]), inclusive={"instructions": value}),
            when=f"2026-01-0{day}T00:00:00+00:00",
            commit=f"c{day}",
        )
        for day, value in ((3, 90.0), (1, 120.0), (2, 100.0))
    ]
    (found,) = histories(runs)
    assert (found.values, found.unit) == ([120.0, 100.0, 90.0], "inclusive instructions")
    run = RunRecord("many", records=runs)
    row = "| 3 | 120 inclusive instructions c1 | 90 inclusive instructions c3 |  -25 % |"
    assert " ".join(row.split()) in " ".join(markdown_page(run).split())
    page = html_page(run, "now")
    assert page.count("<circle ") == 3
    assert "90 inclusive instructions, c3, 2026-01-03" in page
    assert histories(runs[:1]) == []
