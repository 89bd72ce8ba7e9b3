# SPDX-License-Identifier: Apache-2.0
"""Stored measurements as JSON, with the facts that decide whether two may be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

from minrpc.reports.document import document, to_text
from minrpc.reports.document import parse as parse_document
from minrpc.timing.clock import DeviceClock
from minrpc.timing.measurement import Measurement, MemoryUse, Overhead, Sample

COMMAND: Final = "time"
"""The command that writes this JSON."""


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
    symbols: Mapping[str, tuple[int, int]] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True)
class TimingRecord:
    """One function, called with one set of arguments, on one platform.

    arguments: types and shapes, or values, as the command line takes them.
    firmware: None for a board, whose firmware is its own.
    code: bytes by symbol of the code loaded for the call, if any.
    code_compiler, code_flags: compiler and flags of that code, from its debug information and its caller.
    function_bytes: of the function itself, without its callees; 0 where that is not known.
    when: ISO 8601, UTC.
    """

    platform: str
    arguments: tuple[str, ...]
    measurement: Measurement
    firmware: FirmwareRecord | None = None
    code: Mapping[str, int] = field(default_factory=dict, hash=False)
    code_compiler: str = ""
    code_flags: str = ""
    function_bytes: int = 0
    when: str = ""

    @property
    def call(self) -> str:
        """The call as reports write it: "add(float32[1024], float32[1024])"."""
        return f"{self.measurement.name}({', '.join(self.arguments)})"

    @property
    def key(self) -> tuple[str, str]:
        """The key by which two records are compared."""
        return self.platform, self.call

    def to_json(self) -> dict[str, Any]:
        """The record's content for a file."""
        item = self.measurement
        return {
            "function": item.name,
            "arguments": list(self.arguments),
            "platform": self.platform,
            "clock": item.clock.to_json(),
            "overhead_cycles": asdict(item.overhead),
            "summary": _summary(item),
            "samples": [_sample(sample) for sample in item.samples],
            "memory_bytes": asdict(item.memory) if item.memory else None,
            "counter_groups": [list(group) for group in item.groups],
            "doubtful_counters": list(item.doubtful),
            "estimate": item.estimate,
            "firmware": _firmware(self.firmware) if self.firmware else None,
            "code_bytes": dict(self.code),
            "code_compiler": self.code_compiler,
            "code_flags": self.code_flags,
            "function_bytes": self.function_bytes,
            "when": self.when,
        }

    @classmethod
    def from_json(
        cls, entry: dict[str, Any], symbols: Mapping[str, Mapping[str, Sequence[int]]] | None = None
    ) -> Self:
        """Reads a document of `to_json`. Raises KeyError and TypeError for other documents.

        symbols: of each firmware, by its content's hash.
        """
        measurement = Measurement(
            name=entry["function"],
            clock=DeviceClock.from_json(entry["clock"]),
            samples=tuple(Sample(**sample) for sample in entry["samples"]),
            overhead=Overhead(**entry["overhead_cycles"]),
            memory=MemoryUse(**entry["memory_bytes"]) if entry.get("memory_bytes") else None,
            groups=tuple(tuple(group) for group in entry.get("counter_groups", ())),
            doubtful=tuple(entry.get("doubtful_counters", ())),
            estimate=entry.get("estimate", ""),
        )
        if not measurement.samples:
            raise TypeError("a measurement without samples")
        firmware = dict(entry["firmware"]) if entry["firmware"] else None
        if firmware:
            firmware |= {"flash": firmware.pop("flash_bytes"), "ram": firmware.pop("ram_bytes")}
            known = (symbols or {}).get(firmware["content_hash"], {})
            firmware["symbols"] = {name: (flash, ram) for name, (flash, ram) in known.items()}
        return cls(
            platform=entry["platform"],
            arguments=tuple(entry["arguments"]),
            measurement=measurement,
            firmware=FirmwareRecord(**firmware) if firmware else None,
            code=dict(entry.get("code_bytes", {})),
            code_compiler=entry.get("code_compiler", ""),
            code_flags=entry.get("code_flags", ""),
            function_bytes=entry.get("function_bytes", 0),
            when=entry["when"],
        )


def _summary(measurement: Measurement) -> dict[str, Any]:
    """The summary for other programs; this package computes it from the samples."""
    summary = measurement.summary
    interval = summary.interval
    return {
        "median_s": measurement.clock.seconds(summary.median),
        "median_cycles": summary.median,
        "mad_cycles": summary.mad,
        "mean_cycles": summary.mean,
        "std_cycles": summary.std,
        "interval_cycles": [interval.low, interval.high] if interval else None,
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
        "cycles": sample.cycles,
        "number": sample.number,
        "batches": sample.batches,
        "coarse": sample.coarse,
    }
    return {**fields, "columns": dict(sample.columns)} if sample.columns else fields


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


def from_content(found: Mapping[str, Any]) -> list[TimingRecord]:
    """The records of a `content`. Raises ValueError with the reason if it is damaged."""
    try:
        symbols = found.get("symbol_bytes", {})
        return [TimingRecord.from_json(entry, symbols) for entry in found["timings"]]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"an entry in it is damaged: {error}") from error


def merged(kept: Sequence[TimingRecord], new: TimingRecord) -> list[TimingRecord]:
    """`kept` with `new` in place of the earlier record of the same call, or at the end."""
    others = [record for record in kept if record.key != new.key]
    index = next((i for i, record in enumerate(kept) if record.key == new.key), len(others))
    return [*others[:index], new, *others[index:]]
