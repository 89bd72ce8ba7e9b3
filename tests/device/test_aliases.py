# SPDX-License-Identifier: Apache-2.0
"""Arguments that share memory in Python share it in C: whatever wraps it, nothing that C writes is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import minrpc
import numpy as np
import pytest
from minrpc import GuardError, HarnessError, LoadedLibrary, fake
from minrpc.plugin.shared import SharedDevice
from minrpc.transport import Faults

from tests.device.conftest import Load, MakeLossy

SOURCE = Path(__file__).with_name("c") / "aliases.c"


@pytest.fixture
def aliases(load: Load) -> LoadedLibrary:
    return load(SOURCE, fakes="zero")


def box_of(lib: LoadedLibrary) -> Any:  # noqa: ANN401 - a struct
    return lib.types.box(first=(1, 2), bytes=[0] * 4, items=[(10, 11), (20, 21), (30, 31)])


def wrapped(data: bytearray) -> list[tuple[object, object]]:
    """Pairs of objects that share the bytes."""
    view, array = memoryview(data), np.frombuffer(data, np.uint8)
    return [(data, data), (view, view), (array, array), (data, view), (view, array), (data, array)]


@pytest.mark.parametrize("kind", range(6))
def test_one_memory_in_two_arguments(aliases: LoadedLibrary, kind: int) -> None:
    data = bytearray(4)
    aliases["twice"](*wrapped(data)[kind])
    assert data == bytes([1, 2, 0, 0])


def test_a_part_of_an_array_beside_the_whole(aliases: LoadedLibrary) -> None:
    data = np.zeros(6, np.uint8)
    aliases["twice"](data, data[2:5])
    assert data.tolist() == [1, 0, 0, 2, 0, 0]
    aliases["twice"](data[1:], data)
    assert data.tolist() == [1, 2, 0, 2, 0, 0]
    assert aliases["apart"](data, data[4:]) == 4
    assert aliases["apart"](data, data.data[6:]) == 6
    text = b"text"
    assert aliases["apart"](text, text) == aliases["apart"](text, memoryview(text)) == 0
    with pytest.raises(ValueError, match=r"twice: .*uint8\[3\].* overlaps .*uint8\[4\]"):
        aliases["twice"](data[:4], data[3:])
    assert data.tolist() == [1, 2, 0, 2, 0, 0]


def test_pointers_of_a_struct_into_one_buffer(aliases: LoadedLibrary) -> None:
    for buffer in (bytearray(4), np.zeros(4, np.uint8)):
        ring = aliases.types.ring(rd=buffer, wr=buffer, begin=buffer)
        assert [aliases["put"](ring, value) for value in (5, 6)] == [1, 2]
        assert (bytes(buffer), ring.count) == (bytes([5, 6, 0, 0]), 2)
        assert ring.begin is buffer


def test_a_struct_and_its_member(aliases: LoadedLibrary) -> None:
    box = box_of(aliases)
    assert aliases["inside"](box, box.first) == 0
    assert (box.last, box.first.x, box.first.y) == (1, 7, 27)
    assert aliases["inside"](box, box.items[1]) == 12 + 8
    assert (box.items[1].x, box.items[1].y) == (7, 14)
    assert aliases["filled"](box, box.bytes) == 6
    assert box.bytes.tolist() == [5, 6, 0, 0]
    assert aliases["row"](box.items, 3, box.items[0]) == 30
    assert (box.items[0].x, box.items[0].y) == (3, 6)


def test_a_pointer_of_a_struct_into_itself(aliases: LoadedLibrary) -> None:
    box = box_of(aliases)
    box.current = box.items[1]
    assert aliases["step"](box) == 30
    assert aliases["step"](box) == 30
    assert [item.x for item in box.items] == [10, 30, 40]


def test_a_struct_in_a_list_and_alone(aliases: LoadedLibrary) -> None:
    one, other = (aliases.types.item(x=value) for value in (1, 2))
    assert aliases["row"]([one], 1, one) == 3
    assert (one.x, one.y) == (3, 4)
    assert aliases["row"]([other, one], 2, one) == 3
    assert (other.x, other.y, one.x, one.y) == (2, 5, 3, 4)
    assert aliases["summed"](one, one) == 3 + 40
    with pytest.raises(ValueError, match=r"row: items\[1\] .*lies twice in"):
        aliases["row"]([one, one], 2, other)
    box = box_of(aliases)
    with pytest.raises(ValueError, match=r"inside: item\[.\] .*lies elsewhere in box .*give a copy"):
        aliases["inside"](box, [box.items[2], box.items[0]])


def test_pointers_in_a_list_of_structs(aliases: LoadedLibrary) -> None:
    link = aliases.types.link
    assert aliases["total"]([], 0) == 0
    last = link(value=5)
    first = link(value=1, next=last)
    assert aliases["total"]([first, last], 2) == 1 + 5 + 6
    assert (last.value, first.next is last) == (6, True)
    assert aliases["total"]([(3, last), {"value": 4}, first], 3) == 3 + 6 + 4 + 1 + 7
    assert last.value == 8
    with pytest.raises(GuardError, match=r"total wrote to links\[0\]->next: a dict can't change") as told:
        aliases["total"]([{"next": {"value": 1}}], 1)
    ring: dict[str, object] = {"value": 1}
    ring["next"] = ring
    with pytest.raises(GuardError, match=r"total wrote to links\[0\]->next"):
        aliases["total"]([{"next": ring}], 1)
    assert told.value.next_step == "make the struct with minrpc.types(lib): it can be written"


def test_one_list_of_pointers_in_two_arguments(aliases: LoadedLibrary) -> None:
    pair = [np.array([1], np.int32), np.array([2], np.int32)]
    assert aliases["swapped"](pair, pair) == 2


def test_the_rest_of_a_constant_stays_so(aliases: LoadedLibrary) -> None:
    box = box_of(aliases)
    with pytest.raises(GuardError, match=r"only_read wrote 1 byte of box .*, which it may only read"):
        aliases["only_read"](box, box.first)
    assert (box.first.x, box.last) == (1, 0)


def test_a_fake_gets_one_struct_twice(aliases: LoadedLibrary) -> None:
    def changed(a: Any, b: Any) -> None:  # noqa: ANN401 - structs
        a.x += 1
        assert a.x == b.x
        b.y += 1

    aliases.fakes.changed.answer = changed
    assert aliases["fakes"](1, 2) == 203


def test_a_fake_gets_a_struct_and_parts_of_it(load: Load) -> None:
    def changed(a: Any, b: Any, data: Any, n: int) -> None:  # noqa: ANN401
        assert (n, data.tolist()) == (4, [1, 2, 3, 4])
        b.x = 2
        assert a.items[1].x == 2
        a.items[2].y, a.last, data[0] = 3, 4, 5
        a.bytes[1] = 6

    lib = load(SOURCE, fakes={"member_changed": fake(changed, "a, b, bytes[n], n"), "*": "zero"})
    assert lib["fakes_inside"](4) == 23456


def test_a_fake_reaches_a_struct_by_two_ways(aliases: LoadedLibrary) -> None:
    """One is an argument, others are a pointer in another struct and a function of C that Python calls."""

    def chained(first: Any, other: Any, same: Any) -> None:  # noqa: ANN401 - structs
        first.value = 3
        assert other.next[0].value == other.next[:1][0].value == 3
        other.next[0].value = 4
        assert (first.value, same.value) == (4, 4)
        first.value = 5
        assert aliases["raised"](other.next) == 5
        assert (first.value, other.next[0].value) == (6, 6)
        other.value = 7

    aliases.fakes.chained.answer = chained
    assert aliases["fakes_chain"]() == 67


def test_bytes_that_c_leaves_keep_python_s_values(aliases: LoadedLibrary) -> None:
    """Python changes an array while the function waits for it."""
    values = np.zeros(3, np.int32)

    def answer(value: int) -> int:
        values[1] = 1000
        return value

    aliases.fakes.asked.answer = answer
    aliases["meanwhile"](values, 300)
    assert values.tolist() == [300, 1000, 0]


def test_a_placed_struct_with_one_buffer(aliases: LoadedLibrary) -> None:
    buffer = bytearray(8)
    ring = aliases.types.ring(rd=buffer, wr=buffer, begin=buffer)
    with aliases.place(ring) as placed:
        for value, due in ((5, b"\5\0"), (6, b"\5\6")):
            aliases["put"](placed, value)
            placed.refresh()
            assert buffer == due.ljust(8, b"\0")
        assert ring.count == 2


def test_after_a_refused_argument_and_a_crash(aliases: LoadedLibrary, minrpc_shared: SharedDevice) -> None:
    data = bytearray(4)
    with pytest.raises(TypeError):
        aliases["twice"](data, 1.5)
    with pytest.raises(HarnessError):
        aliases["crashes"](data, data)
    assert data == bytes(4)
    minrpc_shared.discard()


@pytest.mark.once
def test_over_a_link_that_loses_bytes(lossy: MakeLossy) -> None:
    device, transport = lossy(Faults.spread(0.002), 5, resend=True, timeout_s=60.0)
    with device:
        lib = device.load(SOURCE, fakes="zero")
        data = bytearray(200)
        ring = minrpc.types(lib).ring(rd=data, wr=data, begin=data)
        assert [lib.put(ring, n) for n in range(60)] == list(range(1, 61))
        assert data == bytes(range(60)).ljust(200, b"\0")
    assert any(transport.counts.values())
