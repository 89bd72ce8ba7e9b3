# SPDX-License-Identifier: Apache-2.0
"""Types of one name in several files: the same type once, different ones by their files."""

from __future__ import annotations

from pathlib import Path

import pytest
from minrpc.program.c_types import (
    CType,
    Declarations,
    Field,
    Origin,
    Pointer,
    Qualified,
    RecordType,
    Scalar,
    Typedef,
    Variable,
    same_type,
)
from minrpc.program.merging import merged

INT, LONG = Scalar("int", 4, "int"), Scalar("long int", 4, "int")
UNSIGNED, CHAR, BYTE = (
    Scalar("unsigned", 4, "uint"),
    Scalar("char", 1, "char"),
    Scalar("unsigned char", 1, "char", False),
)


def record(tag: str, *members: CType) -> RecordType:
    """A struct with the members m0, m1, ..., each at a multiple of 8."""
    fields = tuple(Field(f"m{at}", member, 8 * at) for at, member in enumerate(members))
    return RecordType("struct", tag, 8 * len(members), complete=True, fields=fields)


def node(value: CType) -> RecordType:
    """struct node { value m0; struct node *m1; }."""
    made = record("node", value, INT)
    made.fields = (made.fields[0], Field("m1", Pointer(made, 8), 8))
    return made


def file(name: str, *types: CType, variables: tuple[Variable, ...] = ()) -> Declarations:
    """The declarations of a file."""
    named = [Origin(item.name if isinstance(item, Typedef) else item.tag, Path(name), item) for item in types]  # type: ignore[union-attr]
    return Declarations(
        every_variable=[Origin(item.name, Path(name), item) for item in variables], every_type=named
    )


@pytest.mark.parametrize(
    ("first", "other", "same"),
    [
        (record("a", INT), record("a", LONG), True),
        (record("a", INT), record("a", Qualified(Typedef("t", INT), "const")), True),
        (record("a", INT), record("a", UNSIGNED), False),
        (record("a", CHAR), record("a", BYTE), False),
        (record("a", INT), record("b", INT), False),
        (record("a", Pointer(INT, 4)), record("a", UNSIGNED), False),
        (node(INT), node(LONG), True),
        (node(INT), node(UNSIGNED), False),
        (record("", record("in", INT)), record("", record("in", UNSIGNED)), False),
        (node(INT), RecordType("struct", "node"), True),
        (node(INT), RecordType("struct", "other"), False),
        *(
            (record("a", INT), RecordType("struct", "a", size, complete=True, fields=(member,)), False)
            for size, member in [
                (8, Field("other", INT, 0)),
                (8, Field("m0", INT, 4)),
                (8, Field("m0", INT, 0, 4)),
                (16, Field("m0", INT, 0)),
            ]
        ),
    ],
)
def test_one_type_in_two_files(first: CType, other: CType, same: bool) -> None:
    assert same_type(first, other) is same is same_type(other, first)


def test_a_chain_of_a_thousand_structs_is_compared() -> None:
    first: CType = INT
    other: CType = UNSIGNED
    for number in range(1000):
        first, other = Pointer(record(f"s{number}", first), 8), Pointer(record(f"s{number}", other), 8)
    assert not same_type(first, other)


def test_types_of_one_name_have_their_files_names() -> None:
    a, b, c = record("pt", INT), record("pt", UNSIGNED), record("pt", LONG)
    found = merged(
        [merged([file("x/a.c", a), file("x/b.c", b)]), file("x/c.c", c), file("y/b.c", record("q", INT))]
    )
    assert {name: found.types[name] for name in found.types} == {
        "a.c:pt": a, "b.c:pt": b, "q": found.types["q"]
    }  # fmt: skip
    assert [one.shown for one in (a, b, c, record("q", INT))] == ["a.c:pt", "b.c:pt", "c.c:pt", "q"]
    again = merged([found, file("y/b.c", record("pt", CHAR))])
    assert sorted(again.types) == ["a.c:pt", "q", "x/b.c:pt", "y/b.c:pt"]


@pytest.mark.parametrize("second", [None, record("pt", UNSIGNED)], ids=["one", "two"])
def test_a_struct_that_a_file_only_names_gets_its_members_if_they_are_one(second: RecordType | None) -> None:
    opaque, whole = RecordType("struct", "pt"), record("pt", INT)
    more = file("c.c", second) if second else file("c.c", RecordType("struct", "pt"))
    found = merged(
        [
            merged([file("c.c", RecordType("struct", "pt")), file("a.c", opaque)]),
            merged([more, file("b.c", whole)]),
        ]
    )
    assert opaque.complete is (second is None)
    assert sorted(found.types) == (["pt"] if second is None else ["b.c:pt", "c.c:pt"])


def test_variables_of_one_name_have_their_files_names() -> None:
    def own(name: str) -> Variable:
        return Variable(name, name, INT, external=False)

    shared = Variable("shared", "shared", INT)
    found = merged(
        [
            file("a.c", variables=(own("count"), own("alone"), shared)),
            file("b.c", variables=(own("count"), own("shared"), shared)),
        ]
    )
    assert sorted(found.variables) == ["a.c:count", "alone", "b.c:count", "b.c:shared", "shared"]
    assert found.variables["shared"] is shared
