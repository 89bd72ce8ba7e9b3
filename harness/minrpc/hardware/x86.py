# SPDX-License-Identifier: Apache-2.0
"""Accesses of x86-64: the instruction runs on a page that has the value; only its width is decoded."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import ClassVar, Final, NamedTuple

from minrpc.client.conversation import Conversation
from minrpc.hardware.loads_stores import decoder_of, undecoded
from minrpc.hardware.trap_interface import Answer, Bus

_QUESTION: Final = struct.Struct("<4Q16s")
_WRITES: Final = 1
_WRITES_IF_EQUAL: Final = 2
# Accesses that capstone tells wrongly, by the name without the "v" of AVX: reads and writes of the first
# operand. So are those of all `set` instructions.
_WRITTEN: Final = (
    *("fst", "fstp", "fist", "fistp", "fisttp", "fnstcw", "stmxcsr", "cvtps2ph", "extractps"),
    *("movd", "movq", "movss", "movsd", "movhps", "movlps", "movhpd", "movlpd"),
    *("movnti", "movntq", "movntss", "movntsd", "pextrb", "pextrw", "pextrd", "pextrq"),
    *("kmovb", "kmovw", "kmovd", "kmovq"),
)
_READS_AND_WRITES: Final = {
    "test": (True, False),
    **dict.fromkeys(("rol", "ror", "rcl", "rcr"), (True, True)),
    **dict.fromkeys(_WRITTEN, (False, True)),
}


class _Access(NamedTuple):
    """if_equal: it writes if it compares equal, and has read before."""

    size: int
    reads: bool
    writes: bool
    if_equal: bool = False


class X86:
    """A processor of this machine's kind: see `Core`."""

    source: ClassVar[str] = "trap_x86_64.c"
    instruction_set: ClassVar[str] = "x86_64"

    def __init__(self) -> None:
        self._running = (_Access(0, reads=False, writes=False), "")

    def answer(self, bus: Bus, conversation: Conversation, words: memoryview) -> Answer:
        """See `Core`. The second question of an access has the value that it has written."""
        pc, address, value, is_second, code = _QUESTION.unpack(words)
        if is_second:
            access, line = self._running
            bus.store(address, access.size, value & ((1 << 8 * access.size) - 1), line)
            return Answer(0)
        access, line = _decode(code, pc), bus.line(pc)
        if access.reads:
            content = bus.load(address, access.size, line)
            conversation.write(bus.address("trap_value"), content.to_bytes(8, "little"))
        elif access.writes:
            bus.find(address, line)
        self._running = access, line  # Python may have called functions of C with other accesses.
        if access.if_equal:
            return Answer(_WRITES_IF_EQUAL)
        return Answer(_WRITES if access.writes else 0, complete=not access.writes)


@lru_cache(4096)
def _decode(code: bytes, pc: int) -> _Access:
    """The access of the instruction at the start of `code`.

    Raises RegisterError for more than 8 bytes, and if it is not known whether it reads or writes.
    """
    import capstone

    insn = next(iter(decoder_of("x86_64").disasm(code, pc, 1)), None)
    memory = [item for item in insn.operands if item.type == capstone.x86.X86_OP_MEM] if insn else []
    if len(memory) != 1 or insn is None or memory[0].size > 8 or insn.prefix[0] in (0xF2, 0xF3):
        raise undecoded(code, pc, insn)
    size, access, name = memory[0].size, memory[0].access, insn.mnemonic.removeprefix("lock ")
    known = (False, True) if name.startswith("set") else _READS_AND_WRITES.get(name.removeprefix("v"))
    if known and memory[0] is insn.operands[0]:
        return _Access(size, *known)
    if name.startswith("cmpxchg"):
        return _Access(size, reads=True, writes=False, if_equal=True)
    if not access:
        raise undecoded(code, pc, insn)
    return _Access(size, bool(access & capstone.CS_AC_READ), bool(access & capstone.CS_AC_WRITE))
