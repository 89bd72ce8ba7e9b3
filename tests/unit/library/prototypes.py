# SPDX-License-Identifier: Apache-2.0
"""Random C functions: their source, and random arguments for them.

A function's result and writes depend on each byte of its arguments, so an argument that arrives wrong shows.
Types have the same size everywhere: a function gives the same on this machine and on a target.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

_SCALARS: dict[str, tuple[Any, str]] = {
    "int8_t": (ctypes.c_int8, "int8"),
    "uint8_t": (ctypes.c_uint8, "uint8"),
    "int16_t": (ctypes.c_int16, "int16"),
    "uint16_t": (ctypes.c_uint16, "uint16"),
    "int32_t": (ctypes.c_int32, "int32"),
    "uint32_t": (ctypes.c_uint32, "uint32"),
    "int64_t": (ctypes.c_int64, "int64"),
    "uint64_t": (ctypes.c_uint64, "uint64"),
    "float": (ctypes.c_float, "float32"),
    "double": (ctypes.c_double, "float64"),
    "bool": (ctypes.c_bool, "bool"),
}
_ELEMENTS = 5

_HEAD = """\
#include <stdbool.h>
#include <stdint.h>

static uint64_t fold(uint64_t h, const void *data, unsigned int size)
{
	const unsigned char *at = data;

	while (size-- != 0) {
		h = (h ^ *at++) * 1099511628211u;
	}
	return h;
}

/* A small number of any arithmetic type, which depends on all of h. */
#define SMALL(type, h) ((type)(int)(((h) >> 17 ^ (h) >> 41) & 0x7f))
"""


@dataclass
class Struct:
    """name, and the members: name, scalar type, array's count or 0, bit field's width or 0."""

    name: str
    members: list[tuple[str, str, int, int]]

    def source(self) -> str:
        """The struct's definition, and the functions that read and write it."""
        lines, folds, fills = [], [], []
        for name, ctype, count, bits in self.members:
            lines.append(f"\t{ctype} {name}{f'[{count}]' if count else ''}{f' : {bits}' if bits else ''};\n")
            if count:
                folds.append(f"\th = fold(h, p->{name}, sizeof(p->{name}));\n")
                fills.append(
                    f"\tfor (int i = 0; i < {count}; i++) p->{name}[i] = SMALL({ctype}, h * (7 + i));\n"
                )
            else:
                folds.append(f"\t{{ {ctype} x = p->{name}; h = fold(h, &x, sizeof(x)); }}\n")
                limit = f" & {(1 << (bits - 1)) - 1 if bits > 1 else 0}" if bits else ""
                fills.append(f"\tp->{name} = SMALL({ctype}, h){limit}; h *= 31;\n")
        body = "".join(lines)
        return (
            f"struct {self.name} {{\n{body}}};\n"
            f"static uint64_t fold_{self.name}(uint64_t h, const struct {self.name} *p)\n"
            f"{{\n{''.join(folds)}\treturn h;\n}}\n"
            f"static void fill_{self.name}(struct {self.name} *p, uint64_t h)\n{{\n{''.join(fills)}}}\n"
        )

    def ctypes_class(self) -> type[ctypes.Structure]:
        """The struct as a ctypes class."""
        members: list[Any] = []
        for name, ctype, count, bits in self.members:
            kind = _SCALARS[ctype][0]
            members.append((name, kind, bits) if bits else (name, kind * count if count else kind))
        return type(self.name, (ctypes.Structure,), {"_fields_": members})


@dataclass
class Call:
    """kind of a parameter or result: "scalar", "array", "const array", "struct", "struct *", "const struct
    *"."""

    kind: str
    ctype: str
    struct: Struct | None = None

    def text(self, name: str = "") -> str:
        """The parameter or result in a prototype."""
        base = f"struct {self.struct.name}" if self.struct else self.ctype
        star = "*" if self.kind.endswith(("array", "*")) else ""
        const = "const " if self.kind.startswith("const") else ""
        return f"{const}{base} {star}{name}".strip()


@dataclass
class Prototype:
    """A function: its name, result and parameters."""

    name: str
    result: Call | None
    parameters: list[Call]

    def source(self) -> str:
        """The function's definition."""
        shown = (
            ", ".join(parameter.text(f"p{index}") for index, parameter in enumerate(self.parameters))
            or "void"
        )
        lines = ["\tuint64_t h = 14695981039346656037u;\n"]
        for index, parameter in enumerate(self.parameters):
            lines.append(_folded(parameter, f"p{index}"))
        for index, parameter in enumerate(self.parameters):
            if parameter.kind == "array":
                each = f"p{index}[i] = SMALL({parameter.ctype}, h * (3 + i));"
                lines.append(f"\tfor (int i = 0; i < {_ELEMENTS}; i++) {each}\n")
            elif parameter.kind == "struct *" and parameter.struct:
                lines.append(f"\tfill_{parameter.struct.name}(p{index}, h + {index});\n")
        if self.result is None:
            head = "void"
            lines.append("\t(void)h;\n")
        elif self.result.struct:
            name = self.result.struct.name
            head = f"struct {name}"
            lines.append(f"\tstruct {name} made;\n\tfill_{name}(&made, h);\n\treturn made;\n")
        else:
            head = self.result.ctype
            value = "h" if "int" in head else f"SMALL({head}, h)"
            lines.append(f"\treturn ({head}){value};\n")
        return f"{head} {self.name}({shown})\n{{\n{''.join(lines)}}}\n"

    def reference(self) -> str:
        """A function that calls it with arguments by address, compiled where the types are known."""
        given = ", ".join(
            f"a[{index}]" if parameter.kind.endswith(("array", "*")) else f"*({parameter.text()} *)a[{index}]"
            for index, parameter in enumerate(self.parameters)
        )
        store = f"*({self.result.text()} *)r = " if self.result else ""
        body = f"\t(void)a, (void)r;\n\t{store}{self.name}({given});\n"
        return f"void call_{self.name}(void **a, void *r)\n{{\n{body}}}\n"


def _folded(call: Call, name: str) -> str:
    if call.struct:
        mark = "" if call.kind.endswith("*") else "&"
        return f"\th = fold_{call.struct.name}(h, {mark}{name});\n"
    if call.kind.endswith("array"):
        return f"\th = fold(h, {name}, {_ELEMENTS} * sizeof(*{name}));\n"
    return f"\th = fold(h, &{name}, sizeof({name}));\n"


@dataclass
class Program:
    """Structs and functions."""

    structs: list[Struct]
    functions: list[Prototype]
    classes: dict[str, type[ctypes.Structure]] = field(default_factory=dict)

    def source(self) -> str:
        """The C file."""
        parts = [
            *(struct.source() for struct in self.structs),
            *(function.source() for function in self.functions),
        ]
        return "\n".join([_HEAD, *parts])

    def references(self) -> str:
        """Further C source: `call_NAME` for each function."""
        return "\n".join(function.reference() for function in self.functions)


def random_program(random: Random, functions: int, structs: int = 6) -> Program:
    """A program with `functions` functions over `structs` structs."""
    made = [_struct(random, f"s{index}") for index in range(structs)]
    program = Program(made, [_prototype(random, f"f{index}", made) for index in range(functions)])
    program.classes = {item.name: item.ctypes_class() for item in made}
    return program


def _struct(random: Random, name: str) -> Struct:
    members = []
    bit_fields = random.random() < 0.2
    for index in range(random.randint(1, 6)):
        # Structs have only bit fields or none: ctypes' layout of members after a bit field differs from C's.
        ctype = random.choice(["int32_t", "uint32_t"] if bit_fields else list(_SCALARS))
        bits = random.randint(2, 20) if bit_fields else 0
        count = random.randint(1, 5) if not bits and random.random() < 0.2 else 0
        members.append((f"m{index}", ctype, count, bits))
    return Struct(name, members)


def _call(random: Random, structs: list[Struct], kinds: list[str]) -> Call:
    kind = random.choice(kinds)
    if "struct" in kind:
        return Call(kind, "", random.choice(structs))
    return Call(kind, random.choice(list(_SCALARS)))


def _prototype(random: Random, name: str, structs: list[Struct]) -> Prototype:
    kinds = ["scalar"] * 6 + ["array", "const array", "struct", "struct *", "const struct *"]
    parameters = [_call(random, structs, kinds) for _ in range(random.randint(0, 12))]
    result = None if random.random() < 0.1 else _call(random, structs, ["scalar", "scalar", "struct"])
    return Prototype(name, result, parameters)


def random_scalar(random: Random, ctype: str, bits: int = 0) -> Any:  # noqa: ANN401 - of any type
    """A value of the type, often its smallest or largest."""
    if ctype == "bool":
        return random.random() < 0.5
    if "int" not in ctype:
        value = random.choice([0.0, -1.5, 1e10, random.uniform(-1e5, 1e5)])
        return float(np.float32(value)) if ctype == "float" else value
    width = bits or int(ctype.strip("uint_"))
    least, most = (0, (1 << width) - 1) if ctype[0] == "u" else (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    return random.choice([least, most, 0, random.randint(least, most)])


def random_array(random: Random, ctype: str, count: int = _ELEMENTS) -> np.ndarray[Any, Any]:
    """An array of the type."""
    return np.array([random_scalar(random, ctype) for _ in range(count)], _SCALARS[ctype][1])


def random_members(random: Random, struct: Struct) -> dict[str, Any]:
    """Values of a struct's members."""
    return {
        name: random_array(random, ctype, count) if count else random_scalar(random, ctype, bits)
        for name, ctype, count, bits in struct.members
    }


def scalar_class(ctype: str) -> Any:  # noqa: ANN401 - ctypes' classes share no base
    """ctypes' class of the scalar type."""
    return _SCALARS[ctype][0]
