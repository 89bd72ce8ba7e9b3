# SPDX-License-Identifier: Apache-2.0
"""`minrpc profile`: instructions of one call, by function and by source line, in QEMU. Exact."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from minrpc.cli.call_arguments import call_arguments, to_device
from minrpc.cli.source_options import (
    add_build_options,
    add_call_options,
    load_with,
    sources_from,
    told_if_unfit,
)
from minrpc.client import RemoteModule
from minrpc.counters import counters_for
from minrpc.counters.profile import CALLING, Profile, profile_call
from minrpc.counters.profile_files import callgrind, flame_graph, speedscope
from minrpc.cycles import core_or_reason
from minrpc.errors import ConfigurationError, MissingError
from minrpc.firmware import Firmware, build
from minrpc.host.deadline import Deadline
from minrpc.host.files import check_writable, write_output
from minrpc.library import LoadedLibrary
from minrpc.names import did_you_mean
from minrpc.pipeline import connect, select
from minrpc.program.lines import Line
from minrpc.running import start
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
    plan = call_arguments(arguments.function, arguments.arg, arguments.shape, arguments.dtype)
    files = [arguments.flame, arguments.callgrind, arguments.speedscope]
    for file in filter(None, files):
        check_writable(file)
    selection = select(options)
    target = _only(
        [target for target in selection.targets if target.platform.starts == "qemu"], options.platforms
    )
    target = target.changed(cmake_options=arguments.cmake_option)
    print(f"{target.name}: firmware", file=sys.stderr, flush=True)
    firmware = build(target)
    total = Deadline("profile", options.total_timeout_s)
    with ExitStack() as stack:
        core, reason = core_or_reason(target.platform) if arguments.by == "cycles" else (None, "")
        counters = counters_for(firmware.elf, flow=True, core=core, no_cycles=reason)
        running = stack.enter_context(start(firmware, counters=counters, total=total))
        device = stack.enter_context(connect(running, total=total))
        library: RemoteModule | LoadedLibrary = device.system_lib()
        if arguments.source:
            sources = sources_from(arguments, arguments.source)
            library = load_with(arguments.function, device, sources, stack)
        with told_if_unfit(arguments.source):
            profile = profile_call(
                library, counters, arguments.function, to_device(device, plan), arguments.by
            )
    call = f"{arguments.function}({', '.join(map(str, plan))})"
    print("\n".join(_text(profile, call, target.name, firmware, arguments.top)))
    if arguments.annotate:
        print("\n".join(_annotated(profile, arguments.annotate, firmware)))
    writers: tuple[Callable[[Profile], str], ...] = (
        _flame,
        partial(callgrind, source=firmware.source),
        speedscope,
    )
    for file, writer in zip(files, writers, strict=True):
        if file:
            write_output(file, writer(profile))
    return 0


def _flame(profile: Profile) -> str:
    return flame_graph(profile.name, profile.called)


def _only(targets: list[Target], named: tuple[str, ...]) -> Target:
    if not targets:
        what = f"{', '.join(named)} does not run under QEMU" if named else "no platform can run here"
        raise MissingError(
            f"{what}: nothing counts there",
            next_step="name a platform that runs under QEMU: --platform bare_mps2_an385",
        )
    if len(targets) > 1 and named:
        raise ConfigurationError("a profile takes one platform", next_step="name one with --platform")
    return targets[0]


def _text(profile: Profile, call: str, platform: str, firmware: Firmware, top: int) -> Iterator[str]:
    total = profile.total
    most = f" to {total + profile.spread:,}" if profile.spread else ""
    yield f"{call} on {platform}: {total:,}{most} {profile.unit}"
    if profile.estimate:
        yield f"  {profile.estimate}"
    yield ""
    yield f"  {'own':>12} {'':>6} {'with callees':>13} {'calls':>9}  function"
    functions = profile.called.rows()
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
    found = list(profile.called_lines.items())
    for line, count in found[:top]:
        yield f"  {count:>12,} {count / total:>6.1%}  {_place(line)}  {_source(firmware, line)}".rstrip()
    more = sum(count for _, count in found[top:])
    calling = total - sum(profile.called_lines.values())
    for count, what in ((more, f"{len(found) - top} more"), (calling, CALLING)):
        if count:
            yield f"  {count:>12,} {count / total:>6.1%}  {what}"


def _place(line: Line | None) -> str:
    return f"{Path(line.file).name}:{line.number}" if line else "no source line known"


def _source(firmware: Firmware, line: Line | None) -> str:
    """The line's text, if its file is on this machine."""
    lines = _lines_of(firmware, line.file) if line else []
    return lines[line.number - 1].strip() if line and line.number <= len(lines) else ""


def _lines_of(firmware: Firmware, name: str) -> list[str]:
    try:
        return firmware.source(name).read_text(errors="replace").splitlines()
    except OSError:
        return []


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
    found = [profile.image.line_at(address) for address in range(function.start, function.end)]
    own = [line for line in found if line]
    if not own:
        raise ConfigurationError(f"no source line of {name} is known", next_step="build it with -g")
    # Inlined code has files of its own.
    file = Counter(line.file for line in own).most_common(1)[0][0]
    numbers = [line.number for line in own if line.file == file]
    yield ""
    yield f"{name}, {file}"
    lines = _lines_of(firmware, file)
    for number in range(min(numbers), max(numbers) + 1):
        count = profile.lines.get(Line(file, number))
        text = lines[number - 1] if number <= len(lines) else ""
        yield f"  {f'{count:,}' if count else '':>12}  {number:>5}  {text}".rstrip()
