# SPDX-License-Identifier: Apache-2.0
"""Registers of a vendor's CMSIS-SVD file: names, fields, first values, rights, and effects of accesses.

svd2py reads the file and resolves derivedFrom; arrays (dim) and inherited properties are resolved here.
Source: the format's description in CMSIS, https://open-cmsis-pack.github.io/svd-spec
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.etree.ElementTree import ParseError

from minrpc.errors import RegisterError
from minrpc.hardware.accesses import Field
from minrpc.hardware.effects import WRITES, Effects, by_effect
from minrpc.hardware.registers import Register, Registers, is_reserved
from minrpc.names import did_you_mean, listed

Element = Mapping[str, Any]
"""An element of the file: its children by name, the repeated ones as lists."""

# svd2py leaves out an element whose first child follows without white space, and refuses bits that may be
# any: the lowest such value stands for all.
_NO_SPACE: Final = re.compile(rb">(?=<[^/!])")
_BITS: Final = re.compile(rb">\s*(?:#|0b)([01xX]+)\s*<")


class _Properties(NamedTuple):
    """Properties that an element inherits from those around it. size: in bits."""

    size: int = 32
    access: str = "read-write"
    reset: int = 0

    def of(self, element: Element) -> _Properties:
        return _Properties(
            element.get("size", self.size),
            element.get("access", self.access),
            element.get("resetValue", self.reset),
        )


def peripheral_of(path: str | Path, which: int | str) -> Registers:
    """The registers of a peripheral in an SVD file, by its name or its address; each has its first value.

    Raises RegisterError for a file that can't be read or understood, AttributeError without such a
    peripheral.
    """
    try:
        device = _device(str(path), Path(path).stat().st_mtime_ns)
        return _peripheral(device, path, which)
    except OSError as error:
        raise _unusable(path, error.strerror) from error
    except KeyError as error:
        raise _unusable(path, f"an element has no {error.args[0]}") from error
    except (ParseError, TypeError, ValueError) as error:
        raise _unusable(path, error) from error


@lru_cache(8)
def _device(path: str, _: int) -> Element:
    """The file's device. The second argument is the file's time: a changed file is read again."""
    try:
        reader = import_module("svd2py")
    except ImportError as error:
        raise RegisterError(
            "SVD files are read by svd2py, which is not installed",
            next_step="pip install 'minrpc-harness[svd]'",
        ) from error
    text = _NO_SPACE.sub(b">\n", Path(path).read_bytes())
    text = _BITS.sub(lambda match: b">%d<" % int(match[1].lower().replace(b"x", b"0"), 2), text)
    try:
        device: Element = reader.SvdParser().convert(BytesIO(text))["device"]
    except (AttributeError, reader.derive.DerivedFromError) as error:
        raise ValueError(error) from error
    return device


def _peripheral(device: Element, path: str | Path, which: int | str) -> Registers:
    known = {
        name: (item["baseAddress"] + step, item)
        for item in device.get("peripherals", {}).get("peripheral", ())
        for name, step in _copies(item)
    }
    names = [name for name, (base, _) in known.items() if which in (name, base)]
    if not names:
        near = did_you_mean(str(which), known)
        wanted = f"{which!r}" if isinstance(which, str) else f"at 0x{which:x}"
        hint = f"{near}?" if near else f"it has {listed(known, 12)}"
        raise AttributeError(f"{path} has no peripheral {wanted}; {hint}")
    base, element = known[names[0]]
    memory = bytearray()
    inherited = _Properties().of(device).of(element)
    registers = list(_registers(element.get("registers", {}), inherited, "", 0, memory))
    size = max((item.offset + item.size for item, _ in registers), default=0)
    memory.extend(bytes(size))
    # The first register that can be read tells the first value of all at its address.
    last_first = registers[::-1]
    for item, reset in sorted(last_first, key=lambda pair: pair[0].effects.readable):
        item.value = reset & ((1 << 8 * item.size) - 1)
    return Registers(names[0], base, {item.name: item for item, _ in registers}, size)


def _registers(
    container: Element, inherited: _Properties, prefix: str, base: int, memory: bytearray
) -> Iterator[tuple[Register, int]]:
    """The registers in a peripheral or a cluster, with their values after a reset.

    memory: the peripheral's, which has no bytes yet.
    """
    for item in container.get("register", ()):
        if is_reserved(item["name"]):
            continue
        own = inherited.of(item)
        effects = _effects(item, own)
        for name, step in _copies(item):
            offset = base + item["addressOffset"] + step
            yield Register(f"{prefix}{name}", offset, own.size // 8, memory, effects), own.reset
    for item in container.get("cluster", ()):
        for name, step in _copies(item):
            start = base + item["addressOffset"] + step
            yield from _registers(item, inherited.of(item), f"{prefix}{name}.", start, memory)


def _effects(register: Element, own: _Properties) -> Effects:
    full = (1 << own.size) - 1
    parts = [(Field("", 0, own.size), register), *_fields(register)]
    rights = [(field.mask, item.get("access", own.access)) for field, item in parts]
    read_action = register.get("readAction", "modify")
    reads = by_effect([(item.get("readAction", read_action), field.mask) for field, item in parts], full)
    hidden = by_effect(((access, mask) for mask, access in rights), full)
    writes = [
        (_written(item, register, access), mask)
        for (mask, access), (_, item) in zip(rights, parts, strict=True)
    ]
    return Effects(
        {field.name: field for field, _ in parts[1:] if not is_reserved(field.name)},
        by_effect(writes, full),
        reads.get("clear", 0),
        reads.get("set", 0),
        hidden.get("write-only", 0),
        any(access.startswith("read") for _, access in rights),
        any(access != "read-only" for _, access in rights),
        own.access.lower().endswith("once"),
    )


def _written(item: Element, register: Element, access: str) -> str:
    """The effect of a write on a field, or on the register."""
    effect: str = item.get("modifiedWriteValues", register.get("modifiedWriteValues", "modify"))
    if effect not in WRITES:
        raise ValueError(f"unknown effect {effect!r}")
    return "keep" if access == "read-only" else effect


def _fields(register: Element) -> Iterator[tuple[Field, Element]]:
    for item in register.get("fields", {}).get("field", ()):
        shift, width = _bits(item)
        values = item.get("enumeratedValues", ())
        names = {
            value["value"]: value["name"]
            for group in ([values] if isinstance(values, dict) else values)
            for value in group.get("enumeratedValue", ())
            if "value" in value
        }
        for name, step in _copies(item):
            yield Field(name, shift + step, width, names), item


def _bits(field: Element) -> tuple[int, int]:
    """A field's first bit and its number of bits, in the format's three spellings."""
    if "bitRange" in field:
        high, low = (int(part) for part in field["bitRange"].strip("[] ").split(":"))
        return low, high - low + 1
    if "lsb" in field:
        return field["lsb"], field["msb"] - field["lsb"] + 1
    return field["bitOffset"], field.get("bitWidth", 1)


def _copies(element: Element) -> Iterator[tuple[str, int]]:
    """The name and the step of each copy of an element: one, or as many as its dim tells."""
    name = element["name"]
    if "dim" not in element:
        yield name, 0
        return
    indices = list(_indices(element.get("dimIndex"), element["dim"]))
    if len(indices) != element["dim"]:
        raise ValueError(f"{name} has {element['dim']} copies, and {len(indices)} names")
    for number, index in enumerate(indices):
        yield name.replace("%s", index), number * element["dimIncrement"]


def _indices(text: str | None, count: int) -> Iterable[str]:
    if text is None:
        return (str(number) for number in range(count))
    first, dash, last = text.partition("-")
    if not dash:
        return (part.strip() for part in text.split(","))
    if first.strip().isdigit():
        return (str(number) for number in range(int(first), int(last) + 1))
    return (chr(code) for code in range(ord(first.strip()), ord(last.strip()) + 1))


def _unusable(path: str | Path, reason: object) -> RegisterError:
    return RegisterError(f"{path} is no SVD file: {reason}", next_step="take the file of the chip's vendor")
