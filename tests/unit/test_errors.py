# SPDX-License-Identifier: Apache-2.0
"""The text that a user reads after a failure."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from pathlib import Path

import pytest
from minrpc import (
    BuildError,
    DeadlineError,
    EmulatorExitedError,
    HarnessError,
    LinkError,
    PortBusyError,
    errors,
)

CLASSES = [var for var in vars(errors).values() if inspect.isclass(var) and issubclass(var, HarnessError)]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_class_says_what_happened_and_what_to_do(kind: type[HarnessError]) -> None:
    report = str(kind("it broke")).splitlines()
    assert report[0] == "it broke"
    assert report[-1].startswith("  next: ")
    assert kind.__doc__


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_survives_pickling_as_parallel_test_runs_need(kind: type[HarnessError]) -> None:
    error = kind("it broke").add_context(stage="boot")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert str(again) == str(error)


def test_report_has_all_that_is_known_and_fits_a_screen() -> None:
    error = DeadlineError(
        "nothing came",
        stage="session",
        waited_for="the reply",
        wall_s=10.04,
        cpu_s=9.51,
        console_tail="\n".join(f"line {n}" for n in range(100)),
        wire_tail=bytes(range(200)),
        details=[f"detail {n}" for n in range(100)],
    )
    report = str(error)
    assert len(report.splitlines()) <= 24
    assert "stage: session" in report
    assert "waited: for the reply 10.0 s (the emulator ran for 9.5 s of it)" in report
    assert "| line 99" in report
    assert "line 9\n" not in report
    assert "c6 c7" in report


def test_a_long_command_can_be_copied_whole_a_long_detail_is_cut() -> None:
    command = "run `sudo apt-get install " + " ".join(f"package-number-{n}" for n in range(12)) + "`"
    report = str(HarnessError("missing", next_step=command, details=["x" * 1000])).splitlines()
    assert report[-1] == f"  next: {command}"
    assert len(report[1]) == 110


def test_silence_is_said() -> None:
    report = str(HarnessError("nothing", console_tail="", wire_tail=b""))
    assert "console: nothing was printed" in report
    assert "wire: no byte came" in report


def test_context_added_later_fills_gaps_only() -> None:
    error = HarnessError("x", stage="call add", wire_tail=b"")
    assert error.add_context(stage="outer", wire_tail=b"\x01", wall_s=2.0, console_tail="") is error
    assert (error.stage, error.wire_tail, error.wall_s, error.console_tail) == ("call add", b"", 2.0, "")


def test_own_fields_are_shown() -> None:
    assert "log: /x/build.log" in str(BuildError("no", log_path=Path("/x/build.log")))
    assert "held by screen (pid 7)" in str(PortBusyError("busy", holders=["screen (pid 7)"]))
    assert "counted: crc 3, overrun 1" in str(LinkError("bad", counts={"crc": 3, "overrun": 1}))
    assert EmulatorExitedError("gone", status=-9).status == -9


def test_what_a_device_sends_does_nothing_to_the_terminal() -> None:
    """ESC, BEL and the controls of Latin-1 are shown; tabs, ends of lines and letters stay as they are."""
    failure = HarnessError(
        "a \x1b[31mred\x1b[0m text",
        details=["bell \x07"],
        console_tail="\x1b]0;title\x07\ttab\x9b2J é\r\nnext",
    )
    shown = str(failure)
    assert not set(re.findall(r"[\x00-\x1f\x7f-\x9f]", shown)) - {"\n", "\t"}
    assert "a \\x1b[31mred\\x1b[0m text" in shown
    assert "bell \\x07" in shown
    assert "| \\x1b]0;title\\x07\ttab\\x9b2J é" in shown
    assert failure.message == "a \x1b[31mred\x1b[0m text"


def test_a_report_has_all_of_a_short_console() -> None:
    error = HarnessError("it failed", console_tail="one\ntwo\n")
    assert error.shows_all_of("one\ntwo\n")
    assert not error.shows_all_of("zero\none\ntwo\n")
    assert not HarnessError("it failed").shows_all_of("one")
    long = "line\n" * 20
    assert not HarnessError("it failed", console_tail=long).shows_all_of(long)
