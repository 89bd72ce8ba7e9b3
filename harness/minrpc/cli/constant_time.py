# SPDX-License-Identifier: Apache-2.0
"""`minrpc time --constant-time`: compares instructions and accesses of calls with different secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from minrpc.cli.call_arguments import Array, CallArgument, to_host
from minrpc.cli.source_options import load_with
from minrpc.counters import counters_for
from minrpc.counters.constant_time import ConstantTime, check_constant_time
from minrpc.counters.secret_inputs import LEAST, SecretInputs, secret_inputs
from minrpc.errors import ConfigurationError
from minrpc.firmware import build
from minrpc.host.deadline import Deadline
from minrpc.library import LoadedLibrary, Sources
from minrpc.names import listed
from minrpc.pipeline import connect
from minrpc.program.c_types import Parameter, numpy_dtype
from minrpc.running import start
from minrpc.targets import Target
from minrpc.targets.options import split_names


@dataclass(frozen=True, slots=True)
class Trials:
    """Options of the check: secret parameters, by name or number; values from a file; number of inputs."""

    secret: tuple[str, ...]
    values: Path | None = None
    tries: int = LEAST


def add_arguments(add: Callable[..., Any]) -> None:
    """Declare the options."""
    add(
        "--constant-time",
        action="store_true",
        help="measure nothing; compare instructions and accesses of calls with different secrets, under QEMU",
    )
    add(
        "--secret",
        action="append",
        default=[],
        metavar="NAME[,NAME...]",
        help="with --constant-time, the parameters that differ, by name, or by number from 1 on",
    )
    add(
        "--inputs",
        type=Path,
        metavar="FILE.npz",
        help="with --constant-time, values by parameter: the value of a public parameter; further inputs of "
        "a secret parameter, one in each row",
    )
    add(
        "--tries",
        type=int,
        default=LEAST,
        metavar="N",
        help=f"with --constant-time, inputs to try (default and least {LEAST})",
    )


def trials_from(secret: Sequence[str], values: Path | None, tries: int) -> Trials:
    """The check as the command line describes it. Raises ConfigurationError."""
    names = split_names(list(secret))
    if not names:
        message = "--constant-time compares calls that differ in secrets, and no secret is named"
        raise ConfigurationError(message, next_step="name the secret parameters: --secret key, or --secret 1")
    if tries < LEAST:
        raise ConfigurationError(
            f"--tries is at least {LEAST}, not {tries}", next_step=f"write --tries {LEAST}"
        )
    return Trials(tuple(names), values, tries)


def constant_time(
    target: Target,
    function: str,
    plan: Sequence[CallArgument],
    trials: Trials,
    total: Deadline,
    sources: Sources | None = None,
) -> ConstantTime:
    """Check `function` with the inputs of `trials`.

    sources: files with the function, loaded for the check; without them it is the firmware's own.

    Raises ConfigurationError for parameters and files that don't fit, and for a target that QEMU does not
    run.
    """
    if not target.in_qemu:
        message = f"{target.name} does not run under QEMU: nothing can be compared there"
        raise ConfigurationError(
            message, next_step="name a platform that runs under QEMU: --platform bare_mps2_an385"
        )
    firmware = build(target)
    counters = counters_for(firmware.elf, trace=True)
    with ExitStack() as stack:
        running = stack.enter_context(start(firmware, counters=counters, total=total))
        device = stack.enter_context(connect(running, total=total))
        library = load_with(function, device, sources, stack) if sources else None
        inputs = inputs_of(function, plan, _parameters(library, function), trials)
        return check_constant_time(device, counters, function, inputs, library)


def _parameters(library: LoadedLibrary | None, function: str) -> Sequence[Parameter]:
    """Parameters of a C function; none for packed functions, which have no types."""
    return library[function].function.type.parameters if library is not None else ()


def inputs_of(
    function: str, plan: Sequence[CallArgument], parameters: Sequence[Parameter], trials: Trials
) -> SecretInputs:
    """The calls to compare. Raises ConfigurationError for names and files that don't fit."""
    names = [
        parameters[place].name if place < len(parameters) and parameters[place].name else str(place + 1)
        for place in range(len(plan))
    ]
    secret = [_place(name, names, function) for name in trials.secret]
    arguments = [
        host if isinstance(item, Array) else _number(item, parameters, place)
        for place, (item, host) in enumerate(zip(plan, to_host(plan), strict=True))
    ]
    given = _read(trials.values, names, function) if trials.values else {}
    rows = _own(arguments, {place: value for place, value in given.items() if place in secret}, names)
    for place, value in given.items():
        if place not in secret:
            arguments[place] = _fitting(value, arguments[place], names[place])
    own = [[values.get(place, value) for place, value in enumerate(arguments)] for values in rows]
    return secret_inputs(arguments, secret, own=own, tries=trials.tries, names=names)


def _place(name: str, names: Sequence[str], function: str) -> int:
    if name in names:
        return names.index(name)
    if name.isdigit() and 1 <= int(name) <= len(names):
        return int(name) - 1
    step = f"it takes {listed(names, 12)}" if names else "give its arguments with --arg"
    raise ConfigurationError(f"{function} has no parameter {name}", next_step=step)


def _number(value: object, parameters: Sequence[Parameter], place: int) -> Any:  # noqa: ANN401 - a number
    """The number in numpy's type for the parameter's C type; in 64 bits if that is unknown."""
    dtype = np.dtype(np.float64 if isinstance(value, float) else np.int64)
    if place < len(parameters):
        try:
            dtype = numpy_dtype(parameters[place].type)
        except TypeError as error:
            message = f"{parameters[place].name or place + 1} takes no number"
            raise ConfigurationError(message, next_step="give it an array: --arg 'uint8[16]'") from error
    try:
        return np.array([value], dtype)[0]
    except OverflowError as error:
        raise ConfigurationError(f"{value} does not fit into {dtype}", next_step="give another") from error


def _read(file: Path, names: Sequence[str], function: str) -> Mapping[int, npt.NDArray[Any]]:
    """The arrays of the file, by the index of their argument."""
    try:
        with np.load(file) as content:
            return {_place(name, names, function): content[name] for name in content.files}
    except (OSError, ValueError, BadZipFile, AttributeError) as error:
        step = "write it with numpy.savez(file, key=..., message=...)"
        raise ConfigurationError(f"{file} has no arrays by name: {error}", next_step=step) from error


def _own(
    arguments: Sequence[Any], rows: Mapping[int, npt.NDArray[Any]], names: Sequence[str]
) -> list[dict[int, Any]]:
    """Further inputs: the value of each secret in the file, or the value in each row."""
    inputs: dict[int, list[Any]] = {}
    for place, value in rows.items():
        several = value.ndim == np.ndim(arguments[place]) + 1
        inputs[place] = [
            _fitting(row, arguments[place], names[place]) for row in (value if several else [value])
        ]
    if len({len(values) for values in inputs.values()}) > 1:
        raise ConfigurationError(
            "secrets have different numbers of rows", next_step="give the same number of rows for each secret"
        )
    return [dict(zip(inputs, values, strict=True)) for values in zip(*inputs.values(), strict=True)]


def _fitting(value: npt.NDArray[Any], like: Any, name: str) -> Any:  # noqa: ANN401 - an array or a number
    if value.shape != np.shape(like) or value.dtype != like.dtype:
        raise ConfigurationError(
            f"{name} is {like.dtype}{list(np.shape(like))}, the file has {value.dtype}{list(value.shape)}",
            next_step="write the array in this type and shape",
        )
    return value if isinstance(like, np.ndarray) else value[()]
