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
from minrpc import Device, Target, connect, sandboxed, start
from minrpc.errors import ConfigurationError, DeviceMemoryError, HarnessError
from minrpc.extension import (
    Deadline,
    add_device_options,
    add_json_option,
    add_sandbox_option,
    check_target,
    count,
    counter_names,
    failure_json,
    options_from,
    selected,
    write_json,
)

from minrpc_models.outcome import Outcome, side_by_side
from minrpc_models.tuning_command import Gain, check_options, schedules_for, tune_on

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minrpc_models.inputs import Arrays
    from minrpc_models.models import Model, ModelRun
    from minrpc_models.plan import ModelPlan

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
    add_sandbox_option(add, "for strangers' C; --tune always does it without --no-sandbox")
    add_json_option(add)
    add_device_options(add)


def main(arguments: argparse.Namespace) -> int:
    """Compiles, then exports or runs on each platform; returns 1 for a wrong output or a failure."""
    if arguments.repeat < 1:
        raise ConfigurationError(f"--repeat is at least 1, not {arguments.repeat}", next_step="leave it out")
    if arguments.plot:
        check_target(arguments.plot)
    check_options(arguments)
    refused: dict[str, dict[str, Any]] = {}
    try:
        model = _imported(arguments, refused)
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
    rows = _on_platforms(model, arguments, refused)
    passed = all(row["passed"] for row in rows)
    write_json(arguments, {"models": rows}, passed=passed)
    return 0 if passed else 1


def _imported(arguments: argparse.Namespace, refused: dict[str, dict[str, Any]]) -> Model:
    """The model of the file. Devices without room for its weights are put into `refused`."""
    from minrpc_models.models import model_of

    def weigh(name: str, size: int) -> None:
        if size >= _LONG_TO_COMPILE and arguments.weights == "loaded" and not arguments.export:
            _weigh(arguments, name, size, refused)

    _begins("import", arguments.model.name)
    return model_of(
        arguments.model,
        arguments.name,
        shapes={name: _extents(name, text) for name, text in _named("--shape", arguments.shape)},
        constants={name: _numbers(name, text) for name, text in _named("--constant", arguments.constant)},
        weighed=weigh,
        cmsis_nn=arguments.cmsis_nn,
    )


def _on_platforms(
    model: Model, arguments: argparse.Namespace, refused: dict[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """Run the model on each platform; gives their rows of the document.

    Raises the error of a platform that is the only one.
    """
    targets = selected(arguments).targets
    total = Deadline("model", options_from(vars(arguments)).total_timeout_s)
    inputs = _inputs(model, arguments)
    expected = _expected(model, inputs)
    outcomes: dict[str, Outcome] = {}
    rows = []
    for target in targets:
        if target.name in refused:
            rows.append(refused[target.name])
            continue
        try:
            outcome = outcomes[target.name] = _run(model, target, arguments, total, inputs, expected)
        except HarnessError as error:
            if len(targets) == 1:
                raise
            rows.append(_failed(model.name, target, error))
        else:
            rows.append({**outcome.as_json(), "failure": None})
    if len(outcomes) > 1:
        print(side_by_side([*outcomes.values()]))
    _list_failures(rows)
    if arguments.plot and outcomes:
        from minrpc_models.picture import draw_runs

        draw_runs({platform: outcome.run for platform, outcome in outcomes.items()}, arguments.plot)
    return rows


def _inputs(model: Model, arguments: argparse.Namespace) -> Arrays:
    """The inputs of --inputs, or random ones."""
    from minrpc_models.inputs import read_inputs

    given: Path | None = arguments.inputs
    return read_inputs(given, model.plan) if given else model.random_inputs(arguments.seed)


def _expected(model: Model, inputs: Arrays) -> dict[str, Arrays]:
    """The outputs by each program that can run the model on this machine."""
    if model.module is not None:
        _begins("compute", "the expected outputs, by TVM on this machine")
    return {
        "LiteRT": model.by_litert(inputs),
        "TVM": model.on_host(inputs),
        "onnxruntime": model.by_onnxruntime(inputs),
    }


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
    array: npt.NDArray[Any]
    try:
        array = np.array([int(word) for word in words])
    except ValueError:
        try:
            array = np.array([float(word) for word in words])
        except ValueError as error:
            raise ConfigurationError(
                f"--constant {name}={text} is no number", next_step=f"write it as --constant {name}=16000"
            ) from error
    return array if len(words) > 1 else array.reshape(())


def _weigh(arguments: argparse.Namespace, name: str, size: int, refused: dict[str, dict[str, Any]]) -> None:
    """Ask each device whether the weights may fit, before TVM compiles. Raises an error if they fit no
    device."""
    from minrpc_models.models import check_weights

    targets = selected(arguments).targets
    total = Deadline("model", options_from(vars(arguments)).total_timeout_s)
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
    from minrpc_models.schedules import Schedules

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
    from minrpc_models import export

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
    inputs: Arrays,
    expected: Mapping[str, Arrays],
) -> Outcome:
    """Run the model on a platform, and print the outcome."""
    from minrpc_models.models import with_weights

    print(f"{target.name}", flush=True)
    counters = counter_names(arguments.counters)
    target = target.changed(counters=bool(counters) and target.platform.starts == "qemu")
    if arguments.weights == "image":
        _begins("build", f"firmware with {count(model.plan.constant_bytes)} bytes of weights")
        target = with_weights(target, model.plan)
    if arguments.tune:
        with sandboxed("or --no-sandbox: schedules have your rights", wanted=arguments.sandbox is not False):
            tune_on(model, target, arguments, total, inputs)
    with start(target, total=total) as running, connect(running, total=total) as device:
        gain = None
        if arguments.tuned:
            plan, tuned = model.scheduled(schedules_for(device, arguments))
            untuned = _measured(device, model.plan, inputs, arguments)
            run = _measured(device, plan, inputs, arguments)
            gain = Gain(untuned, run, tuned, model.rounding_steps)
        else:
            run = _measured(device, model.plan, inputs, arguments)
        outcome = Outcome(model, target.name, run, expected, device.info(), arguments.weights, gain)
    print(outcome.told())
    return outcome


def _measured(device: Device, plan: ModelPlan, inputs: Arrays, arguments: argparse.Namespace) -> ModelRun:
    """Load the plan into the device, run and time it."""
    from minrpc_models.models import load_model

    flags, weights = arguments.flags.split(), arguments.weights
    with load_model(device, plan, flags=flags, weights=weights, begins=_begins) as loaded:
        print(f"  loaded   {count(loaded.library.device_bytes)} bytes", flush=True)
        _begins("run", f"and time {len(plan.operators)} operators")
        counters = counter_names(arguments.counters)
        return loaded.measure(inputs, repeat=arguments.repeat, counters=counters)
