# SPDX-License-Identifier: Apache-2.0
"""`minrpc model`: runs a neural network on a device, checks and times it; or exports it as C."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from minrpc.cli.json_output import add_json_option, write_json
from minrpc.cli.model_tuning import Gain, check_options, schedules_for, tune_on, unit_of
from minrpc.cli.selected import selected
from minrpc.cli.time import counter_names
from minrpc.errors import ConfigurationError, DeviceMemoryError, HarnessError
from minrpc.host.deadline import Deadline
from minrpc.pipeline import connect
from minrpc.reports.document import failure_json
from minrpc.reports.figures import check_target
from minrpc.reports.markdown import table
from minrpc.running import start
from minrpc.targets import Target
from minrpc.targets.options import Options, add_device_options, options_from
from minrpc.timing.markdown import counter_title
from minrpc.timing.units import count, quantity

if TYPE_CHECKING:
    from minrpc.tvm.code.models import Model, ModelRun
    from minrpc.tvm.code.plan import ModelPlan

_LONG_TO_COMPILE: Final = 1 << 20
"""Bytes of weights above which TVM takes long, so that the devices are asked first whether they fit."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add(
        "model",
        type=Path,
        metavar="FILE",
        help="a model: .onnx, .tflite, .pt2 of torch.export, .tar in Model Library Format",
    )
    add("--name", metavar="NAME", help="prefix of names in the C code (default: the file's name)")
    add(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=N[,N...]",
        help="the shape of an ONNX file's input, or the extent of a named dimension (default: a batch of 1)",
    )
    add(
        "--constant",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a constant in place of an ONNX file's input, such as one that decides a branch",
    )
    add("--export", type=Path, metavar="DIR", help="write the model as a C library; run nothing")
    add("--flags", default="-O2", metavar="FLAGS", help="compiler flags (default %(default)s)")
    add(
        "--weights",
        choices=["loaded", "image"],
        default="loaded",
        help="load the weights with the code, or build them into the firmware (default %(default)s)",
    )
    add(
        "--counters",
        metavar="all|NAME[,NAME...]",
        help="further counters for each operator: under QEMU instructions, loads, cache_misses, ...",
    )
    add(
        "--cmsis-nn",
        type=Path,
        metavar="DIR",
        help="root of CMSIS-NN's source tree: its kernels compute the quantized operators",
    )
    add(
        "--tuned",
        type=Path,
        metavar="DIR",
        help="apply the schedules that --tune has kept in this directory, and show the gain",
    )
    add(
        "--tune",
        type=int,
        metavar="N",
        help="first let TVM try N schedules of each operator that takes 1 %% of a run, on the platform",
    )
    add("--repeat", type=int, default=3, metavar="N", help="repeats of each measurement (default 3)")
    add("--plot", type=Path, metavar="FILE", help="draw the operators' times, as PNG, SVG or PDF")
    add(
        "--inputs",
        type=Path,
        metavar="FILE",
        help="inputs by name, as numpy.savez writes them (default: random)",
    )
    add("--seed", type=int, default=0, metavar="N", help="seed of the random inputs (default 0)")
    add_json_option(add)
    add_device_options(add)


def main(arguments: argparse.Namespace) -> int:
    """Compiles, then exports or runs on each platform; returns 1 for a wrong output or a failure."""
    from minrpc.tvm.code.inputs import read_inputs
    from minrpc.tvm.code.models import model_of

    options = options_from(vars(arguments))
    if arguments.repeat < 1:
        raise ConfigurationError(f"--repeat is at least 1, not {arguments.repeat}", next_step="leave it out")
    if arguments.plot:
        check_target(arguments.plot)
    check_options(arguments)
    refused: dict[str, dict[str, Any]] = {}

    def weigh(name: str, size: int) -> None:
        if size >= _LONG_TO_COMPILE and arguments.weights == "loaded" and not arguments.export:
            _weigh(arguments, options, name, size, refused)

    _begins("import", arguments.model.name)
    try:
        model = model_of(
            arguments.model,
            arguments.name,
            shapes={name: _extents(name, text) for name, text in _named("--shape", arguments.shape)},
            constants={name: _numbers(name, text) for name, text in _named("--constant", arguments.constant)},
            weighed=weigh,
            cmsis_nn=arguments.cmsis_nn,
        )
    except DeviceMemoryError:
        if len(refused) < 2:
            raise
        _list_failures([*refused.values()])
        write_json(arguments, {"models": [*refused.values()]}, passed=False)
        return 1
    _describe(model)
    if arguments.export:
        _export(_exported(model, arguments.tuned), arguments.export)
        return 0
    selection = selected(arguments)
    total = Deadline("model", options.total_timeout_s)
    given: Path | None = arguments.inputs
    inputs = read_inputs(given, model.plan) if given else model.random_inputs(arguments.seed)
    if model.module is not None:
        _begins("compute", "the expected outputs, by TVM on this machine")
    expected = {
        "LiteRT": model.by_litert(inputs),
        "TVM": model.on_host(inputs),
        "onnxruntime": model.by_onnxruntime(inputs),
    }
    ran, rows = [], []
    for target in selection.targets:
        if target.name in refused:
            rows.append(refused[target.name])
            continue
        try:
            run, row = _run(model, target, arguments, total, inputs, expected)
        except HarnessError as error:
            if len(selection.targets) == 1:
                raise
            rows.append(_failed(model.name, target, error))
        else:
            ran.append((run, row))
            rows.append({**row, "failure": None})
    if len(ran) > 1:
        print(_side_by_side([row for _, row in ran]))
    _list_failures(rows)
    if arguments.plot and ran:
        from minrpc.tvm.code.picture import draw_runs

        draw_runs({row["platform"]: run for run, row in ran}, arguments.plot)
    passed = all(row["passed"] for row in rows)
    write_json(arguments, {"models": rows}, passed=passed)
    return 0 if passed else 1


def _named(option: str, given: list[str]) -> list[tuple[str, str]]:
    """Name and value of each NAME=VALUE. Raises ConfigurationError."""
    for item in given:
        if not all(item.rpartition("=")):
            raise ConfigurationError(
                f"{option} {item} has no name and value", next_step=f"write it as {option} NAME=VALUE"
            )
    return [(name, value) for name, _, value in (item.rpartition("=") for item in given)]


def _extents(name: str, text: str) -> list[int]:
    try:
        extents = [int(word) for word in text.split(",")]
    except ValueError:
        extents = [0]
    if min(extents) < 1:
        raise ConfigurationError(
            f"--shape {name}={text}: a shape is numbers from 1 on, with commas",
            next_step=f"write it as --shape {name}=1,3,48,192",
        )
    return extents


def _numbers(name: str, text: str) -> npt.NDArray[Any]:
    """A number, or several with commas; true and false are numbers, too."""
    words = [{"true": "1", "false": "0"}.get(word, word) for word in text.split(",")]
    found: npt.NDArray[Any]
    try:
        found = np.array([int(word) for word in words])
    except ValueError:
        try:
            found = np.array([float(word) for word in words])
        except ValueError as error:
            raise ConfigurationError(
                f"--constant {name}={text} is no number", next_step=f"write it as --constant {name}=16000"
            ) from error
    return found if len(words) > 1 else found.reshape(())


def _weigh(
    arguments: argparse.Namespace,
    options: Options,
    name: str,
    size: int,
    refused: dict[str, dict[str, Any]],
) -> None:
    """Ask each device whether the weights may fit, before TVM compiles. Raises an error if they fit no
    device."""
    from minrpc.tvm.code.models import check_weights

    targets = selected(arguments).targets
    total = Deadline("model", options.total_timeout_s)
    for target in targets:
        try:
            with start(target, total=total) as running, connect(running, total=total) as device:
                check_weights(device, name, size)
        except DeviceMemoryError as error:
            if len(targets) == 1:
                raise
            refused[target.name] = _failed(name, target, error)
            if len(refused) == len(targets):
                raise


def _failed(name: str, target: Target, error: HarnessError) -> dict[str, Any]:
    """The row of a platform that failed; the other platforms go on."""
    print(f"minrpc: {target.name}: {error}", file=sys.stderr)
    print(f"  FAILED   {error.message}", flush=True)
    return {
        "platform": target.name,
        "model": name,
        "passed": False,
        "failure": failure_json(error),
    }


def _list_failures(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if row["failure"]:
            print(f"{row['platform']}: FAILED: {row['failure']['message']}")


def _begins(stage: str, what: str = "") -> None:
    """Prints the name of a stage that may take long, when it begins."""
    print(f"  {stage:<8} {what}".rstrip(), flush=True)


def _describe(model: Model) -> None:
    plan = model.plan
    print(f"{plan.name}: {len(plan.operators)} operators, weights {count(plan.constant_bytes)} bytes")
    if model.kernels or model.left:
        print(f"  CMSIS-NN computes {len(model.kernels)} of {len(plan.operators)} operators")
    for reason, number in Counter(model.left).items():
        print(f"  TVM computes {reason}" + (f" ({number} times)" if number > 1 else ""))
    for kind, tensors in (("input", plan.inputs), ("output", plan.outputs)):
        for name, tensor in tensors:
            own = plan.called.get(f"{kind}s.{name}")
            called = f', the model\'s "{own}"' if own else ""
            output, first = plan.states.get(name, ("", 0.0)) if kind == "input" else ("", 0.0)
            kept = f": {first:g}, then {output} of the run before" if output else ""
            print(f"  {kind:<6} {name}: {tensor.dtype}[{', '.join(map(str, tensor.shape))}]{called}{kept}")


def _exported(model: Model, tuned: Path | None) -> ModelPlan:
    """The plan to export, with the schedules of --tuned."""
    from minrpc.tvm.code.schedules import Schedules

    if tuned is None:
        return model.plan
    schedules = Schedules(tuned)
    plan, functions = model.scheduled(schedules)
    changed = sum(functions.values())
    print(
        f"  {changed} of {len(functions)} tuned functions differ from TVM's own loops, for {schedules.model}"
    )
    return plan


def _export(plan: ModelPlan, directory: Path) -> None:
    from minrpc.tvm.code import export

    try:
        files = export.write(plan, directory)
    except OSError as error:
        raise ConfigurationError(
            f"{directory} can't be written: {error.strerror}", next_step="name another directory"
        ) from error
    print(f"  {len(files)} files in {directory}; include/tvmgen_{plan.name}.h shows how to call it")


def _run(
    model: Model,
    target: Target,
    arguments: argparse.Namespace,
    total: Deadline,
    inputs: dict[str, Any],
    expected: dict[str, dict[str, Any]],
) -> tuple[ModelRun, dict[str, Any]]:
    from minrpc.tvm.code.compared import difference, witnessed
    from minrpc.tvm.code.models import load_model, with_weights

    print(f"{target.name}", flush=True)
    counters = counter_names(arguments.counters)
    target = target.changed(counters=bool(counters) and target.platform.starts == "qemu")
    if arguments.weights == "image":
        _begins("build", f"firmware with {count(model.plan.constant_bytes)} bytes of weights")
        target = with_weights(target, model.plan)
    if arguments.tune:
        tune_on(model, target, arguments, total, inputs)
    with start(target, total=total) as running, connect(running, total=total) as device:
        flags, repeat = arguments.flags.split(), arguments.repeat

        def measured(plan: ModelPlan) -> ModelRun:
            weights = arguments.weights
            with load_model(device, plan, flags=flags, weights=weights, begins=_begins) as loaded:
                print(f"  loaded   {count(loaded.library.device_bytes)} bytes", flush=True)
                _begins("run", f"and time {len(plan.operators)} operators")
                return loaded.measure(inputs, repeat=repeat, counters=counters)

        gain = None
        if arguments.tuned:
            plan, tuned = model.scheduled(schedules_for(device, arguments))
            gain = Gain(measured(model.plan), measured(plan), tuned, model.rounding_steps)
        run = gain.tuned if gain else measured(model.plan)
        info = device.info()
    steps = model.litert_steps
    found = {
        name: witnessed(run.outputs[name], due)
        if model.kernels
        else difference(run.outputs[name], due, gain.steps if gain else 0)
        for name, due in expected["TVM"].items()
    }
    second = {name: witnessed(run.outputs[name], due) for name, due in expected["onnxruntime"].items()}
    third = {name: witnessed(run.outputs[name], due, steps) for name, due in expected["LiteRT"].items()}
    judged = [*second.values(), *(third or found).values(), *(gain.differences.values() if gain else ())]
    passed = all(item.right for item in judged)
    for name in run.outputs if not found else ():
        print(f"  {name:<8} not compared: TVM of today can't run the archive's model")
    for name, item in found.items():
        otherwise = f"{item.size} from TVM's, whose floats round differently"
        print(f"  {name:<8} {otherwise if third else item}")
    for name, item in second.items():
        told = item.told("onnxruntime's")
        print(f"  {name:<8} {told}, against onnxruntime")
    for name, item in third.items():
        told = item.told("LiteRT's")
        allowed = f"up to {count(steps)} steps of rounding are right" if steps else "bit for bit"
        print(f"  {name:<8} {told}, against LiteRT, {allowed}")
    each, unit = unit_of(run)
    seconds = quantity(run.whole.clock.seconds(run.cycles), "s")
    print(f"  time     {seconds} a run, {count(round(run.cycles / each))} {unit}")
    print(f"  flash    {count(run.code_bytes)} bytes of code, {count(run.weight_bytes)} of weights")
    io, static = count(run.io_bytes), count(run.static_bytes)
    ram = f"{count(run.workspace_bytes)} bytes of workspace, {static} of variables"
    print(f"  RAM      {ram}, {io} of inputs and outputs")
    print(f"           {count(run.least_workspace_bytes)} bytes of the workspace are needed at once")
    peak = f"{count(info.arena_peak)} bytes at the most"
    print(f"           {peak}" + (f", stack {count(info.stack_peak)}" if info.stack_size else ""))
    print()
    print(_operators(run))
    print()
    if gain:
        print(gain.told())
    return run, _as_json(target, run, {name: item.error for name, item in found.items()}, passed) | {
        "onnxruntime_errors_ratio": {name: item.error for name, item in second.items()} or None,
        "litert_errors_ratio": {name: item.error for name, item in third.items()} or None,
        "cmsis_nn_operators": len(model.kernels),
        "arena_peak_bytes": info.arena_peak,
        "stack_peak_bytes": info.stack_peak or None,
        "weights_in": arguments.weights,
        "tuned": gain.as_json() if gain else None,
    }


def _operators(run: ModelRun) -> str:
    counters = list(run.whole.counters)
    each, unit = unit_of(run)
    lines = []
    for function, numbers in run.by_function().items():
        calls = [run.operators[number] for number in numbers]
        sums = (sum(call.measurement.counter_per_call(name) for call in calls) for name in counters)
        lines.append(
            (
                ", ".join(map(str, numbers)),
                function,
                str(len(calls)),
                f"{sum(call.cycles for call in calls) / each:,.0f}",
                f"{sum(map(run.share, calls)):.1%}",
                *(f"{size:,.0f}" for size in sums),
            )
        )
    covered = sum(operator.cycles for operator in run.operators)
    whole = (f"{run.whole.counter_per_call(name):,.0f}" for name in counters)
    blank = [""] * len(counters)

    def line(what: str, calls: str, cycles: float, *more: str) -> tuple[str, ...]:
        share = f"{cycles / run.cycles:.1%}" if run.cycles else ""
        return ("", what, calls, f"{cycles / each:,.0f}", share, *more)

    lines.append(line("all operators", str(len(run.operators)), covered, *blank))
    lines.append(line("between operators", "", run.between_cycles, *blank))
    lines.append(line("a run", "1", run.cycles, *whole))
    header = ("#", "operator", "calls", unit, "share", *map(counter_title, counters))
    estimate = f"\n\nCore cycles are an {run.whole.estimate}" if run.whole.estimate else ""
    return table(header, lines, set(range(len(header))) - {1}) + estimate


def _side_by_side(found: list[dict[str, Any]]) -> str:
    """A table of seconds by operator and in total, with a column for each platform."""

    def cells(cycles: list[float]) -> list[str]:
        each = zip(found, cycles, strict=True)
        return [
            quantity(number * item["run_s"] / item["run_cycles"] if number else 0.0, "s")
            for item, number in each
        ]

    lines = []
    for number, operator in enumerate(found[0]["operators"]):
        cycles = [item["operators"][number]["run_cycles"] for item in found]
        lines.append((str(number), operator["function"], *cells(cycles)))
    lines.append(("", "a run", *cells([item["run_cycles"] for item in found])))
    header = ("#", "operator", *(item["platform"] for item in found))
    return table(header, lines, set(range(len(header))) - {1})


def _as_json(target: Target, run: ModelRun, errors: dict[str, float | None], passed: bool) -> dict[str, Any]:
    functions = run.by_function()
    each, unit = unit_of(run)
    return {
        "platform": target.name,
        "model": run.name,
        "passed": passed,
        "compared": bool(errors),
        "errors_ratio": errors,
        "run_cycles": run.cycles,
        "run_instructions": run.cycles / each if unit == "instructions" else None,
        "run_s": run.whole.clock.seconds(run.cycles),
        "between_cycles": run.between_cycles,
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
                "run_cycles": operator.cycles,
                "counters": {
                    name: operator.measurement.counter_per_call(name) for name in run.whole.counters
                },
            }
            for operator in run.operators
        ],
    }
