# SPDX-License-Identifier: Apache-2.0
"""A model's run on a platform, judged: as text, and for the JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from minrpc import DeviceInfo
from minrpc.extension import count, counter_title, quantity, table

from minrpc_models.compared import OutputDifference, difference, witnessed
from minrpc_models.tuning_command import Gain, unit_of

if TYPE_CHECKING:
    from minrpc_models.inputs import Arrays
    from minrpc_models.models import Model, ModelRun

Differences = dict[str, OutputDifference]
"""By the output's name."""


@dataclass(frozen=True)
class Outcome:
    """A model's run on a platform.

    expected: outputs of other programs, by the program: "TVM", "onnxruntime", "LiteRT"; none for a program
        that can't run the model. info: the device's memory after the run. weights: their place, "loaded" or
        "image". gain: of a tuned run, which `run` then is.
    """

    model: Model
    platform: str
    run: ModelRun
    expected: Mapping[str, Arrays]
    info: DeviceInfo
    weights: str
    gain: Gain | None

    @cached_property
    def from_tvm(self) -> Differences:
        """Differences from TVM's outputs; TVM's floats are only a witness of CMSIS-NN's integers."""
        if self.model.kernels:
            return self._witnessed("TVM", 1)
        steps = self.gain.steps if self.gain else 0
        outputs = self.run.outputs
        return {name: difference(outputs[name], due, steps) for name, due in self.expected["TVM"].items()}

    @cached_property
    def from_onnxruntime(self) -> Differences:
        """Differences from onnxruntime's outputs."""
        return self._witnessed("onnxruntime", 1)

    @cached_property
    def from_litert(self) -> Differences:
        """Differences from LiteRT's outputs."""
        return self._witnessed("LiteRT", self.model.litert_steps)

    @property
    def passed(self) -> bool:
        """True if all outputs are right. LiteRT's integers decide where there are any, else TVM's outputs."""
        judged = [self.from_onnxruntime, self.from_litert or self.from_tvm]
        judged += [self.gain.differences] if self.gain else []
        return all(item.right for differences in judged for item in differences.values())

    def told(self) -> str:
        """Verdicts, figures, a table of the operators, and the gain of tuning."""
        lines = [*self._verdicts(), *self._figures(), "", _operators(self.run), ""]
        return "\n".join([*lines, *([self.gain.told()] if self.gain else [])])

    def as_json(self) -> dict[str, Any]:
        """The run's row of the document."""
        return {
            "platform": self.platform,
            "model": self.run.name,
            "passed": self.passed,
            "compared": bool(self.from_tvm),
            "errors_ratio": _errors(self.from_tvm),
            **_figures_json(self.run),
            "onnxruntime_errors_ratio": _errors(self.from_onnxruntime) or None,
            "litert_errors_ratio": _errors(self.from_litert) or None,
            "cmsis_nn_operators": len(self.model.kernels),
            "arena_peak_bytes": self.info.arena_peak,
            "stack_peak_bytes": self.info.stack_peak or None,
            "weights_in": self.weights,
            "tuned": self.gain.as_json() if self.gain else None,
        }

    def _witnessed(self, program: str, steps: int) -> Differences:
        outputs = self.run.outputs
        return {name: witnessed(outputs[name], due, steps) for name, due in self.expected[program].items()}

    def _verdicts(self) -> Iterator[str]:
        """A line for each output and program."""
        if not self.from_tvm:
            for name in self.run.outputs:
                yield f"  {name:<8} not compared: TVM of today can't run the archive's model"
        for name, item in self.from_tvm.items():
            otherwise = f"{item.size} from TVM's, whose floats round differently"
            yield f"  {name:<8} {otherwise if self.from_litert else item}"
        for name, item in self.from_onnxruntime.items():
            told = item.told("onnxruntime's")
            yield f"  {name:<8} {told}, against onnxruntime"
        steps = self.model.litert_steps
        allowed = f"up to {count(steps)} steps of rounding are right" if steps else "bit for bit"
        for name, item in self.from_litert.items():
            told = item.told("LiteRT's")
            yield f"  {name:<8} {told}, against LiteRT, {allowed}"

    def _figures(self) -> Iterator[str]:
        """Time, flash and RAM."""
        run, info = self.run, self.info
        each, unit = unit_of(run)
        seconds = quantity(run.whole.clock.seconds(run.ticks), "s")
        yield f"  time     {seconds} a run, {count(round(run.ticks / each))} {unit}"
        yield f"  flash    {count(run.code_bytes)} bytes of code, {count(run.weight_bytes)} of weights"
        ram = f"{count(run.workspace_bytes)} bytes of workspace, {count(run.static_bytes)} of variables"
        yield f"  RAM      {ram}, {count(run.io_bytes)} of inputs and outputs"
        yield f"           {count(run.least_workspace_bytes)} bytes of the workspace are needed at once"
        stack = f", stack {count(info.stack_peak)}" if info.stack_size else ""
        yield f"           {count(info.arena_peak)} bytes at the most{stack}"


def _errors(differences: Differences) -> dict[str, float | None]:
    return {name: item.error for name, item in differences.items()}


def _operators(run: ModelRun) -> str:
    """A table with a line for each function of operators, and the whole run's."""
    counters = list(run.whole.counters)
    each, unit = unit_of(run)

    def line(first: str, what: str, calls: str, ticks: float, counted: Sequence[float]) -> tuple[str, ...]:
        share = f"{ticks / run.ticks:.1%}" if run.ticks else ""
        cells = [f"{size:,.0f}" for size in counted] or [""] * len(counters)
        return (first, what, calls, f"{ticks / each:,.0f}", share, *cells)

    lines = []
    for function, numbers in run.by_function().items():
        calls = [run.operators[number] for number in numbers]
        sums = [sum(call.measurement.counter_per_call(name) for call in calls) for name in counters]
        ticks = sum(call.ticks for call in calls)
        lines.append(line(", ".join(map(str, numbers)), function, str(len(calls)), ticks, sums))
    covered = sum(operator.ticks for operator in run.operators)
    whole = [run.whole.counter_per_call(name) for name in counters]
    lines.append(line("", "all operators", str(len(run.operators)), covered, ()))
    lines.append(line("", "between operators", "", run.between_ticks, ()))
    lines.append(line("", "a run", "1", run.ticks, whole))
    header = ("#", "operator", "calls", unit, "share", *(counter_title(name, counters) for name in counters))
    estimate = f"\n\nCore cycles are an {run.whole.estimate}" if run.whole.estimate else ""
    return table(header, lines, set(range(len(header))) - {1}) + estimate


def side_by_side(outcomes: Sequence[Outcome]) -> str:
    """A table of seconds by operator and in total, with a column for each platform."""
    runs = [outcome.run for outcome in outcomes]

    def cells(ticks: Sequence[float]) -> list[str]:
        return [
            quantity(run.whole.clock.seconds(number) if number else 0.0, "s")
            for run, number in zip(runs, ticks, strict=True)
        ]

    lines = [
        (str(number), operator.function, *cells([run.operators[number].ticks for run in runs]))
        for number, operator in enumerate(runs[0].operators)
    ]
    lines.append(("", "a run", *cells([run.ticks for run in runs])))
    header = ("#", "operator", *(outcome.platform for outcome in outcomes))
    return table(header, lines, set(range(len(header))) - {1})


def _figures_json(run: ModelRun) -> dict[str, Any]:
    """Times and sizes of a run and of its operators."""
    functions = run.by_function()
    each, unit = unit_of(run)
    return {
        "run_ticks": run.ticks,
        "run_instructions": run.ticks / each if unit == "instructions" else None,
        "run_s": run.whole.clock.seconds(run.ticks),
        "between_ticks": run.between_ticks,
        **({"estimate": run.whole.estimate} if run.whole.estimate else {}),
        "code_bytes": run.code_bytes,
        "weight_bytes": run.weight_bytes,
        "static_bytes": run.static_bytes,
        "workspace_bytes": run.workspace_bytes,
        "least_workspace_bytes": run.least_workspace_bytes,
        "io_bytes": run.io_bytes,
        "operators": [
            {
                "function": operator.function,
                "calls": len(functions[operator.function]),
                "run_ticks": operator.ticks,
                "counters": {
                    name: operator.measurement.counter_per_call(name) for name in run.whole.counters
                },
            }
            for operator in run.operators
        ],
    }
