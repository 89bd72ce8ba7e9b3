# SPDX-License-Identifier: Apache-2.0
"""Calls and stores, compared with the disassembler of each compiler."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from minrpc.program import Program
from minrpc.running.crash_instructions import LONGEST_CALL, call_before, is_riscv_float, writes, x86_cause

SOURCE = """
struct s { int a; short b; char c; double d; };
int far(int);
int near(int n) { return n * 3; }
__attribute__((noinline)) int one(int n) { return near(n) + far(n) + near(n + 1); }
int two(int (*f)(int), struct s *p) {
    p->a = f(1); p->b = (short)one(2); p->c = (char)(p->a + p->b); p->d *= 2;
    return f(p->c);
}
int far(int n) { volatile int a[4]; a[n & 3] = n; return a[1] + a[2]; }
void _start(void) { two(near, (void *)0); }
"""
COMPILERS = {
    "thumb": ("arm-none-eabi-", ["-mcpu=cortex-m4", "-mthumb"]),
    "v6-M": ("arm-none-eabi-", ["-mcpu=cortex-m0", "-mthumb"]),
    "rv32": ("riscv64-unknown-elf-", ["-march=rv32imac", "-mabi=ilp32"]),
    "rv64": ("riscv64-unknown-elf-", ["-march=rv64gc", "-mabi=lp64d", "-mcmodel=medany", "-mno-relax"]),
    "x86-64": ("", ["-fcf-protection=none"]),
    "aarch64": ("aarch64-linux-gnu-", []),
}
# A pair of auipc and jalr calls the function that the disassembler adds as a comment.
DIRECT = re.compile(r"^(?:(?:bl|jal|call)\s+(?:ra,)?|jalr\s+ra,.*# )([0-9a-f]+)")
INDIRECT = re.compile(r"^(?:blx|blr|jalr)\s+\S+$|^call\s+\*")


@pytest.fixture(params=COMPILERS)
def compiled(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Program, list[tuple[int, str]]]:
    """The program, and each instruction with its address, in objdump's words."""
    prefix, flags = COMPILERS[request.param]
    if shutil.which(f"{prefix}gcc") is None:
        pytest.skip(f"{prefix}gcc is not installed")
    (tmp_path / "one.c").write_text(SOURCE)
    command = [f"{prefix}gcc", *flags, "-O1", "-nostdlib", "-static", "-fno-inline", "one.c", "-o", "one"]
    subprocess.run([*command, "-Wl,-e,_start", "-lgcc"], cwd=tmp_path, check=True)
    dump = [f"{prefix}objdump", "-d", "-M", "no-aliases" if "rv" in request.param else "reg-names-std", "one"]
    if "64" in request.param and "rv" not in request.param:
        dump = [item for item in dump if item not in ("-M", "reg-names-std")]
    shown = subprocess.run(dump, cwd=tmp_path, check=True, capture_output=True, text=True)
    rows = re.findall(r"^ +([0-9a-f]+):\t[0-9a-f ]+\t(.*)$", shown.stdout, re.MULTILINE)
    return Program("one", (tmp_path / "one").read_bytes()), [(int(at, 16), words) for at, words in rows]


def bytes_of(program: Program, at: int, size: int) -> bytes:
    return next(
        (
            data[at - base : at - base + size]
            for base, data in program.contents
            if base <= at < base + len(data)
        ),
        b"",
    )


def test_calls_and_whom_they_call(compiled: tuple[Program, list[tuple[int, str]]]) -> None:
    program, rows = compiled
    direct = indirect = 0
    for (_, words), (behind, _) in pairwise(rows):
        text = re.sub(r"^(c\.)?(\w+)(\.n|\.w)?", r"\2", words)
        called, through = DIRECT.match(text.replace("\t", " ")), INDIRECT.match(text.replace("\t", " "))
        if not called and not through:
            continue
        odd = behind | 1 if program.machine == "EM_ARM" else behind
        found = call_before(program.machine, odd, bytes_of(program, behind - LONGEST_CALL, LONGEST_CALL))
        assert found is not None, words
        if called:
            direct += 1
            assert found.target == int(called[1], 16), words
        else:
            indirect += 1
    assert direct + indirect >= 5
    assert direct >= 2


def test_instructions_of_a_riscvs_fpu(compiled: tuple[Program, list[tuple[int, str]]]) -> None:
    program, rows = compiled
    if program.machine == "EM_RISCV":
        found = {words.split()[0] for at, words in rows if is_riscv_float(bytes_of(program, at, 4))}
        assert found == {words.split()[0] for _, words in rows if re.match(r"(c\.)?f(?!ence)", words)}
        assert len(found) >= 2 or not found
    assert is_riscv_float(0x342A.to_bytes(2, "little"))  # c.fldsp fs0, 168(sp)


def test_why_an_instruction_of_x86_faults() -> None:
    """idiv with a register and with memory, ud2, and a store."""
    assert x86_cause(b"\xf7\xf9") == x86_cause(b"\xf7\x7d\xfc") == x86_cause(b"\xf6\xf1") == "divided by zero"
    assert "__builtin_trap" in x86_cause(b"\x0f\x0b")
    assert x86_cause(b"\xc7\x05") == x86_cause(b"\xf7\xd8") == x86_cause(b"") == ""


def test_stores_and_loads_of_thumb(compiled: tuple[Program, list[tuple[int, str]]]) -> None:
    program, rows = compiled
    if program.machine != "EM_ARM":
        assert writes(program.machine, b"\0" * 4) is None
        return
    seen = set()
    for at, words in rows:
        stores = re.match(r"(str|push|stm|vstr|vpush|strd)", words)
        loads = re.match(r"(ldr|pop|ldm|vldr|vpop|ldrd)", words)
        if (stores or loads) and "[pc" not in words:
            assert writes("EM_ARM", bytes_of(program, at, 4)) is bool(stores), words
            seen.add(words.split()[0])
        elif re.match(r"(add|sub|mul|mov|cmp|b|bl|bx)\b", words):
            assert writes("EM_ARM", bytes_of(program, at, 4)) is None, words
    assert len(seen) >= 5
