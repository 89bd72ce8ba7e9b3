# SPDX-License-Identifier: Apache-2.0
"""Trees of calls: their sums, for any callers."""

from __future__ import annotations

from hypothesis import given, strategies as st
from minrpc.counters import CallTree


@st.composite
def trees(draw: st.DrawFn) -> CallTree:
    size = draw(st.integers(1, 30))
    parents = [0, *(draw(st.integers(0, node - 1)) for node in range(1, size))]
    names = ["?", *(draw(st.sampled_from("abcd")) for _ in range(1, size))]
    own = [0, *(draw(st.integers(0, 1000)) for _ in range(1, size))]
    return CallTree(names, parents, own, [1] * size)


def test_a_small_one() -> None:
    tree = CallTree(["?", "main", "f", "g", "f"], [0, 0, 1, 2, 1], [0, 5, 3, 2, 10], [0, 1, 2, 2, 1])
    assert tree.total == 20
    assert [(row.name, row.own, row.inclusive, row.calls) for row in tree.rows()] == [
        ("f", 13, 15, 3),
        ("main", 5, 20, 1),
        ("g", 2, 2, 2),
    ]
    assert tree.stack(3) == ("main", "f", "g")


def test_one_that_calls_itself_is_counted_once() -> None:
    tree = CallTree(["?", "f", "f", "f"], [0, 0, 1, 2], [0, 1, 2, 3], [0, 1, 1, 1])
    (row,) = tree.rows()
    assert (row.own, row.inclusive) == (6, 6)


def test_one_that_calls_itself_often_is_added_up_soon() -> None:
    depth = 16384
    tree = CallTree(["?"] + ["f"] * depth, [0, *range(depth)], [1] * (depth + 1), [1] * (depth + 1))
    (row,) = tree.rows()
    assert (row.inclusive, row.calls) == (depth, depth)


@given(trees())
def test_sums_are_equal(tree: CallTree) -> None:
    assert tree.inclusive[0] == tree.total == sum(row.own for row in tree.rows())
    assert sum(count for _, count in tree.stacks()) == tree.total
    for row in tree.rows():
        assert row.own <= row.inclusive <= tree.total


@given(trees())
def test_what_came_since(tree: CallTree) -> None:
    assert (tree - tree).total == 0
    start = CallTree(tree.names[:1], tree.parents[:1], tree.own[:1], tree.calls[:1])
    assert (tree - start).own == list(tree.own)


def test_below_a_function_is_all_that_it_calls() -> None:
    """`leaf` is called by `work` and by other functions: only calls by `work` are below `work`."""
    tree = CallTree(["?", "main", "work", "leaf", "leaf"], [0, 0, 1, 2, 1], [0, 1, 2, 4, 8], [0, 1, 1, 3, 5])
    found = tree.below("work", "(rest)")
    assert [(row.name, row.own, row.calls) for row in found.rows()] == [
        ("(rest)", 9, 0),
        ("leaf", 4, 3),
        ("work", 2, 1),
    ]
    assert found.stack(3) == ("work", "leaf")
