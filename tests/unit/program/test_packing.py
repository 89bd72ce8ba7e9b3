# SPDX-License-Identifier: Apache-2.0
"""The question for alignments: members of structs by value, and only those that the answer may change."""

from __future__ import annotations

import re

import pytest
from minrpc.errors import CompileError
from minrpc.program.c_types import (
    CType,
    Declarations,
    Field,
    FunctionDeclaration,
    FunctionType,
    Parameter,
    Pointer,
    RecordType,
    Scalar,
    same_type,
)
from minrpc.program.packing import ask_alignments, ask_arguments

LONG = Scalar("long long", 8, "int")
SHORT = Scalar("short", 2, "int")


def record(tag: str, *members: CType) -> RecordType:
    """A struct with the members m0, m1, ..., each at a multiple of 8."""
    fields = tuple(Field(f"m{at}", member, 8 * at) for at, member in enumerate(members))
    return RecordType("struct", tag, 8 * len(members), complete=True, fields=fields)


def asked(ctype: CType) -> list[str]:
    """The structs and members that are asked about, each answered by the alignment 1."""
    function = FunctionDeclaration("f", "f", FunctionType(SHORT, (Parameter("s", ctype),)))
    questions: list[str] = []

    def answer(text: str) -> bytes:
        assert text.startswith('#include "user.c"\n')
        questions.extend(re.findall(r"__alignof__\((.*?)\)[,}]", text))
        return bytes([1] * len(questions))

    ask_alignments(Declarations({"f": function}), "user.c", 4, answer)
    return questions


def test_members_that_may_be_packed_are_asked_about_once() -> None:
    inner = record("inner", SHORT, LONG)
    outer = record("outer", SHORT, inner, inner)
    first = [f"(*(struct outer *)0).{member}" for member in ("m0", "m1")]
    inside = [f"(*(struct outer *)0).m1.{member}" for member in ("m0", "m1")]
    last = "(*(struct outer *)0).m2"
    assert asked(outer) == ["struct outer", *first, "struct inner", *inside, last]
    assert [field.alignment for field in outer.fields] == [1, 1, 1]
    assert (outer.limit, inner.limit) == (1, 1)
    assert [field.alignment for field in inner.fields] == [1, 1]
    assert asked(outer) == []


@pytest.mark.parametrize(
    "ctype",
    [
        RecordType("struct", "small", 2, True, fields=(Field("m0", SHORT, 0),)),
        Pointer(record("pointed", LONG), 4),
        LONG,
    ],
)
def test_nothing_is_asked_without_need(ctype: CType) -> None:
    assert asked(ctype) == []


def test_a_struct_that_the_question_can_not_name_leaves_the_others_their_alignments() -> None:
    small, local, other = record("small", SHORT), record("local", SHORT), record("other", LONG)
    parameters = tuple(Parameter("", ctype) for ctype in (small, local, other, Pointer(LONG, 4)))
    read = Declarations({"f": FunctionDeclaration("f", "f", FunctionType(SHORT, parameters))})

    def answer(text: str) -> bytes:
        if "struct local" in text:
            raise CompileError("struct local is not known")
        return bytes(8 if tag == "other" else 4 for tag in re.findall(r"va_arg\(list, struct (\w+)\)", text))

    ask_arguments(read, "user.c", answer)
    assert [each.passed for each in (small, local, other)] == [4, 0, 8]
    local.limit = 8
    with pytest.raises(CompileError):
        ask_arguments(read, "user.c", answer)


def test_a_member_that_has_no_alignment_is_a_bit_field_and_its_struct_the_same() -> None:
    known, other = record("known", SHORT, LONG), record("known", SHORT, LONG)
    read = Declarations({"f": FunctionDeclaration("f", "f", FunctionType(SHORT, (Parameter("s", known),)))})

    def answer(text: str) -> bytes:
        if "m1" in text:
            raise CompileError("__alignof__ of a bit-field")
        return bytes([4] * text.count("__alignof__"))

    ask_alignments(read, "user.c", 4, answer)
    assert [(each.bits, each.begin, each.alignment) for each in known.fields] == [(None, 0, 4), (64, 64, 0)]
    assert same_type(known, other)
