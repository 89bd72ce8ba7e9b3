# SPDX-License-Identifier: Apache-2.0
"""Structs by value whose alignment the user changed: the thunks pass them as the user's own compiler does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from minrpc import LoadedLibrary

Load = Callable[..., LoadedLibrary]
SOURCE = Path(__file__).with_name("c") / "aligned.c"
PAIR = (2, 3)
GIVEN = {
    "of_pair": PAIR,
    "of_whole": PAIR,
    "of_type": PAIR,
    "of_inner": (PAIR,),
    "of_typedef": (PAIR,),
    "of_near": PAIR,
    "of_low": PAIR[::-1],
    "of_pragma": PAIR,
    "of_holder": ((2,), 3),
    "of_own": PAIR,
    "of_mixed": PAIR,
    "of_nameless": PAIR,
    "of_bits": PAIR,
    "of_ended": PAIR,
    "of_apart": PAIR,
    "of_within": PAIR,
    "of_loose": PAIR,
    "of_moved": PAIR,
    "of_begun": PAIR,
    "of_either": PAIR[:1],
    "of_by_4": (2, (3,)),
    "of_by_1": (2, (3,)),
    "of_by_none": (2, (3,)),
    "of_by_bits": (2, (3,)),
    "of_unnamed": PAIR[:1],
    "of_hidden": PAIR,
    "of_reserved": PAIR,
    "of_filled": PAIR,
    "of_unfilled": PAIR,
    "of_separated": PAIR,
    "of_parted": ((0, 0), *PAIR),
    "of_chosen": PAIR[:1],
}


@pytest.fixture
def aligned(load: Load) -> LoadedLibrary:
    return load(SOURCE, fakes="zero")


@pytest.mark.parametrize("name", GIVEN)
def test_a_struct_between_numbers(aligned: LoadedLibrary, name: str) -> None:
    assert aligned[name](1, GIVEN[name], 4) == 4321


def test_a_struct_on_the_stack_and_as_a_result(aligned: LoadedLibrary) -> None:
    assert aligned["behind"](1, 0, 0, 0, 0, 0, 0, PAIR, 4) == 4321
    assert aligned["made"](5, PAIR) == aligned.types.pair(8, 2)


def test_a_typedef_that_aligns_a_struct_on_the_stack(aligned: LoadedLibrary) -> None:
    assert aligned["stacked"](1, 0, 0, 0, 0, 0, 0, 0, 0, PAIR, 4, (5, 6)) == 654321
    aligned.fakes.stack_taken.answer = lambda *given: (
        100 * given[9].a + 10 * given[9].b + given[10] + 1000 * given[11].a + 10000 * given[11].b
    )
    assert aligned["stacks"](2, 3) == 23239


def test_behind_a_pointer_that_asks_for_more(aligned: LoadedLibrary) -> None:
    one, other = aligned.types.pair(2, 3), aligned.types.pair(2, 3)
    assert aligned["misplaced"](bytes(5), one, [one, other]) == 0
    assert aligned["misplaced"](bytes(5), PAIR, [other, one]) == 0


def test_a_fake_and_a_callback(aligned: LoadedLibrary) -> None:
    def called(first: int, s: Any, last: int) -> int:  # noqa: ANN401 - a struct
        return first + 10 * int(s.a) + 100 * int(s.b) + 1000 * last

    aligned.fakes.turned.answer = lambda s: (s.b, s.a)
    assert aligned["asks"](2, 3) == 32
    assert aligned["calls"](called) == 4321
    assert aligned["calls"](aligned["of_pair"]) == 4321


def test_a_packed_struct_with_the_layout_of_another(aligned: LoadedLibrary) -> None:
    stamp = aligned.types.stamp
    assert aligned["ms_of"](1, (76,)) == 77
    aligned.fakes.later.answer = lambda by, s: (s.ms + by,)
    assert aligned["later_by"](3, (1 << 40,)) == stamp((1 << 40) + 3)
    assert aligned["called"](lambda first, s: s.ms * 2 + first, 1 << 33) == (1 << 34) + 1
    assert aligned["called"](aligned["ms_of"], 5) == 6


WIDE = """
#include <stdint.h>

struct ring { char first; } __attribute__((aligned(512)));

int off(const struct ring *p) { return (int)((uintptr_t)p % 512) + p->first - 1; }
int by_value(struct ring one) { return one.first; }
void write_ring(struct ring *p, int value) { p->first = (char)value; }
int ask(struct ring *p);
int asks(void)
{
	struct ring ring = {4};

	return ask(&ring) + ring.first;
}
"""


def test_a_struct_that_is_aligned_to_more_than_the_devices_memory(load: Load, tmp_path: Path) -> None:
    """A descriptor of DMA lies at a multiple of its alignment, in each way of passing it."""
    (tmp_path / "wide.c").write_text(WIDE)
    lib: LoadedLibrary = load(tmp_path / "wide.c", fakes={"ask": lambda ring: lib["off"](lib.types.ring(1))})
    ring = lib.types.ring(1)
    others = [lib.types.ring(1) for _ in range(3)]
    assert [lib["off"](each) for each in (ring, *others)] == [0] * 4
    assert lib["by_value"](lib.types.ring(7)) == 7
    lib["write_ring"](ring, 9)
    assert ring.first == 9
    placed = [lib.place(lib.types.ring(1)) for _ in range(3)]
    assert [each.address % 512 for each in placed] == [lib["off"](each) for each in placed] == [0] * 3
    # A call by Python while C waits.
    assert lib["asks"]() == 4
