# SPDX-License-Identifier: Apache-2.0
"""The plugin's output: the header, lines of progress, short tracebacks."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

import _pytest
import pluggy
import pytest
from _pytest.junitxml import xml_key

from minrpc.errors import DeadlineError, HarnessError
from minrpc.pipeline import Selection
from minrpc.plugin import option_names
from minrpc.plugin.tally import Tally
from minrpc.targets import Target

_FEW: Final = 3
_PACKAGE: Final = Path(__file__).resolve().parent.parent
_PLUGIN: Final = _PACKAGE / "plugin" / "hooks.py"
# Frames between a fixture and the test that requests it.
_NOT_TESTS: Final = (_PACKAGE, *(Path(module.__file__ or "").parent for module in (_pytest, pluggy)))
_REFUSALS: Final = (TypeError, ValueError, LookupError, AttributeError, AssertionError)


def header(selection: Selection) -> list[str]:
    """Every tested device, and every untested default platform with the reason."""
    lines = [f"minrpc: {_described(target)}" for target in selection.targets]
    return lines + [f"minrpc: not {name}: {why}" for name, why in selection.left_out.items()]


def _described(target: Target) -> str:
    if target.hardware_map is not None:
        return f"{target.name}: a board of {target.hardware_map}"
    if target.serial_port is not None:
        return f"{target.name}: {target.serial_port} at {target.platform.baud} baud"
    return f"{target.name}: {target.platform.description}, link {target.link}"


SummaryLine = tuple[str, dict[str, bool]]


def summary(config: pytest.Config, tally: Tally) -> Iterator[SummaryLine]:
    """The lines at the end of the run, with their colours."""
    for name, clock in tally.clocks.items():
        if clock is not None:
            yield f"{name}: times are {clock}", {}
    for name, why in tally.left_out.items():
        yield f"{name} was left out: {why}", {"yellow": True}
    for name, why in tally.quarantined.items():
        yield f"{name} is in quarantine: {why}", {"red": True}
    if tally.pinned:
        yield f"on one platform only, as they asked for `device` while they ran: {_few(tally.pinned)}", {}
    taken = config.stash.get(option_names.TAKEN, ())
    if taken and not option_names.given(config) and not config.getoption("--twister-harness", None):
        for name in taken:
            yield f"{name} belongs to another plugin here; use --minrpc-{name.removeprefix('--')}", {}
    if none_ran(config, tally):
        option = option_names.spelled(config, "allow-no-device")
        text = (
            f"no test ran on a device, and {len(tally.wanted)} need a device: this run fails without {option}"
        )
        yield text, {"red": True, "bold": True}


def none_ran(config: pytest.Config, tally: Tally) -> bool:
    """True if tests needed a device, none got a device, and no option allows it."""
    return bool(tally.wanted) and not tally.had and not option_names.option_of(config, "allow-no-device")


def note_quarantine(selection: Selection, tally: Tally) -> None:
    """Note the boards of the hardware map that are in quarantine, also those that another run put there."""
    for target in selection.targets:
        if target.hardware_map is not None:
            from minrpc.running.lease import candidates, quarantine_of

            reasons = {board.name: quarantine_of(board) for board in candidates(target)}
            tally.quarantined |= {name: reason for name, reason in reasons.items() if reason}


def tell_junit(config: pytest.Config, tally: Tally) -> None:
    """Write the untested platforms into the JUnit report, if it is requested."""
    report = config.stash.get(xml_key, None)
    for name, why in tally.left_out.items():
        if report is not None:
            report.add_global_property(f"minrpc.left_out.{name}", why)
    for name, why in tally.quarantined.items():
        if report is not None:
            report.add_global_property(f"minrpc.quarantine.{name}", why)


def advise(config: pytest.Config, error: BaseException) -> None:
    """Adds to a time limit's error how a test raises the limit."""
    if isinstance(error, DeadlineError) and error.limit == "call":
        option = option_names.spelled(config, "call-timeout")
        error.next_step = (
            "look at the console; if it is only slow: @pytest.mark.call_timeout(SECONDS) on the test, "
            f"{option} SECONDS for all, or function.with_timeout(SECONDS)"
        )


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return ", ".join(names[:_FEW]) + more


def progress_line(config: pytest.Config, text: str) -> None:
    """A line on the terminal while a test runs and its output is captured; none with -q."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    capture = config.pluginmanager.get_plugin("capturemanager")
    if terminal is None or capture is None or config.get_verbosity() < 0:
        return
    with capture.global_and_fixture_disabled():
        terminal.ensure_newline()
        terminal.write_line(f"minrpc: {text}")


def short_traceback(caught: pytest.ExceptionInfo[BaseException]) -> None:
    """Leaves only the test's frames for errors of this package, whose text has the details.

    The same applies to arguments that this package refuses. If no frame is the test's, as in a fixture of
    this package, the fixture's frame is left.
    """
    error = caught.value
    if not isinstance(error, HarnessError) and not wrong_argument(error):
        return
    kept = _frames(error.__traceback__, _is_test) or _last(_frames(error.__traceback__, _is_plugin))
    if kept is not None:
        caught.traceback = type(caught.traceback)(kept)
        error.__suppress_context__, error.__cause__ = True, None


def wrong_argument(error: BaseException) -> bool:
    """True if a `raise` of this package refused an argument, or C's behaviour."""
    raised_in = _last(error.__traceback__)
    if raised_in is None or not isinstance(error, _REFUSALS):
        return False
    return Path(raised_in.tb_frame.f_code.co_filename).is_relative_to(_PACKAGE) and _raises(raised_in)


def _raises(traceback: TracebackType) -> bool:
    """True if the line is a `raise`: an internal bug raises from another statement."""
    code = traceback.tb_frame.f_code
    offset = traceback.tb_lasti
    return dis.opname[code.co_code[offset]] == "RAISE_VARARGS"


def _frames(traceback: TracebackType | None, wanted: Callable[[Path], bool]) -> TracebackType | None:
    """A copy of `traceback` with the frames of wanted files; None when there is none."""
    if traceback is None:
        return None
    rest = _frames(traceback.tb_next, wanted)
    if not wanted(Path(traceback.tb_frame.f_code.co_filename)):
        return rest
    return TracebackType(rest, traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno)


def _last(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback


def _is_test(file: Path) -> bool:
    return not any(file.is_relative_to(package) for package in _NOT_TESTS)


def _is_plugin(file: Path) -> bool:
    return file == _PLUGIN
