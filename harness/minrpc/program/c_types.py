# SPDX-License-Identifier: Apache-2.0
"""C types as values, from debug information, with their text in C and numpy's types for them.

Layouts (sizes, offsets) are the compiler's: this module computes none. All targets are little-endian.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

import numpy as np

Kind = Literal["int", "uint", "float", "bool", "char", "complex", "other"]


class AlignmentLimits(NamedTuple):
    """Largest alignments that a target's compiler gives members of a struct, in bytes.

    word: of 8-byte numbers: 4 on 32-bit x86, else 8. vector: of vectors: 8 on Arm, else their size.
    """

    word: int = 8
    vector: int = 64


@dataclass(frozen=True, slots=True)
class Void:
    """`void`: the result of a function without a result, and the target of `void *`."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A basic type of the compiler: "short int", "float", "_Bool".

    size: in bytes. kind: "char" is plain, signed or unsigned char, with its sign in `signed`; "other" is a
        type that Python has no value for, such as `long double`.
    """

    name: str
    size: int
    kind: Kind
    signed: bool = True


@dataclass(frozen=True, slots=True)
class Enumeration:
    """An enum. tag: its name, "" if it has none."""

    tag: str
    size: int
    signed: bool
    constants: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Pointer:
    """size: of the pointer itself, in bytes. reference: True for C++'s, which the ABI passes as a pointer."""

    target: CType
    size: int
    reference: bool = False


@dataclass(frozen=True, slots=True)
class ArrayType:
    """count: None for a flexible array at the end of a struct. vector: True for a compiler's vector type."""

    element: CType
    count: int | None
    vector: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """A member. offset: bytes from the start. bits: a bit field's width; first_bit: its first bit's number,
    from the start. alignment: in bytes, if the member's own declaration gives it, else 0."""

    name: str
    type: CType
    offset: int
    bits: int | None = None
    first_bit: int = 0
    alignment: int = 0

    @property
    def begin(self) -> int:
        """Its first bit's number, of any member."""
        return 8 * self.offset if self.bits is None else self.first_bit

    @property
    def width(self) -> int:
        """Its number of bits, of any member."""
        return 8 * size_of(self.type) if self.bits is None else self.bits

    @property
    def is_number(self) -> bool:
        """True for a bit-field that GCC takes for a number, if no attribute packs it: on x86-64 a struct with
        a number below its own alignment is passed in memory."""
        return self.bits in (16, 32, 64) and self.first_bit % self.bits == 0


@dataclass(eq=False, slots=True)
class RecordType:
    """A struct or union. It may contain pointers to itself, so it is filled in after it was made.

    tag: its name, "" if it has none; alias: then the first typedef's name, if any. complete: False if only
        its name was declared.
    trivial: False for a C++ class that is passed by a hidden reference.
    alignment: in bytes, if its declaration gives it and the compiler tells, else 0. The attribute "packed"
        gives 1, but is told only if that counts.
    limit: if the compiler was asked for its members' alignments, its own, or `UNKNOWN`; else 0.
    passed: as an argument, its alignment in bytes, if the compiler was asked; else 0.
    file: its source file, if another one has another type of its name; else "".
    """

    kind: Literal["struct", "union"]
    tag: str
    size: int = 0
    complete: bool = False
    trivial: bool = True
    fields: tuple[Field, ...] = ()
    alignment: int = 0
    limit: int = 0
    passed: int = 0
    alias: str = ""
    file: str = ""

    @property
    def shown(self) -> str:
        """Its name for messages: "pt", or "a.c:pt"."""
        name = self.tag or self.alias or f"<anonymous {self.kind}>"
        return f"{self.file}:{name}" if self.file else name

    @property
    def names(self) -> tuple[str, str]:
        """Its kind and its name."""
        return self.kind, self.tag or self.alias

    @property
    def types(self) -> Sequence[CType]:
        """Its members' types."""
        return [member.type for member in self.fields]

    @property
    def places(self) -> tuple[object, ...]:
        """Its members' names and places."""
        # A bit-field of its type's whole width is as its type, since Clang does not tell it.
        return tuple((f.name, f.begin, f.bits % (8 * size_of(f.type)) if f.bits else 0) for f in self.fields)

    @property
    def is_flexible(self) -> bool:
        """True if its last member is an array without a number of elements."""
        last = strip(self.fields[-1].type) if self.fields else None
        return isinstance(last, ArrayType) and last.count is None

    def with_tail(self, count: int) -> RecordType:
        """The struct with a flexible array, as if this had `count` elements."""
        *others, last = self.fields
        array = strip(last.type)
        assert isinstance(array, ArrayType)
        size = max(self.size, last.offset + count * size_of(array.element))
        fields = *others, replace(last, type=replace(array, count=count))
        return replace(self, size=size, fields=fields)

    def __repr__(self) -> str:
        return f"Record({declaration(self)}, {self.size} bytes)"


@dataclass(frozen=True, slots=True)
class Qualified:
    """qualifier: "const", "volatile", "restrict" or "_Atomic"."""

    type: CType
    qualifier: str


@dataclass(frozen=True, slots=True)
class Typedef:
    """A name for a type. alignment: in bytes, if it gives another one, else 0."""

    name: str
    type: CType
    alignment: int = 0


@dataclass(frozen=True, slots=True)
class Parameter:
    """name: "" if the prototype has none."""

    name: str
    type: CType


@dataclass(frozen=True, slots=True)
class FunctionType:
    """The type that a pointer to a function points to."""

    result: CType
    parameters: tuple[Parameter, ...]
    variadic: bool = False

    @property
    def used(self) -> Sequence[CType]:
        """The types of the result and the parameters."""
        return [self.result, *(parameter.type for parameter in self.parameters)]

    @property
    def has_prototype(self) -> bool:
        """False for `int get();` of C before C23: its parameters are not known."""
        return bool(self.parameters) or not self.variadic


CType = Void | Scalar | Enumeration | Pointer | ArrayType | RecordType | Qualified | Typedef | FunctionType


@dataclass(frozen=True, slots=True)
class FunctionDeclaration:
    """A declared function. symbol: its name for the linker, which differs in C++.

    unsupported: why it can't be called; "" if it can. noreturn: declared as _Noreturn: its caller may have no
        code behind the call.
    """

    name: str
    symbol: str
    type: FunctionType
    unsupported: str = ""
    noreturn: bool = False

    @property
    def prototype(self) -> str:
        """Its declaration in C, with the names of its parameters."""
        return declaration(self.type, self.name)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of file scope. external: other files can name it; else its symbol is "a.c:count"."""

    name: str
    symbol: str
    type: CType
    external: bool = True


Item = TypeVar("Item")


class Origin(NamedTuple, Generic[Item]):
    """A type or a variable by its name in C, and the source file that has it."""

    name: str
    file: Path
    item: Item


@dataclass(frozen=True)
class Declarations:
    """A program's declarations: functions and variables by name, records, enumerations and typedefs by name.

    `types` has both tags of structs and enums, and typedefs; on a conflict of a struct or an enum the typedef
    wins. Types that differ, and variables with internal linkage, of one name in several files are "a.c:name".
    declared: functions that are defined elsewhere, and called here.
    statics: functions with internal linkage, also those whose calls were all inlined.
    every_variable, every_type: with their files.
    """

    functions: Mapping[str, FunctionDeclaration] = field(default_factory=dict)
    variables: Mapping[str, Variable] = field(default_factory=dict)
    types: Mapping[str, CType] = field(default_factory=dict)
    declared: Mapping[str, FunctionDeclaration] = field(default_factory=dict)
    statics: Mapping[str, FunctionDeclaration] = field(default_factory=dict)
    every_variable: Sequence[Origin[Variable]] = ()
    every_type: Sequence[Origin[CType]] = ()


VOID: Final = Void()

UNKNOWN: Final = 128
"""An alignment that the compiler can't be asked for, of a struct without a name: none is larger."""

# Sizes of numpy's number types in bytes, by kind letter, where they differ from the sizes of integers.
_NUMPY_SIZES: Final = {"f": (2, 4, 8), "c": (8, 16), "?": (1,)}


def strip(ctype: CType) -> CType:
    """The type without typedefs and qualifiers."""
    while isinstance(ctype, Typedef | Qualified):
        ctype = ctype.type
    return ctype


def typedef_alignment(ctype: CType) -> int:
    """The alignment that the outermost typedef with one of its own gives, in bytes; 0 without one."""
    while isinstance(ctype, Typedef | Qualified):
        if isinstance(ctype, Typedef) and ctype.alignment:
            return ctype.alignment
        ctype = ctype.type
    return 0


def same_type(first: CType, other: CType, known: set[tuple[int, int]] | None = None) -> bool:
    """True for one type of C, also from two files: structs and unions of one name whose members have the same
    names, places and types, numbers of the same kind and size. Qualifiers do not count. A struct of which
    only the name is known is that of any file.

    known: pairs of structs, by their ids, that are the same; further ones are added.
    """
    known = set() if known is None else known
    assumed: set[tuple[int, int]] = set()
    waiting = [(first, other)]
    while waiting:
        one, two = map(strip, waiting.pop())
        match one, two:
            case RecordType(), RecordType():
                pair = id(one), id(two)
                if one is two or pair in assumed or pair in known:
                    continue
                whole = one.complete and two.complete
                sized = one.size == two.size or one.is_flexible or two.is_flexible
                if one.names != two.names or (whole and not (sized and one.places == two.places)):
                    return False
                assumed.add(pair)
                if whole:
                    waiting += zip(one.types, two.types, strict=True)
            case Pointer(), Pointer() if one.size == two.size:
                waiting.append((one.target, two.target))
            case ArrayType(), ArrayType() if None in (one.count, two.count) or one.count == two.count:
                waiting.append((one.element, two.element))
            case FunctionType(), FunctionType() if one.variadic == two.variadic:
                if len(one.used) != len(two.used):
                    return False
                waiting += zip(one.used, two.used, strict=True)
            case Scalar(), Scalar() if "other" not in (one.kind, two.kind):
                if (one.size, one.kind, one.signed) != (two.size, two.kind, two.signed):
                    return False
            case _:
                if one != two:
                    return False
    known |= assumed
    return True


def is_const(ctype: CType) -> bool:
    """True for a const type, or an array of const elements."""
    while True:
        match ctype:
            case Qualified(_, "const"):
                return True
            case Qualified(inner, _) | Typedef(_, inner) | ArrayType(inner):
                ctype = inner
            case _:
                return False


def rounded(at: int, alignment: int) -> int:
    """The first multiple of the alignment from `at` on."""
    return -(-at // alignment) * alignment


def size_of(ctype: CType) -> int:
    """Size of a value in bytes; 0 for void, functions, incomplete types, flexible arrays."""
    match strip(ctype):
        case Scalar(_, size) | Enumeration(_, size) | Pointer(_, size):
            return size
        case RecordType() as record:
            return record.size
        case ArrayType(element, count):
            return size_of(element) * (count or 0)
    return 0


def alignment_of(ctype: CType) -> int:
    """An alignment in bytes that is sufficient for a value on every supported target."""
    match ctype:
        case Typedef(_, inner, own):
            return max(own, alignment_of(inner))
        case ArrayType(element, _, False) | Qualified(element, _):
            return alignment_of(element)
        case RecordType() as record:
            return max(1, record.alignment, *(max(f.alignment, alignment_of(f.type)) for f in record.fields))
        case ArrayType() as vector:
            return min(1 << (size_of(vector) - 1).bit_length(), 64)
    size = max(size_of(ctype), 1)
    return min(1 << (size - 1).bit_length(), 16)


def declaration(ctype: CType, name: str = "") -> str:
    """The C declaration of `name` with the type: "int (*compare)(const void *a)". "" gives the type alone."""
    match ctype:
        case Pointer(target, _, reference):
            mark = "&" if reference else "*"
            inner = f"({mark}{name})" if isinstance(target, ArrayType | FunctionType) else f"{mark}{name}"
            return declaration(target, inner)
        case Qualified(Pointer() as pointer, qualifier):
            return declaration(pointer, f"{qualifier} {name}".strip())
        case Qualified(ArrayType(element, count), qualifier):
            if not (isinstance(element, Qualified) and element.qualifier == qualifier):
                element = Qualified(element, qualifier)
            return declaration(ArrayType(element, count), name)
        case Qualified(inner, qualifier):
            return f"{qualifier} {declaration(inner, name)}"
        case ArrayType(element, count, False):
            return declaration(element, f"{name}[{'' if count is None else count}]")
        case FunctionType(result, parameters, variadic):
            shown = [declaration(parameter.type, parameter.name) for parameter in parameters]
            shown += ["..."] if variadic else []
            return declaration(result, f"{name}({', '.join(shown) or 'void'})")
    base = _base_name(ctype)
    return f"{base} {name}" if name else base


def _base_name(ctype: CType) -> str:
    match ctype:
        case Typedef(name) | Scalar(name):
            return name
        case Enumeration(tag):
            return f"enum {tag or '<anonymous>'}"
        case RecordType() as record:
            return " ".join(record.names) if record.tag else record.alias or f"{record.kind} <anonymous>"
        case ArrayType(element, count):
            return f"{declaration(element)} __vector({count})"
    return "void"


def numpy_dtype(ctype: CType) -> np.dtype[Any]:
    """numpy's type of an element; a structured one for a struct, with the C layout.

    It omits bit fields, which numpy can't represent. Raises TypeError for a type that numpy lacks.
    """
    stripped = strip(ctype)
    match stripped:
        case Scalar(_, size, kind, signed):
            letter = {"int": "i", "uint": "u", "float": "f", "bool": "?", "complex": "c"}.get(kind)
            if kind == "char":
                letter = "i" if signed else "u"
            if letter is not None and size in _NUMPY_SIZES.get(letter, (1, 2, 4, 8)):
                return np.dtype("?" if letter == "?" else f"<{letter}{size}")
        case Enumeration(_, size, signed):
            return np.dtype(f"<{'i' if signed else 'u'}{size}")
        case Pointer(_, size):
            return np.dtype(f"<u{size}")
        case ArrayType(element, count) if count is not None:
            return np.dtype((numpy_dtype(element), (count,)))
        case RecordType() as record if record.complete:
            return _record_dtype(record)
    raise TypeError(f"numpy has no type for {declaration(ctype)}")


def _record_dtype(record: RecordType) -> np.dtype[Any]:
    members = [item for item in flat_fields(record) if item.bits is None and size_of(item.type)]
    return np.dtype(
        {
            "names": [member.name for member in members],
            "formats": [numpy_dtype(member.type) for member in members],
            "offsets": [member.offset for member in members],
            "itemsize": record.size,
        }
    )


def flat_fields(record: RecordType) -> Iterator[Field]:
    """The members of a struct, including the members of its unnamed members, as in C."""
    for item in record.fields:
        inner = strip(item.type)
        if item.name or not isinstance(inner, RecordType):
            yield item
            continue
        for deeper in flat_fields(inner):
            yield Field(
                deeper.name,
                deeper.type,
                item.offset + deeper.offset,
                deeper.bits,
                item.offset * 8 + deeper.first_bit if deeper.bits is not None else 0,
            )


def value_range(ctype: CType) -> tuple[int, int] | None:
    """The smallest and the largest value of an integer type; None for another type."""
    match strip(ctype):
        case Scalar(_, size, "int") | Enumeration(_, size, True) | Scalar(_, size, "char", True):
            return -(1 << (8 * size - 1)), (1 << (8 * size - 1)) - 1
        case Scalar(_, size, "uint") | Enumeration(_, size, False) | Scalar(_, size, "char", False):
            return 0, (1 << (8 * size)) - 1
        case Scalar(_, _, "bool"):
            return 0, 1
    return None
