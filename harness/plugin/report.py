# SPDX-License-Identifier: Apache-2.0
"""What the plugin shows: the header, lines of progress, short tracebacks."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Final

import pytest

from harness.errors import HarnessError
from harness.options import Options
from harness.targets import Selection, Target

_PACKAGE: Final = Path(__file__).resolve().parent.parent


def header(selection: Selection, options: Options) -> list[str]:
    """Every device that is tested, and every default platform that is not, with the reason."""
    lines = [f"minrpc: {_described(target, options)}" for target in selection.targets]
    return lines + [f"minrpc: not {name}: {why}" for name, why in selection.left_out.items()]


def _described(target: Target, options: Options) -> str:
    if target.serial_port is not None:
        return f"{target.name}: {target.serial_port} at {target.baud} baud"
    assert target.platform is not None
    return f"{target.name}: {target.platform.description}, link {options.link}"


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
    """For our own errors leave only the test's frames: the error's text says what happened inside."""
    error = caught.value
    if not isinstance(error, HarnessError):
        return
    kept = _without_ours(error.__traceback__)
    if kept is not None:
        caught.traceback = type(caught.traceback)(kept)
        error.__suppress_context__, error.__cause__ = True, None


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """A copy of `traceback` without the frames of this package; None when no other is left."""
    if traceback is None:
        return None
    rest = _without_ours(traceback.tb_next)
    if Path(traceback.tb_frame.f_code.co_filename).is_relative_to(_PACKAGE):
        return rest
    return TracebackType(rest, traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno)
