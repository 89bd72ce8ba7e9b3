# SPDX-License-Identifier: Apache-2.0
"""`minrpc report`: a page with a function's time and memory on each platform, or of stored results."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Final

from minrpc.cli.json_output import add_json_option, write_json
from minrpc.cli.limit_lines import tell_limits
from minrpc.cli.recorded import recorded
from minrpc.cli.selected import selected
from minrpc.cli.source_options import CALL_OPTIONS, add_build_options, add_call_options, plan_of
from minrpc.cli.unused_options import refuse
from minrpc.errors import ConfigurationError
from minrpc.host.deadline import Deadline
from minrpc.host.files import check_writable, write_output
from minrpc.publish.differences import differences
from minrpc.publish.exports import action_benchmark, bencher, tvm_report
from minrpc.publish.limit_check import broken_limits, idle_limits, unchecked_limits
from minrpc.publish.markdown_page import markdown_page
from minrpc.publish.pages import html
from minrpc.publish.recording import CallOptions, run_of_calls
from minrpc.publish.run_record import RunRecord, joined, run_of
from minrpc.targets.limits import load_limits
from minrpc.targets.option_table import DEVICE_OPTIONS
from minrpc.targets.options import add_device_options, options_from

_PAGES: Final[MappingProxyType[str, Callable[[RunRecord, RunRecord | None], str]]] = MappingProxyType(
    {"html": html, "markdown": markdown_page}
)
_EXPORTS: Final[MappingProxyType[str, Callable[[RunRecord], str]]] = MappingProxyType(
    {
        "action_benchmark": action_benchmark,
        "bencher": bencher,
        "tvm_report": tvm_report,
    }
)

# The options without use for a run that was measured.
_MEASURING: Final = (
    *(*CALL_OPTIONS, "number", "repeat", "by", "cmake-option"),
    *(name for name in DEVICE_OPTIONS if name != "platforms-file"),  # The file has the limits, too.
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add(
        "function",
        nargs="?",
        metavar="FUNC",
        help="a function of the firmware's system library, or of --source",
    )
    add(
        "--from",
        dest="kept",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="measure nothing; show files of `time --json` or `report --json`; repeat it for each file",
    )
    add(
        "--base",
        type=Path,
        metavar="FILE",
        help="show first the differences from this earlier run: times, counters, sizes, tests",
    )
    add_call_options(add)
    add("--number", type=int, default=10, metavar="N", help="calls in a batch (default 10)")
    add("--repeat", type=int, default=10, metavar="N", help="repeats, the samples (default 10)")
    add("--by", choices=("instructions", "cycles"), default="instructions", help="the unit of profiles")
    add("--title", metavar="TEXT", help="the page's head")
    add("--html", type=Path, metavar="FILE", help="write one HTML file that needs no other and no network")
    add("--markdown", type=Path, metavar="FILE", help="write Markdown here, not to standard output")
    add("--action-benchmark", type=Path, metavar="FILE", help="for github-action-benchmark")
    add("--bencher", type=Path, metavar="FILE", help="for `bencher run --adapter json`")
    add("--tvm-report", type=Path, metavar="FILE", help="for TVM's profiling.Report.from_json")
    add_build_options(add)
    add_json_option(add, "write the data of the page")
    add_device_options(add)


def main(arguments: argparse.Namespace) -> int:
    """Measure or read a run, and write the page; 1 if a limit of minrpc.toml is broken."""
    if bool(arguments.kept) == bool(arguments.function):
        step = "`minrpc report add`, or `minrpc report --from FILE`"
        message = "a report needs a function, or files, not both"
        raise ConfigurationError(message, next_step=step)
    if arguments.kept:
        refuse(arguments, _MEASURING, "with --from")
    wanted = {name: getattr(arguments, name) for name in (*_PAGES, *_EXPORTS) if getattr(arguments, name)}
    for file in wanted.values():
        check_writable(file)
    limits = load_limits(arguments.platforms_file)
    base = _run_in(arguments.base) if arguments.base else None
    run = (
        joined([_run_in(file) for file in arguments.kept], arguments.title)
        if arguments.kept
        else _measured(arguments)
    )
    for name, file in wanted.items():
        write_output(file, _EXPORTS[name](run) if name in _EXPORTS else _PAGES[name](run, base))
    if not arguments.markdown:
        print(markdown_page(run, base), end="")
    before = base.records if base else ()
    broken = broken_limits(limits, run.records, before)
    idle, unchecked = idle_limits(limits, run.records), unchecked_limits(limits, run.records, before)
    tell_limits(broken, idle, unchecked, sys.stderr)
    compared = {"compared": differences(base, run).content()} if base else {}
    write_json(arguments, {**run.content(), **compared}, passed=not broken)
    return 1 if broken else 0


def _run_in(file: Path) -> RunRecord:
    try:
        return run_of(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(
            f"{file} can't be read: {error.strerror}", next_step="name another"
        ) from error
    except ValueError as error:
        raise ConfigurationError(
            f"{file} holds no run: {error}", next_step="measure again, or name another file"
        ) from error


def _measured(arguments: argparse.Namespace) -> RunRecord:
    plan = plan_of(arguments)
    if arguments.number < 1 or arguments.repeat < 1:
        raise ConfigurationError("--number and --repeat are at least 1", next_step="leave them out")
    total = Deadline("report", options_from(vars(arguments)).total_timeout_s)
    options = CallOptions(number=arguments.number, repeat=arguments.repeat, profile=arguments.by)
    calls = []
    for target in selected(arguments).targets:
        changed = target.changed(cmake_options=arguments.cmake_option)
        calls.append(recorded(arguments, changed, plan, options, total, _say))
        _say(f"{target.name}: measured")
    return run_of_calls(calls, arguments.title)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
