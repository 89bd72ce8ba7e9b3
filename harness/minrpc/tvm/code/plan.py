# SPDX-License-Identifier: Apache-2.0
"""A compiled model as straight code: tensors in planned memory, and operators called one after another.

`relax` makes it from a Relax module, `export` turns it into C. This module does not need TVM.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from minrpc.wire.dtypes import DataType

ALIGNMENT = 16
"""Alignment of storages and workspaces, in bytes."""

HALF: Final = re.compile(r"\(half\s*\*?\)|^\s*(?:static |const )*half(?: \*?|\* ?)\w", re.M)
"""float16 in TVM's C, in casts and declarations: compilers need a flag for it, or lack it."""

TensorPlace = Literal["input", "output", "constant", "storage"]


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a model.

    place, index: the model's input, output, constant or storage, and its number, that holds the elements.
    offset: from its begin, in bytes.
    """

    dtype: DataType
    shape: tuple[int, ...]
    place: TensorPlace
    index: int
    offset: int = 0

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
    storages: size of each block that intermediate tensors share, in bytes.
    source: the C code of the operators' functions, each named `__tvm_ffi_NAME`.
    called: the model's own name of each input or output that was renamed, by "inputs.NAME" or "outputs.NAME".
    context: the C expression by which `source` knows the argument "self" of its functions, the workspace's
        state; "" if it has no such expression, so that the state is static and one run goes on at a time.
    origin: the model's origin.
    states: by input, the output of the previous run that it takes, and its elements in the first run.
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

    @property
    def digest(self) -> str:
        """SHA-256 of the file that the model is from, or of its code and weights if there is no file."""
        if self.origin.digest:
            return self.origin.digest
        found = hashlib.sha256(self.source.encode())
        for constant in self.constants:
            found.update(constant.tobytes())
        return found.hexdigest()

    @property
    def storage_offsets(self) -> tuple[int, ...]:
        """Offset of each storage in one block that holds them all, in bytes."""
        return tuple(np.cumsum([0, *map(aligned, self.storages)]).tolist()[:-1])

    @property
    def storage_bytes(self) -> int:
        """Size of the block that holds all storages, in bytes."""
        return sum(map(aligned, self.storages))

    @property
    def workspace_bytes(self) -> int:
        """Size of all storages and of the largest operator's workspace, in bytes."""
        return self.storage_bytes + max((operator.workspace for operator in self.operators), default=0)

    @property
    def constant_bytes(self) -> int:
        """Size of all weights, in bytes."""
        return sum(constant.nbytes for constant in self.constants)


def aligned(size: int) -> int:
    """`size` rounded up to a multiple of `ALIGNMENT`."""
    return -(-size // ALIGNMENT) * ALIGNMENT
