# SPDX-License-Identifier: Apache-2.0
"""Cycles of edges between blocks of code, by hand: sums, exceptions, code left early, and waits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from minrpc import ConfigurationError
from minrpc.cycles import Span, load_core
from minrpc.cycles.estimate import CodeBlock, CycleModel, Edge, Passage
from minrpc.cycles.wait_states import Flash

# adds r2, #1 and b; adds r2, #1 and udiv r2, r3, r4, which is not word aligned; ten times adds r2, #1.
BLOCKS = (
    CodeBlock(0x1000, bytes.fromhex("0132fee7")),
    CodeBlock(0x2000, bytes.fromhex("0132b3fbf4f2")),
    CodeBlock(0x3000, bytes.fromhex("0132" * 10)),
    CodeBlock(0x3004, bytes.fromhex("0132fee7")),
    # itte ne, ldrne r2, [r1], ldrne r2, [r1], vdiveq.f32 s0, s1, s2 and ldr r2, [r1].
    CodeBlock(0x4002, bytes.fromhex("1abf0a680a6880ee810a0a68")),
)
CORE = replace(load_core("cortex-m4"), entry=Span(7, 7), exit=Span(9, 9))


def model_of(
    *edges: Edge, states: int = 0, knows_operands: bool = False, knows_conditions: bool = False, ram: int = -1
) -> CycleModel:
    model = CycleModel(replace(CORE, flash=Flash(states, 64)), lambda start: start != ram)
    model.knows_operands, model.knows_conditions = knows_operands, knows_conditions
    for edge in edges:
        model.learn([edge], BLOCKS.__getitem__)
    return model


def cycles(
    *edges: Edge, states: int = 0, knows_operands: bool = False, knows_conditions: bool = False, ram: int = -1
) -> list[Span]:
    model = model_of(
        *edges, states=states, knows_operands=knows_operands, knows_conditions=knows_conditions, ram=ram
    )
    each = (np.eye(1, len(edges), number, dtype=np.int64)[0] for number in range(len(edges)))
    return [model.total(np.arange(len(edges)), one) for one in each]


JUMP = Edge(0, 1, 4, Passage.AS_WRITTEN, 2)
DIVISION = Edge(1, 0, 6, Passage.AS_WRITTEN, 1)


def test_an_edge_has_the_code_that_was_left_and_the_way() -> None:
    assert cycles(JUMP, DIVISION) == [(1 + 1 + 1, 3), (1 + 2, 1 + 12)]
    assert cycles(DIVISION, knows_operands=True) == [(3, 3)]


def test_code_that_is_left_early_has_its_first_part() -> None:
    assert cycles(Edge(0, 1, 2, Passage.AS_WRITTEN, 0), Edge(1, 0, 2, Passage.AS_WRITTEN, 0)) == [(1, 1)] * 2


def test_a_skipped_instruction_takes_a_cycle_and_is_a_range_where_conditions_are_unknown() -> None:
    size = len(BLOCKS[4].code)
    of_edge = {skipped: Edge(4, 3, size, Passage.AS_WRITTEN, 0, skipped) for skipped in (0b100, 0b011, 0b111)}
    # IT, a load, one behind it, a skipped division and a load; as much with a division in place of loads.
    due = {0b100: 1 + 2 + 1 + 1 + 2, 0b011: 1 + 1 + 1 + 14 + 2, 0b111: 1 + 1 + 1 + 1 + 2}
    for skipped, edge in of_edge.items():
        assert cycles(edge, knows_conditions=True) == [Span(due[skipped], due[skipped])]
        assert cycles(edge) == [Span(1 + 1 + 1 + 1 + 2, 1 + 2 + 2 + 14 + 2)]


def test_an_exception_has_its_entry_and_its_return() -> None:
    assert cycles(Edge(0, 1, 2, Passage.INTO_EXCEPTION, 0)) == [(1 + 7, 1 + 7)]
    # It does not have the jump's refill, too.
    assert cycles(Edge(0, 1, 4, Passage.OUT_OF_EXCEPTION, 0)) == [(2 + 9, 2 + 9)]


def test_an_exceptions_entry_is_not_the_interrupted_functions() -> None:
    model = model_of(Edge(0, 1, 2, Passage.INTO_EXCEPTION, 0))
    assert model.by_node(np.array([3], np.int64), 1) == [3]
    assert model.by_address(np.array([3], np.int64)) == {0x1000: 3, 0x2000: 3 * 7}


def test_sums_over_addresses_and_nodes_are_the_total() -> None:
    model, times = model_of(JUMP, DIVISION), np.array([5, 3], np.int64)
    assert model.edges == 2
    assert model.total(np.array([0, 1]), times) == Span(5 * 3 + 3 * 3, 5 * 3 + 3 * 13)
    # The way to other code counts for the jump.
    assert model.by_address(times) == {0x1000: 5, 0x1002: 10, 0x2000: 3, 0x2002: 6}
    assert model.by_node(times, 4) == [0, 9, 15, 0]
    assert model.spread(times) == 30


def test_what_is_learned_together_is_what_is_learned_apart() -> None:
    together = CycleModel(CORE)
    together.learn([JUMP, DIVISION], BLOCKS.__getitem__)
    together.learn([], BLOCKS.__getitem__)
    times = np.array([5, 3], np.int64)
    assert together.by_address(times) == model_of(JUMP, DIVISION).by_address(times)


def test_code_without_cycles_refuses_only_sums_of_what_ran_it() -> None:
    blocks = (*BLOCKS, CodeBlock(0x6000, bytes.fromhex("ffffffff")))
    unknown = Edge(0, len(BLOCKS), 4, Passage.AS_WRITTEN, 1)
    for learned in ([[unknown], [JUMP]], [[unknown, JUMP]]):
        model = CycleModel(CORE)
        for edges in learned:
            model.learn(edges, blocks.__getitem__)
        assert model.edges == 2
        assert model.total(np.array([1]), np.array([5])) == Span(15, 15)
        assert model.total(np.array([0, 1]), np.array([0, 5])) == Span(15, 15)
        for _ in range(2):
            with pytest.raises(ConfigurationError, match=r"at 0x6000 \(ff ff ff ff\) is not known"):
                model.total(np.array([0, 1]), np.array([1, 5]))
        times = np.array([1, 5], np.int64)
        assert (model.by_address(times), model.by_node(times, 3)) == ({0x1000: 5, 0x1002: 10}, [0, 0, 15])


def test_waits_for_flash_by_hand() -> None:
    # A line of 64 bits has four short instructions, and 3 wait states hide behind four cycles.
    straight = Edge(2, 0, 20, Passage.AS_WRITTEN, 0)
    # The entered block is in one line, which is waited for. The block that is left crosses two lines:
    # the first is a wait of the edge into it.
    assert cycles(straight, states=3) == [(10 + 3, 10 + 3)]
    assert cycles(straight, states=5) == [(10 + 2 + 5, 10 + 2 + 5)]
    # Its first crossing: the wait for the entered line, and the rest of the wait for the next line.
    into = Edge(0, 2, 4, Passage.AS_WRITTEN, 0)
    assert cycles(into, states=5) == [(3 + 5 + 2, 3 + 5 + 2)]
    assert cycles(into, states=5, ram=0x3000) == [(3, 3)]
    assert cycles(into, states=5, ram=0x1000) == [(3 + 5 + 2, 3 + 5 + 2)]


def test_a_jump_within_a_line_waits_for_nothing() -> None:
    [(least, _)] = cycles(Edge(3, 3, 4, Passage.AS_WRITTEN, 0), states=5)
    assert least == 1 + 1 + 1


def test_cycles_that_are_not_known_hide_waiting_or_not() -> None:
    # adds and a division, 3 to 13 cycles, then a short instruction in the next line.
    block = CodeBlock(0x4000, bytes.fromhex("0132b3fbf4f20132" + "0132"))
    edge = Edge(0, 1, 10, Passage.AS_WRITTEN, 0)
    blocks = (block, CodeBlock(0x5000, bytes.fromhex("0132")))
    found = []
    for knows in (False, True):
        model = CycleModel(replace(CORE, flash=Flash(9, 64)))
        model.knows_operands = knows
        model.learn([edge, Edge(1, 0, 2, Passage.AS_WRITTEN, 0)], blocks.__getitem__)
        found.append(model.total(np.array([1]), np.array([1])))
    # Entering: 9 for the line; the next line comes 10 cycles after it, or is there.
    assert found == [Span(1 + 9 + 6, 1 + 9 + 0), Span(1 + 9 + 0, 1 + 9 + 6)]
