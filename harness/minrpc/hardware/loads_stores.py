# SPDX-License-Identifier: Apache-2.0
"""The loads and stores of one instruction: which bytes move between which register and which address."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from minrpc.errors import RegisterError

if TYPE_CHECKING:
    import capstone

_THUMB: Final = re.compile(
    r"(?P<vector>v)?(?P<kind>ldr|str|ldm|stm|pop|push|ld(?=a)|st(?=l))(?P<before>db)?(?P<after>ia)?"
    r"[al]?(?P<exclusive>ex)?(?P<signed>s)?(?P<width>[bhd])?t?"
)
_RISCV: Final = re.compile(
    r"(?:c\.)?(?P<float>f)?(?P<kind>[ls]|(?P<exclusive>lr|sc)\.|amo(?P<operation>[a-z]+)\.)"
    r"(?P<width>[bhwd])(?P<unsigned>u)?(?:sp|\.\w+)*"
)
_BEGIN_EXCLUSIVE: Final = ("ldrex", "ldaex", "lr.")
_STORE_EXCLUSIVE: Final = ("strex", "stlex", "sc.")
_END_EXCLUSIVE: Final = (*_STORE_EXCLUSIVE, "clrex")
_SIZES: Final = {"b": 1, "h": 2, "w": 4, "d": 8, None: 4, "": 4}
_MASK: Final = 0xFFFFFFFF


class Transfer(NamedTuple):
    """Bytes that move between a register and memory. offset: of the memory, from the access's address."""

    register: str
    offset: int
    size: int


class Decoded(NamedTuple):
    """A load or store.

    size: of the instruction, in bytes. base, indexed, scale, offset: the registers and numbers that make the
        address. step: what is added to the base register afterwards; 0 if it stays.
    exclusive: True for a load that begins an exclusive access. result: the register that gets 0 if an
        exclusive store succeeds.
    operation: of an atomic access, "add", whose result with the register `operand` is written; else None.
    """

    text: str
    size: int
    writes: bool
    signed: bool
    transfers: tuple[Transfer, ...]
    base: str
    indexed: str | None = None
    scale: int = 1
    offset: int = 0
    step: int = 0
    result: str | None = None
    exclusive: bool = False
    operation: str | None = None
    operand: str = ""

    def address(self, registers: Mapping[str, int]) -> int:
        """The first address that it accesses."""
        index = registers[self.indexed] * self.scale if self.indexed else 0
        return (registers[self.base] + index + self.offset) & _MASK

    def extended(self, value: int, size: int) -> int:
        """A loaded value of `size` bytes as a register has it."""
        sign = 1 << (8 * size - 1)
        return ((value ^ sign) - sign) & _MASK if self.signed and size < 4 else value


@lru_cache(4096)
def decode_thumb(code: bytes, pc: int) -> Decoded:
    """The load or store of Armv7-M at the start of `code`. Raises RegisterError for another instruction."""
    import capstone

    decoder = decoder_of("thumb")
    insn = next(iter(decoder.disasm(code, pc, 1)), None)
    name = (decoder.insn_name(insn.id) or "") if insn is not None else ""
    match = _THUMB.fullmatch(name)
    if insn is None or match is None:
        raise undecoded(code, pc, insn)
    registers = [
        decoder.reg_name(item.reg) or "" for item in insn.operands if item.type == capstone.CS_OP_REG
    ]
    memory = [item for item in insn.operands if item.type == capstone.arm.ARM_OP_MEM]
    text = f"{insn.mnemonic} {insn.op_str}"
    kind = match["kind"]
    if not memory:
        return _multiple(text, insn, registers, kind, down=bool(match["before"]))
    place = memory[0]
    store = kind.startswith("st")
    result = registers.pop(0) if match["exclusive"] and store and len(registers) > 1 else None
    steps = [item.imm for item in insn.operands if item.type == capstone.CS_OP_IMM]
    step = (steps[0] if insn.post_index else place.mem.disp) if insn.writeback else 0
    size = 4 if match["width"] == "d" else _SIZES[match["width"]]
    return Decoded(
        text,
        insn.size,
        store,
        bool(match["signed"]),
        tuple(_words(registers, size)),
        decoder.reg_name(place.mem.base) or "",
        decoder.reg_name(place.mem.index) if place.mem.index else None,
        1 << place.shift.value,
        0 if insn.post_index else place.mem.disp,
        step,
        result,
        bool(match["exclusive"]) and not store,
    )


def _words(registers: list[str], size: int) -> Iterator[Transfer]:
    """A register after the other; a double of the FPU is two words."""
    at = 0
    for name in registers:
        halves = (
            [f"s{2 * int(name[1:])}", f"s{2 * int(name[1:]) + 1}"] if re.fullmatch(r"d\d+", name) else [name]
        )
        for half in halves:
            yield Transfer(half, at, size)
            at += size


def _multiple(text: str, insn: capstone.CsInsn, registers: list[str], kind: str, *, down: bool) -> Decoded:
    if kind in ("pop", "push"):
        registers, down = ["sp", *registers], kind == "push"
    transfers = tuple(_words(registers[1:], 4))
    total = 4 * len(transfers)
    step = (-total if down else total) if insn.writeback or kind in ("pop", "push") else 0
    offset = -total if down else 0
    stores = kind in ("stm", "push") or insn.mnemonic.startswith("vst")
    return Decoded(text, insn.size, stores, False, transfers, registers[0], offset=offset, step=step)


def exclusive_store(code: bytes, start: int, instruction_set: str) -> list[int]:
    """The address of the first exclusive store in `code`, which lies at `start`, and of the ways past it: the
    instruction behind it, and targets of branches in front of it. Empty without a store."""
    import capstone

    targets: list[int] = []
    for item in decoder_of(instruction_set).disasm(code, start):
        if item.mnemonic.startswith(_STORE_EXCLUSIVE):
            ways = [item.address + item.size, *targets]
            return [item.address, *(way for way in dict.fromkeys(ways) if not start <= way <= item.address)]
        if item.group(capstone.CS_GRP_JUMP) and item.operands[-1].type == capstone.CS_OP_IMM:
            # capstone tells the target of a branch, with a sign; of a RISC-V's the distance.
            base = item.address if instruction_set.startswith("riscv") else 0
            bits = 64 if instruction_set == "riscv64" else 32
            targets.append((base + item.operands[-1].imm) % (1 << bits))
    return []


def instructions(start: int, code: bytes, instruction_set: str) -> Iterator[tuple[int, str]]:
    """Address and text of each instruction; the text is "" behind an exclusive load, up to its store, and
    "unknown" for one that the decoder does not know.

    Raises RegisterError for such an instruction of x86-64, whose size is not known.
    """
    parted = True
    for address, text in _disassembled(start, code, instruction_set):
        yield address, text if parted else ""
        if text.startswith((*_BEGIN_EXCLUSIVE, *_END_EXCLUSIVE)):
            parted = text.startswith(_END_EXCLUSIVE)


def _disassembled(start: int, code: bytes, instruction_set: str) -> Iterator[tuple[int, str]]:
    at = 0
    while at < len(code):
        for item in decoder_of(instruction_set).disasm(code[at:], start + at):
            yield item.address, f"{item.mnemonic} {item.op_str}"
            at = item.address + item.size - start
        if at < len(code):
            yield start + at, "unknown"
            at += _size_of(code[at:], start + at, instruction_set)


def _size_of(code: bytes, pc: int, instruction_set: str) -> int:
    """The size of an unknown instruction at the start of `code`. Raises RegisterError on x86-64."""
    if instruction_set == "x86_64":
        raise RegisterError(
            f"the instruction at 0x{pc:x} ({code[:8].hex(' ')}) is not known, so its end is unknown",
            next_step="compile this function without instructions that are this new",
        )
    # In the first halfword, Thumb's upper five bits are 0b11101 or more, RISC-V's lower two 0b11.
    is_long = code[1:2] >= b"\xe8" if instruction_set == "thumb" else code[0] & 3 == 3
    return 4 if is_long else 2


@lru_cache(4096)
def decode_riscv(code: bytes, pc: int, instruction_set: str) -> Decoded:
    """The load or store of a RISC-V at the start of `code`, without its address, which the processor tells.

    Raises RegisterError for another instruction.
    """
    import capstone

    decoder = decoder_of(instruction_set)
    insn = next(iter(decoder.disasm(code, pc, 1)), None)
    match = _RISCV.fullmatch(insn.mnemonic) if insn is not None else None
    if insn is None or match is None:
        raise undecoded(code, pc, insn)
    registers = [
        decoder.reg_name(item.reg) or "" for item in insn.operands if item.type == capstone.CS_OP_REG
    ]
    result = registers.pop(0) if match["exclusive"] == "sc" else None
    return Decoded(
        f"{insn.mnemonic} {insn.op_str}",
        insn.size,
        match["kind"] == "s" or result is not None,
        not match["unsigned"] and not match["float"],
        (Transfer(registers[0], 0, _SIZES[match["width"]]),),
        "zero",
        result=result,
        exclusive=match["exclusive"] == "lr",
        operation=match["operation"],
        operand=registers[1] if match["operation"] else "",
    )


@lru_cache
def decoder_of(instruction_set: str) -> capstone.Cs:
    """The decoder of "thumb", "riscv32", "riscv64" or "x86_64"."""
    import capstone

    machine, mode = {
        "thumb": (
            capstone.CS_ARCH_ARM,
            capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS | capstone.CS_MODE_V8,
        ),
        "riscv32": (capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV32 | capstone.CS_MODE_RISCVC),
        "riscv64": (capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV64 | capstone.CS_MODE_RISCVC),
        "x86_64": (capstone.CS_ARCH_X86, capstone.CS_MODE_64),
    }[instruction_set]
    decoder = capstone.Cs(machine, mode)
    decoder.detail = True
    return decoder


def undecoded(code: bytes, pc: int, insn: capstone.CsInsn | None) -> RegisterError:
    """The error for an access of this instruction, which can't be answered."""
    text = f"{insn.mnemonic} {insn.op_str}" if insn is not None else code.hex(" ")
    return RegisterError(
        f"the instruction at 0x{pc:x} ({text}) accesses a register, and can't be answered",
        next_step="access the register by a plain load or store",
    )
