# SPDX-License-Identifier: Apache-2.0
"""Every form of access, at random. The witness is the processor: the same instructions on memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from minrpc import CFunctions, Device, RegisterError, RunningDevice, registers
from numpy.typing import NDArray

BASE, MIDDLE, WORDS = 0x40013800, 128, 64
FRAME = """
#include <stdint.h>
typedef struct {{ volatile uint32_t R[{words}]; }} PLAIN;
PLAIN keeps_the_type;
{cases}
static void (*const all[])(uintptr_t *registers) = {{ {names} }};
void run(uintptr_t *states)
{{
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		all[i](states + {words} * i);
}}
"""
ARM = """
__attribute__((naked)) static void case_{}(uintptr_t *registers)
{{
	__asm__ volatile("push {{r4-r11, lr}}\\n mov lr, r0\\n ldr r0, [lr, #52]\\n"
#ifdef __ARM_FEATURE_DSP
		"msr apsr_nzcvqg, r0\\n"
#else
		"msr apsr_nzcvq, r0\\n"
#endif
#ifdef __ARM_FP
		"add r0, lr, #56\\n vldmia r0, {{s0-s31}}\\n"
#endif
		"ldm lr, {{r0-r12}}\\n {}\\n stm lr, {{r0-r12}}\\n mrs r0, apsr\\n str r0, [lr, #52]\\n"
#ifdef __ARM_FP
		"add r0, lr, #56\\n vstmia r0, {{s0-s31}}\\n"
#endif
		"pop {{r4-r11, pc}}");
}}
"""
RISCV = """
__attribute__((naked)) static void case_{}(uintptr_t *registers)
{{
	__asm__ volatile("mv t6, ra\\n mv t5, s0\\n mv t4, s1\\n mv ra, a0\\n"
#ifdef __riscv_flen
		".irp n, 0, 1, 8, 9\\n fl@ f\\\\n, (16 + \\\\n) * 8(ra)\\n .endr\\n"
#endif
		".irp n, 5, 6, 7, 8, 9, 10, 11, 12, 13\\n l@ x\\\\n, \\\\n * %0(ra)\\n .endr\\n {}\\n"
#ifdef __riscv_flen
		".irp n, 0, 1, 8, 9\\n fs@ f\\\\n, (16 + \\\\n) * 8(ra)\\n .endr\\n"
#endif
		".irp n, 5, 6, 7, 8, 9, 10, 11, 12, 13\\n s@ x\\\\n, \\\\n * %0(ra)\\n .endr\\n"
		"mv ra, t6\\n mv s0, t5\\n mv s1, t4\\n ret" : : "i"(sizeof(uintptr_t)));
}}
"""


class Case(NamedTuple):
    """base: the number of the register that has the address, afterwards too, unless `loaded`. small: the
    number of a register with a small number."""

    text: str
    base: int
    small: int | None = None
    loaded: bool = False


def several(random: Random, base: int, kind: str, letter: str) -> Case:
    first = random.randrange(8) if letter == "r" else random.randrange(27)
    names = [n for n in range(first, first + random.randint(3, 5)) if letter == "s" or n != base]
    back = "!" if letter == "s" and "db" in kind else random.choice(("", "!"))
    return Case(f"{kind} r{base}{back}, {{{', '.join(f'{letter}{n}' for n in names)}}}", base)


def plain(random: Random, base: int, condition: str = "") -> Case:
    kind = random.choice(("ldr", "ldrb", "ldrh", "ldrsb", "ldrsh", "str", "strb", "strh"))
    size = {"r": 4, "h": 2, "b": 1}[kind[-1]]
    to, small = (random.choice([n for n in range(13) if n != base]) for _ in range(2))
    forms = "[r{0}, #{1}]", "[r{0}, #{1}]!", "[r{0}], #{1}", "[r{0}, r{2}]", "[r{0}, r{2}, lsl #2]"
    form = random.choice(forms)
    loaded = form in (forms[0], *forms[3:]) and kind[0] == "l" and not condition and random.random() < 0.2
    place = form.format(base, size * random.randint(-60 // size, 60 // size), small)
    is_indexed = form in forms[3:]
    return Case(
        f"{kind}{condition} r{base if loaded else to}, {place}", base, small if is_indexed else None, loaded
    )


def arm_case(random: Random, features: str) -> Case:
    base = random.randrange(13)
    one, two, three = random.sample([n for n in range(13) if n != base], 3)
    step = 4 * random.randint(-15, 15)
    match random.choice(("plain", "plain", "two", "several", "exclusive", "if", *features.split())):
        case "two":
            form = random.choice(("[r{0}, #{1}]", "[r{0}, #{1}]!", "[r{0}], #{1}")).format(base, step)
            return Case(f"{random.choice(('ldrd', 'strd'))} r{one}, r{two}, {form}", base)
        case "several":
            return several(random, base, random.choice(("ldmia", "stmia", "ldmdb", "stmdb")), "r")
        case "exclusive":
            end = f"{random.choice(('', 'b', 'h'))} r{one}, [r{base}]"
            store = end.replace(" ", f" r{three}, ", 1)
            return Case(f"ldrex{end}\n add r{one}, r{two}\n strex{store}", base)
        case "if":
            condition, other = random.choice((("eq", "ne"), ("cs", "cc"), ("vc", "vs"), ("gt", "le")))[
                :: random.choice((1, -1))
            ]
            found = plain(random, base, condition)
            letter, then = random.choice((("t", condition), ("e", other)))
            behind = f"add{then} r{one}, r{one}, #3"
            return found._replace(text=f"it{letter} {condition}\n {found.text}\n {behind}")
        case "vfp":
            name = random.choice((f"s{random.randrange(32)}", f"d{random.randrange(16)}"))
            return Case(f"{random.choice(('vldr', 'vstr'))} {name}, [r{base}, #{step}]", base)
        case "vfps":
            return several(random, base, random.choice(("vldmia", "vstmia", "vldmdb", "vstmdb")), "s")
        case "v8":
            kind = random.choice(("lda", "ldab", "ldah", "stl", "stlb", "stlh"))
            return Case(f"{kind} r{one}, [r{base}]", base)
    return plain(random, base)


def riscv_case(random: Random, features: str) -> Case:
    """The assembler takes the compressed form where there is one. features: further instructions."""
    kind = random.choice(("lb", "lbu", "lh", "lhu", "lw", "sb", "sh", "sw", *features.split()))
    size = {"b": 1, "h": 2, "w": 4, "d": 8}[kind.rstrip("u")[-1]]
    base, other, third = random.sample(range(5, 14), 3)
    if kind[0] == "f":
        return Case(f"{kind} f{random.choice((0, 1, 8, 9))}, {size * random.randint(-7, 7)}(x{base})", base)
    if random.random() < 0.1:
        end = random.choice((".w", ".w.aqrl"))
        load, store = f"lr{end} x{other}, (x{base})", f"sc{end} x{third}, x{other}, (x{base})"
        return Case(f"{load}\n addi x{other}, x{other}, 1\n {store}", base)
    if random.random() < 0.2:
        operation = random.choice(("add", "swap", "xor", "and", "or", "min", "max", "minu", "maxu"))
        width = random.choice(("w", "d")) if features else "w"
        return Case(f"amo{operation}.{width} x{other}, x{random.choice((0, other))}, (x{base})", base)
    loaded = kind[0] == "l" and random.random() < 0.2
    offset = size * random.randint(-60 // size, 60 // size)
    return Case(f"{kind} x{base if loaded else other}, {offset}(x{base})", base, None, loaded)


def cases_of(running: RunningDevice, count: int) -> tuple[str, list[Case]]:
    """The C of all cases, and the cases."""
    platform, random = running.target.platform, Random(35)
    if platform.arch == "arm":
        has_fpu = "FPU" in platform.description and "without" not in platform.description
        is_v8 = platform.core in ("cortex-m33", "cortex-m55")
        features = "vfp vfps " * has_fpu + "v8" * is_v8
        frame, cases = ARM, [arm_case(random, features) for _ in range(count)]
    elif platform.arch == "riscv":
        wide = "rv64" in platform.name
        frame = RISCV.replace("@", "d" if wide else "w")
        cases = [riscv_case(random, "lwu ld sd flw fsw fld fsd" if wide else "") for _ in range(count)]
    else:
        pytest.skip("here instructions are not decoded: they run")
    texts = [frame.format(n, case.text.replace("\n", "\\n")) for n, case in enumerate(cases)]
    names = ", ".join(f"case_{n}" for n in range(count))
    return FRAME.format(words=WORDS, cases="".join(texts), names=names), cases


def test_each_form_does_what_it_does_to_memory(
    device: Device, running_device: RunningDevice, amount: Callable[[int, int], int], tmp_path: Path
) -> None:
    source, cases = cases_of(running_device, amount(60, 500))
    (tmp_path / "forms.c").write_text(source)
    lib: CFunctions = device.load(tmp_path / "forms.c")
    try:
        with registers(lib, BASE, "PLAIN"):
            pass
    except RegisterError as error:
        pytest.skip(error.message)
    content = np.random.default_rng(1).integers(0, 1 << 32, WORDS, np.uint64).astype(np.uint32)
    word = np.dtype(f"uint{64 if 'rv64' in running_device.name else 32}")

    def registers_after(address: int) -> NDArray[Any]:
        states = np.random.default_rng(2).integers(0, 1 << 32, (len(cases), WORDS), np.uint64).astype(word)
        for state, case in zip(states, cases, strict=True):
            state[case.base] = address + MIDDLE
            if case.small is not None:
                state[case.small] = 4 * (case.base % 4)
        with device.array(states) as kept:
            lib.run(kept)
            states = kept.numpy()
        for state, case in zip(states, cases, strict=True):
            state[case.base] -= 0 if case.loaded else address
        return states

    memory = device.array(content)
    expected = registers_after(memory.address)
    with registers(lib, BASE, "PLAIN") as modelled:
        for at, value in enumerate(content):
            modelled[f"R[{at}]"].value = int(value)
        found = registers_after(BASE)
        after = [modelled[f"R[{at}]"].value for at in range(WORDS)]
        assert len(modelled.accesses) > len(cases) / 2
    same = (expected == found).all(axis=1)
    wrong = [case.text for case, is_same in zip(cases, same, strict=True) if not is_same]
    assert wrong == []
    assert after == memory.numpy().tolist()
