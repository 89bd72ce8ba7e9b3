# SPDX-License-Identifier: Apache-2.0
"""Alignments of members that debug information does not tell: those of packed structs.

A packed struct may have the layout of another one, and on Arm it is still passed in other registers. The
compiler tells the alignments, in an object with a section of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeVar

from minrpc.errors import CompileError
from minrpc.program.c_types import (
    UNKNOWN,
    ArrayType,
    CType,
    Declarations,
    FunctionType,
    Pointer,
    RecordType,
    Typedef,
    alignment_of,
    declaration,
    rounded,
    size_of,
    strip,
    typedef_alignment,
)

SECTION: Final = ".minrpc_alignments"
"""The section of the compiled answer: a byte for each member, its alignment."""

_T = TypeVar("_T")


class _Asked(NamedTuple):
    """A member whose alignment is not known, or a struct, without `number`. expression: it in C; "" for a
    struct without a name."""

    record: RecordType
    number: int | None
    expression: str


_ARM_PROLOGUE: Final = """\
#pragma GCC reset_options
#pragma clang optimize on
__attribute__((used)) void minrpc_arguments(void)
{
"""

# Where va_arg begins, of arguments at the address 4, which is a multiple of 4 and not of 8. GCC looks also at
# bits without a name, and at the packing of members without one, which nothing else tells.
_ARM_ARGUMENT: Final = """\
{
__builtin_va_list list;
*(unsigned *)&list = 4;
(void)__builtin_va_arg(list, @TYPE@);
__asm__ volatile(".pushsection @SECTION@, \\"\\", %%progbits\\n.byte %c0\\n.popsection"
	: : "i"(*(unsigned *)&list - ((sizeof(@TYPE@) + 3) & ~3u)));
}
""".replace("@SECTION@", SECTION)


def ask_arguments(read: Declarations, source: str, answer: Callable[[str], bytes]) -> None:
    """Give structs by value the alignments that they have as arguments on Arm.

    read, source: as for `ask_alignments`. answer: as there; it optimizes, so that the number is a constant.
    Raises CompileError, but not for a struct of a plain layout that can't be asked about.
    """
    asked: dict[int, tuple[RecordType, str]] = {}
    for record, ctype in _named(read):
        if record.complete and not record.passed:
            asked.setdefault(id(record), (record, declaration(ctype)))

    def text(several: Sequence[tuple[RecordType, str]]) -> str:
        questions = "".join(_ARM_ARGUMENT.replace("@TYPE@", name) for _, name in several)
        return f'#include "{source}"\n{_ARM_PROLOGUE}{questions}}}\n'

    for (record, _), told in _told(list(asked.values()), text, answer):
        if isinstance(told, int):
            record.passed = told
        elif record.limit:
            raise told


def ask_alignments(read: Declarations, source: str, word: int, answer: Callable[[str], bytes]) -> None:
    """Give structs by value, and their members, the alignments that may be other ones than the type's own.

    read: the declarations of a C file. source: its path. word: the largest alignment that is passed like
    smaller ones, in bytes. answer: compiles a source, and gives the bytes of its section `SECTION`.
    """
    questions: dict[tuple[int, int | None], _Asked] = {}
    for record, ctype in _named(read):
        if not record.limit and (alignment_of(ctype) > word or not _is_plain(record)):
            for asked in _questions(ctype, declaration(ctype), f"(*({declaration(ctype)} *)0)."):
                questions.setdefault((id(asked.record), asked.number), asked)

    def text(several: Sequence[_Asked]) -> str:
        return _numbers(source, (f"__alignof__({item.expression or 'char[64]'})" for item in several))

    for (record, number, expression), told in _told(list(questions.values()), text, answer):
        if number is None:
            if not isinstance(told, int):
                raise told
            record.limit = told if expression else UNKNOWN
            continue
        fields = list(record.fields)
        field = fields[number]
        whole = replace(field, bits=field.width, first_bit=field.begin)
        # Clang tells a bit-field of its type's whole width as a member of this type.
        fields[number] = replace(field, alignment=told) if isinstance(told, int) else whole
        record.fields = tuple(fields)

    def packed(several: Sequence[_Asked]) -> str:
        return _numbers(source, (f"__builtin_has_attribute({item.expression}, packed)" for item in several))

    structs = [item for item in questions.values() if item.number is None and item.expression]
    numbered = [
        item for item in structs if item.record.limit == 1 and any(f.is_number for f in item.record.fields)
    ]
    for (record, _, _), told in _told(numbered, packed, answer):
        if isinstance(told, int):  # Clang can't tell, and makes no difference.
            record.alignment = told


def _named(read: Declarations) -> Iterator[tuple[RecordType, CType]]:
    """The structs by value that C can name, each with a type of a parameter or a result."""
    tables = read.functions, read.declared, read.statics
    for ctype in _by_value(item.type for table in tables for item in table.values()):
        record = strip(ctype)
        assert isinstance(record, RecordType)
        if isinstance(ctype, Typedef) or record.tag:
            yield record, ctype


def _told(
    asked: Sequence[_T], text: Callable[[Sequence[_T]], str], answer: Callable[[str], bytes]
) -> list[tuple[_T, int | CompileError]]:
    """Each with its number, or with the compiler's refusal. text: the question about several."""
    try:
        return list(zip(asked, answer(text(asked)) if asked else b"", strict=True))
    except CompileError as error:
        if (half := len(asked) // 2) > 0:
            return _told(asked[:half], text, answer) + _told(asked[half:], text, answer)
        return [(asked[0], error)]


def _numbers(source: str, expressions: Iterable[str]) -> str:
    """C of an answer with the values of constant expressions."""
    place = f'__attribute__((used, section("{SECTION}"))) const unsigned char minrpc_alignments[]'
    return f'#include "{source}"\n{place} = {{{", ".join(expressions)}}};\n'


def _is_plain(record: RecordType) -> bool:
    """True for a struct without bit-fields whose members have their types' own alignments."""
    at = 0
    for field in record.fields:
        inner = strip(field.type)
        due = alignment_of(field.type)
        ours = (
            field.bits is None
            and not field.alignment
            and (record.kind == "union" or rounded(at, due) == field.offset)
        )
        if not ours or (isinstance(inner, RecordType) and not _is_plain(inner)):
            return False
        at = max(at, field.offset + size_of(field.type))
    due = alignment_of(record)
    return not record.alignment and rounded(at, due) == record.size


def _by_value(functions: Iterable[FunctionType]) -> Iterator[CType]:
    """The parameters and results of the functions, and of the functions that these point to."""
    waiting: list[CType] = list(functions)
    seen: set[int] = set()
    while waiting:
        ctype = strip(waiting.pop())
        match ctype:
            case FunctionType(result, parameters):
                used = [result, *(parameter.type for parameter in parameters)]
                yield from (each for each in used if isinstance(strip(each), RecordType))
                waiting += used
            case Pointer(inner) | ArrayType(inner):
                waiting.append(inner)
            case RecordType() as record if id(record) not in seen:
                seen.add(id(record))
                waiting += [field.type for field in record.fields]


def _questions(ctype: CType, name: str, prefix: str) -> Iterator[_Asked]:
    """The struct and its members. name: the type in C, "" if it has none. prefix: of its members."""
    record = strip(ctype)
    assert isinstance(record, RecordType)
    yield _Asked(
        record, None, declaration(record) if record.tag else "" if typedef_alignment(ctype) else name
    )
    for number, field in enumerate(record.fields):
        if field.bits is None and field.name and not field.alignment:
            yield _Asked(record, number, prefix + field.name)
        inner, place = field.type, prefix + field.name
        while isinstance(array := strip(inner), ArrayType):
            inner, place = array.element, f"{place}[0]"
        if isinstance(strip(inner), RecordType):
            name = f"__typeof__({place})" if field.name else ""
            yield from _questions(inner, name, f"{place}." if field.name else prefix)
