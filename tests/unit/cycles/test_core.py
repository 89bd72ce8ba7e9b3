# SPDX-License-Identifier: Apache-2.0
"""Cores as files: their cycles, refusals, and a table that extends another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from minrpc import PLATFORMS, ConfigurationError
from minrpc.cycles import Core, Span, core_names, core_or_reason, load_core
from minrpc.cycles.core import NOT_MODELLED
from minrpc.cycles.instructions import decode

# ldr r0, [r1]; ldr r2, [r3]; udiv r0, r1, r2
LOADS = bytes.fromhex("08681a68b1fbf2f0")


_M4 = 'extends = "cortex-m4"\n[[cost]]\n'


def cycles(core: Core, code: bytes) -> list[Span]:
    return list(core.costs_of(decode(code, 0x1000, core.instruction_set)))


@pytest.mark.parametrize("name", core_names())
def test_each_core_has_a_title_an_error_and_what_it_ignores(name: str) -> None:
    core = load_core(name)
    assert core.title in core.about
    assert core.against in core.about
    assert core.ignores in core.about
    assert core.against


def test_a_core_of_ones_own_extends_another(tmp_path: Path) -> None:
    text = """
extends = "cortex-m3"
title = "mine"
pair = []
[[cost]]
kinds = ["div"]
cycles = 9
source = "measured"
"""
    (tmp_path / "mine.toml").write_text(text)
    assert cycles(load_core("cortex-m3"), LOADS) == [Span(2, 2), Span(1, 1), Span(2, 12)]
    mine = load_core("mine.toml", tmp_path)
    assert cycles(mine, LOADS) == [Span(2, 2), Span(2, 2), Span(9, 9)]
    # The error of the extended core's cycles is not that of others.
    assert (mine.title, mine.against) == ("mine", "never compared with hardware")


def test_a_core_extends_one_that_extends_another() -> None:
    core = Core.read("mine.toml", 'extends = "cortex-m3-stm32f2"')
    assert core.costs == load_core("cortex-m3").costs
    assert (core.title, core.pairs) == ("mine.toml", ())
    assert core.about.startswith("estimate: mine.toml's table, with loads that are never pipelined, ")


def test_code_that_a_core_can_not_run_has_no_cycles() -> None:
    with pytest.raises(ConfigurationError, match=r"Cortex-M0 has no udiv, which the code has at 0x1004"):
        cycles(load_core("cortex-m0"), LOADS)


def test_code_that_is_none_has_no_cycles() -> None:
    with pytest.raises(ConfigurationError, match="instruction at 0x1002"):
        decode(bytes.fromhex("0868ffff"), 0x1000, "thumb")


@pytest.mark.parametrize("name", NOT_MODELLED)
def test_cores_without_a_table_are_named_with_the_reason(name: str) -> None:
    core, reason = core_or_reason(replace(PLATFORMS["bare_mps2_an385"], core=name))
    assert core is None
    assert f"{name} is not modelled" in reason
    with pytest.raises(ConfigurationError, match=f"{name} is not modelled"):
        load_core(name)


def test_an_unknown_core_is_told_with_those_that_are_there() -> None:
    with pytest.raises(ConfigurationError, match="there is no core cortex-m5") as error:
        load_core("cortex-m5")
    assert "cortex-m4" in str(error.value.next_step)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("extends = 1", "it extends 1, which is no core of this package; there is cortex-m0, "),
        ('extends = "mine.toml"', "it extends mine.toml, which is no core"),
        ('extends = "cortex-m4"\n[[cost]]\nkinds = ["lood"]\ncycles = 1', "no class lood"),
        ('extends = "cortex-m4"\n[[cost]]\nkinds = ["load"]\ncycles = 1.5', "1.5 are no whole cycles"),
        (f"{_M4}kinds = ['load']\ncycles = [1, 2, 3]", r"\[1, 2, 3\] are no whole cycles"),
        (f"{_M4}kinds = ['load']\ncycles = -1", "-1 cycles are less than none"),
        (f"{_M4}kinds = ['load']\ncycles = 1\neach = -1", "-1 cycles are less than none"),
        (f"{_M4}kinds = ['load']\ncycle = 1", "no key cycle in cost; there is kinds, cycles, "),
        (f"{_M4}kinds = 'load'\ncycles = 1", "classes are a list, not 'load'"),
        ('extends = "cortex-m4"\ntitel = "x"', "no key titel; there is title, "),
        ('extends = "cortex-m4"\ntitle = 5', "title is a text, not 5"),
        ('extends = "cortex-m4"\ncost = 3', r"cost is no list of tables: \[\[cost\]\]"),
        ('extends = "cortex-m4"\ninterrupt = 3', "interrupt is no table"),
        ('extends = "cortex-m4"\ninterrupt = {entry = 1, exit = 1, nmi = 2}', "no key nmi in interrupt"),
        (
            'extends = "cortex-m4"\n[[pair]]\nfirst = ["load"]\nthen = ["load"]\nwhn = ""\ncycles = 1',
            "no key whn",
        ),
        ('extends = "cortex-m4"\nrefill = [{kinds = ["call"], cycles = -1}]', "-1 cycles are less than none"),
        ('extends = "cortex-m4"\n[[cost]]\nkinds = ["load"]\ncycles = [3, 2]', "is no range"),
        ('title = "x"', "'instruction_set' is missing"),
        ("title", "can't be read"),
    ],
)
def test_a_file_that_is_wrong_says_where(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        Core.read("mine", text)
