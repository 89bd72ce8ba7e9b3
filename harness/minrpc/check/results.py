# SPDX-License-Identifier: Apache-2.0
"""The results of a check, as tables and as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from math import isfinite
from typing import Any, Final

from minrpc.check.checking import Checked, CheckOutcome
from minrpc.reports.document import failure_json
from minrpc.reports.markdown import table
from minrpc.timing.units import count, quantity

_HEAD: Final = ("platform", "call", "error", "mean", "std")
_FIRMWARE_HEAD: Final = ("platform", "flash", "RAM", "boot to session", "time", "result")


def report_text(checked: Sequence[Checked]) -> str:
    """Both tables, of 80 columns, and the report of each failure. The JSON document has all statistics."""
    rows = [_row(item, outcome) for item in checked for outcome in item.outcomes]
    parts = [table(_HEAD, rows, right=frozenset({2, 3, 4}))] if rows else []
    parts.append(table(_FIRMWARE_HEAD, map(_firmware_row, checked), right=frozenset({1, 2, 3})))
    parts += [
        f"{outcome.target.name}: {outcome.failure}" for outcome in checked if outcome.failure is not None
    ]
    return "\n\n".join(parts)


def to_json(checked: Sequence[Checked]) -> dict[str, Any]:
    """The results as JSON; see docs/json.md."""
    return {"platforms": [_platform_json(outcome) for outcome in checked]}


def error_text(outcome: CheckOutcome) -> str:
    """The value with its unit."""
    unit = " ULP" if outcome.case.dtype.kind == "f" else ""
    verdict = "" if outcome.case.passes(outcome.error) else " WRONG"
    return f"{outcome.error:.3g}{unit}{verdict}"


def _statistics(outcome: CheckOutcome) -> dict[str, float]:
    times = outcome.measurement.seconds_per_call
    return {
        "mean": statistics.fmean(times),
        "min": min(times),
        "max": max(times),
        "std": statistics.pstdev(times),
    }


def _row(checked: Checked, outcome: CheckOutcome) -> tuple[str, ...]:
    case, measured = outcome.case, _statistics(outcome)
    times = [quantity(measured[name], "s") for name in ("mean", "std")]
    return (checked.target.name, f"{case.function} {case.dtype} {case.size}", error_text(outcome), *times)


def _firmware_row(checked: Checked) -> tuple[str, ...]:
    sizes = checked.firmware.sizes if checked.firmware else None
    return (
        checked.target.name,
        count(sizes.flash) if sizes else "",
        count(sizes.ram) if sizes else "",
        f"{checked.boot_s:.2f} s" if checked.boot_s is not None else "",
        checked.clock.mode if checked.clock else "",
        "passed" if checked.passed else "FAILED",
    )


def _platform_json(checked: Checked) -> dict[str, Any]:
    document: dict[str, Any] = {
        "platform": checked.target.name,
        "passed": checked.passed,
        "boot_s": checked.boot_s,
    }
    if checked.firmware is not None:
        sizes = checked.firmware.sizes
        document["firmware"] = {
            "hash": checked.firmware.content_hash,
            "cached": checked.firmware.cached,
            "build_s": checked.firmware.seconds,
            "flash_bytes": sizes.flash,
            "ram_bytes": sizes.ram,
            "floating_point": checked.firmware.floating_point,
        }
    document["clock"] = checked.clock.to_json() if checked.clock else None
    document["results"] = [_outcome_json(outcome) for outcome in checked.outcomes]
    document["missing"] = checked.missing
    document["failure"] = failure_json(checked.failure) if checked.failure else None
    return document


def _outcome_json(outcome: CheckOutcome) -> dict[str, Any]:
    case = outcome.case
    return {
        "function": case.function,
        "dtype": str(case.dtype),
        "shape": list(case.shape),
        "passed": outcome.passed,
        "largest_error": outcome.error if isfinite(outcome.error) else None,
        "error_unit": "ULP" if case.dtype.kind == "f" else "1",
        "calls": outcome.calls,
        "results_s": list(outcome.measurement.seconds_per_call),
        **{f"{name}_s": value for name, value in _statistics(outcome).items()},
    }
