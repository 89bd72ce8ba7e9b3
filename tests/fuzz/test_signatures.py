# SPDX-License-Identifier: Apache-2.0
"""Some random C functions of a fixed seed. `python -m tests.fuzz.signature_runs` makes a long run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from minrpc import CFunctions, Device, LoadedLibrary, RunningDevice, library_of

from tests.fuzz.signature_runs import (
    Given,
    batch,
    check_call,
    check_refusals,
    check_variables,
    fakes_of,
    require_witness,
    source,
)
from tests.fuzz.signatures import INTEGERS, Call, Case, Pointer

SEED = 0
FUNCTIONS = range(12)


def test_the_witness_in_c_gives_what_python_expects(tmp_path: Path) -> None:
    require_witness(batch(SEED, FUNCTIONS)[1], tmp_path)


def test_arguments_in_python_share_memory_as_in_c() -> None:
    byte = next(leaf for leaf in INTEGERS if leaf.c == "uint8_t")
    for index in range(40):
        case = Case(SEED, index, [], [], [Pointer(byte, 3, False), Pointer(byte, 2, False)], None, "plain")
        call = Call(case, 0)
        values = Given(call, cast(LoadedLibrary, None), 4).values
        case.answer(*values)
        case.answer(*call.given)
        assert case.digest(None, values) == case.digest(None, call.given), index


def test_random_functions_give_what_the_values_say(
    load: Callable[..., CFunctions], device: Device, running_device: RunningDevice, tmp_path: Path
) -> None:
    if device.info().arena_largest_free < 100_000:
        pytest.skip("needs 100,000 bytes of device memory")
    cases, calls = batch(SEED, FUNCTIONS)
    (tmp_path / "signatures.c").write_text(source(cases))
    library = library_of(load(tmp_path / "signatures.c", fakes=fakes_of(cases), flags=["-w", "-O1"]))
    wide = 8 if running_device.name == "posix" else 4
    for call in calls:
        check_call(call, library, wide)
    for case in cases:
        check_variables(case, library)
        check_refusals(Call(case, 0), library, wide)
