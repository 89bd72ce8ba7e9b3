# SPDX-License-Identifier: Apache-2.0
"""`--minrpc-report FILE`: a page of a run of tests. Loaded only where it was asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from minrpc.errors import ConfigurationError
from minrpc.firmware import Firmware
from minrpc.host.files import check_writable, write_whole
from minrpc.plugin.tally import Tally
from minrpc.publish.html_page import html_page
from minrpc.publish.markdown_page import markdown_page
from minrpc.publish.provenance import about_here, firmware_record, platform_facts
from minrpc.publish.run import PlatformPart, Run, Tested
from minrpc.sizes import program_sizes
from minrpc.timing import Measurement
from minrpc.timing.record import Record


def _html(run: Run) -> str:
    return html_page(run, datetime.now(UTC).isoformat(" ", timespec="seconds"))


_WRITERS: Final[Mapping[str, Callable[[Run], str]]] = {
    ".html": _html,
    ".md": markdown_page,
    ".json": Run.to_json,
}


def check_page(file: Path) -> None:
    """Raise UsageError where no page can be written: better before the tests than after."""
    if file.suffix not in _WRITERS:
        raise pytest.UsageError(f"{file}: a report is one of {', '.join(_WRITERS)}")
    try:
        check_writable(file)
    except ConfigurationError as error:
        raise pytest.UsageError(str(error)) from error


def note_phase(tally: Tally, report: pytest.TestReport, call: pytest.CallInfo[None], platform: str) -> None:
    """Set-up, call or teardown of a test has ended."""
    kept = tally.tests.setdefault(report.nodeid, {"outcome": "passed", "took_s": 0.0, "text": ""})
    kept["platform"] = platform or kept.get("platform", "")
    kept["took_s"] += report.duration
    if report.failed or (report.skipped and kept["outcome"] != "failed"):
        kept["outcome"] = report.outcome
        kept["text"] = call.excinfo.exconly() if call.excinfo else str(report.longrepr)


def note_firmware(tally: Tally, name: str, firmware: Firmware | None, clock: object) -> None:
    """A device was used: what runs on it."""
    if firmware is not None and name not in tally.firmwares:
        facts = {**platform_facts(firmware), "clock": str(clock)}
        tally.firmwares[name] = {"elf": str(firmware.elf), "facts": facts}


def note_measurement(
    tally: Tally, name: str, platform: str, firmware: Firmware | None, measurement: Measurement
) -> None:
    """A test has measured something, which it calls `name`."""
    record = Record(
        platform=platform,
        arguments=(),
        measurement=measurement,
        firmware=firmware_record(firmware) if firmware else None,
        when=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    tally.records.append({**record.to_json(), "function": name})


def write_page(file: Path, tally: Tally) -> None:
    """The page of all that was noted."""
    run = Run(
        title="Tests",
        about=about_here(),
        records=[Record.from_json(one) for one in tally.records],
        platforms=[_part(name, one) for name, one in sorted(tally.firmwares.items())],
        tests=[Tested(test=name, **one) for name, one in sorted(tally.tests.items())],
    )
    write_whole(file, _WRITERS[file.suffix](run))


def _part(name: str, noted: Mapping[str, Any]) -> PlatformPart:
    sizes = program_sizes(Path(noted["elf"]))
    return PlatformPart(name, noted["facts"], (), sizes.grouped("flash"), sizes.grouped("ram"))
