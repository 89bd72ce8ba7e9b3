# SPDX-License-Identifier: Apache-2.0
"""Calls by types from debug information and a thunk, in this process; tests/fuzz calls random functions."""

from __future__ import annotations

import copy
import shutil
import subprocess
from pathlib import Path
from random import Random

import numpy as np
import pytest
from minrpc import Address
from minrpc.library.thunks import callable_functions
from minrpc.program import Elf
from minrpc.program.c_types import AlignmentLimits, Pointer, Scalar
from minrpc.program.debug_info import read_declarations

from .host_library import HostLibrary
from .literals import check_literals, functions, random_literal


@pytest.mark.slow  # tests/device/test_c_prototypes.py has -O2
def test_random_values_arrive_as_the_compiler_passes_them(tmp_path: Path) -> None:
    literals = [random_literal(Random(seed), f"n{seed}") for seed in range(60)]
    library = HostLibrary(functions(literals), tmp_path, ("-O0",))
    refused = check_literals(literals, library.functions, library.call)
    assert len(refused) < 6
    assert all("is not the compiler's own" in item for item in refused)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("typedef int v4 __attribute__((vector_size(16))); int f(v4 x) { return x[0]; }", "4 elem| int,"),
        ("int f(_Complex float x) { return (int)x; }", "expected complex float"),
    ],
)
def test_a_value_of_another_shape_is_refused(source: str, reason: str, tmp_path: Path) -> None:
    library = HostLibrary(source, tmp_path)
    for value in ([1, 2, 3], 7 if "v4" in source else "x", [[1, 2, 3, 4]] * 4):
        with pytest.raises(TypeError, match=reason):
            library.call("f", value)


@pytest.mark.parametrize("version", ["-gdwarf-4", "-gdwarf-5"])
def test_a_function_in_a_hot_and_a_cold_part_can_be_called(version: str, tmp_path: Path) -> None:
    """The debug information then has ranges for its code, and no first address."""
    text = """
__attribute__((cold, noinline)) void seldom(int *x) { *x += 1000; }
int split(int x) { if (x > 7) { seldom(&x); x *= 3; seldom(&x); } return x + 1; }
"""
    library = HostLibrary(text, tmp_path, ("-O2", "-freorder-blocks-and-partition", version))
    symbols = subprocess.check_output(["nm", tmp_path / "source.o"], text=True)
    assert "split.cold" in symbols
    assert [library.call("split", number) for number in (1, 8)] == [2, 4025]


def test_bits_without_a_name_at_the_beginning_and_in_a_unit_of_their_own(tmp_path: Path) -> None:
    library = HostLibrary(
        "struct first { unsigned char : 5; unsigned char a : 6; };\n"
        "struct second { int x; unsigned : 20; unsigned b : 20; };\n"
        "int first(struct first s) { return s.a; }\n"
        "int second(struct second s) { return s.x + (int)s.b; }\n",
        tmp_path,
    )
    assert [library.call("first", (value,)) for value in (0, 5, 63)] == [0, 5, 63]
    assert library.call("second", (5, 1 << 19)) == (1 << 19) + 5


def test_a_union_of_pointers_takes_each_and_a_pointer_into_a_struct_is_a_struct(tmp_path: Path) -> None:
    library = HostLibrary(
        "struct either { int *n; union { int *i; float *f; }; };\n"
        "float either(struct either u, int k) { return k ? *u.f : *u.i; }\n"
        "struct pair { int x, y; };\n"
        "struct box { struct pair *p; struct pair v[2]; };\n"
        "void point(struct box *b) { b->p = &b->v[1]; }\n"
        "int pointed(const struct box *b) { return b->p->x; }\n",
        tmp_path,
    )
    whole, part = np.full(1, 5, np.int32), np.full(1, 2.5, np.float32)
    assert library.call("either", library.struct("either", i=whole), 0) == 5
    for made in (library.struct("either", f=part), copy.copy(library.struct("either", f=part))):
        assert library.call("either", made, 1) == 2.5
    box = library.struct("box", v=[(1, 2), (3, 4)])
    library.call("point", box)
    assert (box.p.x, library.call("pointed", box)) == (3, 3)
    box.p.x = 7
    assert (box.v[1].x, library.call("pointed", box)) == (7, 7)
    with pytest.raises(TypeError, match=r"box.p: expected struct pair \*, got \(float \*\)0x1000"):
        box.p = Address(0x1000, Pointer(Scalar("float", 4, "float"), 8))


@pytest.mark.skipif(
    shutil.which("clang") is None, reason="there is no clang, and GCC before 14 has no _BitInt"
)
def test_an_integer_of_bits_that_debug_information_does_not_tell_is_refused(tmp_path: Path) -> None:
    """Its object has bits above its own, which are nobody's: as an integer of that size results are wrong."""
    source, compiled = tmp_path / "bits.c", tmp_path / "bits.o"
    source.write_text(
        "typedef _BitInt(24) small;\n"
        "_BitInt(65) wide(_BitInt(65) x) { return x + 1; }\n"
        "int narrow(unsigned _BitInt(24) x) { return (int)x; }\n"
        "int named(small x) { return x; }\n"
        "int plain(int x) { return x; }\n"
    )
    subprocess.run(["clang", "-g", "-c", source, "-o", compiled], check=True)
    declared = read_declarations(Elf(compiled.read_bytes(), compiled.name)).functions.values()
    refused = {
        function.name: function.unsupported for function in callable_functions(declared, AlignmentLimits())
    }
    assert refused.pop("plain") == ""
    assert len(refused) == 3
    assert all("_BitInt can't be passed" in reason for reason in refused.values())
