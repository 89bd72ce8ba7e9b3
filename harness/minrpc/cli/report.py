# SPDX-License-Identifier: Apache-2.0
"""`minrpc report`: a page with a function's time and memory on each platform, or of stored results."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final

from minrpc.cli.call_arguments import CallArgument, call_arguments, to_device
from minrpc.cli.json_output import add_json_option, write_json
from minrpc.cli.limit_lines import tell_limits
from minrpc.cli.selected import selected
from minrpc.cli.source_options import (
    add_build_options,
    add_call_options,
    load_with,
    sources_from,
    told_if_unfit,
)
from minrpc.client import RemoteModule
from minrpc.counters.profile import CALLING, Profile, profile_call
from minrpc.errors import ConfigurationError
from minrpc.firmware import Firmware, build
from minrpc.host.deadline import Deadline
from minrpc.host.files import check_writable, write_output
from minrpc.library import LoadedLibrary
from minrpc.pipeline import connect
from minrpc.program.compiler import Compiler
from minrpc.program.lines import Line
from minrpc.publish.differences import differences
from minrpc.publish.exports import action_benchmark, bencher, tvm_report
from minrpc.publish.html_page import html_page
from minrpc.publish.limits import broken_limits, idle_limits, unchecked_limits
from minrpc.publish.markdown_page import markdown_page
from minrpc.publish.provenance import about_here, code_compiler, firmware_record, platform_facts
from minrpc.publish.run_record import CallProfile, PlatformPart, RunRecord, run_of
from minrpc.running import all_counters, start
from minrpc.sizes import program_sizes
from minrpc.targets import Target
from minrpc.targets.limits import load_limits
from minrpc.targets.options import add_device_options, options_from
from minrpc.timing.record import TimingRecord

_LINES: Final = 40


def _html(run: RunRecord, base: RunRecord | None) -> str:
    return html_page(run, datetime.now(UTC).isoformat(" ", timespec="seconds"), base)


_PAGES: Final[MappingProxyType[str, Callable[[RunRecord, RunRecord | None], str]]] = MappingProxyType(
    {"html": _html, "markdown": markdown_page}
)
_EXPORTS: Final[MappingProxyType[str, Callable[[RunRecord], str]]] = MappingProxyType(
    {
        "action_benchmark": action_benchmark,
        "bencher": bencher,
        "tvm_report": tvm_report,
    }
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
        raise ConfigurationError("a report needs a function or files", next_step=step)
    wanted = {name: getattr(arguments, name) for name in (*_PAGES, *_EXPORTS) if getattr(arguments, name)}
    for file in wanted.values():
        check_writable(file)
    limits = load_limits(arguments.platforms_file)
    base = _run_in(arguments.base) if arguments.base else None
    run = _read(arguments) if arguments.kept else _measured(arguments)
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


def _read(arguments: argparse.Namespace) -> RunRecord:
    runs = [_run_in(file) for file in arguments.kept]
    parts = {platform.platform: platform for run in runs for platform in run.platforms}
    return RunRecord(
        title=arguments.title or runs[0].title,
        about={name: text for run in runs for name, text in run.about.items()},
        records=[record for run in runs for record in run.records],
        platforms=list(parts.values()),
        tests=[test for run in runs for test in run.tests],
    )


def _run_in(file: Path) -> RunRecord:
    try:
        return run_of(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(
            f"{file} can't be read: {error.strerror}", next_step="name another"
        ) from error
    except ValueError as error:
        raise ConfigurationError(f"{file} holds no run: {error}", next_step="name another file") from error


def _measured(arguments: argparse.Namespace) -> RunRecord:
    plan = call_arguments(arguments.function, arguments.arg, arguments.shape, arguments.dtype)
    if arguments.number < 1 or arguments.repeat < 1:
        raise ConfigurationError("--number and --repeat are at least 1", next_step="leave them out")
    options = options_from(vars(arguments))
    selection = selected(arguments)
    total = Deadline("report", options.total_timeout_s)
    done = [
        _measure(arguments, target.changed(cmake_options=arguments.cmake_option), plan, total)
        for target in selection.targets
    ]
    return RunRecord(
        title=arguments.title or done[0][0].call,
        about=about_here(),
        records=[record for record, _ in done],
        platforms=[part for _, part in done if part is not None],
    )


def _measure(
    arguments: argparse.Namespace, target: Target, plan: Sequence[CallArgument], total: Deadline
) -> tuple[TimingRecord, PlatformPart | None]:
    """The measurement on one target, its profile if the platform has counters, and its firmware's size."""
    firmware = build(target) if not target.attached else None
    counts = target.platform.starts == "qemu" and firmware is not None
    print(f"{target.name}: measured", file=sys.stderr, flush=True)
    with ExitStack() as stack:
        counters = all_counters(firmware) if firmware and counts else None
        running = stack.enter_context(start(firmware or target, counters=counters, total=total))
        device = stack.enter_context(connect(running, total=total))
        given = to_device(device, plan)
        library: RemoteModule | LoadedLibrary = device.system_lib()
        code: Mapping[str, int] = {}
        compiler = Compiler("", "")
        if arguments.source:
            sources = sources_from(arguments, arguments.source)
            library = loaded = load_with(arguments.function, device, sources, stack)
            code, compiler = loaded.own_sizes, code_compiler(loaded.compiled)
        measurer = library.measure(
            arguments.function,
            number=arguments.number,
            repeat=arguments.repeat,
            counters="all" if counters else (),
            memory="counters" in device.info().options,
        )
        with told_if_unfit(arguments.source):
            measurement = measurer(*given)
        by, name = arguments.by, arguments.function
        profile = profile_call(library, counters, name, given, by) if counters else None
        firmware = running.firmware
    record = TimingRecord(
        platform=target.name,
        arguments=tuple(map(str, plan)),
        measurement=measurement,
        firmware=firmware_record(firmware, symbols=True) if firmware else None,
        code=code,
        code_compiler=compiler.name,
        code_flags=compiler.flags,
        when=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    return record, _part(firmware, record, profile) if firmware else None


def _part(firmware: Firmware, record: TimingRecord, profile: Profile | None) -> PlatformPart:
    sizes = program_sizes(firmware.elf)
    clock = str(record.measurement.clock)
    return PlatformPart(
        platform=firmware.platform.name,
        facts={**platform_facts(firmware), "clock": clock},
        profiles=[_call_profile(firmware, record.call, profile)] if profile else [],
        flash=sizes.grouped("flash"),
        ram=sizes.grouped("ram"),
    )


def _call_profile(firmware: Firmware, call: str, profile: Profile) -> CallProfile:
    return CallProfile(call, profile.settled, _lines(firmware, profile), profile.unit)


def _lines(firmware: Firmware, profile: Profile) -> list[tuple[str, str, int]]:
    """Lines of the function and of its callees; none if no source line of these is known."""
    found = list(profile.called_lines.items())
    if not any(profile.called_lines):
        return []
    lines = [(_place(line), _text(firmware, line), count) for line, count in found[:_LINES]]
    rest = sum(count for _, count in found[_LINES:])
    calling = profile.total - sum(profile.called_lines.values())
    more = [(f"{len(found) - _LINES} more", "", rest), (CALLING, "", calling)]
    return lines + [page for page in more if page[2]]


def _place(line: Line | None) -> str:
    return f"{Path(line.file).name}:{line.number}" if line else "no source line known"


def _text(firmware: Firmware, line: Line | None) -> str:
    """The line's text, if its file is on this machine."""
    try:
        lines = firmware.source(line.file).read_text(errors="replace").splitlines() if line else []
    except OSError:
        return ""
    return lines[line.number - 1].strip() if line and line.number <= len(lines) else ""
