# SPDX-License-Identifier: Apache-2.0
"""The arena: blocks, workspace as a stack, and the guards beside both."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from tests.runtime.door import Door

GRANULE = 16
# A header, and a guard of 8 bytes.
OVERHEAD = GRANULE + 8
SIZE = 4096
U32_MAX = (1 << 32) - 1
KINDS = ["DATA", "OBJECT", "NDARRAY", "RESULT", "LIBRARY", "SESSION"]


class Arena:
    """An arena in a buffer of its own, at a multiple of 64 bytes; it is checked after each step."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.state = door.new("minrpc_arena")
        self.buffer = door.aligned(SIZE)
        self.kind = {name: door.constant(f"MINRPC_ARENA_{name}") for name in KINDS}
        self.data = self.kind["DATA"]
        self._out = door.memory(8)
        self.begin()

    def begin(self, size: int = SIZE, shift: int = 0) -> None:
        """A new arena in the buffer, from `shift` on."""
        self.door.call("minrpc_arena_init", self.state, self.buffer + shift, size)

    def check(self) -> int:
        """Blocks that are not free; they tile the arena and its counts are right."""
        return int(self.door.call("arena_check", self.state))

    def alloc(self, size: int, alignment: int = 1, kind: str = "DATA") -> int:
        """The result of an allocation; 0 when nothing fits."""
        place = self.door.call("minrpc_arena_alloc", self.state, size, alignment, self.kind[kind], result="P")
        return int(place)

    def take(self, size: int, alignment: int = 1, kind: str = "DATA") -> int:
        """A block."""
        block = self.alloc(size, alignment, kind)
        assert block
        self.check()
        return block

    def refuses(self, size: int, alignment: int = 1) -> bool:
        return self.alloc(size, alignment) == 0 and self.check() >= 0

    def frees(self, place: int, *kinds: str) -> bool:
        """True if there is a block, of one of these kinds."""
        bits = sum(self.kind[kind] for kind in kinds) if kinds else U32_MAX
        freed = self.door.call("minrpc_arena_free", self.state, place, bits, result="?")
        self.check()
        return bool(freed)

    def size_at(self, place: int, *kinds: str) -> int | None:
        """The size of the block at an address, if it is of one of these kinds."""
        bits = sum(self.kind[kind] for kind in kinds) if kinds else U32_MAX
        found = self.door.call("minrpc_arena_find", self.state, place, bits, self._out, result="?")
        return int.from_bytes(self.door.read(self._out, 4), "little") if found else None

    def largest(self) -> int:
        return int(self.door.call("minrpc_arena_largest_free", self.state, result="I"))

    def workspace(self, size: int, alignment: int = 1) -> int:
        """Workspace, or 0."""
        return int(self.door.call("minrpc_workspace_alloc", self.state, size, alignment, result="P"))

    def push(self, size: int, alignment: int = 1) -> int:
        """Workspace, filled."""
        block = self.workspace(size, alignment)
        assert block
        assert block % alignment == 0
        self.door.write(block, b"\x33" * size)
        self.check()
        return block

    def pop(self, place: int) -> str:
        """Frees workspace; the damage, as the end of its name MINRPC_DAMAGE_..."""
        return self._damage(self.door.call("minrpc_workspace_free", self.state, place))

    def inspect(self) -> tuple[str, int]:
        """The damage of all blocks, and the first damaged block; 0 for none."""
        self.door.write(self._out, bytes(8))
        damage = self._damage(self.door.call("minrpc_arena_inspect", self.state, self._out))
        block = int.from_bytes(self.door.read(self._out, 8), "little")
        return damage, 0 if damage == "NONE" else block

    def flip(self, place: int, bits: int = 1) -> None:
        self.door.write(place, bytes([self.door.read(place, 1)[0] ^ bits]))

    def _damage(self, number: int) -> str:
        names = ("NONE", "FOREIGN", "BEFORE", "PAST", "HEADERS")
        return next(name for name in names if self.door.constant(f"MINRPC_DAMAGE_{name}") == number)


@pytest.fixture
def arena(door: Door) -> Arena:
    return Arena(door)


WHOLE = ("NONE", 0)


def test_neighbours_merge_in_any_order(arena: Arena) -> None:
    for order in permutations(range(3)):
        room = arena.largest()
        blocks = [arena.take(100) for _ in range(3)]
        assert all(arena.frees(blocks[i], "DATA") for i in order)
        assert arena.largest() == room
        assert arena.state.used == 0


def test_a_hole_is_used_again(arena: Arena) -> None:
    first = arena.take(64)
    arena.take(64)
    assert arena.frees(first, "DATA")
    assert arena.take(64) == first


ALIGNMENTS = [1 << shift for shift in range(11)]


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_every_alignment_is_kept_and_nothing_overlaps(arena: Arena, alignment: int) -> None:
    first, second = arena.take(10, alignment), arena.take(10, alignment)
    assert first % alignment == second % alignment == 0
    assert second >= first + 10
    assert arena.frees(first, "DATA")
    assert arena.frees(second, "DATA")
    assert arena.check() == 0
    assert arena.largest() == SIZE - OVERHEAD


def test_an_unaligned_buffer_is_aligned(arena: Arena) -> None:
    for shift in range(20):
        arena.begin(SIZE - 32, shift)
        room = arena.largest()
        block = arena.take(room)
        assert block % GRANULE == 0
        assert arena.buffer + shift <= block
        assert block + room <= arena.buffer + shift + SIZE - 32


def test_a_buffer_too_small_holds_nothing(arena: Arena) -> None:
    for size in range(2 * GRANULE):
        arena.begin(size)
        assert arena.refuses(0)
        assert arena.largest() == 0
        assert not arena.frees(arena.buffer)


def test_exhaustion_is_an_error_and_changes_nothing(arena: Arena) -> None:
    room = arena.largest()
    assert room == SIZE - OVERHEAD
    assert arena.refuses(room + 1)
    assert arena.frees(arena.take(room), "DATA")
    arena.take(room)
    assert arena.refuses(0)
    assert arena.largest() == 0


def test_sizes_near_the_end_of_32_bits_are_refused(arena: Arena) -> None:
    for size in range(U32_MAX - 79, U32_MAX + 1):
        assert arena.refuses(size)
        assert arena.refuses(size, 64)
    assert arena.refuses(1, 0x80000000)
    assert arena.refuses(1, 8192)


def test_a_double_free_is_an_error(arena: Arena) -> None:
    block = arena.take(32)
    assert arena.frees(block, "DATA")
    assert not arena.frees(block, "DATA")


def test_foreign_pointers_are_errors(arena: Arena) -> None:
    block = arena.take(64)
    # Bytes like a header's inside a block are no header.
    arena.door.write(block, b"\x10" * 64)
    for place in {0, (1 << arena.door.bits) - 1, *range(arena.buffer - 64, arena.buffer + 256)} - {block}:
        assert not arena.frees(place)
        assert arena.size_at(place) is None
    assert arena.frees(block, "DATA")


def test_a_block_is_freed_only_as_what_it_is(arena: Arena) -> None:
    block = arena.take(33, kind="OBJECT")
    assert not arena.frees(block, "DATA")
    assert arena.size_at(block, "DATA") is None
    assert arena.size_at(block, "DATA", "OBJECT") == 33
    assert arena.frees(block, "OBJECT", "NDARRAY")


def test_zero_bytes_are_an_allocation_of_their_own(arena: Arena) -> None:
    first = arena.take(0)
    assert arena.take(0) != first
    assert arena.size_at(first, "DATA") == 0


def test_peak_is_the_most_that_was_used(arena: Arena) -> None:
    first, second = arena.take(100), arena.take(200)
    assert arena.state.used == arena.state.peak == 128 + 224
    assert arena.frees(second, "DATA")
    assert arena.frees(first, "DATA")
    arena.take(50)
    assert arena.state.peak == 128 + 224


def test_release_frees_these_kinds_only(arena: Arena) -> None:
    data = arena.take(40)
    arena.take(40, kind="RESULT")
    kept = arena.take(40, kind="LIBRARY")
    arena.take(40, 64, "OBJECT")
    arena.door.call("minrpc_arena_release", arena.state, arena.kind["OBJECT"] | arena.kind["RESULT"])
    assert arena.check() == 2
    assert arena.size_at(data, "DATA") == 40
    arena.door.call("minrpc_arena_release", arena.state, arena.kind["SESSION"])
    assert arena.check() == 1
    assert arena.size_at(kept, "LIBRARY") == 40


def test_an_arena_of_two_granules(arena: Arena) -> None:
    """The smallest request: 8 bytes, or a stack of this size."""
    arena.begin(2 * GRANULE)
    assert arena.largest() == 8
    assert arena.refuses(9)
    assert arena.frees(arena.take(8), "DATA")
    assert arena.frees(arena.take(0), "DATA")
    assert arena.workspace(9) == 0
    assert arena.workspace(8)
    assert arena.refuses(0)


def test_sizes_near_those_of_a_huge_arena_do_not_wrap(arena: Arena) -> None:
    """An arena of nearly 4 GiB is only its numbers here: a copy that does not fit is refused before memory is
    touched."""
    arena.state.size, arena.state.end, arena.state.top = 0xFFFFFFF0, 0, 64
    for size in range(0xFFFFFF01, U32_MAX + 1):
        assert arena.alloc(size) == arena.alloc(size, 64) == 0
        assert arena.workspace(size) == arena.workspace(size, 64) == 0


# --------------------------------------------------------------- workspace


def test_workspace_is_a_stack(arena: Arena) -> None:
    arena.take(100)
    first = arena.push(100, 64)
    second = arena.push(0, 64)
    assert second < first
    assert [arena.pop(place) for place in (first, second + 1, 0)] == ["FOREIGN"] * 3
    assert [arena.pop(place) for place in (second, second, first)] == ["NONE", "FOREIGN", "NONE"]
    assert arena.state.top == arena.state.size
    assert arena.pop(first) == "FOREIGN"
    assert arena.pop(arena.state.base + arena.state.size + GRANULE) == "FOREIGN"


def test_workspace_and_blocks_share_the_room(arena: Arena) -> None:
    arena.take(1000)
    arena.push(1000)
    room = arena.largest()
    assert room == SIZE - 2 * 1024 - OVERHEAD
    assert arena.workspace(room + 1) == 0
    assert arena.refuses(room + 1)
    arena.push(room)
    assert arena.refuses(0)
    assert arena.largest() == 0
    assert arena.state.peak == arena.state.size
    assert arena.workspace(0) == arena.workspace(0, 8192) == 0


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_every_alignment_of_workspace(arena: Arena, alignment: int) -> None:
    blocks = [arena.push(10 + i, alignment) for i in range(3)]
    assert [arena.pop(block) for block in reversed(blocks)] == ["NONE"] * 3
    assert arena.state.top == arena.state.size


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_aligned_workspace_never_reaches_the_blocks(arena: Arena, alignment: int) -> None:
    """Bytes that alignment leaves free count, too: else workspace would begin in a block."""
    for taken in range(1900, 4000, GRANULE):
        arena.begin()
        arena.take(taken)
        if arena.workspace(100, alignment):
            assert arena.state.top >= arena.state.end
        else:
            assert arena.state.top == arena.state.size
        arena.check()


@pytest.mark.parametrize(
    ("beside", "damage"),
    [*[(at, "PAST") for at in range(33, 41)], *[(-at, "BEFORE") for at in range(1, 17)]],
)
def test_writes_beside_workspace_are_noticed(arena: Arena, beside: int, damage: str) -> None:
    block = arena.push(33, 64)
    arena.flip(block + beside)
    assert arena.pop(block) == damage
    if damage == "PAST":
        assert arena.state.top == arena.state.size


# ------------------------------------------------------------------- guards


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 15, 16, 33, 100])
def test_a_byte_beside_an_array_is_noticed_and_mended(arena: Arena, size: int) -> None:
    arena.take(50, 64)
    block = arena.take(size, 64)
    arena.take(50, 64, "LIBRARY")
    assert arena.inspect() == WHOLE
    for beside, damage in [
        *[(size + at, "PAST") for at in range(8)],
        *[(-at, "BEFORE") for at in range(1, 5)],
    ]:
        arena.flip(block + beside, 0x80)
        assert arena.inspect() == (damage, block)
        assert arena.inspect() == WHOLE
    assert arena.check() == 3


@pytest.mark.parametrize("byte", range(12))
def test_a_damaged_header_is_noticed(arena: Arena, byte: int) -> None:
    """The header is overwritten with any bytes."""
    for bit in range(8):
        arena.begin()
        block, following = arena.take(64), arena.take(64)
        arena.take(64)
        arena.flip(following + byte - 16, 1 << bit)
        assert arena.inspect() == ("HEADERS", block)


def test_a_run_over_an_array_and_the_next_header_is_laid_on_the_first(arena: Arena) -> None:
    block = arena.take(64)
    arena.take(64)
    arena.door.write(block, bytes(100))
    assert arena.inspect() == ("HEADERS", block)


def test_what_is_free_has_no_guards(arena: Arena) -> None:
    block = arena.take(64)
    arena.take(64)
    assert arena.frees(block, "DATA")
    arena.door.write(block - 4, bytes(64 + 8 + 4))
    assert arena.inspect() == WHOLE
    assert arena.take(64) == block
    assert arena.inspect() == WHOLE


def test_many_random_steps_keep_every_byte(arena: Arena) -> None:
    generator = random.Random(1)
    blocks: dict[int, tuple[int, bytes]] = {}
    for _ in range(3000):
        slot = generator.randrange(24)
        if slot in blocks:
            block, content = blocks.pop(slot)
            assert arena.door.read(block, len(content)) == content
            assert arena.frees(block, "DATA")
        elif block := arena.alloc(size := generator.randrange(400), 1 << generator.randrange(9)):
            blocks[slot] = block, bytes([slot]) * size
            arena.door.write(*blocks[slot])
            arena.check()
