# SPDX-License-Identifier: Apache-2.0
"""Random prototypes: a call by types from debug information and a thunk, compared with the same call in C.

ctypes only hands over addresses: libffi passes some structs wrong (an int64 and a float, after other
arguments).
"""

from __future__ import annotations

import copy
import ctypes
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from minrpc import Address, StructValue
from minrpc.program.c_types import Pointer, Scalar

from .host_library import HostLibrary
from .literals import check_literals, functions, random_literal
from .prototypes import (
    Call,
    Program,
    Prototype,
    random_array,
    random_members,
    random_program,
    random_scalar,
    scalar_class,
)


@pytest.mark.parametrize("flags", [pytest.param(("-O0",), marks=pytest.mark.slow), ("-O2",)], ids=" ".join)
@pytest.mark.parametrize("seed", [0, *(pytest.param(index, marks=pytest.mark.slow) for index in range(1, 5))])
def test_random_prototypes_agree_with_calls_in_c(seed: int, flags: tuple[str, ...], tmp_path: Path) -> None:
    random = Random(seed)
    program = random_program(random, 100 if seed else 50)
    library = HostLibrary(program.source() + program.references(), tmp_path, flags)
    for function in program.functions:
        assert not library.functions[function.name].unsupported
        check_call(program, function, library, random)


def check_call(program: Program, function: Prototype, library: HostLibrary, random: Random) -> None:
    """Compares a call both ways: the result, and all written bytes."""
    ours: list[Any] = []
    theirs: list[Any] = []
    for parameter in function.parameters:
        mine, reference = _argument(program, parameter, library, random)
        ours.append(mine)
        theirs.append(reference)
    returned = _result_class(program, function.result)()
    addresses = (ctypes.c_void_p * (len(theirs) + 1))(*(ctypes.addressof(value) for value in theirs))
    getattr(library.library, f"call_{function.name}")(addresses, ctypes.byref(returned))
    expected = returned.value if hasattr(returned, "value") else returned
    result = library.call(function.name, *ours)
    _same(program, function.result, result, expected)
    for parameter, mine, reference in zip(function.parameters, ours, theirs, strict=True):
        if parameter.kind.endswith("array"):
            np.testing.assert_array_equal(mine, np.ctypeslib.as_array(reference))
        elif parameter.struct:
            _same(program, parameter, mine, reference)


def _argument(program: Program, call: Call, library: HostLibrary, random: Random) -> tuple[Any, Any]:
    if call.struct:
        values = random_members(random, call.struct)
        kind = program.classes[call.struct.name]
        plain = {
            name: (type(getattr(kind(), name))(*value) if isinstance(value, np.ndarray) else value)
            for name, value in values.items()
        }
        return library.struct(call.struct.name, **values), kind(**plain)
    if call.kind.endswith("array"):
        values_ = random_array(random, call.ctype)
        return values_, (scalar_class(call.ctype) * len(values_))(*values_.tolist())
    value = random_scalar(random, call.ctype)
    return value, scalar_class(call.ctype)(value)


def _result_class(program: Program, result: Call | None) -> Any:  # noqa: ANN401 - a class of ctypes
    if result is None:
        return ctypes.c_int
    return program.classes[result.struct.name] if result.struct else scalar_class(result.ctype)


def _same(program: Program, call: Call | None, mine: object, reference: Any) -> None:  # noqa: ANN401 - of ctypes
    if call is None:
        assert mine is None
        return
    if call.struct is None:
        assert mine == reference
        return
    assert isinstance(mine, StructValue)
    for name, _, count, _ in call.struct.members:
        expected = getattr(reference, name)
        if count:
            np.testing.assert_array_equal(getattr(mine, name), np.array(list(expected)))
        else:
            assert getattr(mine, name) == expected


@pytest.mark.parametrize("flags", [pytest.param(("-O0",), marks=pytest.mark.slow), ("-O2",)], ids=" ".join)
def test_random_values_arrive_as_the_compiler_passes_them(flags: tuple[str, ...], tmp_path: Path) -> None:
    literals = [random_literal(Random(seed), f"n{seed}") for seed in range(60)]
    library = HostLibrary(functions(literals), tmp_path, flags)
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
