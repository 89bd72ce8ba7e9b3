# SPDX-License-Identifier: Apache-2.0
"""`minrpc time`: a function's time on a device, with its confidence."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from minrpc.cli.call_arguments import CallArgument, call_arguments, to_device
from minrpc.cli.constant_time import add_arguments as add_constant_time_options
from minrpc.cli.constant_time import constant_time, trials_from
from minrpc.cli.json_output import STDOUT, add_json_option, write_json
from minrpc.cli.selected import selected
from minrpc.cli.source_options import (
    add_build_options,
    add_call_options,
    load_with,
    sources_from,
    told_if_unfit,
)
from minrpc.cli.timing_files import add_record, read_records
from minrpc.client import RemoteModule
from minrpc.counters.packed_code import packed_function_code
from minrpc.errors import ConfigurationError, RemoteError
from minrpc.firmware import Firmware
from minrpc.host.deadline import Deadline
from minrpc.host.files import is_special
from minrpc.library import LoadedLibrary
from minrpc.pipeline import Device, connect
from minrpc.program.compiler import Compiler
from minrpc.publish.provenance import code_compiler, firmware_record
from minrpc.reports.figures import check_target
from minrpc.running import RunningDevice, start
from minrpc.targets import Target
from minrpc.targets.options import add_device_options, options_from, split_names
from minrpc.timing import Measurement, samples_needed
from minrpc.timing.plot import draw_samples
from minrpc.timing.record import TimingRecord, content
from minrpc.timing.side_by_side import side_by_side
from minrpc.timing.text import record_text
from minrpc.timing.units import parse_percent

# Samples of a request: the number that fits in the smallest device's answer.
_REPEATS_AT_ONCE: Final = 1000


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
    add("--net", action="store_true", help="subtract the overhead of measuring, itself measured")
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
    plan = call_arguments(arguments.function, arguments.arg, arguments.shape, arguments.dtype)
    precision = _precision(arguments)
    _check_numbers(arguments)
    if arguments.plot:
        check_target(arguments.plot)
    if arguments.json and arguments.json != STDOUT and not is_special(arguments.json):
        read_records(arguments.json, missing=[])
    selection = selected(arguments)
    total = Deadline("time", options.total_timeout_s)
    if not arguments.constant_time and (arguments.secret or arguments.inputs):
        raise ConfigurationError(
            "--secret and --inputs are for --constant-time", next_step="add --constant-time"
        )
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
    sources = sources_from(arguments, arguments.source) if arguments.source else None
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
    numbers = {"number": arguments.number, "repeat": arguments.repeat, "max_repeats": arguments.max_repeats}
    for name, value in numbers.items():
        if value < 1:
            message = f"--{name.replace('_', '-')} is at least 1, not {value}"
            raise ConfigurationError(message, next_step="leave it out")
    if arguments.min_repeat_ms < 0:
        raise ConfigurationError("--min-repeat-ms is at least 0", next_step="leave it out")


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
        self._target = target
        self._plan = plan
        self._precision = precision
        self._total = total
        self.record: TimingRecord | None = None
        self.shown: TimingRecord | None = None
        self._code: Mapping[str, int] = {}
        self._compiler = Compiler("", "")
        self._function_bytes = 0

    def __call__(self) -> int:
        with ExitStack() as stack:
            running = stack.enter_context(self._start())
            device = stack.enter_context(connect(running, total=self._total))
            library = self._library(device, stack)
            with told_if_unfit(self._given.source):
                measurement = self._measure(library, to_device(device, self._plan))
            self._function_bytes = self._size_of_code(library, running.firmware)
        return self._report(measurement, running.firmware)

    def _library(self, device: Device, stack: ExitStack) -> RemoteModule | LoadedLibrary:
        """The library with the function: linked into the firmware, or loaded for this measurement."""
        if not self._given.source:
            return device.system_lib()
        sources = sources_from(self._given, self._given.source)
        loaded = load_with(self._given.function, device, sources, stack)
        self._code, self._compiler = loaded.own_sizes, code_compiler(loaded.compiled)
        return loaded

    def _size_of_code(self, library: RemoteModule | LoadedLibrary, firmware: Firmware | None) -> int:
        """Code size of the function itself, in bytes; 0 if unknown."""
        name = self._given.function
        if isinstance(library, LoadedLibrary):
            return library[name].size
        code = packed_function_code(firmware.elf, name) if firmware else None
        return code.end - code.start if code else 0

    def _start(self) -> RunningDevice:
        if not self._target.attached:
            say(f"{self._target.name}: firmware")
        counters = bool(self._given.counters) and self._target.platform.starts == "qemu"
        target = self._target.changed(cmake_options=self._given.cmake_option, counters=counters)
        return start(target, total=self._total)

    def _measure(self, lib: RemoteModule | LoadedLibrary, args: list[object]) -> Measurement:
        """Measure the requested number of repeats, or until the median is precise enough.

        Each request begins with the batch size of the request before, and at most doubles the number of
        repeats, so that all statistics together take no longer than the last.
        """
        whole: Measurement | None = None
        wanted = self._given.repeat
        while True:
            have = len(whole.samples) if whole else 0
            number = max(sample.number for sample in whole.samples) if whole else self._given.number
            measurer = lib.measure(
                self._given.function,
                number=number,
                repeat=min(wanted - have, _REPEATS_AT_ONCE),
                min_repeat_ms=self._given.min_repeat_ms,
                counters=counter_names(self._given.counters),
                memory=self._given.memory,
            )
            more: Measurement = measurer(*args)
            whole = whole.joined(more) if whole else more
            if len(whole.samples) >= wanted:
                wanted = self._wanted(whole)
            if len(whole.samples) >= wanted:
                return whole

    def _wanted(self, whole: Measurement) -> int:
        """The wanted number of repeats: more than the present number until the median is known well
        enough."""
        have = len(whole.samples)
        most: int = self._given.max_repeats
        if self._precision is None or whole.summary.precision <= self._precision or have >= most:
            return have
        needed = samples_needed(whole.summary, self._precision)
        say(f"{have} repeats: {_known(whole)}, about {needed} needed")
        return min(max(needed, have + 1), 2 * have, most)

    def _report(self, measurement: Measurement, firmware: Firmware | None) -> int:
        record = self._record(measurement, firmware)
        shown = measurement.net() if self._given.net else measurement
        self.record, self.shown = record, self._record(shown, firmware)
        print(record_text(self.shown))
        if self._given.json and self._given.json != STDOUT:
            add_record(self._given.json, record)
        if self._given.plot:
            draw_samples(self.shown, self._given.plot)
        return max(self._unreached(measurement), self._out_of_bounds(measurement))

    def _record(self, measurement: Measurement, firmware: Firmware | None) -> TimingRecord:
        return TimingRecord(
            platform=self._target.name,
            arguments=tuple(str(item) for item in self._plan),
            measurement=measurement,
            firmware=firmware_record(firmware, symbols=bool(self._given.json)) if firmware else None,
            code=self._code,
            code_compiler=self._compiler.name,
            code_flags=self._compiler.flags,
            function_bytes=self._function_bytes,
            when=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def _unreached(self, measurement: Measurement) -> int:
        if self._precision is None or measurement.summary.precision <= self._precision:
            return 0
        needed = samples_needed(measurement.summary, self._precision)
        repeats = f"{len(measurement.samples)} repeats"
        say(f"minrpc: --until {self._given.until} not reached in {repeats}: {_known(measurement)};")
        say(f"  next: about {needed} repeats would do: --max-repeats {needed}, or a longer --min-repeat-ms")
        return 1

    def _out_of_bounds(self, measurement: Measurement) -> int:
        bounds = self._target.platform.time_bounds
        seconds = measurement.clock.seconds(measurement.summary.median)
        broken = [
            bound for bound in bounds if bound.function == measurement.name and not bound.holds(seconds)
        ]
        for bound in broken:
            say(f"minrpc: {measurement.name} took {seconds:.3g} s, outside {bound} of {self._target.name}")
        return 1 if broken and self._given.strict_timing else 0


def counter_names(counters: str | None) -> Sequence[str] | Literal["all"]:
    """The names in the option `--counters`."""
    return "all" if counters == "all" else split_names([counters or ""])


def _known(measurement: Measurement) -> str:
    return f"the median is known to {measurement.summary.precision * 100:.2g} %"
