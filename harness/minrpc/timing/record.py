# SPDX-License-Identifier: Apache-2.0
"""Stored measurements as JSON, with the facts that decide whether two may be compared."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Self, TypeVar

from minrpc.reports.document import document, parse as parse_document, to_text
from minrpc.reports.json_values import decoded
from minrpc.timing.clock import DeviceClock
from minrpc.timing.measurement import MeasuredCode, Measurement, MemoryUse, Overhead, Sample

COMMAND: Final = "time"
"""The command that writes this JSON."""

_Symbols = Mapping[str, tuple[int, int]]
"""Bytes of flash and RAM by symbol."""
_MOST_SHIFT: Final = 30
_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirmwareRecord:
    """The firmware that was measured.

    content_hash: of its sources, compiler and options.
    compiler, flags: from the firmware's debug information; "" without it.
    flash, ram: bytes.
    floating_point: the computing unit: "software", "FPU", "FPU, single precision"; "" if unknown.
    symbols: flash and RAM by symbol, if they were read.
    """

    content_hash: str
    compiler: str
    flags: str
    flash: int
    ram: int
    floating_point: str = ""
    symbols: _Symbols = field(default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True)
class TimingRecord:
    """One function, called with one set of arguments, on one platform.

    firmware: None for a board, whose firmware is its own.
    when: ISO 8601, UTC. commit: of the user's work tree, with "+" if a file differs from it; "" if unknown.
    """

    platform: str
    measurement: Measurement
    firmware: FirmwareRecord | None = None
    when: str = ""
    commit: str = ""

    @property
    def call(self) -> str:
        """The call as reports write it: "add(float32[1024], float32[1024])"."""
        return f"{self.measurement.name}({', '.join(self.measurement.arguments)})"

    @property
    def code(self) -> MeasuredCode:
        """The function's machine code."""
        return self.measurement.code

    @property
    def key(self) -> tuple[str, str]:
        """The key by which two records are compared."""
        return self.platform, self.call

    def to_json(self) -> dict[str, Any]:
        """The record's content for a file."""
        item = self.measurement
        return {
            "function": item.name,
            "arguments": list(item.arguments),
            "platform": self.platform,
            "clock": item.clock.to_json(),
            "overhead_ticks": {name: getattr(item.overhead, name) for name in ("timer", "call", "step")},
            "overhead_counters": {name: list(both) for name, both in item.overhead.counters.items()},
            "net": item.subtracted,
            "summary": _summary(item),
            "samples": [_sample(sample) for sample in item.samples],
            "memory_bytes": asdict(item.memory) if item.memory else None,
            "counter_groups": [list(group) for group in item.groups],
            "doubtful_counters": list(item.doubtful),
            "estimate": item.estimate,
            "inclusive": dict(item.inclusive),
            "firmware": _firmware(self.firmware) if self.firmware else None,
            "code_bytes": dict(item.code.symbols),
            "code_compiler": item.code.compiler,
            "code_flags": item.code.flags,
            "function_bytes": item.code.function_bytes,
            "when": self.when,
            "commit": self.commit,
        }

    @classmethod
    def from_json(cls, entry: object, symbols: Mapping[str, _Symbols] | None = None) -> Self:
        """Reads a document of `to_json`. Raises ValueError with the key for other documents.

        symbols: of each firmware, by its content's hash.
        """
        return cls._of(decoded(_Entry, entry), symbols or {})

    @classmethod
    def _of(cls, entry: _Entry, symbols: Mapping[str, _Symbols]) -> Self:
        measurement = Measurement(
            name=entry.function,
            clock=entry.clock,
            samples=entry.samples,
            overhead=replace(entry.overhead_ticks, counters=entry.overhead_counters),
            subtracted=entry.net,
            memory=entry.memory_bytes,
            groups=entry.counter_groups,
            doubtful=entry.doubtful_counters,
            estimate=entry.estimate,
            inclusive=entry.inclusive,
            arguments=entry.arguments,
            code=MeasuredCode(entry.function_bytes, entry.code_bytes, entry.code_compiler, entry.code_flags),
        )
        return cls(
            platform=entry.platform,
            measurement=measurement,
            firmware=entry.firmware.record(symbols) if entry.firmware else None,
            when=entry.when,
            commit=entry.commit,
        )


@dataclass(frozen=True, kw_only=True)
class _FirmwareEntry:
    content_hash: str
    compiler: str
    flags: str
    flash_bytes: int
    ram_bytes: int
    floating_point: str = ""

    def record(self, symbols: Mapping[str, _Symbols]) -> FirmwareRecord:
        return FirmwareRecord(
            content_hash=self.content_hash,
            compiler=self.compiler,
            flags=self.flags,
            flash=self.flash_bytes,
            ram=self.ram_bytes,
            floating_point=self.floating_point,
            symbols=symbols.get(self.content_hash, {}),
        )


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """The keys of a record in a file."""

    function: str
    arguments: tuple[str, ...]
    platform: str
    clock: DeviceClock
    overhead_ticks: Overhead
    overhead_counters: Mapping[str, tuple[float, float]]
    net: bool = False
    samples: tuple[Sample, ...]
    memory_bytes: MemoryUse | None = None
    counter_groups: tuple[tuple[str, ...], ...] = ()
    doubtful_counters: tuple[str, ...] = ()
    estimate: str = ""
    inclusive: Mapping[str, float] = field(default_factory=dict)
    firmware: _FirmwareEntry | None
    code_bytes: Mapping[str, int] = field(default_factory=dict)
    code_compiler: str = ""
    code_flags: str = ""
    function_bytes: int = 0
    when: str
    commit: str = ""

    def __post_init__(self) -> None:
        if not self.samples:
            raise ValueError("it has no samples")
        if any(sample.columns.keys() != self.samples[0].columns.keys() for sample in self.samples):
            raise ValueError("the counters of its samples differ")
        if not self.clock.ticks_hz or (self.clock.icount_shift or 0) > _MOST_SHIFT:
            raise ValueError(
                f"its clock has {self.clock.ticks_hz} Hz, icount shift {self.clock.icount_shift}"
            )


@dataclass(frozen=True)
class _Content:
    """The keys of a file."""

    timings: Sequence[_Entry]
    symbol_bytes: Mapping[str, _Symbols] = field(default_factory=dict)


def _summary(measurement: Measurement) -> dict[str, Any]:
    """The summary for other programs; this package computes it from the samples."""
    summary = measurement.summary
    interval = summary.interval
    return {
        "median_s": measurement.clock.seconds(summary.median),
        "median_ticks": summary.median,
        "mad_ticks": summary.mad,
        "mean_ticks": summary.mean,
        "std_ticks": summary.std,
        "interval_ticks": [interval.low, interval.high] if interval else None,
        "confidence_ratio": interval.confidence if interval else None,
    }


def _firmware(firmware_record: FirmwareRecord) -> dict[str, Any]:
    return {
        "content_hash": firmware_record.content_hash,
        "compiler": firmware_record.compiler,
        "flags": firmware_record.flags,
        "flash_bytes": firmware_record.flash,
        "ram_bytes": firmware_record.ram,
        "floating_point": firmware_record.floating_point,
    }


def _sample(sample: Sample) -> dict[str, Any]:
    """The result of `asdict` in a tenth of its time: a record may have a million samples."""
    fields = {
        "ticks": sample.ticks,
        "number": sample.number,
        "batches": sample.batches,
        "coarse": sample.coarse,
    }
    process = {"process": sample.process} if sample.process else {}
    return {**fields, **process, **({"columns": dict(sample.columns)} if sample.columns else {})}


def content(records: Iterable[TimingRecord]) -> dict[str, Any]:
    """The document's content: each record, and the symbols of each firmware once."""
    records = list(records)
    known = (record.firmware for record in records if record.firmware is not None)
    symbols = {item.content_hash: dict(item.symbols) for item in known if item.symbols}
    return {"timings": [record.to_json() for record in records], "symbol_bytes": symbols}


def dump(records: Iterable[TimingRecord]) -> str:
    """The records as the text of a file."""
    return to_text(document(COMMAND, content(records)))


def parse(text: str, *others: str) -> list[TimingRecord]:
    """The records in the text of a file that `minrpc time` wrote, or a command in `others`.

    Raises ValueError with the reason for any other text.
    """
    return from_content(parse_document(text, COMMAND, *others))


def from_content(content: Mapping[str, Any]) -> list[TimingRecord]:
    """The records of a `content`. Raises ValueError with the key if it is damaged."""
    read = decoded(_Content, content)
    return [TimingRecord._of(entry, read.symbol_bytes) for entry in read.timings]


def merged(kept: Sequence[TimingRecord], new: TimingRecord) -> list[TimingRecord]:
    """`kept` with `new` in place of the earlier record of the same call, or at the end."""
    others = [record for record in kept if record.key != new.key]
    index = next((i for i, record in enumerate(kept) if record.key == new.key), len(others))
    return [*others[:index], new, *others[index:]]


def newest(records: Iterable[TimingRecord], key: Callable[[TimingRecord], _Key]) -> dict[_Key, TimingRecord]:
    """The newest record of each key, at the place of the key's first; of several in one second, the last."""
    by_key: dict[_Key, TimingRecord] = {}
    for record in records:
        if record.when >= by_key.setdefault(key(record), record).when:
            by_key[key(record)] = record
    return by_key


def newest_firmwares(records: Iterable[TimingRecord]) -> dict[str, FirmwareRecord]:
    """The firmware that was measured last, by platform."""
    known = newest((record for record in records if record.firmware), lambda record: record.platform)
    return {platform: record.firmware for platform, record in known.items() if record.firmware}
