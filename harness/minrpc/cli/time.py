# SPDX-License-Identifier: Apache-2.0
"""`minrpc time`: a function's time on a device, with its confidence."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

from minrpc.cli.call_arguments import CallArgument
from minrpc.cli.constant_time import add_arguments as add_constant_time_options, constant_time, trials_from
from minrpc.cli.json_output import STDOUT, add_json_option, write_json
from minrpc.cli.recorded import recorded
from minrpc.cli.selected import require_one, selected
from minrpc.cli.source_options import (
    add_build_options,
    add_call_options,
    given_sources,
    plan_of,
    told_if_unfit,
)
from minrpc.cli.timing_files import add_record, read_records
from minrpc.cli.unused_options import CYCLE_OPTIONS, refuse
from minrpc.errors import ConfigurationError, RemoteError
from minrpc.host.deadline import Deadline
from minrpc.host.files import is_special
from minrpc.publish.recording import CallOptions
from minrpc.reports.figures import check_target
from minrpc.targets import Target
from minrpc.targets.options import add_device_options, options_from, split_names
from minrpc.timing import Measurement, samples_needed
from minrpc.timing.plot import draw_samples
from minrpc.timing.record import TimingRecord, content
from minrpc.timing.side_by_side import side_by_side
from minrpc.timing.text import median_text, record_text, units_text
from minrpc.timing.units import parse_percent

_FOR_TIMES: Final = (
    *("number", "repeat", "min-repeat-ms", "until", "max-repeats", "processes", "net", "counters", "memory"),
    *("json", "plot", "strict-timing"),
)
"""The options of which `--constant-time` makes no use."""


def say(line: str) -> None:
    """Print progress and failures on standard error, apart from the result."""
    print(line, file=sys.stderr, flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("function", metavar="FUNC", help="a function of the firmware's system library, or of --source")
    add_call_options(add)
    add("--number", type=int, default=10, metavar="N", help="calls in a batch at first (default 10)")
    add("--repeat", type=int, default=10, metavar="N", help="repeats, the samples (default 10)")
    add(
        "--min-repeat-ms",
        type=int,
        default=0,
        metavar="MS",
        help="grow batches until a batch takes this long",
    )
    add("--until", metavar="PERCENT", help="repeat until the median is known this well, such as 1%%")
    add(
        "--max-repeats",
        type=int,
        default=1000,
        metavar="N",
        help="number of repeats at which --until gives up (default 1000)",
    )
    add("--processes", type=int, default=1, metavar="N", help="starts of the device, each with all repeats")
    add(
        "--net",
        action="store_true",
        help="show figures without the overhead of measuring, itself measured",
    )
    add(
        "--counters",
        metavar="all|NAME[,NAME...]",
        help="further counters: under QEMU instructions, branches, loads, stores, cache_misses, ...",
    )
    add("--memory", action="store_true", help="also measure the stack, workspace and heap of a call")
    add_constant_time_options(add)
    add_build_options(add)
    add_json_option(add, "keep the result in this file, beside the results of other calls")
    add("--plot", type=Path, metavar="FILE", help="draw the samples, as PNG, SVG or PDF")
    add("--strict-timing", action="store_true", help="exit with 1 where a time is outside the board's bounds")
    add_device_options(add)


def main(arguments: argparse.Namespace) -> int:
    """Measure on each platform and show; 1 if --until was not reached, or if a bound that counts was
    broken."""
    arguments.json_keeps = arguments.json != STDOUT  # A failure does not replace the file's content.
    options = options_from(vars(arguments))
    plan = plan_of(arguments)
    precision = _precision(arguments)
    _check_numbers(arguments)
    _refuse_unused(arguments)
    if arguments.json and arguments.json != STDOUT and not is_special(arguments.json):
        read_records(arguments.json, missing=[])
    selection = selected(arguments)
    if arguments.plot:
        require_one(selection.targets, "--plot takes")
        check_target(arguments.plot)
    if arguments.processes > 1 and any(target.attached for target in selection.targets):
        message = "--processes is for devices that are started here: a board is not started anew"
        raise ConfigurationError(message, next_step="leave it out")
    total = Deadline("time", options.total_timeout_s)
    if arguments.constant_time:
        targets = [target.changed(cmake_options=arguments.cmake_option) for target in selection.targets]
        return max([_constant_time(arguments, target, plan, total) for target in targets])
    runs = [Run(arguments, target, plan, precision, total) for target in selection.targets]
    try:
        status = max([run() for run in runs])
    except RemoteError as error:
        if not plan:
            error.next_step = (
                "give each argument with --arg, such as --arg 'float32[1024]' --arg 3; "
                "name the file of a function of your own with --source"
            )
        raise
    records = [run.record for run in runs if run.record]
    if len(records) > 1 and arguments.json != STDOUT:
        print(f"\n{side_by_side([run.shown for run in runs if run.shown])}")
    if arguments.json == STDOUT:
        write_json(arguments, content(records), passed=status == 0)
    return status


def _constant_time(
    arguments: argparse.Namespace, target: Target, plan: list[CallArgument], total: Deadline
) -> int:
    trials = trials_from(arguments.secret, arguments.inputs, arguments.tries)
    sources = given_sources(arguments)
    with told_if_unfit(arguments.source):
        result = constant_time(target, arguments.function, plan, trials, total, sources)
    print(f"{target.name}: {result}")
    return 0 if result else 1


def _precision(arguments: argparse.Namespace) -> float | None:
    if arguments.until is None:
        return None
    try:
        return parse_percent(arguments.until)
    except ValueError as error:
        raise ConfigurationError(f"--until {error}", next_step="write 1%, or 0.5%") from error


def _check_numbers(arguments: argparse.Namespace) -> None:
    names = ("number", "repeat", "max_repeats", "processes")
    numbers = {name: getattr(arguments, name) for name in names}
    for name, value in numbers.items():
        if value < 1:
            message = f"--{name.replace('_', '-')} is at least 1, not {value}"
            raise ConfigurationError(message, next_step="leave it out")
    if arguments.min_repeat_ms < 0:
        raise ConfigurationError("--min-repeat-ms is at least 0", next_step="leave it out")


def _refuse_unused(arguments: argparse.Namespace) -> None:
    if arguments.constant_time:
        refuse(arguments, _FOR_TIMES, "with --constant-time")
    else:
        secrets = ("secret", "inputs", "tries")
        refuse(arguments, secrets, "without --constant-time", "add --constant-time")
    if arguments.until is None:
        refuse(arguments, ["max-repeats"], "without --until", "add --until 1%")
    if not {"all", "cycles"} & {*split_names([arguments.counters or ""])}:
        refuse(arguments, CYCLE_OPTIONS, "without the counter of cycles", "add --counters cycles")


class Run:
    """The measurement on one target; calling it makes it and gives the exit status."""

    def __init__(
        self,
        arguments: argparse.Namespace,
        target: Target,
        plan: list[CallArgument],
        precision: float | None,
        total: Deadline,
    ) -> None:
        self._given = arguments
        self._target = target.changed(cmake_options=arguments.cmake_option)
        self._plan = plan
        self._precision = precision
        self._total = total
        self.record: TimingRecord | None = None
        self.shown: TimingRecord | None = None

    def __call__(self) -> int:
        if not self._target.attached:
            say(f"{self._target.name}: firmware")
        given = self._given
        options = CallOptions(
            number=given.number,
            repeat=given.repeat,
            min_repeat_ms=given.min_repeat_ms,
            precision=self._precision,
            max_repeats=given.max_repeats,
            counters=counter_names(given.counters),
            memory=given.memory,
            processes=given.processes,
        )
        self.record = record = recorded(given, self._target, self._plan, options, self._total, say).record
        shown = replace(record, measurement=record.measurement.net()) if given.net else record
        self.shown = shown
        print(record_text(shown))
        if given.json and given.json != STDOUT:
            add_record(given.json, record)
        if given.plot:
            draw_samples(shown, given.plot)
        precise, within = self._is_precise(record.measurement), self._is_within_bounds(record.measurement)
        return 0 if precise and within else 1

    def _is_precise(self, measurement: Measurement) -> bool:
        """True if --until was reached; else says how many repeats or processes would do."""
        summary = measurement.summary
        if self._precision is None or summary.precision <= self._precision:
            return True
        needed = samples_needed(summary, self._precision)
        units, known = units_text(measurement), median_text(summary)
        advice = f"--max-repeats {needed}, or a longer --min-repeat-ms"
        if measurement.summarized_by == "process":
            advice = f"--processes {needed}"
        say(f"minrpc: --until {self._given.until} not reached in {summary.count} {units}: {known};")
        say(f"  next: about {needed} {units} would do: {advice}")
        return False

    def _is_within_bounds(self, measurement: Measurement) -> bool:
        """Says the bounds that the time breaks; False if --strict-timing makes them a failure."""
        bounds = self._target.platform.time_bounds
        seconds = measurement.clock.seconds(measurement.summary.median)
        broken = [
            bound for bound in bounds if bound.function == measurement.name and not bound.holds(seconds)
        ]
        for bound in broken:
            say(f"minrpc: {measurement.name} took {seconds:.3g} s, outside {bound} of {self._target.name}")
        return not (broken and self._given.strict_timing)


def counter_names(counters: str | None) -> Sequence[str] | Literal["all"]:
    """The names in the option `--counters`."""
    return "all" if counters == "all" else split_names([counters or ""])
