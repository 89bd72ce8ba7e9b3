# SPDX-License-Identifier: Apache-2.0
"""Additions of a `DeviceModel` with MINRPC_COUNTERS: counters and their evaluator."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from minrpc.wire.replies import Result
from minrpc.wire.values import Argument, Function

from tests.unit.client.device_model import DeviceFailureError, DeviceModel

HZ = 1_000_000
TIMER = 100
EMPTY = 7
FUNCTION = 50


@dataclass
class Timed:
    """A requested evaluator: its function, its repeats and its options."""

    name: str
    number: int
    repeat: int
    counters: tuple[str, ...]
    runs: int = 0


class CountingModel:
    """Gives `model` counters, each with its width; a counter that it lacks is 0.

    A batch takes TIMER cycles, and EMPTY for each call of the empty function or FUNCTION of another.
    batches: number of batches in each repeat of a function; the last is long enough.
    ran: called for each run of a function, with its batches.
    values: of a counter, by function, the same in each repeat; else 0.
    evaluators: all requested evaluators.
    slots: counters that the hardware counts at once.
    """

    def __init__(
        self,
        model: DeviceModel,
        counters: Mapping[str, int],
        values: Callable[[str, str], int] = lambda *_: 0,
    ) -> None:
        self.model = model
        self._counters = counters
        self._values = values
        self.batches: Sequence[int] = ()
        self.ran: Callable[[int], object] = lambda _: None
        self.evaluators: list[Timed] = []
        self.slots = len(counters)
        if counters:
            lines = [f"{name},bytes,{bits}\n" for name, bits in counters.items()]
            model.globals["minrpc.counters"] = lambda _: "".join(lines).encode()
        model.globals["minrpc.time_evaluator"] = self._make

    def _make(self, args: Sequence[Argument]) -> Result:
        _, name, kind, index, number, repeat, least_ms, zeros, rest_ms, rests, flush, counters = args
        assert isinstance(name, str)
        assert isinstance(counters, str)
        numbers = (kind, index, number, repeat, least_ms, zeros, rest_ms, rests, flush)
        assert all(isinstance(number, int) for number in numbers)
        if repeat == 0 or rests == 0:
            raise DeviceFailureError("time evaluator: expected 1 to 134217728")
        asked = tuple(filter(None, counters.split(",")))
        for item in asked:
            if item not in self._counters and item != "interrupts_masked":
                raise DeviceFailureError(f"no counter {item}")
        timed = Timed(name, number, repeat, asked)  # type: ignore[arg-type]
        self.evaluators.append(timed)
        self.model.globals[f"evaluator {len(self.evaluators)}"] = lambda _: self._measure(timed)
        return Function(0x80028000 + len(self.model.globals) - 1)

    def _measure(self, timed: Timed) -> bytes:
        """The answer in the layout of zephyr-app/runtime/evaluator.c: a header, the names, a row for each
        repeat."""
        timed.runs += 1
        columns = [name for name in timed.counters if name != "interrupts_masked"]
        if len(columns) > self.slots:
            raise DeviceFailureError(f"no slot for the counter {columns[self.slots]}")
        names = b"".join(name.encode() + b"\0" for name in columns)
        names += bytes(-len(names) % 8)
        head = struct.pack("<4HQ", 1, 16 + len(names), 16 + 8 * len(columns), len(columns), HZ)
        cycles = TIMER + timed.number * (FUNCTION if timed.name else EMPTY)
        values = [self._values(name, timed.name) for name in columns]
        batches = self.batches if timed.name and self.batches else [1] * timed.repeat
        self.ran(sum(batches))
        rows = [struct.pack(f"<QII{len(values)}Q", cycles, timed.number, many, *values) for many in batches]
        return head + names + b"".join(rows)
