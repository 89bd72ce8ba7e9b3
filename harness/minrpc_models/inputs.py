# SPDX-License-Identifier: Apache-2.0
"""Inputs of a model: random numbers of its types, or the user's from a file."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
from minrpc.errors import ConfigurationError
from minrpc.extension import to_numpy

from minrpc_models.c_names import identifier
from minrpc_models.plan import ModelPlan

Arrays = Mapping[str, npt.NDArray[Any]]

_INT_BOUND: Final = 128
"""Bound of random integers: int8's, so that sums and products stay far from overflow."""


def random_inputs(plan: ModelPlan, seed: int, bounds: Mapping[int, int]) -> dict[str, npt.NDArray[Any]]:
    """Floats in [-1, 1), integers in [-128, 127] within their type's range.

    bounds: for inputs that are indices, by number: integers are then in [0, bound).
    """
    rng = np.random.default_rng(seed)
    return {
        name: _random(rng, tensor.shape, to_numpy(tensor.dtype)[0], bounds.get(number))
        for number, (name, tensor) in enumerate(plan.inputs)
    }


def _random(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any], bound: int | None
) -> npt.NDArray[Any]:
    if dtype.kind == "f":
        return (2 * rng.random(shape) - 1).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    info = np.iinfo(dtype)
    if bound is not None:
        return rng.integers(0, max(1, min(bound, int(info.max))), shape).astype(dtype)
    least, most = max(info.min, -_INT_BOUND), min(info.max, _INT_BOUND - 1)
    return rng.integers(least, most, shape, endpoint=True).astype(dtype)


def read_inputs(path: Path, plan: ModelPlan) -> dict[str, npt.NDArray[Any]]:
    """Inputs from a file of `numpy.savez`, by the names of `plan.inputs` or the model's own.

    Raises ConfigurationError for another file format, and for inputs that the model does not take.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise ValueError("it has one array without a name")
            arrays = {name: file[name] for name in file.files}
    except OSError as error:
        raise ConfigurationError(
            f"{path} can't be read: {error.strerror or error}", next_step="correct the path"
        ) from error
    except (ValueError, BadZipFile, EOFError, AttributeError, TypeError, RuntimeError, zlib.error) as error:
        raise ConfigurationError(
            f"{path} has no named arrays: {error}", next_step="write it by numpy.savez(FILE, NAME=ARRAY, ...)"
        ) from error
    given = {_field(plan, name): array for name, array in arrays.items()}
    check_inputs(plan, given)
    return {name: given[name] for name, _ in plan.inputs}


def _field(plan: ModelPlan, name: str) -> str:
    """The input for a file's `name`: its C name, the model's name, or the C form of the model's name."""
    fields = [field for field, _ in plan.inputs]
    own = {plan.called.get(f"inputs.{field}", field): field for field in fields}
    cleaned = identifier(name)
    return name if name in fields else own.get(name, cleaned if cleaned in fields else name)


def check_inputs(plan: ModelPlan, inputs: Arrays) -> None:
    """Raise ConfigurationError for names, types and shapes that differ from the model's."""
    names = [name for name, _ in plan.inputs]
    if sorted(inputs) != sorted(names):
        raise ConfigurationError(
            f"{plan.name} takes {', '.join(names) or 'no input'}, not {', '.join(inputs) or 'nothing'}",
            next_step="give an array for each input, by its name",
        )
    for name, tensor in plan.inputs:
        host, lanes = to_numpy(tensor.dtype)
        array = np.asarray(inputs[name])
        if array.dtype != host or array.shape != tensor.shape + lanes:
            due, given = f"{tensor.dtype}{list(tensor.shape)}", f"{array.dtype}{list(array.shape)}"
            raise ConfigurationError(
                f"{plan.name}: {name} is {due}, not {given}", next_step="convert the array before it is given"
            )
