# SPDX-License-Identifier: Apache-2.0
"""A compiled model as straight code: tensors in planned memory, and operators called one after another.

`relax` makes it from a Relax module, `export` turns it into C. This module does not need TVM.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy.typing as npt
from minrpc.extension import DataType

from minrpc_models.memory import Block, most_alive, placed, size_of

ALIGNMENT = 16
"""Alignment of storages and workspaces, in bytes."""

TensorPlace = Literal["input", "output", "constant", "storage"]


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a model.

    place, index: the model's input, output, constant or storage, and its number, that holds the elements.
    """

    dtype: DataType
    shape: tuple[int, ...]
    place: TensorPlace
    index: int

    @property
    def nbytes(self) -> int:
        """Size of its elements, in bytes."""
        return prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class Operator:
    """A call of the compiled function `function` with `tensors`, the last of which it writes.

    workspace: the most workspace that it requests, in bytes.
    """

    function: str
    tensors: tuple[Tensor, ...]
    workspace: int = 0


@dataclass(frozen=True, slots=True)
class Origin:
    """file: its name. digest: its SHA-256, in hexadecimal. tvm: version of the TVM that made the C code."""

    file: str = ""
    digest: str = ""
    tvm: str = ""


@dataclass(frozen=True)
class ModelPlan:
    """A model.

    name: a C identifier.
    inputs, outputs: names, from `c_names.field_names`, and tensors.
    constants: weights, as C-contiguous arrays.
    storages: size of each block of intermediate tensors, in bytes; `memory` places them by their lifetimes.
    source: the C code of the operators' functions, each named `__tvm_ffi_NAME`.
    called: the model's own name of each input or output that was renamed, by "inputs.NAME" or "outputs.NAME".
    context: the C expression by which `source` knows the argument "self" of its functions, the workspace's
        state; "" if it has no such expression, so that the state is static and one run goes on at a time.
    origin: the model's origin.
    states: by input, the output of the previous run that it takes, and its elements in the first run.
    cmsis_nn: root of the source tree of CMSIS-NN, whose kernels `source` calls; None: it calls none.
    """

    name: str
    inputs: tuple[tuple[str, Tensor], ...]
    outputs: tuple[tuple[str, Tensor], ...]
    constants: tuple[npt.NDArray[Any], ...]
    storages: tuple[int, ...]
    operators: tuple[Operator, ...]
    source: str
    called: Mapping[str, str] = field(default_factory=dict)
    context: str = "self_handle"
    origin: Origin = field(default_factory=lambda: Origin())
    states: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    cmsis_nn: Path | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of the file that the model is from, or of its code and weights if there is no file."""
        if self.origin.digest:
            return self.origin.digest
        sha256 = hashlib.sha256(self.source.encode())
        for constant in self.constants:
            sha256.update(constant.tobytes())
        return sha256.hexdigest()

    @property
    def storage_offsets(self) -> tuple[int, ...]:
        """Offset of each storage in the workspace, in bytes."""
        return self._offsets[: len(self.storages)]

    @property
    def scratch_offsets(self) -> tuple[int, ...]:
        """Offset of each operator's own workspace in the whole, in bytes."""
        return self._offsets[len(self.storages) :]

    @property
    def workspace_bytes(self) -> int:
        """Size of the memory that all storages and the operators' workspaces share, in bytes."""
        return size_of(self._blocks, self._offsets)

    @property
    def least_workspace_bytes(self) -> int:
        """The most bytes that one operator needs at once, with all that lives meanwhile: a lower bound."""
        return most_alive(self._blocks)

    @cached_property
    def _offsets(self) -> tuple[int, ...]:
        return tuple(placed(self._blocks))

    @cached_property
    def _blocks(self) -> tuple[Block, ...]:
        """The storages, each from its first operator to its last, then the operators' own workspaces."""
        last = max(len(self.operators) - 1, 0)
        used: dict[int, list[int]] = {}
        for number, operator in enumerate(self.operators):
            for tensor in operator.tensors:
                if tensor.place == "storage":
                    used.setdefault(tensor.index, []).append(number)
        lifetimes = [used.get(number, [0, last]) for number in range(len(self.storages))]
        return (
            *(
                Block(aligned(size), min(steps), max(steps))
                for size, steps in zip(self.storages, lifetimes, strict=True)
            ),
            *(
                Block(aligned(operator.workspace), number, number)
                for number, operator in enumerate(self.operators)
            ),
        )

    @property
    def constant_bytes(self) -> int:
        """Size of all weights, in bytes."""
        return sum(constant.nbytes for constant in self.constants)


def aligned(size: int) -> int:
    """`size` rounded up to a multiple of `ALIGNMENT`."""
    return -(-size // ALIGNMENT) * ALIGNMENT
