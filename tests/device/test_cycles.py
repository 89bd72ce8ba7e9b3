# SPDX-License-Identifier: Apache-2.0
"""Laws of estimated cycles: they follow from the core's table by hand, and parts add up to the whole."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from minrpc import (
    ConfigurationError,
    Firmware,
    LoadedLibrary,
    connect,
    library_of,
    open_device,
    profile_call,
    start,
)
from minrpc.cli import main
from minrpc.counters.plugin_build import api_of, qemu_version
from minrpc.cycles import load_core
from minrpc.running import all_counters

LOOPS: Final = Path(__file__).parent / "c" / "cycle_loops.c"
ROUNDS: Final = 100
Cycles = int | tuple[int, int]

# For each core: cycles of a round without its subtraction and its branch back, and cycles of the branch back.
_M3: Final[dict[str, Cycles]] = {
    "data": 1,
    "mul": 1,
    "mla": 2,
    "mul_long": (3, 5),
    "mla_long": (3, 7),
    "divide": (2, 12),
    "load": 2,
    "load_load": 2 + 1,
    "load_to_address": 2 + 2,
    "load_replaces_index": 1 + 2 + 1,
    "store_load": 1 + (2 + 1),
    "store": 1,
    "store_register": 2 + 1,
    "load_store_register": 2 + 1,
    "load_double": 1 + 2,
    "store_double": 1 + 2,
    "push_pop": (1 + 3) + (1 + 3),
    "load_multiple": 1 + (1 + 2),
    "branch": 1 + 1,
    "branch_not_taken": 1 + 1 + 1,
    "compare_branch": 1 + 1,
    "load_updates": 1 + 2 + 2,
    "address_made": 1 + 1 + 2,
    "access_straddles": 1 + (1 + 2) + 1,
    "straddles_behind_access": 2 + (1 + 1) + 1,
    "data_straddles": 1 + 1 + 1,
    "unaligned_word": 2 + 2,
    "unaligned_half": 2 + 1,
    "word_at_odd_half": 2 + 1,
    "unaligned_store": (1, 1 + 2),
    "unaligned_half_store": (1, 1 + 1),
    "if_then": 1 + 1 + 1,
    "table_branch": 2 + 3,
    "call": (1 + 1) + (1 + 3) + (1 + 1),
    "pop_pc": 1 + 1 + (1 + 1) + (1 + 1 + 3),
}
_M4: Final[dict[str, Cycles]] = {
    "mla": 1,
    "mul_long": 1,
    "mla_long": 1,
    "load_to_address": 2 + 1 + 2,
    "table_branch": 2 + 2,
    "call": (1 + 1) + (1 + 2) + (1 + 1),
}
_FPU: Final[dict[str, Cycles]] = {
    "fp_add": 2,
    "fp_dependent": 2 + 1,
    "fp_mla": 3,
    "fp_divide": 14,
    "fp_load": 2,
    "fp_store": 1,
    "fp_double_move": 2,
    "fp_load_multiple": 1 + (1 + 4),
}
_M0: Final[dict[str, Cycles]] = {
    "data": 1,
    "mul": 1,
    "load": 2,
    "load_load": 2 + 2,
    "load_to_address": 2 + 2,
    "load_replaces_index": 1 + 2 + 2,
    "store_load": 2 + 2,
    "store": 2,
    "store_register": 2 + 2,
    "load_store_register": 2 + 2,
    "push_pop": (1 + 3) + (1 + 3),
    "load_multiple": 1 + (1 + 2),
    "branch": 3,
    "branch_not_taken": 1 + 1 + 1,
    "call": 4 + 3 + 3,
    "pop_pc": 1 + 1 + (1 + 1) + (4 + 1),
}
_CV32E40P: Final[dict[str, Cycles]] = {
    "data": 1,
    "mul": 1,
    "mul_high": 5,
    "divide": (3, 35),
    "load": 1,
    "load_used": 1 + 1 + 1,
    "store": 1,
    "unaligned_word": 1 + 1,
    "half_in_word": 1,
    "unaligned_half": 1 + 1,
    "unaligned_store": 1 + 1,
    "unaligned_half_store": 1 + 1,
    "jump": 2,
    "branch": 3,
    "branch_not_taken": 1 + 1,
    "call": 2 + 2 + 2,
    "csr": 1,
}
_ROUNDS: Final[dict[str, tuple[int, dict[str, Cycles]]]] = {
    "cortex-m4": (1 + 1, {**_M3, **_M4, **_FPU}),
    "cortex-m3": (1 + 1, _M3),
    "cortex-m0": (3, _M0),
    "cortex-m0plus": (2, {**_M0, "branch": 2, "call": 3 + 2 + 2, "pop_pc": 1 + 1 + (1 + 1) + (3 + 1)}),
    "cv32e40p": (3, _CV32E40P),
    "ibex": (
        3,
        {
            **{
                name: _CV32E40P[name]
                for name in ("data", "jump", "branch", "branch_not_taken", "call", "csr")
            },
            "mul": 3,
            "mul_high": 4,
            "divide": (2, 37),
            "load": 2,
            "load_used": 2 + 1,
            "store": 2,
            "unaligned_word": 2 + 1,
            "half_in_word": 2,
            "unaligned_half": 2 + 1,
            "unaligned_store": 2 + 1,
            "unaligned_half_store": 2 + 1,
        },
    ),
}


def a_round(library: LoadedLibrary, name: str, *operands: int) -> tuple[int, int]:
    """The least and the most cycles of a round of the loop."""
    measurer = library.measure(name, number=1, repeat=3, counters=["cycles"])
    some, more = (measurer(rounds, *operands).counters for rounds in (ROUNDS, 2 * ROUNDS))
    least, most = (min(more[end]) - min(some[end]) for end in ("cycles", "cycles_most"))
    assert least % ROUNDS == most % ROUNDS == 0
    return least // ROUNDS, most // ROUNDS


def modelled(image: Firmware) -> str:
    core = image.target.platform.core
    if core not in _ROUNDS:
        pytest.skip("no core with a table stands for this platform")
    return core


def reads_operands(image: Firmware) -> bool:
    """True if QEMU shows registers to plugins."""
    return api_of(qemu_version(image.target.platform.qemu)) > 1


def check_rounds(image: Firmware, core: str) -> None:
    back, rounds = _ROUNDS[core]
    with open_device(image.changed(counters=True, core=core)) as device:
        library = library_of(device.load(LOOPS, flags=["-O1"]))
        found = {name: a_round(library, name) for name in rounds}
    due = {name: body if isinstance(body, tuple) else (body, body) for name, body in rounds.items()}
    if reads_operands(image):
        # Their operands are the previous values of the registers.
        for name in {*due} & {"divide", "mul_long", "mla_long"}:
            exact, at_most = found[name][0] - 1 - back, due[name][1]
            assert due[name][0] <= exact <= at_most
            due[name] = (exact, exact)
    assert found == {name: (1 + back + least, 1 + back + most) for name, (least, most) in due.items()}


def test_a_loop_takes_what_the_table_says(image: Firmware) -> None:
    check_rounds(image, modelled(image))


def test_another_core_of_the_same_instruction_set_takes_what_its_table_says(image: Firmware) -> None:
    others = {"cortex-m0": "cortex-m0plus", "cv32e40p": "ibex"}
    core = modelled(image)
    if core not in others:
        pytest.skip("its other cores have platforms of their own")
    check_rounds(image, others[core])


# By core: cycles of an instruction with these operands. For Arm's cores others have measured them.
_DIVISION: Final = {
    ("unsigned_division", 0, 7): 2,
    ("unsigned_division", 7, 8): 3,
    ("unsigned_division", 100, 7): 6,
    ("unsigned_division", 0xFFFFFFFF, 1): 12,
    ("unsigned_division", 0xFFFFFFFF, 0x80000000): 5,
    ("signed_division", 0xFFFFFF9C, 7): 6,
    ("signed_division", 0xFFFFFFFF, 0x80000000): 3,
}
_LONG: Final = {
    ("unsigned_product", 0x10000, 0x10000): 3,
    ("unsigned_product", 0x12345678, 7): 4,
    ("unsigned_product", 0x12345678, 0x9ABCDEF0): 5,
    ("signed_product", 7, 9): 3,
    ("signed_product", 7, 0xFFFFFFFF): 5,
    ("unsigned_sum", 7, 9): 3,
    ("unsigned_sum", 7, 0x10009): 5,
    ("signed_sum", 0x12345678, 0xFFFF0000): 7,
    ("unsigned_sum", 0x12340000, 0x10009): 6,
}
_OPERANDS: Final[dict[str, dict[tuple[str, int, int], int]]] = {
    "cortex-m4": {**_DIVISION, **dict.fromkeys(_LONG, 1)},
    "cortex-m3": {**_DIVISION, **_LONG},
    "cv32e40p": {
        ("unsigned_division", 5, 0x80000000): 3,
        ("unsigned_remainder", 5, 1): 3 + 31,
        ("unsigned_remainder", 5, 0): 35,
        ("signed_division", 5, 0xFFFFFFFD): 3 + 29,
        ("signed_remainder", 5, 3): 3 + 30,
    },
    "ibex": {("unsigned_division", 9, 3): 37, ("signed_remainder", 9, 0): 2},
}


def operand_rounds(image: Firmware, core: str) -> dict[tuple[str, int, int], tuple[int, int]]:
    """Cycles of each round, least and most, without the cycles of the round's end."""
    back = 1 + _ROUNDS[core][0]
    with open_device(image.changed(counters=True, core=core)) as device:
        library = library_of(device.load(LOOPS, flags=["-O1"]))
        rounds = {call: a_round(library, *call) for call in _OPERANDS[core]}
    return {call: (least - back, most - back) for call, (least, most) in rounds.items()}


def test_cycles_by_operands_are_exact_where_qemu_shows_registers_else_a_range(image: Firmware) -> None:
    core = modelled(image)
    if core not in _OPERANDS:
        pytest.skip("no cycles of this core depend on operands")
    for one in (core, "ibex") if core == "cv32e40p" else (core,):
        found = operand_rounds(image, one)
        if reads_operands(image):
            assert found == {call: (due, due) for call, due in _OPERANDS[one].items()}
        for call, due in _OPERANDS[one].items():
            assert found[call][0] <= due <= found[call][1]


@pytest.mark.parametrize("states", [0, 3])
def test_sums_are_equal_where_operands_decide(image: Firmware, states: int) -> None:
    if modelled(image) not in _OPERANDS:
        pytest.skip("no cycles of this core depend on operands")
    slow = image.changed(flash_wait_states=states)
    counters = all_counters(slow)
    with start(slow, counters=counters) as running, connect(running) as device:
        library = library_of(device.load(LOOPS, flags=["-O1"]))
        profile = profile_call(library, counters, "unsigned_division", [ROUNDS, 100, 7], by="cycles")
        measured = counters.of_batches(counters.windows - 1)[-1]
    assert profile.total == sum(profile.lines.values()) == sum(row.own for row in profile.functions)
    assert (profile.total, profile.total + profile.spread) == (measured["cycles"], measured["cycles_most"])


def test_a_division_on_a_condition_may_take_a_cycle(image: Firmware) -> None:
    if modelled(image) not in ("cortex-m3", "cortex-m4"):
        pytest.skip("for Thumb with divisions")
    with open_device(image.changed(counters=True)) as device:
        library = library_of(device.load(LOOPS, flags=["-O1"]))
        least, most = a_round(library, "skipped_division", 100, 7)
    assert (least - 3 - 2, most - 3 - 2) == (1, 1 if reads_operands(image) else 12)


def test_sums_by_line_by_function_and_of_the_batch_are_equal(image: Firmware) -> None:
    modelled(image)
    counters = all_counters(image)
    with start(image, counters=counters) as running, connect(running) as device:
        library = library_of(device.load(LOOPS, flags=["-O1"]))
        profile = profile_call(library, counters, "call", [ROUNDS], by="cycles")
        measured = counters.of_batches(counters.windows - 1)[-1]
    assert profile.unit == "cycles"
    assert profile.total == sum(profile.lines.values()) == sum(row.own for row in profile.functions)
    assert (profile.total, profile.total + profile.spread) == (measured["cycles"], measured["cycles_most"])


def test_cycles_do_not_depend_on_what_ran_before(image: Firmware) -> None:
    modelled(image)
    with open_device(image.changed(counters=True)) as device:
        library = library_of(device.load(LOOPS, flags=["-O1"]))
        alone = a_round(library, "call")
        for name in ("load", "store", "branch"):
            a_round(library, name)
        assert a_round(library, "call") == alone
        copy = library_of(device.load(LOOPS, flags=["-O1", "-DAGAIN"]))
        assert a_round(copy, "call") == alone


def test_taken_branches_are_counted_where_code_lies_across_a_page(image: Firmware) -> None:
    if image.target.platform.core not in ("cortex-m3", "cortex-m4"):
        pytest.skip("for Thumb with long instructions")
    with open_device(image.changed(counters=True)) as device:
        library = library_of(device.load(LOOPS, flags=["-O1"]))
        measurer = library.measure("across_a_page", number=1, repeat=3, counters=["branches", "cycles"])
        some, more = (measurer(rounds).counters for rounds in (ROUNDS, 2 * ROUNDS))
    # The way into the page, the call, its return, the way around the called code, and back.
    assert min(more["branches"]) - min(some["branches"]) == 5 * ROUNDS


# A round's waits for flash, by hand. A line of 64 bits has four short instructions. The end of the round
# jumps back to its first line, which waits, unless the whole round is in it. The jump over the constant takes
# a cycle more on the Cortex-M0 than on other cores, so the wait after it is shorter.
_WAITS: Final[dict[tuple[int, int], dict[str, int]]] = {
    (2, 64): {"data": 0, "straight": 2, "constant": 2 + 2},
    (5, 64): {"data": 0, "straight": 5 + 2 + 2, "constant": 5 + 5 + 2},
    (5, 128): {"data": 0, "straight": 5, "constant": 5},
}


def rounds_of(image: Firmware, states: int, width: int) -> dict[str, int]:
    """The least cycles of a round for each loop that waits."""
    loops = ["data", "straight", *(["constant"] if image.target.platform.arch == "arm" else [])]
    with open_device(image.changed(counters=True, flash_wait_states=states, flash_width=width)) as device:
        library = library_of(device.load(LOOPS, flags=["-O1"]))
        return {name: a_round(library, name)[0] for name in loops}


def test_a_loop_in_flash_waits_as_by_hand(image: Firmware) -> None:
    due = _WAITS
    if modelled(image) == "cortex-m0":
        due = {**due, (5, 64): {**due[5, 64], "constant": 5 + 5 + 1}}
    at_once = rounds_of(image, 0, 64)
    for (states, width), waits in due.items():
        found = rounds_of(image, states, width)
        assert found == {name: cycles + waits[name] for name, cycles in at_once.items()}


def test_sums_are_equal_with_wait_states(image: Firmware) -> None:
    modelled(image)
    slow = image.changed(flash_wait_states=3)
    counters = all_counters(slow)
    with start(slow, counters=counters) as running, connect(running) as device:
        library = library_of(device.load(LOOPS, flags=["-O1"]))
        profile = profile_call(library, counters, "call", [5], by="cycles")
        measured = counters.of_batches(counters.windows - 1)[-1]
        # Wait states also apply to the firmware's own code and constants.
        own = profile_call(device.system_lib(), counters, "inc", [5], by="cycles")
        last = counters.of_batches(counters.windows - 1)[-1]
    assert (profile.total, own.total) == (measured["cycles"], last["cycles"])
    assert "3 wait states of flash" in own.estimate


def test_a_core_that_is_not_modelled_gives_no_number(image: Firmware) -> None:
    if image.target.platform.starts != "qemu":
        pytest.skip("nothing counts it")
    with (
        open_device(image.changed(counters=True, core="cortex-m7")) as device,
        pytest.raises(ConfigurationError, match="not available here: cortex-m7 is not modelled"),
    ):
        device.system_lib().measure("inc", counters=["cycles"])


def test_the_estimate_says_where_it_is_from(image: Firmware) -> None:
    core = load_core(modelled(image))
    with open_device(image.changed(counters=True)) as device:
        measured = device.system_lib().measure("inc", number=1, repeat=2, counters=["cycles"])(1)
    assert measured.estimate == core.about
    assert core.title in measured.estimate


def test_commands_compare_limit_and_draw_cycles(
    image: Firmware, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    core = load_core(modelled(image))
    (tmp_path / "minrpc.toml").write_text('[limits]\ninc.cycles = 20\ninc.instructions = "+1%"\n')
    monkeypatch.chdir(tmp_path)
    given = ["inc", "--platform", image.target.name, "--arg", "5"]
    counted = ["time", *given, "--counters", "cycles,instructions", "--repeat", "3"]
    assert main([*counted, "--json", "base.json"]) == main([*counted, "--json", "head.json"])
    assert main(["compare", "base.json", "head.json"]) == 1
    shown = capsys.readouterr()
    assert re.search(
        rf"cycles [\d.,]+.* \({re.escape(core.about)}\); limits.inc.cycles allows 20", shown.err + shown.out
    )
    assert main(["report", *given, "--by", "cycles", "--html", "page.html"]) in (0, 1)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Core cycles by line" in page
    assert core.against in page
