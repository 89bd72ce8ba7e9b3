# SPDX-License-Identifier: Apache-2.0
"""One measurement of one call: a target and a call in, a complete record out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from minrpc.client import RemoteModule
from minrpc.counters import QemuCounters, counters_for
from minrpc.counters.image import Image
from minrpc.counters.packed_code import packed_function_code
from minrpc.counters.profile import Profile, Unit, profile_call
from minrpc.cycles import core_or_reason
from minrpc.errors import ConfigurationError
from minrpc.firmware import Firmware, build
from minrpc.host.deadline import Deadline
from minrpc.library import LoadedLibrary, Sources, load
from minrpc.library.arguments import require_callable
from minrpc.names import did_you_mean, listed
from minrpc.pipeline import Device, connect
from minrpc.program.lines import Line
from minrpc.publish.provenance import about_here, commit, firmware_record, platform_facts
from minrpc.publish.run_record import CallProfile, PlatformPart, RunRecord
from minrpc.running import RunningDevice, all_counters, start
from minrpc.sizes import program_sizes
from minrpc.targets import Target
from minrpc.timing import MeasuredCode, Measurement, samples_needed
from minrpc.timing.record import TimingRecord
from minrpc.timing.text import median_text

# Samples of a request: the number that fits in the smallest device's answer.
_REPEATS_AT_ONCE: Final = 1000
_LINES: Final = 40


@dataclass(frozen=True, kw_only=True)
class CallOptions:
    """Options of a recorded call.

    number: calls in a batch at first; min_repeat_ms: batches grow until a batch takes this long.
    repeat: repeats, the samples. precision: repeats until the median is known this well (0.01 is 1 %), up to
        max_repeats.
    counters: by name, or "all"; under QEMU with exact times, always instructions. Empty where there are none.
    memory: True to measure stack, workspace and heap; None: where the device reports them.
    profile: the unit of a profile; None: no profile.
    processes: starts of the device, each with all repeats. On a host's clock one process tells no other's
        time.
    """

    number: int = 10
    repeat: int = 10
    min_repeat_ms: int = 0
    precision: float | None = None
    max_repeats: int = 1000
    counters: Sequence[str] | Literal["all"] = "all"
    memory: bool | None = None
    profile: Unit | None = None
    processes: int = 1


@dataclass(frozen=True)
class CallRecord:
    """The record of a call on one platform, and its profile and firmware, if there are such."""

    record: TimingRecord
    profile: Profile | None = None
    firmware: Firmware | None = None

    def part(self) -> PlatformPart | None:
        """The platform's data for a page; None without firmware of its own."""
        firmware = self.firmware
        if firmware is None:
            return None
        sizes = program_sizes(firmware.elf)
        return PlatformPart(
            platform=self.record.platform,
            facts={**platform_facts(firmware), "clock": str(self.record.measurement.clock)},
            profiles=[_call_profile(firmware, self.record.call, self.profile)] if self.profile else [],
            flash=sizes.grouped("flash"),
            ram=sizes.grouped("ram"),
        )


def run_of_calls(calls: Sequence[CallRecord], title: str = "") -> RunRecord:
    """The recorded calls as a run, which `write_page` shows. title: by default the first call."""
    return RunRecord(
        title=title or calls[0].record.call,
        about=about_here(),
        records=[call.record for call in calls],
        platforms=[part for part in (call.part() for call in calls) if part],
    )


def record_call(
    what: str | Target | Firmware | RunningDevice,
    function: str,
    *arguments: Any,  # noqa: ANN401 - numpy arrays and numbers
    sources: Sources | str | Path | None = None,
    options: CallOptions | None = None,
    texts: Sequence[str] = (),
    total: Deadline | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> CallRecord:
    """Measures a call on a target: times, counters, cycles, stack, heap, sizes, profile.

    function: of `sources`, or of the firmware's system library. arguments: numpy arrays, numbers.
    options: by default `CallOptions()`. texts: the arguments as the record shows them, an array as its type
        and shape, "bfloat16[8]"; by default from the values. say: shows progress.

    Raises as `start`, `load` and `measure` do.
    """
    options = options or CallOptions()
    target = Target.named(what) if isinstance(what, str) else what
    if options.processes > 1 and isinstance(target, RunningDevice):
        raise ConfigurationError("a running device is one process", next_step="give its target instead")
    once = partial(_record, target, function, arguments, sources, texts=texts, total=total, say=say)
    call = once(options=options)
    for process in range(1, options.processes):
        more = once(options=replace(options, profile=None)).record.measurement.of_process(process)
        record = replace(call.record, measurement=call.record.measurement.joined(more))
        call = replace(call, record=record)
    return call


def _record(
    target: Target | Firmware | RunningDevice,
    function: str,
    arguments: Sequence[Any],
    sources: Sources | str | Path | None,
    *,
    options: CallOptions,
    texts: Sequence[str],
    total: Deadline | None,
    say: Callable[[str], None],
) -> CallRecord:
    with ExitStack() as stack:
        running = target if isinstance(target, RunningDevice) else _started(target, options, total, stack)
        device = stack.enter_context(connect(running, total=total))
        library: RemoteModule | LoadedLibrary = device.system_lib()
        if sources is not None:
            sources = sources if isinstance(sources, Sources) else Sources.of(sources)
            library = load_function(device, sources, function, stack)
        given = [_sent(device, *pair) for pair in zip_longest(arguments, texts, fillvalue="")]
        options = _available(options, device)
        measurement = _measured(library, function, given, options, say)
        by, counters = options.profile, running.counters
        profile = profile_call(library, counters, function, given, by) if by and counters else None
    if texts:
        measurement = replace(measurement, arguments=tuple(texts))
    record = timing_record(measurement, running.target.name, running.firmware)
    return CallRecord(record, profile, running.firmware)


def timing_record(measurement: Measurement, platform: str, firmware: Firmware | None) -> TimingRecord:
    """The record of a measurement that a platform's device gave, with its firmware and the code's size."""
    if firmware is not None and not measurement.code.function_bytes:
        code = packed_function_code(Image(firmware.elf), measurement.name)
        if code:
            measurement = replace(measurement, code=MeasuredCode(code.end - code.start))
    return TimingRecord(
        platform=platform,
        measurement=measurement,
        firmware=firmware_record(firmware) if firmware else None,
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=commit(),
    )


def _sent(device: Device, value: Any, text: str) -> Any:  # noqa: ANN401 - any argument
    """An array on the device, of the type that its text begins with; any other value itself."""
    return device.array(value, text.partition("[")[0] or None) if isinstance(value, np.ndarray) else value


def _started(
    target: Target | Firmware, options: CallOptions, total: Deadline | None, stack: ExitStack
) -> RunningDevice:
    firmware = build(target) if isinstance(target, Target) and not target.attached else target
    counters = _counters(firmware, options) if isinstance(firmware, Firmware) else None
    return stack.enter_context(start(firmware, counters=counters, total=total))


def _counters(firmware: Firmware, options: CallOptions) -> QemuCounters | None:
    """Counters that QEMU needs for the options. Under wall-clock time a plugin would change the times."""
    if firmware.platform.starts != "qemu" or firmware.target.timing not in (None, "exact"):
        return None
    if set(options.counters) - {"instructions", "branches"}:
        return all_counters(firmware)
    core, reason = core_or_reason(firmware.platform) if options.profile == "cycles" else (None, "")
    return counters_for(firmware.elf, flow=True, core=core, no_cycles=reason)


def load_function(device: Device, sources: Sources, function: str, stack: ExitStack) -> LoadedLibrary:
    """The compiled library with `function`, loaded into the device until `stack` ends.

    Raises ConfigurationError if it has no such function, TypeError if this can't be called.
    """
    loaded = stack.enter_context(load(device, sources))
    if function not in loaded.functions:
        step = did_you_mean(function, loaded.functions) or f"it has {listed(loaded.functions, 12)}"
        raise ConfigurationError(f"{loaded.name} has no function {function}", next_step=step)
    require_callable(loaded[function].function)
    return loaded


def _available(options: CallOptions, device: Device) -> CallOptions:
    """The options without "all" counters and memory where this device has none of them."""
    info, counters = device.info(), device.owner.counters
    memory = "counters" in info.options if options.memory is None else options.memory
    wanted = options.counters
    if counters is not None and wanted != "all":
        wanted = tuple(dict.fromkeys(("instructions", *wanted)))
    if counters is None and wanted == "all":
        wanted = ()
    return replace(options, memory=memory, counters=wanted)


def _measured(
    library: RemoteModule | LoadedLibrary,
    function: str,
    arguments: Sequence[object],
    options: CallOptions,
    say: Callable[[str], None],
) -> Measurement:
    """Measures the requested number of repeats, or until the median is precise enough.

    Each request begins with the batch size of the request before, and at most doubles the number of repeats,
    so that all statistics together take no longer than the last.
    """
    whole: Measurement | None = None
    wanted = options.repeat
    while whole is None or len(whole.samples) < wanted:
        have = len(whole.samples) if whole else 0
        measurer = library.measure(
            function,
            number=max(sample.number for sample in whole.samples) if whole else options.number,
            repeat=min(wanted - have, _REPEATS_AT_ONCE),
            min_repeat_ms=options.min_repeat_ms,
            counters=options.counters,
            memory=bool(options.memory),
        )
        more: Measurement = measurer(*arguments)
        whole = whole.joined(more) if whole else more
        if len(whole.samples) >= wanted:
            wanted = _wanted(whole, options, say)
    return whole


def _wanted(whole: Measurement, options: CallOptions, say: Callable[[str], None]) -> int:
    """The wanted number of repeats: more than the present number until the median is known well enough."""
    have, precision = len(whole.samples), options.precision
    if precision is None or whole.summary.precision <= precision or have >= options.max_repeats:
        return have
    needed = samples_needed(whole.summary, precision)
    say(f"{have} repeats: {median_text(whole.summary)}, about {needed} needed")
    return min(max(needed, have + 1), 2 * have, options.max_repeats)


def _call_profile(firmware: Firmware, call: str, profile: Profile) -> CallProfile:
    lines = _lines(firmware, profile)
    return CallProfile(call, profile.settled, lines, profile.unit, profile.spread, profile.function)


def _lines(firmware: Firmware, profile: Profile) -> list[tuple[str, str, int]]:
    """Lines of the function and of its callees; none if no source line of these is known."""
    called = list(profile.called_lines.items())
    if not any(profile.called_lines):
        return []
    lines = [
        (place_text(line, profile), source_text(firmware, line), count) for line, count in called[:_LINES]
    ]
    rest = sum(count for _, count in called[_LINES:])
    return [*lines, (f"{len(called) - _LINES} more", "", rest)] if rest else lines


def place_text(line: Line | None, profile: Profile) -> str:
    """The line as tables show it: "scale.c:12", "scale.c:14 (skipped)"."""
    place = f"{Path(line.file).name}:{line.number}" if line else "no source line known"
    if line is None and profile.called_elsewhere:
        shared = listed(sorted(profile.called_elsewhere), 4)
        place += f", or of functions that are called from elsewhere, too: {shared}"
    return f"{place} ({profile.skipped_lines[line]})" if line in profile.skipped_lines else place


def source_text(firmware: Firmware, line: Line | None) -> str:
    """The line's text, if its file is on this machine."""
    lines = source_lines(firmware, line.file) if line else []
    return lines[line.number - 1].strip() if line and line.number <= len(lines) else ""


def source_lines(firmware: Firmware, name: str) -> list[str]:
    """The lines of a source file of the firmware, or of loaded code; none if it is not on this machine."""
    try:
        return firmware.source(name).read_text(errors="replace").splitlines()
    except OSError:
        return []
