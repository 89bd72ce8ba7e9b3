# SPDX-License-Identifier: Apache-2.0
"""A run beside an earlier run: the page's first part."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from minrpc.cli import main
from minrpc.publish import RunRecord, run_record
from minrpc.publish.differences import differences, folded, shown
from minrpc.publish.html_page import html_page
from minrpc.publish.markdown_page import markdown_page
from minrpc.publish.tables import Table
from minrpc.timing import MeasuredCode
from minrpc.timing.compare import compare, comparison_json

from tests.unit.publish.runs import counted, whole
from tests.unit.timing.samples import with_measured


def outcomes_of(**outcomes: run_record.Outcome) -> RunRecord:
    """A run with tests only."""
    return RunRecord(
        "Tests", tests=[run_record.Tested(name, "posix", how, 0.1, "why") for name, how in outcomes.items()]
    )


def tables_of(base: RunRecord, run: RunRecord) -> dict[str, Table]:
    return {table.title: table for table in shown(differences(base, run))}


def test_nothing_differs_from_itself() -> None:
    found = differences(whole(), whole())
    assert found.sentences() == ["Timings: none of 3 slower", "Tests: none of 5 changed"]
    assert [*shown(found), *folded(found)] == []


def test_tests_that_ended_otherwise_come_with_the_new_failures_first() -> None:
    base = outcomes_of(
        same="passed", skips="passed", fails="passed", mended="failed", old="failed", gone="passed"
    )
    run = outcomes_of(
        same="passed",
        skips="skipped",
        fails="failed",
        mended="passed",
        old="failed",
        new="passed",
        late="failed",
    )
    assert differences(base, run).sentences() == [
        "Tests: 2 newly failed; 1 no longer failed; 1 changed in another way; 2 new; 1 gone"
    ]
    (table,) = tables_of(base, run).values()
    assert table.rows[0][:3] == ["fails", "passed", "failed"]
    assert [row[:3] for row in table.rows[1:]] == [
        ["late", "-", "failed"],
        ["mended", "failed", "passed"],
        ["skips", "passed", "skipped"],
    ]


def test_times_and_counters_that_differ() -> None:
    base = RunRecord("", records=[counted([1000]), counted([90], name="mul")])
    run = RunRecord("", records=[counted([1500], loads=101), counted([90], name="mul")])
    found = tables_of(base, run)
    ((call, platform, *time),) = found["Times"].rows
    assert (str(call).partition("(")[0], platform) == ("add", "bare_mps2_an385")
    assert time == ["slower", "100 ticks", "150 ticks", "+50 ticks (+50 %)"]
    assert [row[2:] for row in found["Counters, a call"].rows] == [
        ["instructions", "200", "300", "+100 (+50 %)"],
        ["loads", "10", "10.1", "+0.1 (+1 %)"],
    ]


def test_sizes_of_firmware_and_of_loaded_code() -> None:
    base = whole()
    firmware = base.records[0].firmware
    assert firmware is not None
    larger = replace(firmware, flash=firmware.flash + 12)
    part = replace(base.platforms[0], loaded={"fir.c": {"fir": 72, "taps": 32}, "iir.c": {"iir": 9}})
    records = [replace(record, firmware=larger) for record in base.records]
    run = replace(base, records=records, platforms=[part])
    found = tables_of(base, run)
    assert found["Bytes"].rows == [
        ["bare_mps2_an385", "flash", "20,000", "20,012", "+12"],
        ["posix", "flash", "20,000", "20,012", "+12"],
        ["bare_mps2_an385", "fir.c", "408", "104", "-304"],
    ]
    (symbols,) = folded(differences(base, run))
    assert symbols.title == "bare_mps2_an385, fir.c: -304 bytes by symbol"
    assert list(symbols.rows[0]) == ["(from libraries)", "278", "-", "-278"]
    assert list(symbols.rows[2]) == ["fir", "68", "72", "+4"]


def test_other_compilers_are_told_in_json_and_on_the_page() -> None:
    codes = [MeasuredCode(30, {"add": 30}, "GNU C17 12", f"-mthumb {level}") for level in ("-O2", "-Os")]
    base, head = (with_measured(counted([1000]), code=code) for code in codes)
    (change,) = comparison_json(compare([base], [head]))["built_otherwise"]
    assert (change["base"], change["head"]) == ("-O2", "-Os")
    assert change["subject"].endswith(" on bare_mps2_an385")
    found = tables_of(RunRecord("", records=[base]), RunRecord("", records=[head]))
    assert found["Built differently"].rows == [list(change.values())]
    assert comparison_json(compare([base], [base]))["built_otherwise"] == []


def test_it_is_the_pages_first_section() -> None:
    base, run = outcomes_of(a="passed"), outcomes_of(a="failed")
    page = html_page(run, "now", base)
    assert page.index(">Changes</h2><p>Tests: 1 newly failed</p>") < page.index(">Failures</h2>")
    assert "Changes" not in html_page(run, "now")
    text = markdown_page(run, base)
    assert text.index("#### Changes\n\nTests: 1 newly failed\n\n**Tests with") < text.index("| seconds |")
    assert "Changes" not in markdown_page(run)


def test_report_takes_a_base(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, head, out = (tmp_path / name for name in ("base.json", "head.json", "out.json"))
    base.write_text(RunRecord("", records=[counted([1000])]).to_json())
    head.write_text(RunRecord("", records=[counted([1500])]).to_json())
    assert main(["report", "--from", str(head), "--base", str(base), "--json", str(out)]) == 0
    assert "#### Changes\n\nTimings: 1 of 1 slower" in capsys.readouterr().out
    (change,) = json.loads(out.read_text())["compared"]["changes"]
    assert change["change_ticks"] == 50
    # A limit of growth is compared with the base.
    (tmp_path / "minrpc.toml").write_text('[limits]\nadd.time = "+2%"\n')
    limits = ["--platforms-file", str(tmp_path / "minrpc.toml")]
    assert main(["report", "--from", str(head), "--base", str(base), *limits]) == 1
    assert "+50 %" in capsys.readouterr().err
    assert main(["report", "--from", str(head), "--base", str(tmp_path / "none.json")]) == 2
    assert "none.json can't be read" in capsys.readouterr().err


def test_what_is_beyond_the_first_failures_is_folded() -> None:
    fail: dict[str, run_record.Outcome] = {f"t{number}": "failed" for number in range(25)}
    run, base = outcomes_of(**fail), outcomes_of(**(fail | dict.fromkeys(fail, "passed")))
    page = html_page(run, "now", base)
    first, folded_away = page.split("<summary>5 more</summary>", 1)
    assert ("t19" in first, "t24" in folded_away) == (True, True)
    few = outcomes_of(t0="failed")
    assert " more</summary>" not in html_page(few, "now", outcomes_of(t0="passed"))
