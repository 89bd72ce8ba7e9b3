# SPDX-License-Identifier: Apache-2.0
"""`minrpc profile`: instructions of one call, by function and by source line, in QEMU. Exact."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from minrpc.cli.recorded import recorded
from minrpc.cli.selected import require_one
from minrpc.cli.source_options import add_build_options, add_call_options, plan_of
from minrpc.cli.unused_options import CYCLE_OPTIONS, refuse
from minrpc.counters.profile import APART, Profile, unit_title
from minrpc.counters.profile_files import callgrind, flame_graph, speedscope
from minrpc.errors import ConfigurationError, MissingError
from minrpc.firmware import Firmware
from minrpc.host.deadline import Deadline
from minrpc.host.files import check_writable, write_output
from minrpc.names import did_you_mean
from minrpc.pipeline import select
from minrpc.program.lines import Line
from minrpc.publish.recording import CallOptions, place_text, source_lines, source_text
from minrpc.targets import Target
from minrpc.targets.options import add_device_options, options_from

_TOP: Final = 15


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("function", metavar="FUNC", help="a function of the firmware's system library, or of --source")
    add_call_options(add)
    add("--by", choices=("instructions", "cycles"), default="instructions", help="cycles are an estimate")
    add("--top", type=int, default=_TOP, metavar="N", help=f"rows of each table (default {_TOP})")
    add("--annotate", metavar="FUNC", help="show the source of this function, with counts beside it")
    add("--flame", type=Path, metavar="FILE.svg", help="draw a flame graph")
    add("--callgrind", type=Path, metavar="FILE", help="write a file for KCachegrind")
    add("--speedscope", type=Path, metavar="FILE", help="write a file for https://www.speedscope.app")
    add_build_options(add)
    add_device_options(add)


def main(arguments: argparse.Namespace) -> int:
    """Profile on one platform, and show the profile."""
    options = options_from(vars(arguments))
    plan = plan_of(arguments)
    if arguments.by != "cycles":
        refuse(arguments, CYCLE_OPTIONS, "without cycles", "add --by cycles")
    files = [arguments.flame, arguments.callgrind, arguments.speedscope]
    for file in filter(None, files):
        check_writable(file)
    selection = select(options)
    target = _only(selection.targets, options.platforms)
    target = target.changed(cmake_options=arguments.cmake_option)
    print(f"{target.name}: firmware", file=sys.stderr, flush=True)
    total = Deadline("profile", options.total_timeout_s)
    how = CallOptions(number=1, repeat=1, counters=(), memory=False, profile=arguments.by)
    call = recorded(arguments, target, plan, how, total, lambda line: None)
    profile, firmware = call.profile, call.firmware
    assert profile, "the target runs under QEMU"
    assert firmware, "it was built"
    print("\n".join(_text(profile, call.record.call, target.name, firmware, arguments.top)))
    if arguments.annotate:
        print("\n".join(_annotated(profile, arguments.annotate, firmware)))
    writers: tuple[Callable[[Profile], str], ...] = (
        lambda profile: flame_graph(profile.name, profile.called, unit_title(profile.unit)),
        partial(callgrind, source=firmware.source),
        speedscope,
    )
    for file, writer in zip(files, writers, strict=True):
        if file:
            write_output(file, writer(profile))
    return 0


def _only(targets: Sequence[Target], named: tuple[str, ...]) -> Target:
    counted = [target for target in targets if target.in_qemu and target.timing in (None, "exact")]
    if not counted:
        names = ", ".join(target.name for target in targets)
        what = f"{names} does not run under QEMU in exact time" if targets else "no platform can run here"
        raise MissingError(
            f"{what}: nothing counts there",
            next_step="name a platform that runs under QEMU: --platform bare_mps2_an385",
        )
    if named:
        require_one(counted, "a profile takes")
    return counted[0]


def _text(profile: Profile, call: str, platform: str, firmware: Firmware, top: int) -> Iterator[str]:
    total = profile.inclusive
    most = f" to {total + profile.spread:,}" if profile.spread else ""
    yield f"{call} on {platform}: {total:,}{most} {profile.unit}"
    if profile.estimate:
        yield f"  {profile.estimate}" + "; each row has the least" * bool(most)
    yield ""
    yield f"  {'own':>12} {'':>6} {'with callees':>13} {'calls':>9}  function"
    functions = [row for row in profile.called.rows() if row.name not in APART]
    for row in functions[:top]:
        share = f"{row.own / total:.1%}"
        calls = f"{row.calls:,}" if row.calls else ""
        yield f"  {row.own:>12,} {share:>6} {row.inclusive:>13,} {calls:>9}  {row.name}"
    rest = functions[top:]
    if rest:
        own = sum(row.own for row in rest)
        yield f"  {own:>12,} {own / total:>6.1%} {'':>13} {'':>9}  {len(rest)} more"
    yield ""
    yield f"  {'own':>12} {'':>6}  line"
    lines = list(profile.called_lines.items())
    for line, count in lines[:top]:
        place = f"{place_text(line, profile)}  {source_text(firmware, line)}"
        yield f"  {count:>12,} {count / total:>6.1%}  {place}".rstrip()
    more = sum(count for _, count in lines[top:])
    if more:
        yield f"  {more:>12,} {more / total:>6.1%}  {len(lines) - top} more"
    yield ""
    yield f"  apart from these {profile.total - total:,} for calling it, and for interrupts"


def _annotated(profile: Profile, name: str, firmware: Firmware) -> Iterator[str]:
    """The source lines from the function's first to its last, each with its executed instructions."""
    image = profile.image
    functions = {
        image.name_of(function): function
        for function in (
            *(function for code in reversed(image.loaded) for function in code.functions),
            *reversed(image.functions),
        )
    }
    function = functions.get(name)
    if function is None:
        step = did_you_mean(name, functions) or "name a function of the table"
        raise ConfigurationError(f"the program has no function {name}", next_step=step)
    known = [profile.image.line_at(address) for address in range(function.start, function.end)]
    own = [line for line in known if line]
    if not own:
        raise ConfigurationError(f"no source line of {name} is known", next_step="build it with -g")
    # Inlined code has files of its own.
    file = Counter(line.file for line in own).most_common(1)[0][0]
    numbers = [line.number for line in own if line.file == file]
    yield ""
    yield f"{name}, {file}"
    lines = source_lines(firmware, file)
    for number in range(min(numbers), max(numbers) + 1):
        line = Line(file, number)
        count = profile.lines.get(line)
        text = lines[number - 1] if number <= len(lines) else ""
        note = f"  ({profile.skipped_lines[line]})" if line in profile.skipped_lines else ""
        yield f"  {f'{count:,}' if count else '':>12}  {number:>5}  {text}{note}".rstrip()
