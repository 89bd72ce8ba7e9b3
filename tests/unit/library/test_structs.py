# SPDX-License-Identifier: Apache-2.0
"""Structs as Python values: writing a member changes its bytes and no other."""

from __future__ import annotations

import copy
import pickle
from enum import IntEnum
from typing import Any, Literal
from unittest.mock import Mock

import numpy as np
import pytest
from minrpc import Address, StructValue
from minrpc.client.conversation import Conversation
from minrpc.library.namespaces import VariableOnDevice
from minrpc.library.placed import type_of
from minrpc.library.pointer_types import device_address
from minrpc.library.scalars import to_float
from minrpc.library.structs import (
    Place,
    Storage,
    bytes_of,
    load_value,
    make_struct,
    object_address,
    record_of,
    replace_bytes,
    storage_of,
    store_value,
)
from minrpc.program.c_types import (
    ArrayType,
    CType,
    Field,
    FunctionType,
    Pointer,
    RecordType,
    Scalar,
    Variable,
    Void,
)


def compound(name: str, size: int, *fields: Field, kind: Literal["struct", "union"] = "struct") -> RecordType:
    """A struct or a union that is known whole."""
    return RecordType(kind, name, size, complete=True, fields=fields)


INT = Scalar("int", 4, "int")
UNSIGNED = Scalar("unsigned int", 4, "uint")
FLAGS = compound(
    "flags",
    4,
    Field("low", UNSIGNED, 0, 3, 0),
    Field("middle", INT, 0, 7, 3),
    Field("high", UNSIGNED, 0, 22, 10),
)
ONE = compound("one", 8, Field("p", Pointer(INT, 8), 0))
TWO = compound("two", 16, Field("a", ONE, 0), Field("b", ONE, 8))


@pytest.mark.parametrize("middle", [0, 1, -1, 63, -64])
def test_a_bit_field_takes_each_value_after_any_other(middle: int) -> None:
    made = make_struct(FLAGS, "flags", {"low": 7, "middle": -1, "high": (1 << 22) - 1})
    made.middle = middle
    assert (made.low, made.middle, made.high) == (7, middle, (1 << 22) - 1)
    made.low = 0
    assert (made.low, made.middle, made.high) == (0, middle, (1 << 22) - 1)
    made.high = 1
    assert bytes_of(made) == ((middle & 0x7F) << 3 | 1 << 10).to_bytes(4, "little")
    assert len(storage_of(made)[0].data) == 4


def pointed() -> tuple[StructValue, np.ndarray, np.ndarray]:
    x, y = np.zeros(3, np.int32), np.ones(4, np.int32)
    made = make_struct(TWO, "two", {})
    made.a.p, made.b.p = x, y
    return made, x, y


def target(value: StructValue, member: str) -> object:
    """The object to which the pointer in this member points."""
    found: object = getattr(value, member).p
    return found


def test_a_pointer_that_is_none_again_forgets_its_array() -> None:
    made, x, y = pointed()
    made.b.p = None
    assert target(made, "a") is x
    assert target(made, "b") is None
    made.a = make_struct(ONE, "one", {})
    assert target(made, "a") is None
    made.b.p = y
    assert target(made, "b") is y


class Memory:
    """16 bytes of a device at address 0x100."""

    name = "memory"

    def __init__(self) -> None:
        self.data = bytearray(16)

    def read(self, address: int, size: int, /) -> bytes:
        return bytes(self.data[address - 0x100 :][:size])

    def write(self, address: int, data: bytes, /) -> None:
        self.data[address - 0x100 : address - 0x100 + len(data)] = data


@pytest.mark.parametrize("on_device", [False, True], ids=["host", "device"])
def test_an_element_of_an_array_of_structs_is_set_in_the_array(on_device: bool) -> None:
    """Setting it in the list that the attribute gives was lost."""
    memory = Memory()
    pair = compound("pair", 8, Field("x", INT, 0), Field("y", INT, 4))
    rows = compound("rows", 16, Field("at", ArrayType(pair, 2), 0))
    place = Place(memory, 0x100, False) if on_device else None
    value = load_value(rows, bytes(16), place)
    given = np.array([(3, 0), (6, 5), (1, 7.5)], [("y", np.int16), ("x", np.float32)])
    value.at[1] = given[1:2].astype([("y", int), ("x", np.int8)])[0]
    at = value.at
    at[-2] = {"y": 3}
    with pytest.raises(TypeError, match=r"element 0\.x: expected int, got 7\.5"):
        value.at[0] = given[2]
    assert at[0] == value.at[0]
    assert np.frombuffer(bytes_of(value), np.int32).tolist() == [0, 3, 5, 6]
    value.at[:] = [(1, 2), at[1]]
    assert np.frombuffer(bytes_of(value), np.int32).tolist() == [1, 2, 5, 6]
    assert bytes(memory.data) == (bytes_of(value) if on_device else bytes(16))
    for change in ("append", "clear", "__delitem__"):
        with pytest.raises(TypeError, match="an array of C has 2 elements"):
            getattr(at, change)(0)
    with pytest.raises(ValueError, match="expected 2 elements, got 1"):
        value.at[:] = [(1, 2)]
    with pytest.raises(IndexError):
        value.at[2] = (1, 2)
    assert type(copy.copy(at)) is list


def test_an_array_that_was_read_says_how_it_is_set() -> None:
    read = load_value(ArrayType(INT, 3), np.array([1, 2, 3], np.int32).tobytes())

    def add() -> None:
        nonlocal read
        read += 1

    changes = (lambda: read.__setitem__(2, 9), lambda: read[1:].__setitem__(0, 9), add)
    for change in (*changes, lambda: np.add(read, 1, out=read)):
        with pytest.raises(ValueError, match=r"change a copy, and set the whole array \(x = owner"):
            change()
    assert repr(read) == "array([1, 2, 3], dtype=int32)"
    assert type(read + 1) is np.ndarray
    assert (read == [1, 2, 3]).all()
    changed = read.copy()
    changed[2] = 9
    assert (changed.tolist(), read.sum(), np.maximum.accumulate(read)[-1]) == ([1, 2, 9], 6, 3)


def test_a_struct_inside_is_copied_with_its_own_pointers_alone() -> None:
    made, x, y = pointed()
    other = make_struct(TWO, "two", {})
    other.a = made.a
    assert target(other, "a") is x
    assert target(other, "b") is None
    other.b = made.b
    assert target(other, "a") is x
    assert target(other, "b") is y
    other.a = made.b
    assert target(other, "a") is y


def test_a_pointer_of_a_union_has_the_type_of_what_was_assigned_last() -> None:
    fields = Field("i", Pointer(INT, 8), 0), Field("u", Pointer(UNSIGNED, 8), 0)
    either = compound("either", 8, *fields, kind="union")
    made = make_struct(compound("holder", 8, Field("e", either, 0)), "holder", {})
    made.e.u = np.zeros(1, np.uint32)
    made.e = make_struct(either, "either", {"i": np.zeros(1, np.int32)})
    assert storage_of(made)[0].given == {0: fields[0].type}


def test_bytes_that_the_device_left_keep_their_pointers() -> None:
    made, x, y = pointed()
    replace_bytes(storage_of(made)[0], 0, bytes(16))
    assert (made.a.p is x, made.b.p is y) == (True, True)
    replace_bytes(storage_of(made)[0], 8, b"\1" + bytes(7))
    assert (made.a.p is x, made.b.p) == (True, 1)


def pairs(first: int) -> StructValue:
    """A struct with an array of structs, {first, first + 1, first + 2}, and a struct, {first + 3}."""
    pair = compound("pair", 8, Field("x", INT, 0), Field("y", INT, 4))
    whole = compound("whole", 32, Field("a", ArrayType(pair, 3), 0), Field("b", pair, 24))
    return make_struct(whole, "whole", {"a": [(first + i, 0) for i in range(3)], "b": (first + 3, 0)})


def numbers(value: StructValue) -> list[int]:
    return [*(one.x for one in value.a), value.b.x]


def test_structs_are_exchanged_at_once_or_by_a_copy() -> None:
    """In turn both would become one of them: that is refused, since a struct inside is no copy."""
    made, other = pairs(1), pairs(11)

    def elements() -> None:
        made.a[0], made.a[1] = made.a[1], made.a[0]

    def elements_of_a_list() -> None:
        held = made.a
        held[0], held[1] = held[1], held[0]

    def members() -> None:
        made.b, made.a[0] = made.a[0], made.b

    def of_two_structs() -> None:
        made.b, other.b = other.b, made.b

    def arrays() -> None:
        made.a, other.a = other.a, made.a

    for exchange in (elements, elements_of_a_list, members, of_two_structs, arrays):
        made, other = pairs(1), pairs(11)
        with pytest.raises(ValueError, match=r"assigned to the given one since it was read: give a copy"):
            exchange()
    made, other = pairs(1), pairs(11)
    for _ in range(2):
        made.a[:2] = made.a[1], made.a[0]
        held = made.a
        held[1:] = held[2], held[1]
        made.b, made.a[0] = made.a[0], copy.copy(made.b)
    assert numbers(made) == [2, 1, 4, 3]
    made = pairs(1)
    first = copy.copy(made.a[0])
    for index in range(2):
        made.a[index] = made.a[index + 1]
    made.a[2] = first
    assert numbers(made) == [2, 3, 1, 4]
    one = made.a[0]
    made.a[0] = (7, 7)  # Seen by all who have the element.
    made.b = one
    assert numbers(made) == [7, 3, 1, 7]
    both = compound("both", 64, Field("one", record_of(made), 0), Field("other", record_of(made), 32))
    two = make_struct(both, "both", {"one": made})  # A part of it was replaced, and not the whole.
    part = two.one
    part.b = part.a[2]
    two.other = part
    assert two.other == two.one
    assert numbers(part) == [7, 3, 1, 1]


def test_a_copy_has_its_own_members_and_a_deep_one_its_own_arrays() -> None:
    x = np.arange(3, dtype=np.int32)
    two = make_struct(TWO, "two", {"a": {"p": x}})
    shallow, deep = copy.copy(two), copy.deepcopy(two)
    for made in (shallow, deep, copy.copy(two.a)):
        assert repr(made).startswith(("two(", "one("))
    assert shallow.a.p is x
    assert deep.a.p is not x
    np.testing.assert_array_equal(deep.a.p, x)
    shallow.a.p = None
    assert two.a.p is x
    assert copy.copy(two.a).p is x
    assert copy.copy(two.b).p is None


def test_a_deep_copy_of_a_ring_is_a_ring() -> None:
    item = make_struct(ONE, "one", {})
    item.p = item
    made = copy.deepcopy(item)
    assert made.p is made
    assert item.p is item


FLEXIBLE = compound("line", 8, Field("n", INT, 0), Field("tail", ArrayType(INT, None), 8))


def test_the_elements_of_a_flexible_array_lie_behind_the_struct() -> None:
    made = make_struct(FLEXIBLE, "line", {"n": 2, "tail": [5, -1]})
    assert bytes_of(made) == np.array([2, 0, 5, -1], np.int32).tobytes()
    assert made.tail.tolist() == [5, -1]
    made.tail[1] = 7
    assert copy.copy(made).tail.tolist() == [5, 7]
    empty = make_struct(FLEXIBLE, "line", {"n": 0})
    assert (len(bytes_of(empty)), empty.tail.tolist()) == (8, [])


CHAR = Scalar("char", 1, "char")
TEXT = compound("text", 4, Field("text", ArrayType(CHAR, 4), 0))
INNER = compound("", 4, Field("low", UNSIGNED, 0, 3, 0), Field("high", UNSIGNED, 0, 5, 3))
OUTER = compound("outer", 8, Field("first", INT, 0), Field("", INNER, 4))


def test_a_text_may_fill_its_array_and_not_more() -> None:
    assert bytes_of(make_struct(TEXT, "text", {"text": "abcd"})) == b"abcd"
    with pytest.raises(ValueError, match="5 bytes do not fit char"):
        make_struct(TEXT, "text", {"text": "abcde"})


def test_a_text_with_a_nul_is_refused_and_bytes_are_taken() -> None:
    with pytest.raises(ValueError, match=r"text.text: 'a\\x00b' has a NUL character, .* give bytes"):
        make_struct(TEXT, "text", {"text": "a\0b"})
    assert bytes_of(make_struct(TEXT, "text", {"text": b"a\0b"})) == b"a\0b\0"


def test_bit_fields_of_a_member_without_a_name_lie_where_it_lies() -> None:
    made = make_struct(OUTER, "outer", {"first": -1, "low": 5, "high": 9})
    assert bytes_of(made) == b"\xff" * 4 + (5 | 9 << 3).to_bytes(4, "little")
    assert (made.first, made.low, made.high) == (-1, 5, 9)


def test_of_a_union_one_member_is_given() -> None:
    halves = compound("", 4, Field("x", CHAR, 0), Field("y", CHAR, 1))
    either = compound("", 4, Field("w", INT, 0), Field("", halves, 0), kind="union")
    record = compound("reg", 8, Field("", either, 0), Field("last", INT, 4))
    made = make_struct(record, "struct reg", {"x": 1, "y": 2, "last": 3})
    assert (made.w, made.last) == (0x201, 3)
    with pytest.raises(TypeError, match="struct reg: w and y are members of a union; give one of them"):
        make_struct(record, "struct reg", {"w": 1, "y": 2})


def test_a_name_that_is_no_member_is_refused() -> None:
    made = make_struct(FLAGS, "flags", {})
    with pytest.raises(AttributeError, match=r"flags has no member 'hihg'; it has high$"):
        made.hihg = 1
    with pytest.raises(AttributeError, match=r"flags has no member 'x'; it has low, middle, high$"):
        _ = made.x


def test_a_function_in_a_union_of_a_variable_has_the_type_of_its_member() -> None:
    results: dict[str, CType] = {"i": INT, "v": Void()}
    fields = tuple(Field(name, Pointer(FunctionType(results[name], ()), 8), 0) for name in results)
    either = compound("either", 8, *fields, kind="union")
    callback = Mock(return_value=Address(0x1000))
    for name in results:
        store_value(either, "either", make_struct(either, "either", {name: print}), callback)
    assert [call.args[0].result for call in callback.call_args_list] == list(results.values())


def numbers_struct() -> RecordType:
    row = ArrayType(INT, 2)
    return compound("m", 16, Field("rows", ArrayType(row, 2), 0))


@pytest.mark.parametrize("on_device", [False, True], ids=["host", "device"])
def test_parts_of_a_struct_may_be_given_for_it(on_device: bool) -> None:
    """An element that was set before another was read from it came twice; after an error, half was set."""
    memory = Memory()
    place = Place(memory, 0x100, False) if on_device else None
    value = load_value(numbers_struct(), np.arange(4, dtype=np.int32).tobytes(), place)
    value.rows = value.rows[::-1]
    assert value.rows.tolist() == [[2, 3], [0, 1]]
    value.rows = [value.rows[1], value.rows[0]]
    assert value.rows.tolist() == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match=r"m.rows\[1\]\[0\]: .*out of its range"):
        value.rows = [[8, 8], [1 << 40, 8]]
    assert value.rows.tolist() == [[0, 1], [2, 3]]
    assert bytes(memory.data) == (bytes_of(value) if on_device else bytes(16))


def test_a_struct_that_is_set_to_itself_keeps_its_pointers() -> None:
    made, x, y = pointed()
    made.a = made.a
    assert (target(made, "a") is x, target(made, "b") is y) == (True, True)
    made.b = made.a
    assert (target(made, "a") is x, target(made, "b") is x) == (True, True)
    row = compound("row", 24, Field("at", ArrayType(ONE, 3), 0))
    arrays = [np.zeros(length, np.int32) for length in (1, 2, 3)]
    value: Any = make_struct(row, "row", {"at": [(array,) for array in arrays]})

    def lengths() -> list[int]:
        return [one.p.size for one in value.at]

    value.at = value.at
    assert lengths() == [1, 2, 3]
    value.at = value.at[::-1]
    assert lengths() == [3, 2, 1]
    value.at[:2] = value.at[1:]
    assert lengths() == [2, 1, 1]
    value.at[1:] = value.at[:2]
    assert lengths() == [2, 2, 1]


_HALVES = compound(
    "halves",
    8,
    Field("low", UNSIGNED, 0),
    Field("some", UNSIGNED, 4, 5, 32),
    Field("high", UNSIGNED, 4, 5, 40),
)
_CHAR = Scalar("char", 1, "char")
_EITHER = compound(
    "either",
    8,
    Field("p", Pointer(INT, 8), 0),
    Field("text", ArrayType(_CHAR, 8), 0),
    Field("bytes", ArrayType(Scalar("unsigned char", 1, "uint"), 8), 0),
    Field("halves", _HALVES, 0),
    kind="union",
)


@pytest.mark.parametrize(
    ("name", "value", "given"),
    [
        ("text", "hi", b"hi"),
        ("text", "", b""),
        ("bytes", [7] + [0] * 7, b"\7"),
        ("halves", (7,), b"\7"),
    ],
)
def test_a_member_that_is_set_beside_a_pointer_of_a_union_replaces_it(
    name: str, value: object, given: bytes
) -> None:
    """C got the pointer: the text and the bits lost against it."""
    made: Any = make_struct(_EITHER, "either", {"p": np.zeros(2, np.int32)})
    setattr(made, name, value)
    assert (storage_of(made)[0].references, bytes_of(made)) == ({}, given.ljust(8, b"\0"))


def test_a_part_of_a_pointer_of_a_union_replaces_it() -> None:
    for name in ("some", "high", "low"):
        made: Any = make_struct(_EITHER, "either", {"p": np.zeros(2, np.int32)})
        setattr(made.halves, name, 0)
        assert storage_of(made)[0].references == {}
    made.p = np.zeros(2, np.int32)
    with pytest.raises(ValueError, match="whose union holds a pointer, is read-only"):
        made.bytes[0] = 7
    made.bytes = made.bytes.copy()
    made.bytes[0] = 7
    assert bytes_of(made) == b"\7".ljust(8, b"\0")


class Colour(IntEnum):
    RED = 1


def test_a_pointer_is_no_number_except_for_void() -> None:
    """`p=5` was an address, though a parameter of this type refuses it."""
    for number in (5, 0, True, np.int32(5), 1.0, Colour.RED):
        with pytest.raises(TypeError, match=r"one\.p: expected int \*, .*give minrpc\.Address"):
            make_struct(ONE, "one", {"p": number})
        with pytest.raises(TypeError, match="expected int"):
            store_value(Pointer(INT, 8), "p", number)
    assert store_value(Pointer(Void(), 8), "p", 5) == store_value(Pointer(INT, 8), "p", Address(5))


def test_a_null_pointer_is_none_however_it_is_given() -> None:
    record = RecordType("struct", "any", 8, complete=True, fields=(Field("p", Pointer(Void(), 8), 0),))
    for null in (0, Address(0), None):
        assert make_struct(record, "any", {"p": null}).p is None
        assert store_value(Pointer(Void(), 8), "p", null) == bytes(8)


def test_a_struct_that_c_passed_is_at_its_address_for_its_type_only() -> None:
    """A fake may return it, and assign it to a pointer: of another type it was taken, too."""
    conversation = Mock(spec=Conversation, is_there=True)
    passed = StructValue(ONE, Storage(24, Place(conversation, 0x1000, False)), 8)
    other = compound("other", 8, Field("p", Pointer(INT, 8), 0))
    for target in (ONE, Void()):
        pointer = Pointer(target, 8)
        assert object_address("p", pointer, pointer, passed, None) == 0x1008
        assert store_value(pointer, "p", passed) == (0x1008).to_bytes(8, "little")
    pointer = Pointer(other, 8)
    for refused in (
        lambda: object_address("p", pointer, pointer, passed, None),
        lambda: store_value(pointer, "p", passed),
    ):
        with pytest.raises(TypeError, match=r"p: expected struct other \*, got"):
            refused()
    conversation.is_there = False
    assert object_address("p", Pointer(ONE, 8), Pointer(ONE, 8), passed, None) is None


def test_an_address_has_no_members() -> None:
    """`pointer.x = 5` was lost."""
    found: Any = Address(0x1000, Pointer(ONE, 8))
    with pytest.raises(AttributeError, match=r"0x1000 has no member 'x': .*minrpc\.read\(lib, address\)"):
        found.x = 5
    with pytest.raises(AttributeError, match="has no member 'x'"):
        found.x  # noqa: B018
    copied = pickle.loads(pickle.dumps(copy.deepcopy(found)))
    assert (int(copied), repr(copied)) == (0x1000, "(struct one *)0x1000")


def test_the_files_of_two_structs_of_one_name_are_told() -> None:
    """C has the same words for both: "expected struct pt *, got struct pt own" does not tell them apart."""
    one, other = (compound("pt", 4, Field("x", ctype, 0)) for ctype in (INT, UNSIGNED))
    one.file, other.file = "a.c", "b.c"
    made = make_struct(compound("holder", 8, Field("p", Pointer(one, 8), 0)), "holder", {})
    own = VariableOnDevice(Mock(), Variable("own", "own", other), 0x10)
    with pytest.raises(TypeError, match=r"got struct pt own: a\.c:pt is not b\.c:pt"):
        device_address("f: p", Pointer(one, 8), Pointer(one, 8), own, None)
    with pytest.raises(TypeError, match=r"got \(struct pt \*\)0x10: a\.c:pt is not b\.c:pt"):
        made.p = Address(0x10, Pointer(other, 8))
    assert repr(StructValue(other)) == "b.c:pt(x=0)"


def test_an_array_without_elements_says_how_c_declares_a_flexible_one() -> None:
    old = compound("old", 4, Field("t", ArrayType(INT, 0), 4))
    with pytest.raises(ValueError, match=r"expected int \[0\], got 2 elements; as a flexible array"):
        make_struct(old, "old", {"t": [1, 2]})


def test_bits_beside_a_bit_field_stay_on_the_device() -> None:
    memory = Memory()
    memory.data[:4] = b"\xff" * 4
    value = load_value(FLAGS, bytes(4), Place(memory, 0x100, False))
    value.middle = 0
    assert int.from_bytes(memory.data[:4], "little") == 0xFFFFFFFF & ~(0x7F << 3)
    value.low = 2
    value.high = 0
    assert bytes(memory.data) == b"\x02".ljust(16, b"\0")


def test_a_pointer_from_the_device_is_one_in_a_copy_and_until_it_is_set() -> None:
    """A call does not check the type of its target."""
    made: Any
    made, x, _ = pointed()
    storage = storage_of(made)[0]
    storage.came_back.add(0)
    made.b = made.a
    assert storage.came_back == {0, 8}
    assert storage_of(copy.copy(made.b))[0].came_back == {0}
    made.b.p = x
    assert storage.came_back == {0}


@pytest.mark.parametrize("signed", [False, True])
def test_a_plain_char_has_either_sign(signed: bool) -> None:
    plain = Scalar("char", 1, "char", signed)
    assert [store_value(plain, "c", number)[0] for number in (-128, -1, 127, 255)] == [128, 255, 127, 255]
    for number in (-129, 256):
        with pytest.raises(ValueError, match=r"c: expected char, -128 to 255, .*out of its range"):
            store_value(plain, "c", number)


def test_the_types_of_what_can_be_placed() -> None:
    one, two = make_struct(ONE, "one", {}), make_struct(TWO, "two", {})
    char = Scalar("char", 1, "char")
    assert type_of(two) == TWO
    assert [type_of(items) for items in ([one], (one, one))] == [ArrayType(ONE, 1), ArrayType(ONE, 2)]
    assert [type_of(text) for text in (b"ab", "\u00e9", bytearray(b"ab"))] == [
        ArrayType(char, count) for count in (3, 3, 2)
    ]
    assert type_of(np.zeros((2, 3), np.int16)) == ArrayType(Scalar("int16_t", 2, "int"), 6)
    for wrong in ([], [one, 1], np.zeros(0), np.zeros(2, "M8[s]"), 1.0):
        with pytest.raises(TypeError, match="place: a struct"):
            type_of(wrong)


def test_a_long_double_that_no_double_can_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="out of its range"):
        to_float("x", Scalar("double", 8, "float"), np.longdouble("1e4000"))
    assert to_float("x", Scalar("double", 8, "float"), np.longdouble("inf")) == float("inf")
