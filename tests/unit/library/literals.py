# SPDX-License-Identifier: Apache-2.0
"""Random C types with a value each, as a literal in C and as a value in Python.

For each there are three functions: `make` returns the literal, `fold` hashes all members of its argument, and
`expect` calls `fold` with the literal. So the C compiler itself gives the expected result of a call from
Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

HEAD = """\
#include <stdbool.h>
#include <stdint.h>

typedef enum __attribute__((packed)) { SMALL_A, SMALL_B = 7, SMALL_C = 200 } small_t;
enum wide { WIDE_A = -70000, WIDE_B, WIDE_C = 70000 };
typedef enum wide wide_t;
typedef const wide_t again_t;
typedef uint16_t first_t;
typedef first_t second_t;
typedef volatile second_t third_t;
typedef int (*operation_t)(int);

static uint64_t fold_bytes(uint64_t h, const void *data, unsigned int size)
{
	const unsigned char *at = data;

	while (size-- != 0) {
		h = (h ^ *at++) * 1099511628211u;
	}
	return h;
}
"""

_INTEGERS = {
    "int8_t": (-128, 127),
    "uint8_t": (0, 255),
    "short": (-32768, 32767),
    "third_t": (0, 65535),
    "unsigned int": (0, 2**32 - 1),
    "int32_t": (1 - 2**31, 2**31 - 1),
    "const int64_t": (1 - 2**63, 2**63 - 1),
    "uint64_t": (0, 2**64 - 1),
    "unsigned long": (0, 2**32 - 1),
    "signed char": (-128, 127),
}
_ENUMS = {"small_t": (0, 7, 200), "again_t": (-70000, -69999, 70000), "enum wide": (-70000, -69999, 70000)}
_VECTORS = {"float": 4, "int32_t": 4, "int16_t": 8, "uint8_t": 16, "int8_t": 4, "double": 2}


@dataclass
class Literal:
    """A type: its name in C, the definitions it needs, and `value`, whose literal is `text`.

    leaves: for each member an expression to append to a variable's name, and its type.
    """

    ctype: str
    text: str
    value: Any
    leaves: list[tuple[str, str]]
    definitions: list[str] = field(default_factory=list)


def random_literal(random: Random, name: str, depth: int = 0) -> Literal:
    """A type and its value; a struct at most three deep."""
    kinds = ["integer", "integer", "float", "enum", "bool", "vector", "complex", "pointer"]
    kinds += ["struct", "struct", "union"] * 2 if depth < 3 else []
    match random.choice(kinds):
        case "integer":
            ctype = random.choice(list(_INTEGERS))
            least, most = _INTEGERS[ctype]
            value = random.choice([least, most, random.randint(least, most)])
            return Literal(ctype, f"{value}{'ull' if value >= 2**63 else 'll'}", value, [("", ctype)])
        case "float":
            ctype = random.choice(["float", "double", "const double"])
            number = float(np.float32(random.uniform(-1e5, 1e5)))
            return Literal(ctype, number.hex(), number, [("", ctype)])
        case "enum":
            ctype = random.choice(list(_ENUMS))
            value = random.choice(_ENUMS[ctype])
            return Literal(ctype, f"({ctype})({value})", value, [("", ctype)])
        case "bool":
            truth = random.random() < 0.5
            return Literal("bool", str(truth).lower(), truth, [("", "bool")])
        case "complex":
            ctype, kind = random.choice(
                [("_Complex float", np.complex64), ("_Complex double", np.complex128)]
            )
            real, imaginary = random.randint(-99, 99), random.randint(-99, 99)
            return Literal(
                ctype, f"{real} + {imaginary} * 1.0if", kind(complex(real, imaginary)), [("", ctype)]
            )
        case "pointer":
            return Literal("operation_t", "0", None, [("", "operation_t")])
        case "vector":
            return _vector(random, name)
        case "union":
            return _union(random, name, depth)
    return _struct(random, name, depth)


def _vector(random: Random, name: str) -> Literal:
    element, count = random.choice(list(_VECTORS.items()))
    values = [random.randint(-100 if element[0] != "u" else 0, 100) for _ in range(count)]
    ctype = f"vector_{name}"
    size = count * {"float": 4, "int32_t": 4, "int16_t": 2, "uint8_t": 1, "int8_t": 1, "double": 8}[element]
    definition = f"typedef {element} {ctype} __attribute__((vector_size({size})));\n"
    text = f"({ctype}){{{', '.join(map(str, values))}}}"
    return Literal(ctype, text, values, [("", ctype)], [definition])


def _union(random: Random, name: str, depth: int) -> Literal:
    parts = [random_literal(random, f"{name}_{index}", depth + 1) for index in range(random.randint(1, 3))]
    chosen = random.randrange(len(parts))
    body = "".join(f"\t{part.ctype} u{index};\n" for index, part in enumerate(parts))
    definitions = [text for part in parts for text in part.definitions]
    part = parts[chosen]
    return Literal(
        f"union {name}",
        f"(union {name}){{.u{chosen} = {part.text}}}",
        {f"u{chosen}": part.value},
        [(f".u{chosen}{path}", ctype) for path, ctype in part.leaves],
        [*definitions, f"union {name} {{\n{body}}};\n"],
    )


def _struct(random: Random, name: str, depth: int) -> Literal:
    made = Literal(f"struct {name}", "", {}, [])
    lines, texts = [], []
    for index in range(random.randint(1, 5)):
        line, text = random.choice([_bit_field, _anonymous_union, _member, _member, _member])(
            random, made, f"{name}_{index}", f"m{index}", depth + 1
        )
        lines.append(f"\t{line};\n")
        texts.append(text)
    if depth == 0 and random.random() < 0.1:
        lines.append("\tint32_t tail[];\n")
    attribute = random.choice(
        [""] * 12 + [" __attribute__((packed))"] * 3 + [" __attribute__((aligned(16)))"]
    )
    made.definitions.append(f"struct {name} {{\n{''.join(lines)}}}{attribute};\n")
    made.text = f"(struct {name}){{{', '.join(texts)}}}"
    return made


def _bit_field(random: Random, made: Literal, _name: str, member: str, _depth: int) -> tuple[str, str]:
    bits, ctype = random.randint(1, 19), random.choice(["int", "unsigned int"])
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if ctype == "int" else (0, (1 << bits) - 1)
    made.value[member] = number = random.randint(least, most)
    made.leaves.append((f".{member}", ctype))
    return f"{ctype} {member} : {bits}", f".{member} = {number}"


def _anonymous_union(random: Random, made: Literal, _name: str, member: str, _depth: int) -> tuple[str, str]:
    made.value[member] = number = random.randint(-(2**31) + 1, 2**31 - 1)
    made.leaves.append((f".{member}_bytes[{random.randrange(4)}]", "uint8_t"))
    return f"union {{ int32_t {member}; uint8_t {member}_bytes[4]; }}", f".{member} = {number}"


def _member(random: Random, made: Literal, name: str, member: str, depth: int) -> tuple[str, str]:
    part = random_literal(random, name, depth)
    made.definitions += part.definitions
    count = random.randint(1, 3) if random.random() < 0.2 and not isinstance(part.value, dict) else 0
    made.value[member] = [part.value] * count if count else part.value
    places = [f".{member}[{place}]" for place in range(count)] if count else [f".{member}"]
    made.leaves += [(place + path, ctype) for place in places for path, ctype in part.leaves]
    text = f"{{{', '.join([part.text] * count)}}}" if count else part.text
    return f"{part.ctype} {member}{f'[{count}]' if count else ''}", f".{member} = {text}"


def functions(literals: list[Literal]) -> str:
    """The C file with `make`, `fold` and `expect` of each, by its number."""
    return "\n".join(
        [HEAD, *(part for index, literal in enumerate(literals) for part in _functions(index, literal))]
    )


def _functions(index: int, literal: Literal) -> Iterator[str]:
    yield "".join(literal.definitions)
    yield f"{literal.ctype} make{index}(void)\n{{\n\treturn {literal.text};\n}}\n"
    folds = "".join(
        f"\t{{ __typeof__(({ctype}){{0}}) part = x{path}; "
        "h = fold_bytes(h, (const void *)&part, sizeof(part)); }\n"
        for path, ctype in literal.leaves
    )
    yield f"uint64_t fold{index}(int8_t before, {literal.ctype} x, double behind)\n"
    yield f"{{\n\tuint64_t h = 1;\n{folds}"
    yield "\th = fold_bytes(h, &before, 1);\n\treturn fold_bytes(h, &behind, 8);\n}\n"
    yield f"uint64_t expect{index}(void)\n{{\n\treturn fold{index}(-3, {literal.text}, 2.5);\n}}\n"


def same(found: Any, value: Any) -> bool:  # noqa: ANN401 - of any type
    """True if the result is the value; for a struct, if each member that was set is equal."""
    if isinstance(value, dict):
        return all(same(getattr(found, name), item) for name, item in value.items())
    if value is None:
        return found is None
    if isinstance(value, list):
        return len(found) == len(value) and all(map(same, found, value))
    return bool(found == value)


def check_literals(literals: list[Literal], known: Mapping[str, Any], call: Callable[..., Any]) -> list[str]:
    """Assert that each value arrives and comes back; the reasons of functions that can't be called.

    known: functions by name. call: calls one by its name.
    """
    refused = []
    for index, literal in enumerate(literals):
        function = known[f"fold{index}"]
        function = getattr(function, "function", function)
        if function.unsupported:
            refused.append(function.unsupported)
            continue
        due = call(f"expect{index}")
        shown = function.prototype + "".join(literal.definitions)
        assert call(f"fold{index}", -3, literal.value, 2.5) == due, shown
        assert same(call(f"make{index}"), literal.value), shown
    return refused
