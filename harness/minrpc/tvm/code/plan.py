# SPDX-License-Identifier: Apache-2.0
"""A compiled model as straight code: tensors in planned memory, and operators called one after another.

`relax` makes it from a Relax module, `export` turns it into C. This module does not need TVM.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from minrpc.wire.dtypes import DataType

ALIGNMENT = 16
"""Bytes on whose multiples storages and workspaces begin."""

HALF: Final = re.compile(r"\(half\s*\*?\)|^\s*(?:static |const )*half(?: \*?|\* ?)\w", re.M)
"""float16 as TVM's C has it, in casts and declarations: compilers have to be told of it, or have none."""

Place = Literal["input", "output", "constant", "storage"]


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a model.

    place, index: where its elements are: the model's input, output, constant or storage of that number.
    offset: bytes into it.
    """

    dtype: DataType
    shape: tuple[int, ...]
    place: Place
    index: int
    offset: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes that its elements take."""
        return prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class Operator:
    """A call of the compiled function `function` with `tensors`, the last of which it writes.

    workspace: bytes of workspace that it asks for at the most.
    """

    function: str
    tensors: tuple[Tensor, ...]
    workspace: int = 0


@dataclass(frozen=True)
class ModelPlan:
    """A model.

    name: a C identifier.
    inputs, outputs: names, of `c_names.field_names`, and tensors.
    constants: weights, as C-contiguous arrays.
    storages: bytes of each block that tensors in between share.
    source: the C code of the operators' functions, `__tvm_ffi_NAME` each.
    called: what the model itself calls an input or output that has another name here: by "inputs.NAME" or
        "outputs.NAME".
    """

    name: str
    inputs: tuple[tuple[str, Tensor], ...]
    outputs: tuple[tuple[str, Tensor], ...]
    constants: tuple[npt.NDArray[Any], ...]
    storages: tuple[int, ...]
    operators: tuple[Operator, ...]
    source: str
    called: Mapping[str, str] = field(default_factory=dict)

    @property
    def storage_offsets(self) -> tuple[int, ...]:
        """Where each storage begins in one block that holds them all, bytes."""
        return tuple(np.cumsum([0, *map(aligned, self.storages)]).tolist()[:-1])

    @property
    def storage_bytes(self) -> int:
        """Of that block."""
        return sum(map(aligned, self.storages))

    @property
    def workspace_bytes(self) -> int:
        """Storages, and the most that one operator asks for on top."""
        return self.storage_bytes + max((operator.workspace for operator in self.operators), default=0)

    @property
    def constant_bytes(self) -> int:
        """Of all weights."""
        return sum(constant.nbytes for constant in self.constants)


def aligned(size: int) -> int:
    """`size` rounded up, so that what follows is aligned."""
    return -(-size // ALIGNMENT) * ALIGNMENT
