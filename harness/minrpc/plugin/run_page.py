# SPDX-License-Identifier: Apache-2.0
"""`--minrpc-report FILE`: writes a page of a run of tests. Imported only if the option is given."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from minrpc.errors import ConfigurationError
from minrpc.firmware import Firmware
from minrpc.library import CLibrary
from minrpc.plugin.tally import Tally
from minrpc.publish import pages
from minrpc.publish.provenance import about_here, platform_facts
from minrpc.publish.recording import timing_record
from minrpc.publish.run_record import PlatformPart, RunRecord, Tested
from minrpc.sizes import program_sizes
from minrpc.timing import Measurement
from minrpc.timing.record import TimingRecord

# pytest prints an exception's name after its module's name.
_MODULE: Final = re.compile(r"^(?:\w+\.)+(?=\w+:)")
_STRICT: Final = ("[XPASS(strict)]", "passed, though failure is expected:")
_LONGEST: Final = 8000


def check_page(file: Path) -> None:
    """Raise UsageError if the page can't be written: checked before the tests, so that no run is lost."""
    try:
        pages.check_page(file)
    except ConfigurationError as error:
        raise pytest.UsageError(str(error)) from error


def note_phase(tally: Tally, report: pytest.TestReport, call: pytest.CallInfo[None], platform: str) -> None:
    """Notes the outcome of a test's set-up, call or teardown. Only the last try of a test counts."""
    if report.when == "setup":
        tally.tests.pop(report.nodeid, None)
    kept = tally.tests.setdefault(report.nodeid, {"outcome": "passed", "took_s": 0.0, "text": ""})
    kept["platform"] = platform or kept.get("platform", "")
    kept["took_s"] += report.duration
    outcome = _outcome(report)
    if report.failed or (outcome != "passed" and kept["outcome"] != "failed"):
        before = f"{kept['text']}\n" if kept["outcome"] == "failed" else ""
        kept["outcome"], kept["text"] = outcome, before + _why(report, call)


def _outcome(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail") and not report.failed:
        return "xpassed" if report.passed else "xfailed"
    return report.outcome


def _why(report: pytest.TestReport, call: pytest.CallInfo[None]) -> str:
    """The text that pytest prints for a failure, without the exception's module; else the reason given."""
    expected = getattr(report, "wasxfail", None)
    if expected is not None and not report.failed:
        return str(expected)
    text = call.excinfo.exconly() if call.excinfo else str(report.longrepr)
    if report.skipped:
        return text.removeprefix("Skipped: ")
    text = _MODULE.sub("", text).replace(*_STRICT)
    phase = "" if report.when == "call" else f"at {report.when}: "
    return phase + (text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text):,} characters)")


def note_firmware(tally: Tally, name: str, firmware: Firmware | None, clock: object) -> None:
    """Notes the firmware of a device that a test has used."""
    if firmware is not None and name not in tally.firmwares:
        facts = {**platform_facts(firmware), "clock": str(clock)}
        tally.firmwares[name] = {"elf": str(firmware.elf), "facts": facts}


def note_library(tally: Tally, platform: str, library: CLibrary) -> None:
    """Notes the size of code that a test has loaded."""
    tally.libraries.setdefault(platform, {})[library.name] = dict(library.own_sizes)


def note_measurement(
    tally: Tally, test: str, name: str, platform: str, firmware: Firmware | None, measurement: Measurement
) -> None:
    """Notes the measurement of `test`, by its id; `name` is the test's name for it."""
    record = timing_record(measurement, platform, firmware)
    tally.records.append({**record.to_json(), "function": name, "test": test})


def write_page(file: Path, tally: Tally) -> None:
    """Writes the page from the tally."""
    run = RunRecord(
        title="Tests",
        about=about_here(),
        records=_told_apart(tally.records),
        platforms=[
            _part(name, firmware, tally.libraries.get(name, {}))
            for name, firmware in sorted(tally.firmwares.items())
        ],
        tests=[Tested(test=name, **test) for name, test in sorted(tally.tests.items())],
    )
    pages.write_page(file, run)


def _told_apart(noted: Sequence[Mapping[str, Any]]) -> list[TimingRecord]:
    """The noted measurements; a call that several tests measured has the test's name after the function's."""
    records = [(TimingRecord.from_json(each), str(each["test"])) for each in noted]
    tests: dict[tuple[str, str], set[str]] = {}
    for record, test in records:
        tests.setdefault(record.key, set()).add(test)
    return [_of_test(record, test, tests[record.key]) for record, test in records]


def _of_test(record: TimingRecord, test: str, tests: set[str]) -> TimingRecord:
    if len(tests) == 1:
        return record
    shown = _name(test) if len({_name(each) for each in tests}) == len(tests) else test
    measurement = replace(record.measurement, name=f"{record.measurement.name} [{shown}]")
    return replace(record, measurement=measurement)


def _name(test: str) -> str:
    """The test's id without its file: "test_x[-O2]"."""
    function, bracket, parameters = test.partition("[")
    return function.rpartition("::")[2] + bracket + parameters


def _part(name: str, noted: Mapping[str, Any], loaded: Mapping[str, Mapping[str, int]]) -> PlatformPart:
    sizes = program_sizes(Path(noted["elf"]))
    return PlatformPart(name, noted["facts"], (), sizes.grouped("flash"), sizes.grouped("ram"), loaded)
