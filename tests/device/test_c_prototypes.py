# SPDX-License-Identifier: Apache-2.0
"""Random prototypes: each function gives the same on the device as on this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from minrpc import LoadedLibrary, StructValue

from tests.device.conftest import Amount
from tests.unit.library.host_library import HostLibrary
from tests.unit.library.literals import check_literals, functions, random_literal
from tests.unit.library.prototypes import Call, random_array, random_members, random_program, random_scalar

Load = Callable[..., LoadedLibrary]

# Tests of compiling, linking and passing on the host; test_c_functions.py has them for each device.
pytestmark = pytest.mark.once


@pytest.mark.parametrize("seed", [0, *(pytest.param(index, marks=pytest.mark.slow) for index in range(1, 6))])
def test_random_prototypes_give_what_they_give_here(
    seed: int, load: Load, tmp_path: Path, amount: Amount
) -> None:
    random = Random(seed)
    program = random_program(random, amount(30, 200))
    (tmp_path / "random.c").write_text(program.source())
    theirs = HostLibrary(program.source(), tmp_path)
    ours = load(tmp_path / "random.c", flags=[random.choice(["-O0", "-O2", "-Os"])])
    for function in program.functions:
        given = [_values(parameter, random) for parameter in function.parameters]
        mine = [
            _made(ours, parameter, value) for parameter, value in zip(function.parameters, given, strict=True)
        ]
        reference = [
            _made(theirs, parameter, value)
            for parameter, value in zip(function.parameters, given, strict=True)
        ]
        got, expected = ours[function.name](*mine), theirs.call(function.name, *reference)
        for call, a, b in zip(
            [function.result, *function.parameters], [got, *mine], [expected, *reference], strict=True
        ):
            assert _shown(call, a) == _shown(call, b), ours[function.name].prototype


def test_random_values_arrive_as_the_compiler_passes_them(load: Load, tmp_path: Path, amount: Amount) -> None:
    """Vectors, unions, bit-fields, packed structs, complex numbers, enums: the device's compiler gives the
    expected results."""
    literals = [random_literal(Random(seed), f"n{seed}") for seed in range(amount(40, 1000))]
    (tmp_path / "literals.c").write_text(functions(literals))
    library = load(tmp_path / "literals.c", flags=["-O2"])
    refused = check_literals(literals, library.functions, lambda name, *given: library[name](*given))
    # Vectors have another alignment on some targets, which refuse structs with vectors.
    assert len(refused) < len(literals) / 4
    assert all("is not the compiler's own" in item for item in refused)


def _values(call: Call, random: Random) -> Any:  # noqa: ANN401 - of any type
    if call.struct:
        return random_members(random, call.struct)
    return (
        random_array(random, call.ctype) if call.kind.endswith("array") else random_scalar(random, call.ctype)
    )


def _made(library: LoadedLibrary | HostLibrary, call: Call, value: Any) -> object:  # noqa: ANN401 - of any type
    if call.struct and isinstance(library, LoadedLibrary):
        return library.types[call.struct.name](**value)
    if call.struct and isinstance(library, HostLibrary):
        return library.struct(call.struct.name, **value)
    return value.copy() if isinstance(value, np.ndarray) else value


def _shown(call: Call | None, value: object) -> object:
    """A struct as its members: the bytes between them are unused."""
    if isinstance(value, StructValue):
        assert call is not None
        assert call.struct is not None
        return [_shown(None, getattr(value, name)) for name, *_ in call.struct.members]
    return value.tolist() if isinstance(value, np.ndarray) else value
