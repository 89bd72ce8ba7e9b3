# SPDX-License-Identifier: Apache-2.0
"""`minrpc model --tune` and `--tuned`: schedules found on a device, kept in a directory, applied."""

from __future__ import annotations

import argparse
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from minrpc import Device, Target, connect, start
from minrpc.errors import ConfigurationError
from minrpc.extension import Deadline, counter_title, table
from minrpc.library import firmware_of, toolset_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from minrpc_models.compared import OutputDifference
    from minrpc_models.inputs import Arrays
    from minrpc_models.models import Model, ModelRun
    from minrpc_models.schedules import Schedules


def check_options(arguments: argparse.Namespace) -> None:
    """Raise ConfigurationError for options that contradict each other."""
    from minrpc_models.schedules import require_database

    trials: int | None = arguments.tune
    if trials is None:
        if arguments.tuned is not None:
            require_database(arguments.tuned)
        return
    if trials < 1:
        raise ConfigurationError(f"--tune is at least 1, not {trials}", next_step="write --tune 64")
    if arguments.tuned is None:
        raise ConfigurationError(
            "--tune needs a directory for the schedules", next_step=f"--tune {trials} --tuned DIR"
        )
    if arguments.export:
        raise ConfigurationError(
            "--export runs nothing, so nothing can be tuned",
            next_step=f"tune first, then export: --tuned {arguments.tuned} --export {arguments.export}",
        )


def tune_on(
    model: Model, target: Target, arguments: argparse.Namespace, total: Deadline, inputs: Arrays
) -> None:
    """Tune the model's operators on a platform, and print each result.

    Raises ConfigurationError if there is no operator that TVM could schedule.
    """
    from minrpc_models.models import load_model
    from minrpc_models.schedules import Schedules
    from minrpc_models.tuner import SHARE, Bench, functions_to_tune, tune

    model.require_loops()
    flags = arguments.flags.split()

    @contextmanager
    def opened() -> Iterator[Device]:
        with start(target, total=total) as running, connect(running, total=total) as device:
            yield device

    with opened() as device:
        schedules = Schedules(arguments.tuned, _identity(device, flags), create=True)
        with load_model(device, model.plan, flags=flags, weights=arguments.weights) as loaded:
            run = loaded.measure(inputs, repeat=1)
            chosen = functions_to_tune(model, run)
            operands = loaded.operands(inputs, {numbers[0] for numbers in chosen.values()})
    if not chosen:
        raise ConfigurationError(
            f"no operator of TVM's takes {SHARE:.0%} of a run of {model.name}: there is nothing to tune",
            next_step="leave out --tune and --tuned",
        )
    print(f"  tune     {len(chosen)} functions, {arguments.tune} schedules each", flush=True)
    each, unit = unit_of(run)
    with Bench(opened, flags) as bench:
        arrays = {name: operands[numbers[0]] for name, numbers in chosen.items()}
        for result in tune(model, arrays, bench, schedules, arguments.tune):
            gain = f"{result.untuned_ticks / each:,.0f} -> {result.ticks / each:,.0f} {unit} a call"
            failed = f"; {result.failed} failed: {result.reason}" if result.failed else ""
            print(f"           {result.function}: {gain}, {result.tried} tried{failed}", flush=True)


def unit_of(run: ModelRun) -> tuple[float, str]:
    """The clock's ticks in the shown unit, and the unit's name: instructions if the clock counts them."""
    each = run.whole.clock.ticks_per_instruction
    return (float(each), "instructions") if each else (1.0, "ticks")


def _identity(device: Device, flags: list[str]) -> str:
    from minrpc_models.schedules import built_for

    return built_for(toolset_of(firmware_of(device)), flags)


def schedules_for(device: Device, arguments: argparse.Namespace) -> Schedules:
    """The database of --tuned, for a device. Raises ConfigurationError if it can't be read."""
    from minrpc_models.schedules import Schedules

    return Schedules(arguments.tuned, _identity(device, arguments.flags.split()))


@dataclass(frozen=True)
class Gain:
    """A tuned run beside that of TVM's own loops.

    functions: with a schedule in the database; True if the schedule is not TVM's own loops. steps: allowed
    difference of integers.
    """

    untuned: ModelRun
    tuned: ModelRun
    functions: Mapping[str, bool]
    steps: int

    @cached_property
    def differences(self) -> dict[str, OutputDifference]:
        """The difference of each tuned output from the untuned one."""
        from minrpc_models.compared import difference

        before, after = self.untuned.outputs, self.tuned.outputs
        return {name: difference(after[name], due, self.steps) for name, due in before.items()}

    def told(self) -> str:
        """The outputs' verdicts, and a table of the functions before and after."""
        lines = [
            f"  {name:<8} {item.told('those of the untuned code')}, against the untuned code"
            for name, item in self.differences.items()
        ]
        return "\n".join([*lines, "", self._table(), ""])

    def as_json(self) -> list[dict[str, Any]]:
        """For each tuned function the ticks of all its calls in a run, before and after."""
        entries = []
        for name, changed in self.functions.items():
            numbers = self.tuned.by_function()[name]
            before, after = (_sum(run, numbers) for run in (self.untuned, self.tuned))
            entries.append(
                {"function": name, "changed": changed, "untuned_ticks": before, "tuned_ticks": after}
            )
        return entries

    def _table(self) -> str:
        titles = [unit_of(self.tuned)[1], *map(counter_title, self.tuned.whole.counters)]
        lines = []
        for function, numbers in self.tuned.by_function().items():
            loops = "tuned" if self.functions.get(function) else "TVM's own"
            lines.append((function, loops, *self._cells(numbers)))
        lines.append(("a run", "", *self._cells(None)))
        header = ["operator", "loops", *(word for title in titles for word in (title, "tuned", "ratio"))]
        return table(header, lines, set(range(2, len(header))))

    def _cells(self, numbers: list[int] | None) -> list[str]:
        """Before, after and their ratio, of the clock and of each counter. numbers: None for a whole run."""
        each = unit_of(self.tuned)[0]
        runs = (self.untuned, self.tuned)
        pairs = [[_sum(run, numbers) / each for run in runs]]
        pairs += [[_sum(run, numbers, name) for run in runs] for name in self.tuned.whole.counters]
        return [
            cell
            for before, after in pairs
            for cell in (f"{before:,.0f}", f"{after:,.0f}", f"{before / after:.2f}" if after > 0 else "")
        ]


def _sum(run: ModelRun, numbers: list[int] | None, counter: str = "") -> float:
    """Cycles of the clock, or a counter, of operators by number or of a whole run."""
    if numbers is None:
        return run.whole.counter_per_call(counter) if counter else run.ticks
    calls = [run.operators[number] for number in numbers]
    return sum(call.measurement.counter_per_call(counter) if counter else call.ticks for call in calls)
