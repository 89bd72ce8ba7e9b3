# SPDX-License-Identifier: Apache-2.0
"""Blocks that live at the same time are separate; other blocks may share memory."""

from __future__ import annotations

from hypothesis import given, strategies as st
from minrpc_models.memory import Block, most_alive, placed, size_of

_BLOCKS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 9), st.integers(0, 9)).map(
        lambda item: Block(16 * item[0], min(item[1:]), max(item[1:]))
    ),
    max_size=12,
)


@given(_BLOCKS)
def test_blocks_that_live_at_once_lie_apart(blocks: list[Block]) -> None:
    offsets = placed(blocks)
    size = size_of(blocks, offsets)
    assert most_alive(blocks) <= size <= sum(block.size for block in blocks)
    for step in range(10):
        taken = [
            byte
            for block, offset in zip(blocks, offsets, strict=True)
            if block.first <= step <= block.last
            for byte in range(offset // 16, (offset + block.size) // 16)
        ]
        assert len(taken) == len(set(taken))


def test_a_chain_takes_its_largest_pair() -> None:
    """Each layer's input and output, and the second layer's own memory, which lies in the third's output."""
    sizes = [320, 640, 160, 480]
    blocks = [Block(size, number, number + 1) for number, size in enumerate(sizes)] + [Block(64, 1, 1)]
    assert size_of(blocks, placed(blocks)) == most_alive(blocks) == 1024


def test_no_blocks() -> None:
    assert size_of([], placed([])) == most_alive([]) == 0
