# SPDX-License-Identifier: Apache-2.0
"""Explains a crash or a hang of a device in words, with functions and lines of the firmware and of loaded
code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from minrpc.counters.image import ANYWHERE, Image
from minrpc.errors import STACK_RAN_OUT
from minrpc.firmware.firmware import Firmware
from minrpc.program.program import CodeRange
from minrpc.running.backtrace import DIVIDES_BY_ZERO, Backtrace, trace
from minrpc.running.crash_instructions import NO_COPROCESSOR, UNALIGNED, is_riscv_float, writes, x86_cause
from minrpc.running.last_words import NULL_PAGE, LastWords, ProgramEnd

_ZEPHYRS_STACK: Final = "CONFIG_MINRPC_STACK_SIZE"
_WRONG_STACK_POINTER: Final = (
    "as of longjmp with a buffer that setjmp has not filled, or of a write over saved registers"
)
# Far more than any function's frame, in bytes.
_FARTHEST: Final = 64 << 20
_PAGE: Final = 4096
_LONGJMP: Final = "longjmp"
# Functions to leave out of the user's callers: the runtime's callers of loaded functions, and libgcc's
# divisions and conversions.
_NOT_THE_USERS: Final = re.compile(
    r"minrpc_(?:t[\d.]|fits\b).*|\(.*\)|(?:__wrap_)?__aeabi_u?[il]div.*|__u?(?:div|mod|divmod)[sd]i[34]|"
    r"__(?:extend|trunc)[sdt]f[sdt]f2"
)
_REGISTERS: Final = {
    "EM_ARM": (r"\bR15=([0-9a-f]{8})", r"\bR13=([0-9a-f]{8})", r"\bR14=([0-9a-f]{8})"),
    "EM_RISCV": (r"\bpc +([0-9a-f]+)", r"\bx2/sp +([0-9a-f]+)", r"\bx1/ra +([0-9a-f]+)"),
    "EM_386": (r"\bEIP=([0-9a-f]{8})", r"\bESP=([0-9a-f]{8})", ""),
    "EM_AARCH64": (r"\bPC=([0-9a-f]{16})", r"\bSP=([0-9a-f]{16})", r"\bX30=([0-9a-f]{16})"),
    "EM_X86_64": (r"\bRIP=([0-9a-f]{16})", r"\bRSP=([0-9a-f]{16})", ""),
}
# A function that calls a loaded function.
_THUNK: Final = re.compile(r"minrpc_t[\d.].*")
_TURNED_OFF: Final = {
    UNALIGNED: "set UNALIGN_TRP in CCR, and the device's own code has unaligned accesses",
    NO_COPROCESSOR: "turned off the FPU in CPACR, and the device's own code needs it",
}
_ILLEGAL: Final = 2
_UNPRIVILEGED: Final = 1
# The least return address of an exception's handler on a Cortex-M.
_EXC_RETURN: Final = 0xFFFFFF00
_X86: Final = ("EM_386", "EM_X86_64")
_X86_RETURN: Final = b"\xc3"
OWN_CODE: Final = "it is in the device's own code: this call, or an earlier call, may have damaged its memory"


class Registers(NamedTuple):
    """Addresses of a stopped machine. link: the return address, None if it is on the stack."""

    pc: int
    sp: int
    link: int | None


class Explanation(NamedTuple):
    """reason: cause and place, in one line. callers: a line for each caller.

    own_code: True if it happened in the runtime, outside any function of the user's.
    step: the user's next step, unless it is own_code.
    """

    reason: str
    callers: tuple[str, ...]
    own_code: bool = False
    step: str = "correct that line"


def explain(words: LastWords, image: Image, firmware: Firmware | None, called: str = "") -> Explanation:
    """Explains the last words of a crash. called: the function that was called; "" if unknown."""
    pc = words.values.get("pc") or None
    link = [words.values[name] for name in ("lr", "ra") if words.values.get(name)]
    # A stack that ran out on a Cortex-M leaves no registers behind.
    lost = words.overflow and image.machine == "EM_ARM" and "cfsr" not in words.values
    backtrace = trace(image, None if lost else pc, (*([] if lost else link), *words.callers))
    users = _users(image, backtrace, firmware)
    if words.ended is not None:
        return _program_end(words.ended, users, firmware)
    if _has_wrong_stack_pointer(words, image):
        return _wrong_stack_pointer(f": 0x{words.values['sp']:x}", image, backtrace, users, firmware, called)
    if words.overflow and backtrace.function is not None and backtrace.function.name == _LONGJMP:
        # An Armv8-M core refuses to set a stack pointer below the stack's limit.
        return _wrong_stack_pointer("", image, backtrace, users, firmware, called)
    turned_off = _turned_off(words, image, backtrace)
    if turned_off:
        who = f"{called or 'the function that was called'}, or a function that it called,"
        step = "put the register back before the function asks Python or returns"
        return Explanation(f"{who} {turned_off}", tuple(f"called by {line}" for line in users), step=step)
    lost_return = None if words.overflow else _lost_return(words, image, backtrace, pc)
    if lost_return is not None:
        return _returned_nowhere(lost_return, image, backtrace, users, called)
    where = _where(image, backtrace, firmware)
    division = backtrace.function is not None and DIVIDES_BY_ZERO.match(backtrace.function.name)
    if backtrace.function is not None and _NOT_THE_USERS.match(backtrace.function.name):
        where, users = (users[0], users[1:]) if users else (called if division else where, users)
    cause = "divided by zero" if division else _cause(words, image, pc)
    own = backtrace.own_code and not division
    if not where and not users and called:
        where = f"{called}, or in a function that it called"
    if not where and backtrace.by_pointer and users:
        where, users = users[0], users[1:]  # The call itself, since no function was entered.
    callers = (*(f"called by {line}" for line in users), *([OWN_CODE] if own else []))
    if words.overflow:
        return Explanation(_overflow(words, image, where), callers, own)
    return Explanation(f"{cause}, in {where}" if where else cause, callers, own)


def _turned_off(words: LastWords, image: Image, backtrace: Backtrace) -> str:
    """The register by which a function has turned off something that the device's own code needs; "" if its
    own code has not failed so."""
    if words.values.get("control", 0) & _UNPRIVILEGED:
        return "left the privileged mode (nPRIV in CONTROL), and the device's own code needs it"
    if backtrace.function is None or backtrace.address is None:
        return ""
    if not backtrace.own_code and not _NOT_THE_USERS.match(backtrace.function.name):
        return ""
    if words.cause in _TURNED_OFF:
        return _TURNED_OFF[words.cause]
    no_float = words.values.get("mcause") == _ILLEGAL and is_riscv_float(image.bytes_at(backtrace.address, 4))
    return "turned off the FPU in mstatus.FS, and the device's own code needs it" if no_float else ""


def _has_wrong_stack_pointer(words: LastWords, image: Image) -> bool:
    """True if the stack pointer is too far from the stack for any overflow; in a process, if no memory is
    there."""
    sp = words.values.get("sp")
    if sp is None or sp < NULL_PAGE:
        return sp is not None
    if words.in_interrupt:  # An interrupt may have a stack of its own.
        return False
    if "SIG" in words.text:  # The host gives the threads of a process their stacks.
        touched = None if words.address is None else words.address // _PAGE
        lost = "no memory at sp" in words.text or touched in (sp // _PAGE, (sp - 1) // _PAGE)
        return lost and not words.overflow
    low, high = image.stack
    if (low, high) == ANYWHERE or low >= high:
        return False
    if image.machine == "EM_X86_64" and sp >> 63:
        sp -= 1 << 64  # A stack that is lower in memory than the frame is large.
    # A program may have further stacks.
    return not low - _FARTHEST <= sp <= high + (0 if words.overflow else _FARTHEST)


def _wrong_stack_pointer(
    at: str, image: Image, backtrace: Backtrace, users: Sequence[str], firmware: Firmware | None, called: str
) -> Explanation:
    """Explains a stack pointer that points to no stack. at: behind the cause; "" if not known."""
    name = backtrace.function.name if backtrace.function is not None else ""
    where = _where(image, backtrace, firmware) if name else ""
    if name == _LONGJMP or _NOT_THE_USERS.match(name):
        where = users[0] if users else ""
    if not where and called:
        where = f"{called}, or in a function that it called"
    place = f", in {where}" if where else ""
    callers = (f"called by {line}" for line in users if line != where)
    return Explanation(f"the stack pointer is wrong{at}{place}", (_WRONG_STACK_POINTER, *callers))


def _lost_return(words: LastWords, image: Image, backtrace: Backtrace, pc: int | None) -> str | None:
    """The place to which a function with an overwritten return address went; None for another kind of
    crash."""
    if pc is None or "fatal: stack" in words.text:
        return None
    through_thunk = backtrace.function is not None and _THUNK.fullmatch(backtrace.function.name)
    if through_thunk and backtrace.address is not None:
        return "with registers of its caller changed"
    if not _has_no_code(image, pc):
        returns = image.machine in _X86 and image.bytes_at(pc, 1) == _X86_RETURN
        return "to an address that no memory can have" if returns else None
    if "SIG" in words.text and words.address != pc:
        # The place is in a library of this machine: the image does not have its code.
        return None
    return None if backtrace.by_pointer else f"to 0x{pc:x}, where no code is"


def _returned_nowhere(
    to: str, image: Image, backtrace: Backtrace, users: Sequence[str], called: str
) -> Explanation:
    """Explains a write past an array on the stack, which changed the caller's registers or the return
    address there."""
    inner = backtrace.function
    name = called if inner is None or _NOT_THE_USERS.match(inner.name) else _name(inner)
    subject = name or "the function that was called"
    or_callee = "" if backtrace.address is not None and name != called else ", or a function that it called,"
    protected = image.machine == "EM_X86_64" or any(
        symbol.name == "__stack_chk_fail" for symbol in image.program.elf.symbols
    )
    hint = '; flags=["-fstack-protector-all"] names the function' if protected else ""
    reason = f"{subject}{or_callee} returned {to}"
    cause = f"probably by a write past an array on its stack, or by a bad pointer that it called last{hint}"
    return Explanation(reason, (cause, *(f"called by {line}" for line in users)))


def _program_end(ended: ProgramEnd, users: Sequence[str], firmware: Firmware | None) -> Explanation:
    """Explains an assertion, exit, abort or a damaged heap, with its callers."""
    if ended.file:
        here = f"{ended.function}, at {_shown_path(ended.file, firmware)}:{ended.line}"
        others = [line for line in users if not line.startswith(f"{ended.function}, at ")]
    else:
        here, others = users[0] if users else "", list(users[1:])
    where = f", in {here}" if here else ""
    return Explanation(f"{ended.how}{where}", tuple(f"called by {line}" for line in others))


def hang(
    registers: Registers, stack: Sequence[int], image: Image, firmware: Firmware | None, *, asked: bool
) -> list[str]:
    """Explains the place of a device that does not answer; nothing for the runtime's own, if it `asked`."""
    link = () if registers.link is None else (registers.link,)
    backtrace = trace(image, registers.pc, (*link, *stack))
    if backtrace.function is None:
        return [f"it was at 0x{registers.pc:x}, where no function is known"]
    users = _users(image, backtrace, firmware)
    if asked and backtrace.own_code and not users:
        return []
    return [f"it was in {_where(image, backtrace, firmware)}", *(f"called by {line}" for line in users)]


def _users(image: Image, backtrace: Backtrace, firmware: Firmware | None) -> list[str]:
    """The places of the user's calling functions; a recursive function is listed once."""
    lines = dict.fromkeys(_shown_place(image, address - 1, firmware) for address in backtrace.callers)
    return [line for line in lines if not _NOT_THE_USERS.match(line)]


def parse_registers(machine: str, text: str) -> Registers | None:
    """Reads QEMU's `info registers`; None if the registers are missing."""
    patterns = _REGISTERS.get(machine)
    if patterns is None:
        return None
    values = [re.search(pattern, text) if pattern else None for pattern in patterns]
    pc, sp, link = (int(value[1], 16) if value else None for value in values)
    return None if pc is None or sp is None else Registers(pc, sp, link)


def stack_size(image: Image) -> int | None:
    """Bytes of the stack that functions run on; None if the firmware does not define it."""
    configured = (symbol.value for symbol in image.program.elf.symbols if symbol.name == _ZEPHYRS_STACK)
    low, high = image.stack
    known = 0 if (low, high) == ANYWHERE else high - low
    return next(configured, known) or None


def _overflow(words: LastWords, image: Image, where: str) -> str:
    size = words.stack_size or stack_size(image)
    low, high = image.stack
    pointers = [item for item in (words.values.get("sp"), words.values.get("address")) if item]
    # A mapped stack has no address in the image. On a Cortex-M with a stack limit, sp stays above the limit.
    needed = high - min(pointers) if pointers and (low, high) != ANYWHERE and low < high else 0
    more = f", it needs {needed:,} or more" if size and size < needed < 1 << 31 else ""
    return f"{STACK_RAN_OUT}{f' in {where}' if where else ''}{f' ({size:,} bytes{more})' if size else ''}"


def _cause(words: LastWords, image: Image, pc: int | None) -> str:
    address = words.address
    to = words.values.get("pc")
    reached = address == to or (address is None and "SIG" not in words.text)
    if to == 0 and image.machine == "EM_ARM" and words.values.get("lr", 0) >= _EXC_RETURN:
        return "an interrupt came that has no handler in the table of vectors"
    if to is not None and reached and _has_no_code(image, to):
        return (
            f"call of a null function pointer, 0x{to:x}"
            if to < NULL_PAGE
            else f"a jump to 0x{to:x}: no code there"
        )
    if (
        image.machine in _X86
        and "SIG" not in words.text
        and address is None
        and not words.cause
        and pc is not None
    ):
        # Zephyr was built without the dump of the exception.
        cause = x86_cause(image.bytes_at(pc, 2))
        page = "CPU exception" in words.text and not cause
        words = replace(words, said=cause, page_fault=page)
        address = words.address
    if address is None or words.cause:
        return words.cause or words.text.removeprefix("fatal: ").partition(" at pc ")[0]
    wrote = words.wrote
    if wrote is None and pc is not None:
        wrote = writes(image.machine, image.bytes_at(pc & ~1, 4))
    verb = {True: "wrote to", False: "read from", None: "accessed"}[wrote]
    return f"{verb} 0x{address:x}: {_what_is_at(address, image)}"


def _has_no_code(image: Image, address: int) -> bool:
    return image.function_at(address & ~1 if image.machine == "EM_ARM" else address) is None


def _what_is_at(address: int, image: Image) -> str:
    if address < NULL_PAGE:
        return "a null pointer"
    inside = (region.kind for region in image.regions if 0 <= address - region.base < region.size)
    return "the firmware's code and constants" if "flash" in inside else "no memory there"


def _where(image: Image, backtrace: Backtrace, firmware: Firmware | None) -> str:
    if backtrace.address is not None:
        return _shown_place(image, backtrace.address, firmware)
    return _name(backtrace.function) if backtrace.function is not None else ""


def _name(function: CodeRange) -> str:
    """The function's name in C, without the compiler's suffix for a clone, as in "mul.constprop.0"."""
    return function.name.partition(".")[0]


def _shown_place(image: Image, address: int, firmware: Firmware | None) -> str:
    """Function, file and line: "mul, at src/scale.c:12"."""
    function, line = image.function_at(address), image.program_at(address).line_at(address)
    name = _name(function) if function else f"0x{address:x}"
    if line is None:
        return name
    return f"{name}, at {_shown_path(line.file, firmware)}:{line.number}"


def _shown_path(file: str, firmware: Firmware | None) -> Path:
    """The source file, relative to the current directory if it is below."""
    path = firmware.source(file) if firmware else Path(file)
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def stack_words(dump: str, size: int) -> Iterator[int]:
    """The numbers in the output of QEMU's `x`: "20000000: 0x00000001 0x00000002"."""
    for line in dump.splitlines():
        yield from (int(word, 16) for word in line.partition(":")[2].split() if len(word) == 2 * size + 2)
