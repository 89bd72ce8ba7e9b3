# SPDX-License-Identifier: Apache-2.0
"""Flexible arrays: their pointers, their elements in variables, and structs whose elements nobody counted."""

from __future__ import annotations

import copy
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minrpc import LoadedLibrary

from tests.device.test_values import C, Load

_MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "flexible.c"
#define NEW(type, count, element) ((type *)calloc(1, sizeof(type) + (count) * sizeof(element)))
int main(void)
{
	int32_t a[2] = {5, 7}, *b = a + 1;
	struct rows *r = NEW(struct rows, 2, void *);
	struct names *s = NEW(struct names, 2, void *);
	struct functions *f = NEW(struct functions, 1, void *);
	struct parts *p = NEW(struct parts, 2, p->part[0]);
	r->n = 2, r->rows[0] = a, r->rows[1] = b;
	rows_turn(r);
	s->n = 2, s->names[0] = "ab", s->names[1] = "cd";
	f->n = 1, f->called[0] = twice;
	p->n = 2, p->part[0].at = a, p->part[0].gain = 3, p->part[1].at = b, p->part[1].gain = 4;
	printf("%d %d %c ", (int)*r->rows[0], (int)*r->rows[1], name_end(s));
	printf("%d %d\\n", function_last(f, 20), (int)parts_sum(p));
	printf("%d %d\\n", (int)known_sum(), told_size());
	return 0;
}
"""


@pytest.fixture
def flexible(load: Load) -> LoadedLibrary:
    return load(C / "flexible.c")


def test_pointers_and_elements_arrive(flexible: LoadedLibrary, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(_MAIN)
    program = tmp_path / "main"
    subprocess.run(["gcc", "-w", f"-I{C}", tmp_path / "main.c", "-o", program], check=True, timeout=60)
    expected = subprocess.run([program], check=True, timeout=60, capture_output=True, text=True).stdout
    types, a, b = flexible.types, np.full(1, 5, np.int32), np.full(1, 7, np.int32)
    rows = types.rows(n=2, rows=[a, b])
    flexible["rows_turn"](rows)
    assert rows.rows == [b, a]
    name = flexible["name_end"](types.names(n=2, names=["ab", "cd"]))
    called = [
        flexible["function_last"](types.functions(1, [f]), 20) for f in (flexible["twice"], lambda x: x)
    ]
    parts = flexible["parts_sum"](types.parts(n=2, part=[(a, 3), (b, 4)]))
    assert called[1] == 20
    assert expected.splitlines() == [
        f"{rows.rows[0][0]} {rows.rows[1][0]} {chr(name)} {called[0]} {parts}",
        f"{flexible['known_sum']()} {flexible['told_size']()}",
    ]
    assert [flexible["text_size"](types.text(1, text)) for text in ("hello", b"hello")] == [5, 5]


def test_a_variable_has_its_elements(flexible: LoadedLibrary) -> None:
    types = flexible.types
    variables: Any = flexible.variables
    variables.known = types.line(3, [1, 2, 3])
    assert (variables.known.n, variables.known.tail.tolist()) == (3, [1, 2, 3])
    assert bytes(variables.told.text[:6]) == b"hello\0"
    assert flexible["line_sum"](variables.known) == flexible["line_sum"](variables["known"]) == 6
    variables.known = types.line(3, [4, 5, 6])
    assert flexible["known_sum"]() == 15
    variables.known.tail = [7, 8, 9]
    assert flexible["known_sum"]() == 24
    for tail in ([1, 2], [1, 2, 3, 4]):
        with pytest.raises(TypeError, match=r"known: .*another number of elements"):
            variables.known = types.line(3, tail)
        with pytest.raises(ValueError, match=r"expected int32_t \[3\], got"):
            variables.known.tail = tail
    assert flexible["known_sum"]() == 24
    with flexible.place(types.line(2, [1, 2])) as placed:
        placed.tail = [3, 4]
        assert (flexible["line_sum"](placed), placed.read().tail.tolist()) == (7, [3, 4])


def test_elements_whose_number_is_not_known_are_refused(flexible: LoadedLibrary) -> None:
    line = flexible.types.line
    read = flexible.read(flexible["line_at"]())
    assert repr(read) == f"line(n={read.n}, tail=…)"
    for use in (lambda: read.tail, lambda: copy.copy(read), lambda: setattr(read, "tail", [1])):
        with pytest.raises(ValueError, match="number of elements of a flexible array is not known"):
            use()
    with pytest.raises(TypeError, match="number of elements of its flexible array is not known"):
        flexible["line_sum"](read)
    with pytest.raises(TypeError, match="C passes no elements of a flexible array by value"):
        flexible["first_of"](line(1, [1]))
    with pytest.raises(TypeError, match="no room for the elements"):
        flexible.types.outer(1, line(1, [1]))
    made = line(1)
    held = made.tail
    with pytest.raises(ValueError, match="an array of this struct is in use"):
        made.tail = [1]
    assert held.size == 0
