# SPDX-License-Identifier: Apache-2.0
"""Tables of functions, ours and registries as TVM's generators write them, and error texts."""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack

import pytest

from tests.runtime.door import Door, Place

NO_FUNCTION = (1 << 32) - 1
# Addresses of no function: they are only looked up.
ONE, TWO, THREE = 0x1000, 0x2000, 0x3000


class Library:
    """A library of modules; each has functions of ours, and a registry."""

    def __init__(self, door: Door, *modules: tuple[Sequence[str], bytes, Sequence[int], int]) -> None:
        self.door = door
        self._word = door.bits // 8
        self._library = door.new("minrpc_library")
        self._callee = door.new("minrpc_callee")
        self.functions: list[int] = []
        size = len(door.new("minrpc_module").content())
        self._library.modules, self._library.count = door.memory(size * len(modules)), len(modules)
        for i, (ours, names, packed, resource) in enumerate(modules):
            module = door.at(self._library.modules + size * i, "minrpc_module")
            module.functions, module.count = self._ours(ours), len(ours)
            module.packed, module.resource = self._registry(names, packed), resource

    def _ours(self, names: Sequence[str]) -> int:
        size = len(self.door.new("minrpc_function").content())
        table = self.door.memory(size * len(names))
        for i, name in enumerate(names):
            function = self.door.at(table + size * i, "minrpc_function")
            function.name, function.run = self.door.memory(name.encode() + b"\0"), ONE
            self.functions.append(function.address)
        return table

    def _registry(self, names: bytes, packed: Sequence[int]) -> int:
        if not names:
            return 0
        registry = self.door.new("TVMFuncRegistry")
        registry.names = self.door.memory(names)
        words = b"".join(function.to_bytes(self._word, "little") for function in packed)
        registry.funcs = self.door.memory(words)
        return registry.address

    def find(self, name: str) -> int:
        """A function's number."""
        text = self.door.memory(name.encode() + b"\0")
        return int(self.door.call("minrpc_library_find", self._library, text, result="I"))

    def at(self, index: int) -> Place | None:
        """The function with this number."""
        found = self.door.call("minrpc_library_at", self._library, index, self._callee, result="?")
        return self._callee if found else None

    def packed_at(self, index: int) -> int | None:
        """The address of a registry's function."""
        callee = self.at(index)
        if callee is None:
            return None
        assert callee.function == 0
        assert self.find(self.name(index)) <= index
        functions = self.door.at(callee.packed, "TVMFuncRegistry").funcs
        place = functions + self._word * callee.index
        return int.from_bytes(self.door.read(place, self._word), "little")

    def name(self, index: int) -> str:
        """The name of the function with this number."""
        callee = self.at(index)
        assert callee
        return self.door.text(self.door.call("minrpc_callee_name", callee, result="P"))


# Up to v0.8 the count is one byte, from v0.9 on two bytes.
SHORT, LONG = b"\2one\0two\0", b"\2\0one\0two\0"


@pytest.mark.parametrize("names", [SHORT, LONG])
def test_counts_of_one_byte_and_of_two(door: Door, names: bytes) -> None:
    library = Library(door, ([], names, [ONE, TWO], 0))
    assert library.packed_at(library.find("one")) == ONE
    assert library.packed_at(library.find("two")) == TWO
    assert {library.find(name) for name in ("tw", "twoo", "")} == {NO_FUNCTION}
    assert {library.at(index) for index in (*range(2, 10), NO_FUNCTION)} == {None}


def test_modules_are_numbered_through(door: Door) -> None:
    two = [ONE, TWO]
    library = Library(
        door,
        ([], b"\0\0", [], 0),
        ([], SHORT, two, 0x77),
        ([], b"\0\0\0", [], 0),
        (["ours", "two", "last"], b"\1_three\0", [THREE], 0),
        ([], b"", [], 0),
        ([], LONG, two, 0),
    )
    names = ["one", "two", "ours", "two", "last", "_three", "one", "two"]
    assert library.packed_at(library.find("_three")) == THREE
    assert [library.name(index) for index in range(8)] == names
    # The first function of a name is used.
    assert [library.find(name) for name in names] == [0, 1, 2, 1, 4, 5, 0, 1]
    assert (callee := library.at(1))
    assert callee.resource == 0x77
    assert (callee := library.at(4))
    assert (callee.function, callee.resource) == (library.functions[2], 0)
    assert library.at(8) is None


def test_an_empty_library(door: Door) -> None:
    library = Library(door)
    assert library.find("one") == NO_FUNCTION
    assert library.at(0) is None


def test_counts_over_255(door: Door) -> None:
    """Three hundred functions: a count whose first byte alone would be another."""
    names = [f"f{i:03}" for i in range(300)]
    functions = [TWO if i == 277 else ONE for i in range(300)]
    table = pack("<H", 300) + "".join(f"{name}\0" for name in names).encode()
    library = Library(door, ([], table, functions, 0))
    assert library.find("f277") == 277
    assert library.packed_at(277) == TWO
    assert library.at(300) is None


@pytest.mark.parametrize(
    ("form", "values", "expected"),
    [
        (
            "%s is %u, %d or %x",
            ["it", (1 << 32) - 1, -(1 << 31), 0xDEADBEEF],
            "it is 4294967295, -2147483648 or deadbeef",
        ),
        ("%u%d%x%s%%", [0, 0, 0, ""], "000%"),
        ("%lx-%lx%u", [0xFEDCBA98, 0, 7], "fedcba98-07"),
    ],
)
def test_texts_of_every_kind(door: Door, form: str, values: list[str | int], expected: str) -> None:
    assert written(door, 64, form, values) == expected
    if door.bits == 64:
        # An address is never cut.
        assert written(door, 64, "0x%lx", [0xFEDCBA9876543210]) == "0xfedcba9876543210"


def written(door: Door, capacity: int, form: str, values: list[str | int]) -> str:
    """A text in a buffer of this size."""
    words = [door.memory(f"{v}\0".encode()) if isinstance(v, str) else v for v in values]
    buffer = door.memory(b"z" * capacity)
    door.call("minrpc_text", buffer, capacity, door.memory(f"{form}\0".encode()), *words)
    return door.text(buffer)


@pytest.mark.parametrize("capacity", range(1, 9))
def test_texts_are_cut_at_the_end(door: Door, capacity: int) -> None:
    assert written(door, capacity, "%s%u", ["abc", 123456]) == "abc1234"[: capacity - 1]
