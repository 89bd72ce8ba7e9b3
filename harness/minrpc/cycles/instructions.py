# SPDX-License-Identifier: Apache-2.0
"""Decodes machine code for a core's timing table: classes of instructions, and their registers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from minrpc.errors import ConfigurationError

if TYPE_CHECKING:
    # Imported by functions on use: the import takes 0.1 s, and each start of a device loads this module.
    import capstone

InstructionSet = Literal["thumb", "riscv32"]


class Instruction(NamedTuple):
    """One instruction.

    kind: its class, as the files in `cores` name it: "data", "load", "branch", ...
    size: bytes.
    registers: number of registers that a multiple load or store moves; 0 for other instructions.
    reads, writes: registers by name.
    address: the registers among `reads` from which an address is computed.
    updates: True for a load or store that also writes its new address to the base register.
    conditional: True for an instruction, other than a branch, that is executed only on a condition.
    """

    start: int
    mnemonic: str
    kind: str
    size: int
    registers: int
    reads: frozenset[str]
    writes: frozenset[str]
    address: frozenset[str]
    updates: bool
    conditional: bool = False

    @property
    def end(self) -> int:
        """The address after the instruction."""
        return self.start + self.size


# Class of an instruction: the first pattern that matches its name, without condition and width, decides.
_THUMB: Final = [
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"it[te]*", "it"),
        (r"tb[bh]", "table_branch"),
        (r"cbn?z", "branch_zero"),
        (r"bl", "call"),
        (r"blx|bx", "indirect"),
        (r"b", "branch"),
        (r"mul", "mul"),
        (r"mla|mls", "mla"),
        (r"[us]mull", "mul_long"),
        (r"[us]mlal|umaal", "mla_long"),
        (r"[us]div", "div"),
        (r"ldrex[bhd]?|strex[bhd]?|clrex", "exclusive"),
        (r"ldrd", "load_double"),
        (r"ldm(?:db|ia)?|pop", "load_multiple"),
        (r"ldr(?:s?[bh])?t?", "load"),
        (r"strd", "store_double"),
        (r"stm(?:db|ia)?|push", "store_multiple"),
        (r"str[bh]?t?", "store"),
        (r"dmb|dsb|isb", "barrier"),
        (r"wfi|wfe", "wait"),
        (r"msr|mrs", "system"),
        (r"vdiv|vsqrt", "fp_div"),
        (r"vf?n?ml[as]|vfn?m[as]", "fp_mla"),
        (r"vldm(?:db|ia)?|vpop", "fp_load_multiple"),
        (r"vldr", "fp_load"),
        (r"vstm(?:db|ia)?|vpush", "fp_store_multiple"),
        (r"vstr", "fp_store"),
        (r"v.*", "fp_data"),
    )
]
_RISCV: Final = [
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"mulh(?:s?u)?", "mulh"),
        (r"mul", "mul"),
        (r"(?:div|rem)u?", "div"),
        (r"(?:lr|sc|amo)\w*\..*", "atomic"),
        (r"c?f?l[bhwd]u?(?:sp)?", "load"),
        (r"c?f?s[bhwd](?:sp)?", "store"),
        (r"b(?:eq|ne|lt|ge|gt|le)(?:u|z)?", "branch"),
        (r"jal|j", "jump"),
        (r"jalr|jr|ret|mret", "indirect"),
        (r"csr\w*|rdcycle\w*|rdinstret\w*|rdtime\w*|ecall|ebreak", "csr"),
        (r"fence\.i", "fence_i"),
        (r"fence.*", "fence"),
        (r"wfi", "wait"),
    )
]
_READS_ITS_ONE: Final = re.compile(r"jr|jalr|csr[wsc]")
_COMPRESSED_MOVE: Final = re.compile(r"c\.(?:mv|li|lui|addi4spn|nop)")
# mstatus, mtvec, mepc, mcause, dcsr, dpc, dscratch0, dscratch1.
_CSR_OF_TRAPS: Final = frozenset({0x300, 0x305, 0x341, 0x342, *range(0x7B0, 0x7B4)})
# mcountinhibit, mhpmevent, mcycle, minstret, mhpmcounter, their user's copies, and the upper halves.
_CSR_OF_COUNTERS: Final = frozenset(
    {
        *range(0x320, 0x340),
        *(base + at for base in (0xB00, 0xB80, 0xC00, 0xC80) for at in (0, *range(2, 32))),
    }
)
_WITH_PC: Final = {"load": "load_pc", "load_multiple": "load_multiple_pc", "data": "indirect"}
_WITH_DOUBLES: Final = {"fp_load": "fp_load_double", "fp_store": "fp_store_double"}

KINDS: Final[Mapping[InstructionSet, Sequence[str]]] = {
    "thumb": list(
        dict.fromkeys(
            (
                "data",
                "store_register",
                "fp_double_move",
                *(kind for _, kind in _THUMB),
                *_WITH_PC.values(),
                *_WITH_DOUBLES.values(),
            )
        )
    ),
    "riscv32": list(
        dict.fromkeys(["data", "csr_of_traps", "csr_of_counters", *(kind for _, kind in _RISCV)])
    ),
}
"""The classes of instructions that a core's file gives a cost, by instruction set."""


def decode(code: bytes, start: int, instruction_set: InstructionSet) -> list[Instruction]:
    """The instructions of a straight piece of code that lies at address `start`.

    Raises ConfigurationError if the code can't be decoded to its end, since no number would be right.
    """
    decoder = decoder_of(instruction_set)
    make = _thumb if instruction_set == "thumb" else _riscv
    instructions = [make(decoder, instruction) for instruction in decoder.disasm(code, start)]
    end = instructions[-1].end if instructions else start
    if end != start + len(code):
        unknown = code[end - start : end - start + 4].hex(" ")
        raise ConfigurationError(
            f"the instruction at {end:#x} ({unknown}) is not known, so its cycles are unknown",
            next_step="count instructions, which needs no decoding",
        )
    return instructions


@lru_cache
def decoder_of(instruction_set: InstructionSet) -> capstone.Cs:
    import capstone

    if instruction_set == "thumb":
        decoder = capstone.Cs(capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS)
    else:
        mode = capstone.CS_MODE_RISCV32 | capstone.CS_MODE_RISCVC
        decoder = capstone.Cs(capstone.CS_ARCH_RISCV, mode)
    decoder.detail = True
    return decoder


def _thumb(decoder: capstone.Cs, insn: capstone.CsInsn) -> Instruction:
    import capstone

    read, written = insn.regs_access()
    reads, writes = (frozenset(map(decoder.reg_name, names)) for names in (read, written))
    name = decoder.insn_name(insn.id) or ""
    # All hints have one name: NOP, WFI, WFE, SEV.
    kind = _kind(_THUMB, insn.mnemonic.partition(".")[0] if name == "hint" else name)
    memory = [operand.mem for operand in insn.operands if operand.type == capstone.arm.ARM_OP_MEM]
    address = frozenset(
        decoder.reg_name(number) for place in memory for number in (place.base, place.index) if number
    )
    if kind == "store" and any(place.index for place in memory):
        kind = "store_register"
    doubles = any(name[0] == "d" and name[1:].isdigit() for name in _operand_names(decoder, insn))
    kind = _WITH_DOUBLES.get(kind, kind) if doubles else kind
    if kind == "fp_data" and insn.mnemonic.startswith("vmov") and len(insn.operands) > 2:
        kind = "fp_double_move"
    if "pc" in writes:
        kind = _WITH_PC.get(kind, kind)
    words = _words(decoder, insn) if kind.endswith(("multiple", "multiple_pc")) else 0
    always = (capstone.arm.ARM_CC_INVALID, capstone.arm.ARM_CC_AL)
    conditional = insn.cc not in always and kind not in ("branch", "it")
    return Instruction(
        insn.address,
        insn.mnemonic,
        kind,
        insn.size,
        words,
        reads,
        writes,
        address,
        insn.writeback,
        conditional,
    )


def _kind(table: Sequence[tuple[re.Pattern[str], str]], name: str) -> str:
    return next((kind for pattern, kind in table if pattern.fullmatch(name)), "data")


def _operand_names(decoder: capstone.Cs, insn: capstone.CsInsn) -> Iterator[str]:
    import capstone

    for operand in insn.operands:
        if operand.type == capstone.CS_OP_REG:
            yield decoder.reg_name(operand.reg) or ""


def _words(decoder: capstone.Cs, insn: capstone.CsInsn) -> int:
    """Words that a multiple load or store moves; its first operand is the base, except for PUSH and POP."""
    names = list(_operand_names(decoder, insn))
    if not insn.mnemonic.startswith(("push", "pop", "vpush", "vpop")):
        names = names[1:]
    return sum(2 if name[0] == "d" else 1 for name in names)


def _is_two_address(mnemonic: str, kind: str) -> bool:
    """True for compressed instructions that read the register that they write, such as C.ADD; not C.MV, C.LI,
    C.ADDI4SPN."""
    return mnemonic.startswith("c.") and kind == "data" and not _COMPRESSED_MOVE.fullmatch(mnemonic)


def _csr_kind(register: int) -> str:
    if register in _CSR_OF_TRAPS:
        return "csr_of_traps"
    return "csr_of_counters" if register in _CSR_OF_COUNTERS else "csr"


def _riscv(decoder: capstone.Cs, insn: capstone.CsInsn) -> Instruction:
    import capstone

    name = insn.mnemonic.removeprefix("c.")
    kind = _kind(_RISCV, name)
    if kind == "csr":
        kind = _csr_kind(int.from_bytes(insn.bytes, "little") >> 20)
    names = [decoder.reg_name(operand.reg) for operand in insn.operands if operand.type == capstone.CS_OP_REG]
    memory = [operand.mem for operand in insn.operands if operand.type == capstone.riscv.RISCV_OP_MEM]
    # capstone has no access lists for RISC-V: the first operand is written and the others are read.
    reads_all = kind in ("store", "branch") or (len(names) == 1 and _READS_ITS_ONE.fullmatch(name))
    reads = frozenset(names if reads_all or _is_two_address(insn.mnemonic, kind) else names[1:])
    reads |= {"ra"} if name == "ret" else set()
    writes = frozenset(() if reads_all else names[:1])
    address = frozenset(decoder.reg_name(place.base) for place in memory)
    return Instruction(
        insn.address, insn.mnemonic, kind, insn.size, 0, reads | address, writes, address, updates=False
    )
