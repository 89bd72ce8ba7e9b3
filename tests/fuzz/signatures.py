# SPDX-License-Identifier: Apache-2.0
"""Random C functions, as source in C and as the same operations on values in Python.

Each function does the same: it folds each leaf of its arguments into a number, member by member, changes what
its pointers let it change, and makes its result of the number. So neither padding nor the place of a member
counts, and the results are the same on each machine.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from minrpc import StructValue

HEAD = """\
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static __attribute__((noinline, unused)) uint32_t mix(uint32_t h, uint64_t x)
{
	h = (h ^ (uint32_t)x) * 16777619u;
	h = (h ^ (uint32_t)(x >> 32)) * 2246822519u;
	return h ^ h >> 15;
}

static __attribute__((noinline, unused)) uint64_t pick(uint32_t h, int bits, bool sign)
{
	uint64_t top = 1ull << (bits - 1), often[] = {top, top - 1, 0, -1};
	uint64_t x = (h % 8 < 4 ? often[h % 8] : (h * 0x9E3779B97F4A7C15ull) ^ h) & (top - 1 + top);

	return sign ? (x ^ top) - top : x;
}

static __attribute__((noinline, unused)) uint64_t word_of(double x)
{
	return (union { double x; uint64_t word; }){x}.word;
}

static __attribute__((unused)) const double scales[] = {0.375, 0x1p90, 0x1p-90, -1};
#define AT(p) ((p) == 0 ? 0 : 1 + ((uintptr_t)(p) % __alignof__(*(p)) != 0))
"""


def mix(h: int, x: int) -> int:
    """The function of this name in C."""
    h = ((h ^ (x & 0xFFFFFFFF)) * 16777619) & 0xFFFFFFFF
    h = ((h ^ (x >> 32 & 0xFFFFFFFF)) * 2246822519) & 0xFFFFFFFF
    return h ^ h >> 15


def wrapped(x: int, bits: int, sign: bool) -> int:
    """The low bits as a number."""
    top = 1 << (bits - 1)
    x &= top - 1 + top
    return (x ^ top) - top if sign else x


def pick(h: int, bits: int, sign: bool) -> int:
    """The function of this name in C: often the least or the largest number."""
    return wrapped(
        (1 << (bits - 1), (1 << (bits - 1)) - 1, 0, -1)[h % 8] if h % 8 < 4 else (h * 0x9E3779B97F4A7C15) ^ h,
        bits,
        sign,
    )


SCALES = (0.375, 2.0**90, 2.0**-90, -1.0)


@dataclass(frozen=True)
class Leaf:
    """A number. c: its name in C. bits: that its values need on each machine. dtype: numpy's name; "" where
    it differs. constants: of an enum. definition: of its name. alone: True if C has no arrays of it."""

    c: str
    bits: int
    sign: bool
    dtype: str
    kind: str = "int"
    constants: tuple[int, ...] = ()
    definition: str = ""
    alone: bool = False


INTEGERS = [
    *(Leaf(f"int{bits}_t", bits, True, f"i{bits // 8}") for bits in (8, 16, 32, 64)),
    *(Leaf(f"uint{bits}_t", bits, False, f"u{bits // 8}") for bits in (8, 16, 32, 64)),
    Leaf("signed char", 8, True, "i1"),
    Leaf("char", 7, False, ""),
    Leaf("short", 16, True, "i2"),
    Leaf("unsigned int", 32, False, "u4"),
    Leaf("long", 32, True, "l"),
    Leaf("size_t", 32, False, "L"),
    Leaf("unsigned long long", 64, False, "u8"),
]
OTHERS = [
    Leaf("bool", 1, False, "?", "bool"),
    Leaf("float", 32, True, "f4", "float"),
    Leaf("double", 64, True, "f8", "float"),
]
COUNT = Leaf("uint16_t", 16, False, "u2", "count")


@dataclass(frozen=True)
class Array:
    """count: None at the end of a struct whose member n has it."""

    element: Type
    count: int | None


@dataclass(frozen=True)
class Pointer:
    """count: the elements that C uses."""

    target: Type
    count: int
    const: bool


@dataclass(frozen=True)
class Member:
    """name: "" for bits without a name, and for an anonymous struct. attributes: behind its declaration."""

    name: str
    type: Type
    bits: int | None = None
    attributes: str = ""


@dataclass(eq=False)
class Record:
    """name: its tag, or that of its typedef. c: the type's name in C. typedef: attributes of a typedef of its
    own. chosen: the member of a union that has a value. near: True if its members may lie anywhere."""

    kind: str
    name: str
    c: str
    members: list[Member] = field(default_factory=list)
    chosen: int = 0
    pack: int = 0
    attributes: str = ""
    typedef: str = ""
    near: bool = False

    @property
    def alone(self) -> bool:
        """True if C has no arrays of it."""
        return bool(self.typedef)

    @property
    def used(self) -> Iterator[Member]:
        """The members with a value."""
        for member in self.members if self.kind == "struct" else [self.members[self.chosen]]:
            if member.name:
                yield member
            elif isinstance(member.type, Record):
                yield from member.type.used

    @property
    def is_flexible(self) -> bool:
        return isinstance(self.members[-1].type, Array) and self.members[-1].type.count is None


Type = Leaf | Array | Pointer | Record


def declared(kind: Type, name: str) -> str:
    """The declaration of a name in C."""
    match kind:
        case Array(element, count):
            return declared(element, f"{name}[{'' if count is None else count}]")
        case Pointer(Pointer() as target, _, const):
            return declared(target, f"{'const ' * const}*{name}")
        case Pointer(target, _, const):
            inner = f"(*{name})" if isinstance(target, Array) else f"*{name}"
            return f"{'const ' * const}{declared(target, inner)}"
    return f"{kind.c} {name}"


def definition(record: Record) -> str:
    """A struct or union with the structs inside it that have no name."""
    text = f"{_body(record)};\n"
    if record.c == record.name:
        text = f"typedef {_body(record)} {record.c};\n"
    elif record.typedef:
        text += f"typedef {record.kind} {record.name} {record.c} {record.typedef};\n"
    return f"#pragma pack(push, {record.pack})\n{text}#pragma pack(pop)\n" if record.pack else text


def _body(record: Record) -> str:
    lines = [f"{record.kind} {record.attributes} {'' if record.c == record.name else record.name} {{"]
    for member in record.members:
        if not member.name and isinstance(member.type, Record):
            lines.append(f"{_body(member.type)};")
            continue
        width = "" if member.bits is None else f" : {member.bits}"
        lines.append(f"\t{declared(member.type, member.name)}{width}{member.attributes};")
    return "\n".join([*lines, "}"])


def statements(operation: str, kind: Type, x: str, bits: int | None = None, depth: int = 0) -> str:
    """C that folds, bumps or makes the value of an expression."""
    index = f"i{depth}"
    each = f"for (int {index} = 0; {index} < %s; {index}++) {{ %s }}\n"
    match kind:
        case Leaf():
            return _leaf(operation, kind, x, kind.bits if bits is None else bits)
        case Array(element, count):
            inner = statements(operation, element, f"{x}[{index}]", depth=depth + 1)
            return each % ("p->n" if count is None else count, inner)
        case Pointer(target, count, const):
            if operation == "make":
                return f"{x} = 0;\n"
            if isinstance(target, Record):
                inner = f"h = {operation}_{target.name}(h, {x} + {index});"
            else:
                inner = statements(operation, target, f"{x}[{index}]", depth=depth + 1)
            through = f"if ({x} != 0) " + each % (count, inner)
            return f"h = mix(h, AT({x}));\n{through}" if operation == "fold" else "" if const else through
    return "".join(
        statements(operation, each.type, f"{x}.{each.name}", each.bits, depth) for each in kind.used
    )


def _leaf(operation: str, leaf: Leaf, x: str, bits: int) -> str:
    if operation == "fold":
        return f"h = mix(h, {f'word_of({x})' if leaf.kind == 'float' else f'(uint64_t)({x})'});\n"
    if leaf.kind == "count":
        return ""
    if operation == "bump":
        return f"{x} = -{x};\n" if leaf.kind == "float" else f"{x} ^= 1;\n"
    value = f"pick(h, {bits}, {int(leaf.sign)})"
    if leaf.kind == "float":
        value = f"((double)(int64_t)pick(h, {16 if bits == 32 else 50}, 1) * scales[h >> 8 & 3])"
    elif leaf.kind == "enum":
        first, second, third = map(_literal, leaf.constants)
        value = f"(h % 3 == 0 ? {first} : h % 3 == 1 ? {second} : {third})"
    return f"h = mix(h, 1);\n{x} = ({leaf.c}){value};\n"


def _literal(number: int) -> str:
    if number == -(1 << 63):
        return f"(-{(1 << 63) - 1}ll - 1)"
    return f"{number}{'ull' if number >> 63 > 0 else 'll' if number.bit_length() > 31 else ''}"


def operations(record: Record, names: Sequence[str] = ("fold", "bump", "make")) -> str:
    """The functions in C that fold, bump and make a record."""
    return "".join(
        f"static __attribute__((unused)) uint32_t {name}_{record.name}(uint32_t h, "
        f"{'const ' * (name == 'fold')}{record.c} *p)\n"
        f"{{\n{statements(name, record, '(*p)')}return h;\n}}\n"
        for name in names
    )


class Slot(NamedTuple):
    """A leaf in its holder: an attribute or an element. leaf: None for a pointer, whose `key` is 1, or 0 for
    NULL. frozen: 0 if C may change it; 1 in a struct by value; 2 behind a pointer to const."""

    leaf: Leaf | None
    bits: int
    holder: Any
    key: Any
    frozen: int

    @property
    def value(self) -> Any:  # noqa: ANN401 - a number
        return got(self.holder, self.key)

    @property
    def word(self) -> int:
        """The value's 64 bits, as C folds them."""
        if self.leaf is None:
            return int(self.key)
        if self.leaf.kind == "float":
            return int.from_bytes(struct.pack("<d", self.value), "little")
        return int(self.value) & 0xFFFFFFFFFFFFFFFF


def got(holder: Any, key: Any) -> Any:  # noqa: ANN401 - of any type
    """The member or the element."""
    return getattr(holder, key) if isinstance(key, str) else holder[key]


def put(holder: Any, key: Any, value: Any) -> None:  # noqa: ANN401 - of any type
    """Sets the member or the element."""
    if isinstance(key, str):
        setattr(holder, key, value)
    else:
        holder[key] = value


def walk(kind: Type, holder: Any, key: Any, frozen: int = 0, bits: int | None = None) -> Iterator[Slot]:  # noqa: ANN401
    """The leaves, in C's order. The holder is a model or what Python has of C's memory, whose arrays of
    numbers are set as a whole."""
    if isinstance(kind, Leaf):
        yield Slot(kind, kind.bits if bits is None else bits, holder, key, frozen)
        return
    value = got(holder, key)
    match kind:
        case Array(element):
            whole = value.copy() if isinstance(value, np.ndarray) and not frozen else value
            for index in range(len(value)):
                yield from walk(element, whole, index, frozen)
            if whole is not value and whole.tobytes() != value.tobytes():
                put(holder, key, whole)
        case Pointer(target, count, const):
            yield Slot(None, 0, None, int(value is not None), 2)
            cells = value.cells if isinstance(value, Object) else value
            if isinstance(cells, StructValue):
                cells = [cells]
            for index in range(count if value is not None else 0):
                yield from walk(target, cells, index, 2 if const or frozen == 2 else 0)
        case Record():
            for member in kind.used:
                yield from walk(member.type, value, member.name, frozen, member.bits)


def fold(h: int, slots: Iterable[Slot]) -> int:
    """The function of this name in C."""
    for slot in slots:
        h = mix(h, slot.word)
    return h


def bump(slots: Iterable[Slot]) -> None:
    """The operation in C; behind two pointers to one object it happens twice, one after the other."""
    for slot in slots:
        if slot.leaf is None or slot.frozen or slot.leaf.kind == "count":
            continue
        value = (
            -slot.value
            if slot.leaf.kind == "float"
            else wrapped(int(slot.value) ^ 1, slot.bits, slot.leaf.sign)
        )
        put(slot.holder, slot.key, bool(value) if slot.leaf.kind == "bool" else value)


class Made:
    """Makes values of a number, as C does."""

    def __init__(self, h: int) -> None:
        self.h = h

    def __call__(self, kind: Type, bits: int | None = None) -> Any:  # noqa: ANN401 - of the type
        """A model: a number, a list, a namespace; a pointer is None."""
        match kind:
            case Leaf():
                return self._leaf(kind, kind.bits if bits is None else bits)
            case Array(element, count):
                return [self(element) for _ in range(count or 0)]
            case Record():
                return SimpleNamespace(**{each.name: self(each.type, each.bits) for each in kind.used})
        return None

    def _leaf(self, leaf: Leaf, bits: int) -> Any:  # noqa: ANN401 - a number
        if leaf.kind == "count":
            return 0
        self.h = mix(self.h, 1)
        if leaf.kind == "float":
            return pick(self.h, 16 if bits == 32 else 50, True) * SCALES[self.h >> 8 & 3]
        if leaf.kind == "enum":
            return leaf.constants[self.h % 3]
        value = pick(self.h, bits, leaf.sign)
        return bool(value) if leaf.kind == "bool" else value


def plain(model: Any) -> Any:  # noqa: ANN401 - of any type
    """A model without pointers as Python's own values."""
    if isinstance(model, SimpleNamespace):
        return {name: plain(value) for name, value in vars(model).items()}
    return [plain(value) for value in model] if isinstance(model, list) else model


@dataclass(eq=False)
class Object:
    """Elements in memory that pointers point to. c: the pointer in C. parent: the object that it lies in,
    there at `path`: a member's name, or an index."""

    kind: Type
    cells: Any
    c: str
    parent: Object | None = None
    path: str | int = 0


class View:
    """The rest of a list."""

    def __init__(self, cells: Any, begin: int) -> None:  # noqa: ANN401 - a list or a view
        self.cells, self.begin = cells, begin

    def __len__(self) -> int:
        return len(self.cells) - self.begin

    def __getitem__(self, index: int) -> Any:  # noqa: ANN401 - an element
        return self.cells[self.begin + index]

    def __setitem__(self, index: int, value: object) -> None:
        self.cells[self.begin + index] = value


def pointers(kind: Type, holder: Any, key: Any, c: str = "") -> Iterator[tuple[Pointer, Any, Any, str]]:  # noqa: ANN401
    """The pointers in a value: the holder's type, the holder, the key and the expression in C."""
    match kind:
        case Pointer():
            yield kind, holder, key, c
        case Array(element):
            inner = got(holder, key)
            for index in range(len(inner)):
                yield from pointers(element, inner, index, f"{c}[{index}]")
        case Record():
            inner = got(holder, key)
            for member in kind.used:
                yield from pointers(member.type, inner, member.name, f"{c}.{member.name}")


def _decoy(record: Record) -> Record:
    name = f"d{record.name}"
    made = replace(
        record, name=name, c=name if record.c == record.name else f"{record.kind} {name}", typedef=""
    )
    swaps = {"i1": INTEGERS[4], "i4": INTEGERS[6], "u2": INTEGERS[1], "f4": INTEGERS[2]}
    for index, member in enumerate(made.members):
        if (
            member.name
            and isinstance(member.type, Leaf)
            and member.type.dtype in swaps
            and member.bits is None
        ):
            made.members = list(made.members)
            made.members[index] = replace(member, type=swaps[member.type.dtype])
            break
    return made


@dataclass(eq=False)
class Case:
    """A function. way: "plain" if it is the body itself; "fake" if it calls the body, which is in Python;
    "callback" if it gets a pointer to the body."""

    seed: int
    index: int
    records: list[Record]
    enums: list[Leaf]
    parameters: list[Type]
    result: Type | None
    way: str

    @property
    def decoys(self) -> dict[Record, Record]:
        """For each record another one, which differs in a number or only in its name."""
        return {each: _decoy(each) for each in self.records}

    def definitions(self) -> str:
        """The C file's part for it. The body is left to Python, if WITNESS is not defined, for a fake."""
        shown = [declared(kind, f"p{index}") for index, kind in enumerate(self.parameters)]
        given = ", ".join(f"p{index}" for index in range(len(self.parameters)))
        call = "" if self.result is None else "return "
        text = "".join(leaf.definition for leaf in self.enums)
        text += "".join(definition(each) for each in self.records)
        text += "".join(map(operations, self.records))
        for decoy in self.decoys.values():
            text += f"{definition(decoy)}{decoy.c} v{decoy.name};\n"
            if not decoy.is_flexible:
                text += operations(decoy, ["fold"]) + f"uint32_t g{decoy.name}(void)\n{{\n"
                text += f"return fold_{decoy.name}(0, &v{decoy.name});\n}}\n"
        if self.way == "plain":
            return text + self._body(f"f{self.index}", shown)
        if self.way == "fake":
            text += f"{self._head(f'k{self.index}', shown)};\n{self._head(f'f{self.index}', shown)}\n"
            text += f"{{\n{call}k{self.index}({given});\n}}\n#ifdef WITNESS\n"
            return f"{text}{self._body(f'k{self.index}', shown)}#endif\n"
        text += self._body(f"k{self.index}", shown)
        pointer = self._head("(*called)", shown)
        return f"{text}{self._head(f'f{self.index}', [*shown, pointer])}\n{{\n{call}called({given});\n}}\n"

    def _head(self, name: str, shown: Sequence[str]) -> str:
        inner = f"{name}({', '.join(shown) or 'void'})"
        return f"void {inner}" if self.result is None else declared(self.result, inner)

    def _body(self, name: str, shown: Sequence[str]) -> str:
        lines = [f"uint32_t h = {self.index};\n"]
        for index, kind in enumerate(self.parameters):
            lines += [statements("fold", kind, f"p{index}")]
            # A number by value, and what a pointer to const leads to, stay.
            if isinstance(kind, Record | Pointer):
                lines += [statements("bump", kind, f"p{index}")]
        if self.result is not None:
            lines += [f"{declared(self.result, 'r')};\n", statements("make", self.result, "r"), "return r;\n"]
        return f"{self._head(name, shown)}\n{{\n{''.join(lines) or '(void)h;'}}}\n"

    def answer(self, *given: Any) -> Any:  # noqa: ANN401 - of any type
        """The body's work, on models or on Python's objects; the result as a model."""
        h = self.index
        for index, kind in enumerate(self.parameters):
            by_value = int(not isinstance(kind, Pointer))
            h = fold(h, walk(kind, given, index, by_value))
            bump(walk(kind, given, index, by_value))
        return Made(h)(self.result) if self.result is not None else None

    def digest(self, result: Any, given: Sequence[Any]) -> int:  # noqa: ANN401 - of any type
        """The number of the result, and of the arguments after the call."""
        h = fold(0, walk(self.result, [result], 0)) if self.result is not None else 0
        for index, kind in enumerate(self.parameters):
            h = fold(h, walk(kind, given, index))
        return h


class Call:
    """Random arguments of a function as models, and a function in C that calls it with them."""

    def __init__(self, case: Case, number: int) -> None:
        self.case = case
        self.number = number
        self.random = Random(f"{case.seed} {case.index} {number}")
        self.roots: list[Object] = []
        self._objects: list[Object] = []
        self._lines: list[str] = []
        self.given: list[Any] = []
        for index, kind in enumerate(case.parameters):
            name = f"a{index}"
            self._lines.append(f"{declared(kind, name)};")
            self.given.append(self._made(kind, name))
            self._point(kind, self.given, index, name, 0)

    def source(self) -> str:
        """The function in C: it prints the number."""
        case = self.case
        given = [f"a{index}" for index in range(len(case.parameters))] + [f"k{case.index}"] * (
            case.way == "callback"
        )
        call = f"f{case.index}({', '.join(given)});\n"
        after = [statements("fold", kind, f"a{index}") for index, kind in enumerate(case.parameters)]
        if case.result is not None:
            call = f"{declared(case.result, 'r')} = {call}"
            after.insert(0, statements("fold", case.result, "r"))
        return (
            f"static void call{case.index}_{self.number}(void)\n{{\nuint32_t h;\n"
            + "\n".join(self._lines)
            + f"\n{call}"
            f'h = 0;\n{"".join(after)}printf("%u\\n", (unsigned int)h);\n}}\n'
        )

    def _made(self, kind: Type, name: str) -> Any:  # noqa: ANN401 - of the type
        h = self.random.getrandbits(32)
        self._lines.append(f"h = {h}u;\n{statements('make', kind, name)}")
        return Made(h)(kind)

    def _point(self, kind: Type, holder: Any, key: Any, c: str, depth: int) -> None:  # noqa: ANN401
        """Set the pointers in a value."""
        for pointer, each, at, expression in list(pointers(kind, holder, key, c)):
            target = self._target(pointer, depth)
            if target is not None:
                put(each, at, target)
                self._lines.append(f"{expression} = {target.c};")

    def _target(self, pointer: Pointer, depth: int) -> Object | None:
        if self.random.random() < 0.1 or depth > 3:
            return None
        known = [
            one for one in self._objects if one.kind == pointer.target and len(one.cells) >= pointer.count
        ]
        if not known or self.random.random() < 0.4:
            return self._new(pointer.target, pointer.count, depth)
        found = self.random.choice(known)
        rest = len(found.cells) - pointer.count
        if isinstance(pointer.target, Leaf) and rest and self.random.random() < 0.5:
            begin = self.random.randint(1, rest)
            found = Object(found.kind, View(found.cells, begin), f"({found.c} + {begin})", found, begin)
        return found

    def _new(self, kind: Type, count: int, depth: int) -> Object:
        c = f"o{len(self.roots)}"
        root = Object(kind, [], c)
        self.roots.append(root)
        if isinstance(kind, Leaf) and not kind.alone:
            count += self.random.randint(0, 2)
        if isinstance(kind, Record) and kind.is_flexible:
            tail = self.random.randint(0, 3)
            element = f"sizeof((({kind.c} *)0)->{kind.members[-1].name}[0])"
            self._lines.append(f"static _Alignas(64) char {c}_[sizeof({kind.c}) + {tail} * {element}];")
            self._lines.append(f"{declared(Pointer(kind, 1, False), c)} = (void *){c}_;\n{c}->n = {tail};")
            h = self.random.getrandbits(32)
            self._lines.append(f"h = make_{kind.name}({h}u, {c});")
            made = Made(h)
            fixed = replace_tail(kind, tail)
            root.cells.append(made(fixed))
            root.cells[0].n = tail
        elif count == 1:
            self._lines.append(
                f"static {declared(kind, f'{c}_')};\n{declared(Pointer(kind, 1, False), c)} = &{c}_;"
            )
            root.cells.append(self._made(kind, f"{c}_"))
        else:
            self._lines.append(f"static {declared(Array(kind, count), c)};")
            root.cells += self._made(Array(kind, count), c)
        inside = self._inside(root) if isinstance(kind, Record) and count == 1 and not kind.near else []
        self._objects += [one for one in inside if isinstance(one.kind, Leaf)]
        for index in range(count):
            self._point(kind, root.cells, index, f"{c}[{index}]", depth + 1)
        self._objects += [root, *(one for one in inside if not isinstance(one.kind, Leaf))]
        return root

    def _inside(self, root: Object) -> list[Object]:
        """The structs and arrays in a struct, which other pointers may point to."""
        assert isinstance(root.kind, Record)
        found = []
        for member in root.kind.used:
            value = getattr(root.cells[0], member.name)
            place = f"{root.c}->{member.name}"
            if isinstance(member.type, Record):
                found.append(Object(member.type, [value], f"(&{place})", root, member.name))
            elif isinstance(member.type, Array) and isinstance(member.type.element, Leaf) and value:
                found.append(Object(member.type.element, value, f"({place})", root, member.name))
        return found


def replace_tail(record: Record, count: int) -> Record:
    """The struct with a number of elements at its end."""
    *others, last = record.members
    assert isinstance(last.type, Array)
    return replace(record, members=[*others, replace(last, type=replace(last.type, count=count))])


class _Types:
    """Makes the types of a case."""

    def __init__(self, random: Random, prefix: str, *, single: bool) -> None:
        """single: True for functions in Python: C does not tell them how many structs a pointer has."""
        self.random, self.prefix, self.single = random, prefix, single
        self.records: list[Record] = []
        self.names: list[Leaf] = []
        self._members = 0

    def leaf(self) -> Leaf:
        random = self.random
        chance = random.random()
        if chance < 0.12:
            return self._enum()
        found = random.choice(INTEGERS if chance < 0.7 else OTHERS)
        if chance > 0.3 or not found.dtype:
            return found
        c, alone, attributes = f"n{self.prefix}_{len(self.names)}", random.random() < 0.4, ""
        if alone:
            attributes = f" __attribute__((aligned({random.choice([8, 16])})))"
        text = f"typedef {found.c} {c}{attributes};\n"
        self.names.append(replace(found, c=c, definition=text, alone=alone))
        return self.names[-1]

    def _enum(self) -> Leaf:
        name = f"e{self.prefix}_{len(self.names)}"
        constants, bits, sign, dtype = self.random.choice(
            [
                ((0, 7, 200), 8, False, "u1"),
                ((-3, 0, 100), 8, True, "i1"),
                ((0, 1, 40000), 16, False, "u2"),
                ((-70000, 3, 70000), 32, True, "i4"),
                ((0, 9, 2**32 - 1), 32, False, "u4"),
                ((-1, 5, 1 << 40), 64, True, "i8"),
                ((0, 5, 2**64 - 1), 64, False, "u8"),
            ]
        )
        packed = bits < 32 and self.random.random() < 0.7
        shown = ", ".join(f"{name}_{index} = {_literal(value)}" for index, value in enumerate(constants))
        text = f"enum {'__attribute__((packed)) ' * packed}{name} {{ {shown} }};\n"
        # Without `packed` some compilers make it an int.
        dtype = dtype if packed or bits >= 32 else ""
        self.names.append(Leaf(f"enum {name}", bits, sign, dtype, "enum", constants, text))
        return self.names[-1]

    def record(self, depth: int, *, flexible: bool = False) -> Record:
        """A struct or union of its own; deeper ones are smaller."""
        random = self.random
        name = f"s{self.prefix}_{len(self.records)}_{depth}_{self._members}"
        union = not flexible and random.random() < 0.2
        made = Record("union" if union else "struct", name, f"{'union' if union else 'struct'} {name}")
        style = random.random()
        if style < 0.12:
            made.attributes, made.near = "__attribute__((packed))", True
        elif style < 0.2:
            made.attributes, made.near = f"__attribute__((packed, aligned({random.choice([2, 4, 8])})))", True
        elif style < 0.28:
            made.pack, made.near = random.choice([1, 2, 4]), True
        elif style < 0.4:
            made.attributes = f"__attribute__((aligned({random.choice([4, 8, 16])})))"
        if flexible:
            made.members.append(Member("n", COUNT))
        for _ in range(random.randint(1, 5 - depth)):
            made.members += self._member(made, depth)
        if flexible:
            element = self.kind(depth + 2, alone=False)
            made.members.append(Member(self._name(), Array(element, None)))
        made.chosen = random.choice(
            [i for i, member in enumerate(made.members) if member.name or member.bits is None]
        )
        if random.random() < 0.2:
            made.c = name
        elif (
            random.random() < 0.15
            and not flexible
            and not any(_points(each.type, made) for each in made.members)
        ):
            made.c, made.typedef = f"{name}_t", f"__attribute__((aligned({random.choice([4, 8, 16])})))"
        self.records.append(made)
        return made

    def _name(self) -> str:
        self._members += 1
        return f"m{self._members}"

    def _member(self, record: Record, depth: int) -> list[Member]:
        random = self.random
        chance = random.random()
        if chance < 0.2:
            return self._bits(record)
        if chance < 0.3 and depth < 3:
            inner = Record(random.choice(["struct", "union"]), "", "", near=record.near)
            for _ in range(random.randint(1, 3)):
                inner.members += self._member(inner, depth + 2)
            record.near |= inner.near
            inner.chosen = random.choice(
                [i for i, each in enumerate(inner.members) if each.name or each.bits is None]
            )
            return [Member("", inner)]
        kind = self.kind(depth + 1)
        attributes = ""
        if random.random() < 0.12:
            attributes = f" __attribute__((aligned({random.choice([2, 4, 8, 16])})))"
        elif random.random() < 0.05:
            attributes, record.near = " __attribute__((packed))", True
        return [Member(self._name(), kind, None, attributes)]

    def _bits(self, record: Record) -> list[Member]:
        random = self.random
        leaf = random.choice(
            [*(one for one in INTEGERS if one.dtype in ("i1", "u1", "u2", "i4", "u4", "u8", "i8")), OTHERS[0]]
        )
        found = []
        if random.random() < 0.3 and record.kind == "struct":
            found.append(Member("", leaf, random.choice([0, random.randint(1, leaf.bits)])))
        if random.random() < 0.2:
            leaf = self._enum()
        width = leaf.bits if leaf.kind == "enum" else random.randint(1, leaf.bits)
        return [*found, Member(self._name(), leaf, width)]

    def kind(self, depth: int, *, alone: bool = True) -> Type:
        """A member's type. alone: also one of which there are no arrays."""
        random = self.random
        chance = random.random()
        if chance < 0.14 and depth < 3:
            found: Type = self.record(depth)
        elif chance < 0.3:
            element = self.kind(depth + 1, alone=False)
            found = Array(element, random.randint(1, 3))
        elif chance < 0.4 and depth < 4:
            found = self.pointer(depth + 1)
        else:
            found = self.leaf()
        if not alone and isinstance(found, Leaf | Record) and found.alone:
            return INTEGERS[0]
        return found

    def pointer(self, depth: int) -> Pointer:
        """A pointer to numbers, arrays of them, other pointers, or structs."""
        random = self.random
        const = random.random() < 0.3
        chance = random.random()
        if depth == 1 and not self.single and chance < 0.15:
            return Pointer(self.record(1, flexible=True), 1, const)
        if chance < 0.5 and depth < 3:
            plain = [one for one in self.records if not one.is_flexible]
            record = random.choice(plain) if plain and random.random() < 0.6 else self.record(depth)
            many = depth == 1 and not (record.alone or self.single)
            return Pointer(record, random.randint(1, 2) if many else 1, const)
        leaf = self.leaf()
        if not leaf.dtype:
            leaf = INTEGERS[random.randrange(8)]
        if chance < 0.6 and not leaf.alone:
            return Pointer(Array(leaf, random.randint(1, 3)), random.randint(1, 2), const)
        if chance < 0.7 and depth == 1 and not leaf.alone:
            return Pointer(
                Pointer(leaf, random.randint(1, 3), random.random() < 0.5), random.randint(1, 3), const
            )
        return Pointer(leaf, 1 if leaf.alone else random.randint(1, 4), const)


def _points(kind: Type, record: Record) -> bool:
    return isinstance(kind, Pointer) and kind.target is record


def random_case(seed: int, index: int) -> Case:
    """The function number `index` of a seed: it does not depend on the others."""
    random = Random(f"{seed} {index}")
    way = random.choice(["plain", "plain", "plain", "fake", "callback"])
    types = _Types(random, str(index), single=way != "plain")
    parameters: list[Type] = []
    for _ in range(random.choice([0, 1, 1, 2, 2, 3, 3, 4, 6, 9])):
        chance = random.random()
        if chance < 0.35:
            parameters.append(types.leaf())
        elif chance < 0.65:
            plain = [one for one in types.records if not one.is_flexible]
            parameters.append(random.choice(plain) if plain and random.random() < 0.5 else types.record(0))
        else:
            parameters.append(types.pointer(1))
    chance = random.random()
    result: Type | None = types.leaf()
    plain = [one for one in types.records if not one.is_flexible]
    if chance < 0.1:
        result = None
    elif chance < 0.5:
        result = random.choice(plain) if plain and random.random() < 0.7 else types.record(0)
    return Case(seed, index, types.records, types.names, parameters, result, way)
