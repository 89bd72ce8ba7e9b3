# SPDX-License-Identifier: Apache-2.0
"""Meters of power or energy: their readings join a measurement, a window for each repeat."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any, Protocol

from minrpc.client.counting import Measurer
from minrpc.client.time_evaluator import EvaluatorOptions
from minrpc.errors import ConfigurationError
from minrpc.timing import Measurement


class Meter(Protocol):
    """Reads a quantity while the device runs timed calls: energy, charge, processor time.

    The device is asked for a batch of calls between `before` and `after`. The link's share of that window is
    in the readings, unless the meter is triggered by the timer pin: it is high exactly while calls are timed.
    """

    def before(self) -> None:
        """Start to read, or arm the trigger."""

    def after(self) -> None:
        """Stop to read."""

    def results(self) -> Mapping[str, int]:
        """The readings of the window that `after` ended, by name: sums over all its calls, whole numbers.

        The unit ends the name: "energy_nj", "charge_nc", "cpu_ns".
        """


class MeteredMeasurer:
    """Measures a function as `Measurer` does, with a window of `meter` for each repeat.

    make: gives a measurer with other options.
    """

    def __init__(
        self,
        make: Callable[[EvaluatorOptions], Measurer],
        name: str,
        options: EvaluatorOptions,
        meter: Meter,
    ) -> None:
        self.name = name
        self.options = options
        self._make = make
        self._meter = meter

    def __call__(self, *args: object) -> Measurement:
        """Measure.

        Raises as `Measurer` and as the meter do; TypeError for readings that are not whole numbers, and
        ConfigurationError for a reading with a counter's name.
        """
        once = replace(self.options, repeat=1)
        if once.min_repeat_ms:
            # A window has one batch: the batches that are too short run before.
            (sample,) = self._make(once)(*args).samples
            once = replace(once, number=sample.number, min_repeat_ms=0)
        one = self._make(once)
        windows = [self._window(one, args) for _ in range(self.options.repeat)]
        return reduce(Measurement.joined, windows)

    def _window(self, one: Measurer, args: tuple[object, ...]) -> Measurement:
        self._meter.before()
        try:
            measured = one(*args)
        finally:
            self._meter.after()
        readings = {name: _whole(name, value) for name, value in self._meter.results().items()}
        (sample,) = measured.samples
        for name in readings.keys() & sample.columns.keys():
            message = f"the meter's reading {name} has the name of a counter"
            raise ConfigurationError(
                message, next_step="give the reading another name, or leave the counter out"
            )
        return replace(measured, samples=(replace(sample, columns={**sample.columns, **readings}),))

    def __repr__(self) -> str:
        return f"MeteredMeasurer({self.name!r}, {self.options})"


def check_meter(meter: Meter, options: EvaluatorOptions, *, memory: bool, masked: bool) -> None:
    """Raise ConfigurationError for options that run other code in a window, TypeError for an object that is
    not a meter."""
    for method in ("before", "after", "results"):
        if not callable(getattr(meter, method, None)):
            raise TypeError(f"a meter has before, after and results; {meter!r} has no {method}")
    others = {
        "memory=True": memory,
        "interrupts_masked=True": masked,
        "cooldown_interval_ms": options.cooldown_interval_ms,
    }
    for name in (name for name, given in others.items() if given):
        raise ConfigurationError(
            f"{name} can't go with a meter: its window would have more than the timed calls",
            next_step=f"measure twice: with meter=, and with {name}",
        )


def _whole(name: str, value: Any) -> int:  # noqa: ANN401 - of the user's meter
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"the meter's reading {name} is a whole number in a smaller unit (energy_nj), not {value!r}"
        ) from None
