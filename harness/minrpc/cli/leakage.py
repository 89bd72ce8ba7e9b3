# SPDX-License-Identifier: Apache-2.0
"""`minrpc leakage`: whether registers of a core's RTL show a function's secret."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from minrpc.check.leakage import THRESHOLD, Inputs, Leakage, leakage
from minrpc.cli.call_arguments import parse_argument, to_host
from minrpc.cli.json_output import add_json_option, write_json
from minrpc.cli.selected import selected
from minrpc.cli.source_options import add_source_options, load_with, sources_from
from minrpc.errors import ConfigurationError
from minrpc.names import did_you_mean
from minrpc.pipeline import connect
from minrpc.rtl import CallTrace
from minrpc.running import RunningDevice, start
from minrpc.targets.options import START_OPTIONS, add_device_options, split_names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("source", type=Path, metavar="FILE", help="the C file")
    add("function", metavar="FUNC", help="a function of the sources")
    add("--arg", action="append", default=[], metavar="ARG", help="uint8[16]: drawn anew for each call; or 3")
    several: dict[str, Any] = {"action": "append", "default": [], "metavar": "NAME[,NAME...]"}
    add("--secret", **several, help="parameters that are the secret, by name or by number from 1 on")
    add("--shares", **several, help="parameters whose two halves' exclusive or is the secret")
    add("--traces", type=int, default=1000, metavar="N", help="calls, half of them with the fixed secret")
    add_source_options(add)
    add_json_option(add)
    add_device_options(add, START_OPTIONS)


def main(arguments: argparse.Namespace) -> int:
    """Show the lines that leak, on each platform; 1 if there is one."""
    sources = sources_from(arguments, [arguments.source])
    given = to_host([parse_argument(text) for text in arguments.arg])
    results: list[dict[str, object]] = []
    for target in selected(arguments).targets:
        with ExitStack() as stack:
            running = stack.enter_context(start(target))
            device = stack.enter_context(connect(running))
            function = load_with(arguments.function, device, sources, stack)[arguments.function]
            names = [parameter.name for parameter in function.function.type.parameters]
            inputs = Inputs(given, _positions(arguments.secret, names), _positions(arguments.shares, names))
            measured = leakage(_recorded(running, function), inputs, arguments.traces)
            results.append({"platform": target.name, **_shown(function, running, measured)})
    passed = all(not result["lines"] for result in results)
    write_json(arguments, {"leakage": results}, passed=passed)
    return 0 if passed else 1


def _positions(given: list[str], names: list[str]) -> frozenset[int]:
    return frozenset(_position(name, names) for name in split_names(given))


def _position(name: str, names: list[str]) -> int:
    if name in names:
        return names.index(name)
    if name.isdecimal() and 0 < int(name) <= len(names):
        return int(name) - 1
    step = did_you_mean(name, names) or f"there is {', '.join(names)}"
    raise ConfigurationError(f"the function has no parameter {name!r}", next_step=step)


def _recorded(running: RunningDevice, function: Any) -> Any:  # noqa: ANN401 - a C function
    """The function, whose call gives its trace."""
    recording = running.recording
    if recording is None:
        raise ConfigurationError(f"{running.name} is not RTL", next_step="name an RTL platform: rtl_ibex")
    recording.watch(function.address)

    def call(*values: object) -> CallTrace:
        function(*values)
        return recording.last()

    return call


def _shown(function: Any, running: RunningDevice, leakage: Leakage) -> dict[str, object]:  # noqa: ANN401 - as above
    """Prints the result, and gives it for the document."""
    lines: dict[str, float] = {}
    for cycle in leakage.leaks:
        place = running.place_of(int(leakage.pc[cycle]))
        lines[place] = max(lines.get(place, 0.0), abs(float(leakage.t[cycle])))
    print(f"{function.prototype} on {running.name}")
    size = f"{leakage.traces:,} traces of {len(leakage.t):,} cycles"
    print(f"  {size}, simulated: changed register bits, no noise")
    largest = abs(float(leakage.t[leakage.worst]))
    where = running.place_of(int(leakage.pc[leakage.worst]))
    verdict = f"{'a' if lines else 'no'} leak: the threshold is"
    print(f"  largest |t| {largest:.1f}, in {where}; {verdict} {THRESHOLD}")
    for place, t in sorted(lines.items(), key=lambda item: -item[1]):
        print(f"  |t| {t:6.1f}  {place}")
    told = {place: _finite(t) for place, t in lines.items()}
    return {"traces": leakage.traces, "cycles": len(leakage.t), "largest_t": _finite(largest), "lines": told}


def _finite(number: float) -> float:
    return float(np.nan_to_num(number))
