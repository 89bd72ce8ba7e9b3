# SPDX-License-Identifier: Apache-2.0
"""Accesses of x86-64's instructions: reads and writes."""

from __future__ import annotations

import pytest
from minrpc.errors import RegisterError
from minrpc.hardware.x86 import _decode


# Encodings by llvm-mc; each has its memory at [rdi].
@pytest.mark.parametrize(
    ("codes", "size", "reads", "writes"),
    [
        ("8407 f60701", 1, True, False),  # test
        ("668507", 2, True, False),
        ("8507 f70701000000", 4, True, False),
        ("0f9f07 0f9807 0f9507 0f9207", 1, False, True),  # setg, sets, setne, setb
        ("c10703 d107 d117 d11f d30f", 4, True, True),  # rol, rcl, rcr, ror
        ("d917 d91f db17 db1f db0f c5f97e07", 4, False, True),  # fst, fstp, fist, fistp, fisttp, vmovd
        ("dd17 dd1f df3f dd0f c5fb1107", 8, False, True),  # also vmovsd
        ("0fae1f c5f8ae1f 660f3a170700 c5fa1107", 4, False, True),  # stmxcsr, extractps, vmovss
        ("d93f dd3f 660f3a150700", 2, False, True),  # fnstcw, fnstsw, pextrw
        ("0f1707 0f1307 660f1707 660f1307 c5f81307", 8, False, True),  # movhps, movlps, movhpd, movlpd
        ("0f1607 d907 8b07 3907 c5fa1007", None, True, False),  # movhps, fld, mov, cmp, vmovss: loads
        ("8907 c70701000000", 4, False, True),
        ("0107 f00107 8707", 4, True, True),  # add, lock add, xchg
    ],
)
def test_reads_and_writes(codes: str, size: int | None, reads: bool, writes: bool) -> None:
    for code in codes.split():
        found = _decode(bytes.fromhex(code).ljust(16, b"\x90"), 0)
        assert (found.size, found.reads, found.writes) == (size or found.size, reads, writes), code


@pytest.mark.parametrize("code", ["660f3a0a0700", "0f1007"])  # roundss; movups, of 16 bytes
def test_an_access_that_is_not_known_is_refused(code: str) -> None:
    with pytest.raises(
        RegisterError, match=r"at 0x10 \(.*\[rdi\].*\) accesses a register, and can't be answered"
    ):
        _decode(bytes.fromhex(code).ljust(16, b"\x90"), 0x10)
