# SPDX-License-Identifier: Apache-2.0
"""A kept layout sends the same bytes as a plan, and is used only if the arguments fit it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from minrpc import GuardError
from minrpc.library.arguments import CallPlan, plan_call
from minrpc.library.frame import GUARD
from minrpc.library.repeated import FrameLayout, Repeated, repeated_calls

from tests.unit.library.host_library import HostLibrary

_SOURCE = """
#include <stdint.h>
struct point { int x, y; };
void scale(const int16_t *x, int16_t *y, int n, float by) {}
void raw(void *any, const char *text) {}
void rows(int16_t rows[][3]) {}
int sum(const struct point *p) { return 0; }
struct point made(const int16_t *x) { struct point p = {0, 0}; return p; }
int plain(int a) { return a; }
void flags(const _Bool *on) {}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> HostLibrary:
    return HostLibrary(_SOURCE, tmp_path_factory.mktemp("library"))


def repeated(library: HostLibrary, name: str) -> Repeated:
    found = repeated_calls(library.functions[name])
    assert found is not None
    return found


def layout_of(
    known: Repeated, args: tuple[object, ...], plan: Callable[[], CallPlan], guard: int = GUARD
) -> FrameLayout | None:
    sizes = known.sizes(args)
    return None if sizes is None else known.layout(sizes, guard, plan)


def plan_of(library: HostLibrary, name: str, args: tuple[object, ...]) -> CallPlan:
    return plan_call(library.functions[name], args, 8)


def sent_by(plan: CallPlan) -> bytes:
    frame = bytearray(plan.frame.size)
    for at, data in plan.frame.image(0x1000):
        frame[at : at + len(data)] = data
    return bytes(frame)


@pytest.mark.parametrize("count", [1, 3, 100])
def test_the_second_call_sends_what_a_plan_of_it_does(library: HostLibrary, count: int) -> None:
    known = repeated(library, "scale")
    for seed in range(3):
        x = np.arange(count, dtype=np.int16) + seed
        args = (x, np.full((1, count), seed, np.int16), count, 0.5)
        plan = plan_of(library, "scale", args)
        layout = layout_of(known, args, partial(plan_of, library, "scale", args))
        assert layout is not None
        assert bytes(layout.filled(args)) == sent_by(plan)
        for base in (0x1000, 0x2000, 0x1000):
            assert layout.arguments(args, base) == plan.arguments(base)


def test_what_came_back_is_checked_and_handed_back(library: HostLibrary) -> None:
    x, y = np.arange(3, dtype=np.int16), np.zeros(3, np.int16)
    args = (x, y, 3, 1.0)
    layout = layout_of(repeated(library, "scale"), args, lambda: plan_of(library, "scale", args))
    assert layout is not None
    sent = layout.filled(args)
    found = bytearray(sent)
    (_, begin, end) = layout.returned[0]
    found[begin:end] = np.array([7, 8, 9], np.int16).tobytes()
    assert layout.hand_back(bytearray(sent), bytes(found), args)
    assert y.tolist() == [7, 8, 9]
    assert x.tolist() == [0, 1, 2]
    for at in [*range(begin), *range(end, len(found))]:
        damaged = bytearray(found)
        damaged[at] ^= 1
        y[:] = 0
        assert not layout.hand_back(bytearray(sent), bytes(damaged), args)
        assert y.tolist() == [0, 0, 0]
        # The plan describes the damage.
        with pytest.raises(GuardError, match="scale wrote"):
            plan_of(library, "scale", args).frame.take(memoryview(damaged), 0, 0x1000, "scale")


def test_other_arguments_need_a_plan(library: HostLibrary) -> None:
    known = repeated(library, "scale")
    x = np.zeros(8, np.int16)
    read_only = np.zeros(8, np.int16)
    read_only.flags.writeable = False
    for args in [
        (x, x, 8, 1.0),
        (x[:5], x[3:], 8, 1.0),
        (x[::2], x[1:2], 8, 1.0),
        (x, np.zeros(8, np.int32), 8, 1.0),
        (x, read_only, 8, 1.0),
        (x, np.zeros(0, np.int16), 8, 1.0),
        (x, [0] * 8, 8, 1.0),
        (x, np.zeros(8, np.int16), 1 << 40, 1.0),
        (x, np.zeros(8, np.int16), 8, 1),
        (x, np.zeros(8, np.int16), np.int32(8), 1.0),
        (x, np.zeros(8, np.int16), 8),
        (x, np.zeros(1 << 20, np.int16), 8, 1.0),
    ]:
        assert layout_of(known, args, lambda: pytest.fail("no plan is due")) is None


def test_parts_of_an_array_that_only_touch_are_arrays_like_others(library: HostLibrary) -> None:
    whole = np.arange(8, dtype=np.int16)
    for x, y in ((whole[:4], whole[4:]), (whole[4:], whole[:4])):
        args = (x, y, 4, 1.0)
        known = repeated(library, "scale")
        plans = [partial(plan_call, library.functions["scale"], args, 8, guard=guard) for guard in (8, 64)]
        found = [layout_of(known, args, plan, guard) for plan, guard in zip(plans, (8, 64), strict=True)]
        assert [layout and len(layout.template) for layout in found] == [plan().frame.size for plan in plans]


def test_void_and_char_take_what_a_plan_takes(library: HostLibrary) -> None:
    known = repeated(library, "raw")
    for first in (np.zeros(3, np.complex64), np.zeros(2, [("a", "<i4"), ("b", "<f8")])):
        args = (first, np.zeros(4, np.uint8))
        assert layout_of(known, args, partial(plan_of, library, "raw", args)) is not None
    assert layout_of(known, (np.array([None]), np.zeros(4, np.int8)), lambda: pytest.fail("no plan")) is None
    assert layout_of(known, (np.zeros(1), np.zeros(4, np.int16)), lambda: pytest.fail("no plan")) is None


def test_a_layout_is_for_bools_of_0_and_1(library: HostLibrary) -> None:
    known, good, bad = repeated(library, "flags"), np.array([True, False]), np.array([1, 2], np.uint8)
    assert layout_of(known, (good,), partial(plan_of, library, "flags", (good,))) is not None
    assert layout_of(known, (bad.view(np.bool_),), lambda: pytest.fail("no plan is due")) is None


@pytest.mark.parametrize("name", ["rows", "sum", "made", "plain"])
def test_other_functions_are_planned(library: HostLibrary, name: str) -> None:
    assert repeated_calls(library.functions[name]) is None
