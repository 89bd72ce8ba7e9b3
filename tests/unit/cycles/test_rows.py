# SPDX-License-Identifier: Apache-2.0
"""Each core's file against the manual's table, by hand: instructions, refills, neighbours, interrupts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest
from minrpc.cycles import Core, Span, load_core
from minrpc.cycles.core import NOTHING
from minrpc.cycles.instructions import Instruction, decode

# Machine code, as an assembler makes it.
_CODE: Final[dict[str, str]] = {
    "adds r2, #1": "0132",
    "muls r2, r3": "5a43",
    "mla r2, r3, r2, r3": "03fb0232",
    "mls r2, r3, r2, r3": "03fb1232",
    "umull r2, r3, r4, r6": "a4fb0623",
    "smlal r2, r3, r4, r6": "c4fb0623",
    "umaal r2, r3, r4, r6": "e4fb6623",
    "smlad r2, r3, r4, r6": "23fb0462",
    "udiv r2, r3, r4": "b3fbf4f2",
    "ldr r2, [r1]": "0a68",
    "ldr r3, [r2, #4]": "5368",
    "ldrsh r2, [r1, #4]": "b1f90420",
    "ldr r3, [r6], #4": "56f8043b",
    "ldr pc, [r1]": "d1f800f0",
    "ldrex r2, [r1]": "51e8002f",
    "str r2, [r1, #4]": "4a60",
    "str r2, [r1, r5]": "4a51",
    "ldrd r2, r3, [r1]": "d1e90023",
    "strd r2, r3, [r1, #8]": "c1e90223",
    "push {r2, r3, r4}": "1cb4",
    "pop {r2, r3, r4}": "1cbc",
    "pop {r4, pc}": "10bd",
    "stmia r6!, {r2-r5}": "3cc6",
    "it ne": "18bf",
    "dmb": "bff35f8f",
    "wfi": "30bf",
    "sev": "40bf",
    "nop": "00bf",
    "mrs r2, primask": "eff31082",
    "tbb [pc, r5]": "dfe805f0",
    "tbh [pc, r5, lsl #1]": "dfe815f0",
    "bl": "fff7feff",
    "blx r3": "9847",
    "bx lr": "7047",
    "mov pc, r3": "9f46",
    "b": "fee7",
    "cbz r0": "08b1",
    "add.w r3, r3, #1": "03f10103",
    "ldr.w r2, [r1]": "d1f80020",
    "ldr.w r2, [r1, r4]": "51f80420",
    "str.w r2, [r1]": "c1f80020",
    "adds r1, #4": "0431",
    "vadd.f32 s0, s1, s2": "30ee810a",
    "vadd.f32 s3, s0, s2": "70ee011a",
    "vmla.f32 s0, s1, s2": "00ee810a",
    "vdiv.f32 s0, s1, s2": "80ee810a",
    "vsqrt.f32 s0, s1": "b1eee00a",
    "vldr s0, [r1]": "91ed000a",
    "vldr d0, [r1]": "91ed000b",
    "vstr s0, [r1, #4]": "81ed010a",
    "vstr d0, [r1, #8]": "81ed020b",
    "vmov s0, s1, r2, r3": "43ec102a",
    "vmov r2, s0": "10ee102a",
    "vldmia r6!, {s0-s3}": "b6ec040a",
    "vldmia r6!, {d0-d1}": "b6ec040b",
    "addi a2, a2, 1": "13061600",
    "mul a2, a3, a2": "3386c602",
    "mulhu a2, a3, a4": "33b6e602",
    "divu a2, a3, a4": "33d6e602",
    "rem a2, a3, a4": "33e6e602",
    "lw a2, 0(a1)": "03a60500",
    "lw ra, 0(a1)": "83a00500",
    "addi a3, a2, 1": "93061600",
    "sw a2, 4(a1)": "23a2c500",
    "c.addi a2, 1": "0506",
    "c.add a2, a3": "3696",
    "c.mv a3, a4": "ba86",
    "c.jr a2": "0286",
    "csrw mscratch, a2": "73100634",
    "j": "6f000000",
    "beqz a2": "63040600",
    "ret": "67800000",
    "jalr a2": "e7000600",
    "auipc ra, 0": "97000000",
    "jalr ra, 8(ra)": "e7808000",
    "csrr a2, mscratch": "73260034",
    "csrr a2, mcause": "73262034",
    "csrr a2, mtval": "73263034",
    "csrr a2, dscratch1": "7326307b",
    "csrr a2, mcycle": "732600b0",
    "csrr a2, mcycle + 1": "732610b0",
    "csrr a2, mhpmcounter31h": "7326f0b9",
    "csrr a2, mcountinhibit": "73260032",
    "csrr a2, cycle": "732600c0",
    "ecall": "73000000",
    "fence": "0f00f00f",
    "fence.i": "0f100000",
    "wfi (riscv)": "73005010",
}
_M4: Final[dict[str, int | tuple[int, int]]] = {
    "adds r2, #1": 1,
    "muls r2, r3": 1,
    "mla r2, r3, r2, r3": 1,
    "mls r2, r3, r2, r3": 1,
    "umull r2, r3, r4, r6": 1,
    "smlal r2, r3, r4, r6": 1,
    "umaal r2, r3, r4, r6": 1,
    "smlad r2, r3, r4, r6": 1,
    "udiv r2, r3, r4": (2, 12),
    "ldr r2, [r1]": 2,
    "ldrsh r2, [r1, #4]": 2,
    "ldr pc, [r1]": 2,
    "ldrex r2, [r1]": 2,
    "str r2, [r1, #4]": 1,
    "str r2, [r1, r5]": 2,
    "ldrd r2, r3, [r1]": 3,
    "strd r2, r3, [r1, #8]": 3,
    "push {r2, r3, r4}": 4,
    "pop {r2, r3, r4}": 4,
    "pop {r4, pc}": 3,
    "stmia r6!, {r2-r5}": 5,
    "it ne": 1,
    "dmb": 1,
    "wfi": 1,
    "sev": 1,
    "nop": 1,
    "mrs r2, primask": 1,
    "tbb [pc, r5]": 2,
    "tbh [pc, r5, lsl #1]": 2,
    "bl": 1,
    "blx r3": 1,
    "bx lr": 1,
    "mov pc, r3": 1,
    "b": 1,
    "cbz r0": 1,
    "vadd.f32 s0, s1, s2": 1,
    "vmla.f32 s0, s1, s2": 3,
    "vdiv.f32 s0, s1, s2": 14,
    "vsqrt.f32 s0, s1": 14,
    "vldr s0, [r1]": 2,
    "vldr d0, [r1]": 3,
    "vstr s0, [r1, #4]": 1,
    "vstr d0, [r1, #8]": 2,
    "vmov s0, s1, r2, r3": 2,
    "vmov r2, s0": 1,
    "vldmia r6!, {s0-s3}": 5,
    "vldmia r6!, {d0-d1}": 5,
}
_M3: Final[dict[str, int | tuple[int, int]]] = {
    **{name: cycles for name, cycles in _M4.items() if name[0] != "v" and name[:4] not in ("umaa", "smla")},
    "mla r2, r3, r2, r3": 2,
    "mls r2, r3, r2, r3": 2,
    "umull r2, r3, r4, r6": (3, 5),
    "smlal r2, r3, r4, r6": (3, 7),
}
_M0: Final[dict[str, int | tuple[int, int]]] = {
    "adds r2, #1": 1,
    "muls r2, r3": 1,
    "ldr r2, [r1]": 2,
    "str r2, [r1, #4]": 2,
    "str r2, [r1, r5]": 2,
    "push {r2, r3, r4}": 4,
    "pop {r2, r3, r4}": 4,
    "pop {r4, pc}": 3,
    "stmia r6!, {r2-r5}": 5,
    "nop": 1,
    "bl": 1,
    "blx r3": 1,
    "bx lr": 1,
    "mov pc, r3": 1,
    "b": 1,
    "wfi": 2,
    "sev": 1,
    "mrs r2, primask": 4,
    "dmb": 4,
}
_CV32E40P: Final[dict[str, int | tuple[int, int]]] = {
    "addi a2, a2, 1": 1,
    "mul a2, a3, a2": 1,
    "mulhu a2, a3, a4": 5,
    "divu a2, a3, a4": (3, 35),
    "rem a2, a3, a4": (3, 35),
    "lw a2, 0(a1)": 1,
    "sw a2, 4(a1)": 1,
    "j": 1,
    "beqz a2": 1,
    "ret": 1,
    "csrr a2, mscratch": 1,
    **dict.fromkeys(("csrr a2, mcause", "csrr a2, dscratch1"), 4),
    **dict.fromkeys(("csrr a2, mcycle", "csrr a2, mhpmcounter31h", "csrr a2, mcountinhibit"), 4),
    "csrr a2, cycle": 4,
    **dict.fromkeys(("csrr a2, mcycle + 1", "csrr a2, mtval", "ecall"), 1),
    "fence.i": 4,
    "fence": 4,
    "wfi (riscv)": 1,
}
_COSTS: Final = {
    "cortex-m4": _M4,
    "cortex-m3": _M3,
    "cortex-m3-stm32f2": _M3,
    "cortex-m0": _M0,
    "cortex-m0plus": {**_M0, "dmb": 3, "mrs r2, primask": 3},
    "cv32e40p": _CV32E40P,
    "ibex": {
        **_CV32E40P,
        "mul a2, a3, a2": 3,
        "mulhu a2, a3, a4": 4,
        "divu a2, a3, a4": (2, 37),
        "rem a2, a3, a4": (2, 37),
        "lw a2, 0(a1)": 2,
        "sw a2, 4(a1)": 2,
        **{name: 1 for name in _CV32E40P if name.startswith("csrr")},
        "fence": 1,
        "fence.i": 2,
    },
}


def code(core: Core, *names: str, start: int = 0x1000) -> list[Instruction]:
    return decode(b"".join(bytes.fromhex(_CODE[name]) for name in names), start, core.instruction_set)


@pytest.mark.parametrize("name", _COSTS)
def test_an_instruction_by_itself(name: str) -> None:
    core, due = load_core(name), _COSTS[name]
    found = {text: next(iter(core.costs_of(code(core, text)))) for text in due}
    assert found == {
        text: Span(*take) if isinstance(take, tuple) else Span(take, take) for text, take in due.items()
    }


# Cycles of the jump in addition to the cycles of the instruction.
_REFILLS: Final = {
    "cortex-m4": {
        **dict.fromkeys(("b", "cbz r0", "bl"), 1),
        **dict.fromkeys(("bx lr", "blx r3", "mov pc, r3", "tbb [pc, r5]"), 2),
        **dict.fromkeys(("ldr pc, [r1]", "pop {r4, pc}"), 3),
    },
    "cortex-m0": {**dict.fromkeys(("b", "bx lr", "blx r3", "mov pc, r3"), 2), "bl": 3, "pop {r4, pc}": 3},
    "cortex-m0plus": {**dict.fromkeys(("b", "bx lr", "blx r3", "mov pc, r3"), 1), "bl": 2, "pop {r4, pc}": 2},
    "cv32e40p": {"j": 1, "ret": 1, "beqz a2": 2},
    "ibex": {"j": 1, "ret": 1, "beqz a2": 2},
}
_REFILLS["cortex-m3"] = {text: 1 if cycles == 1 else 3 for text, cycles in _REFILLS["cortex-m4"].items()}
_REFILLS["cortex-m3-stm32f2"] = _REFILLS["cortex-m3"]


@pytest.mark.parametrize("name", _REFILLS)
def test_a_jump_refills_the_pipeline(name: str) -> None:
    core = load_core(name)
    short = "addi a2, a2, 1" if core.instruction_set == "riscv32" else "adds r2, #1"
    [to] = code(core, short, start=0x2000)
    found = {text: core.passage(code(core, text)[0], to) for text in _REFILLS[name]}
    assert found == {text: Span(more, more) for text, more in _REFILLS[name].items()}


@pytest.mark.parametrize(("name", "due"), [("cv32e40p", 2), ("ibex", 2), ("cortex-m4", 2), ("cortex-m3", 1)])
def test_a_long_target_across_two_words_may_take_one_more(name: str, due: int) -> None:
    core = load_core(name)
    jump, to = ("j", "addi a2, a2, 1") if core.instruction_set == "riscv32" else ("b", "add.w r3, r3, #1")
    at = core.passage(code(core, jump)[0], code(core, to, start=0x2000)[0])
    across = core.passage(code(core, jump)[0], code(core, to, start=0x2002)[0])
    assert (at, across) == (Span(1, 1), Span(due, due))


def test_a_fence_of_cv32e40p_fetches_again_as_a_jump_does() -> None:
    core = load_core("cv32e40p")
    for fence in ("fence", "fence.i"):
        [aligned], [across] = (code(core, fence, start=start) for start in (0x1000, 0x1002))
        follows = [code(core, "addi a3, a2, 1", start=start)[0] for start in (0x1004, 0x1006)]
        assert [core.neighbours(aligned, follows[0]), core.neighbours(across, follows[1])] == [
            NOTHING,
            Span(1, 1),
        ]


def test_straight_on_has_no_refill() -> None:
    core = load_core("cortex-m4")
    branch, behind = code(core, "b", "adds r2, #1")
    assert core.passage(branch, behind) == NOTHING


# More cycles of the second instruction, than by itself. The first lies at 0x1000; so the second is word
# aligned if the first is long.
_PAIRS: Final[dict[tuple[str, str], int]] = {
    ("ldr r2, [r1]", "ldr r2, [r1]"): -1,
    ("ldr r2, [r1]", "str r2, [r1, r5]"): -1,
    ("ldr r2, [r1]", "ldr r3, [r2, #4]"): 0,
    ("ldr.w r2, [r1]", "ldr r3, [r6], #4"): 0,
    ("ldr r2, [r1]", "str r2, [r1, #4]"): 0,
    ("ldr r2, [r1]", "adds r2, #1"): 0,
    ("pop {r2, r3, r4}", "ldr r2, [r1]"): 0,
    ("str r2, [r1, #4]", "ldr r2, [r1]"): 1,
    ("str r2, [r1, r5]", "ldr r2, [r1]"): 1,
    ("str r2, [r1, #4]", "str r2, [r1, #4]"): 0,
    ("push {r2, r3, r4}", "ldr r2, [r1]"): 0,
    ("adds r1, #4", "ldr r2, [r1]"): 1,
    ("adds r1, #4", "str r2, [r1, #4]"): 1,
    ("adds r1, #4", "str r2, [r1, r5]"): 1,
    ("adds r2, #1", "str r2, [r1, #4]"): 0,
    ("muls r2, r3", "ldr r3, [r2, #4]"): 1,
    ("adds r1, #4", "adds r1, #4"): 0,
    ("ldr r2, [r1]", "add.w r3, r3, #1"): 1,
    ("str r2, [r1, #4]", "add.w r3, r3, #1"): 1,
    ("ldr.w r2, [r1]", "add.w r3, r3, #1"): 0,
    ("adds r2, #1", "ldr.w r2, [r1]"): 1,
    ("adds r2, #1", "add.w r3, r3, #1"): 0,
    ("adds r2, #1", "push {r2, r3, r4}"): 0,
    ("it ne", "ldr.w r2, [r1]"): 1,
}
_M4_PAIRS: Final[dict[tuple[str, str], int]] = {
    ("ldr r2, [r1]", "ldr r3, [r2, #4]"): 1,
    ("ldr r2, [r1]", "str r2, [r1, #4]"): 0,
    ("vadd.f32 s0, s1, s2", "vadd.f32 s3, s0, s2"): 1,
    ("vadd.f32 s0, s1, s2", "vadd.f32 s0, s1, s2"): 0,
    ("vmla.f32 s0, s1, s2", "vadd.f32 s3, s0, s2"): 1,
    ("vadd.f32 s0, s1, s2", "vstr s0, [r1, #4]"): 1,
}


_CV32E40P_PAIRS: Final[dict[tuple[str, str], int]] = {
    # After a load, each instruction that uses it, in all forms.
    **{
        ("lw a2, 0(a1)", user): 1
        for user in (
            *("addi a3, a2, 1", "mul a2, a3, a2", "beqz a2", "c.addi a2, 1", "c.add a2, a3"),
            "csrw mscratch, a2",
        )
    },
    # A jump waits until the loaded address is written back.
    **{("lw a2, 0(a1)", jump): 2 for jump in ("c.jr a2", "jalr a2")},
    ("lw a2, 0(a1)", "c.mv a3, a4"): 0,
    ("lw a2, 0(a1)", "fence"): 0,
    ("lw a2, 0(a1)", "csrr a2, mscratch"): 0,
    ("fence", "addi a3, a2, 1"): 0,
    ("sw a2, 4(a1)", "addi a3, a2, 1"): 0,
    ("addi a2, a2, 1", "jalr a2"): 1,
    ("addi a2, a2, 1", "c.jr a2"): 1,
    ("addi a2, a2, 1", "ret"): 0,
    ("lw ra, 0(a1)", "ret"): 2,
    ("auipc ra, 0", "jalr ra, 8(ra)"): 2,
    ("addi a2, a2, 1", "addi a3, a2, 1"): 0,
}


def neighbours(core: Core, first: str, then: str) -> int:
    before, behind = code(core, first, then)
    least, most = core.neighbours(before, behind)
    assert least == most
    return least


@pytest.mark.parametrize("name", ["cortex-m4", "cortex-m3"])
def test_neighbours(name: str) -> None:
    core, due = load_core(name), {**_PAIRS, **(_M4_PAIRS if name == "cortex-m4" else {})}
    assert {pair: neighbours(core, *pair) for pair in due} == due


@pytest.mark.parametrize(
    ("texts", "due"),
    [
        (("adds r2, #1", *["add.w r3, r3, #1"] * 2), [1, 1, 1]),
        (("adds r2, #1", *["add.w r3, r3, #1"] * 5), [1, 1, 1, 2, 1, 1]),
        (("add.w r3, r3, #1",) * 4, [1, 1, 1, 1]),
        (
            ("adds r2, #1", *["add.w r3, r3, #1"] * 2, "adds r2, #1", "adds r2, #1", "add.w r3, r3, #1"),
            [1] * 6,
        ),
        # The first of several loads and stores has the cycle.
        (("adds r2, #1", *["ldr.w r2, [r1]"] * 3), [1, 3, 1, 1]),
        (("adds r2, #1", *["str.w r2, [r1]"] * 3), [1, 2, 1, 1]),
        (("adds r2, #1", "ldr.w r2, [r1]", "ldr.w r2, [r1, r4]", "ldr.w r2, [r1]"), [1, 3, 1, 1]),
        # Each of several with an index has it.
        (("adds r2, #1", *["ldr.w r2, [r1, r4]"] * 3), [1, 3, 2, 2]),
        # The load's own row has the cycle.
        (("adds r2, #1", "ldr.w r2, [r1]", *["add.w r3, r3, #1"] * 3), [1, 3, 2, 1, 1]),
    ],
)
def test_long_instructions_in_a_row_across_words(texts: Sequence[str], due: Sequence[int]) -> None:
    core = load_core("cortex-m4-stm32l4")
    assert list(core.costs_of(code(core, *texts))) == [Span(cycles, cycles) for cycles in due]


def test_neighbours_of_other_cores() -> None:
    for name in ("cortex-m0", "cortex-m0plus", "cortex-m3-stm32f2"):
        core = load_core(name)
        assert [neighbours(core, *pair) for pair in _PAIRS] == [0] * len(_PAIRS)
    cv32e40p, ibex = load_core("cv32e40p"), load_core("ibex")
    assert {pair: neighbours(cv32e40p, *pair) for pair in _CV32E40P_PAIRS} == _CV32E40P_PAIRS
    assert {neighbours(ibex, *pair) for pair in _CV32E40P_PAIRS} == {0}


def test_straight_code_has_its_neighbours_in_it() -> None:
    core = load_core("cortex-m4")
    straight = code(core, "ldr r2, [r1]", "ldr r2, [r1]", "adds r1, #4", "ldr r2, [r1]")
    assert [span.least for span in core.costs_of(straight)] == [2, 1, 1, 3]


@pytest.mark.parametrize(
    ("name", "cycles"),
    [
        *((name, 12) for name in ("cortex-m4", "cortex-m3", "cortex-m3-stm32f2")),
        ("cortex-m0", 16),
        ("cortex-m0plus", 15),
        ("cv32e40p", 4),
        ("ibex", 2),
    ],
)
def test_interrupts(name: str, cycles: int) -> None:
    core = load_core(name)
    assert (core.entry, core.exit) == (Span(cycles, cycles), Span(cycles, cycles))


@pytest.mark.parametrize("name", ["cortex-m0", "cortex-m0plus"])
def test_the_short_core_has_no_long_instructions(name: str) -> None:
    core = load_core(name)
    for text in ("add.w r3, r3, #1", "ldr.w r2, [r1]", "udiv r2, r3, r4", "cbz r0", "it ne"):
        with pytest.raises(Exception, match=f"{core.title.replace('+', '[+]')} has no"):
            list(core.costs_of(code(core, text)))


@pytest.mark.parametrize(
    ("between", "due"), [((), 2), (("c.mv a3, a4",), 1), (("addi a2, a2, 1",), 1), (("c.mv a3, a4",) * 2, 0)]
)
def test_a_jump_of_cv32e40p_waits_for_a_load_before_the_instruction_before_it(
    between: tuple[str, ...], due: int
) -> None:
    core = load_core("cv32e40p")
    *_, jump = core.costs_of(code(core, "lw a2, 0(a1)", *between, "c.jr a2"))
    assert jump == Span(1 + due, 1 + due)


def test_a_jump_to_the_next_instruction_refills_the_pipeline_too() -> None:
    core = load_core("ibex")
    jump, branch, to = code(core, "ret", "beqz a2", "addi a2, a2, 1")
    assert core.passage(jump, branch) == Span(1, 1)
    assert core.passage(branch, to) == NOTHING


# Additional cycles of accesses at addresses 0 to 3 modulo 4, of 2 bytes and of 4 bytes.
_WORDS: Final = [[[0, 0, 0, 1], [0, 1, 1, 1]]] * 2
_PIECES: Final = [[0, 1, 0, 1], [0, 2, 1, 2]]


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        *((name, _WORDS, _WORDS) for name in ("cv32e40p", "ibex")),
        *(
            (name, [_PIECES, [[0] * 4] * 2], [_PIECES] * 2)
            for name in ("cortex-m3", "cortex-m3-stm32f2", "cortex-m4")
        ),
    ],
)
def test_unaligned_accesses(name: str, least: object, most: object) -> None:
    unaligned = load_core(name).unaligned
    assert unaligned is not None
    assert [unaligned[..., end].tolist() for end in (0, 1)] == [least, most]


def test_operands_decide_unless_a_condition_does() -> None:
    core = load_core("cortex-m4")
    [division] = code(core, "udiv r2, r3, r4")
    _, skipped = decode(bytes.fromhex(_CODE["it ne"] + _CODE["udiv r2, r3, r4"]), 0x1000, "thumb")
    assert (division.conditional, skipped.conditional) == (False, True)
    assert [list(core.costs_of([item])) for item in (division, skipped)] == [[Span(2, 12)], [Span(1, 12)]]
    assert core.counted(division, Span(3, 13)) == Span(3, 3)
    assert core.counted(skipped, Span(1, 12)) == Span(1, 12)
