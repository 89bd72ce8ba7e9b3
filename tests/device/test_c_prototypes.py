# SPDX-License-Identifier: Apache-2.0
"""Random values of types that tests/fuzz/signatures.py lacks: vectors, complex numbers."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.device.conftest import Amount, Load
from tests.unit.library.literals import check_literals, functions, random_literal

# Tests of compiling, linking and passing on the host; test_c_functions.py has them for each device.
pytestmark = pytest.mark.once


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
