# SPDX-License-Identifier: Apache-2.0
"""Parses a device's crash message, as the ports write it: "fatal: HardFault at pc 0x1a2c, lr 0x17e1"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from minrpc.running.crash_instructions import NO_COPROCESSOR, NO_INSTRUCTION, UNALIGNED

_FATAL: Final = re.compile(r"fatal: .*")
_CALLERS: Final = re.compile(r"callers:((?: 0x[0-9a-f]+)*)")
_VALUE: Final = re.compile(
    r"\b(pc|lr|ra|sp|address|cfsr|mcause|esr|code|exception|control) (0x[0-9a-f]+|\d+)"
)
_STACK: Final = re.compile(r"\bstack of (\d+) bytes")
# The answer of a program that was asked for its place, and goes on.
_PLACE: Final = re.compile(r"(?:callers:((?: 0x[0-9a-f]+)*)\n)?place: pc (0x[0-9a-f]+)\n")
# The end of a program by its own code, or a damaged heap.
_ENDED: Final = re.compile(
    r"fatal: (?P<how>(?:assertion failed: |exit\(|abort\(|heap: |stack: ).*?)(?:; lr 0x[0-9a-f]+)?"
)
_ASSERTED: Final = re.compile(r"(?P<how>.*), in (?P<function>[^,]+), at (?P<file>.+):(?P<line>\d+)")
# Messages of this machine's C library before it aborts.
_COMPLAINT: Final = re.compile(r"^((?:\w+\(\): |corrupted |\*\*\* ).+)$", re.MULTILINE)
# Number of last lines to search: messages before them are of an earlier crash.
_LINES: Final = 16
# Number of lines before the message, in which a kernel dumps registers.
_DUMP_LINES: Final = 24

# Causes by bit of the Configurable Fault Status Register (ARMv7-M, B3.2.15), the most specific first.
_CFSR: Final = {
    25: "divided by zero",
    24: UNALIGNED,
    16: NO_INSTRUCTION,
    17: "a jump to an address that is not Thumb code",
    19: NO_COPROCESSOR,
    18: "an exception returned to a state that does not exist",
    10: "a write to an address without memory; it was reported late, the instruction comes before this place",
    8: "a jump to an address without memory",
    0: "a jump to memory that must not be executed",
}
_ACCESS_BITS: Final = 1 << 1 | 1 << 9
# Causes by mcause (RISC-V privileged architecture, 3.1.15).
_MCAUSE: Final = {
    0: "a jump to an unaligned address",
    1: "a jump to memory that can't be executed",
    2: NO_INSTRUCTION,
    3: "a breakpoint, as of __builtin_trap",
    4: "unaligned read",
    6: "unaligned write",
    11: "an ecall, for which no handler is there",
}
# Causes by the class in ESR_EL1 (Armv8-A, D17.2.37).
_ESR: Final = {
    0x00: NO_INSTRUCTION,
    0x07: NO_COPROCESSOR,
    0x0E: "a return to a state that does not exist",
    0x22: "a jump to an unaligned address",
    0x26: "an unaligned stack pointer",
    0x3C: "a breakpoint, as of __builtin_trap",
}
_ESR_ACCESSES: Final = (0x20, 0x21, 0x24, 0x25)
_ESR_CLASS: Final = 26
_ESR_WRITE: Final = 1 << 6
# Exceptions of a Cortex-M that are no faults (ARMv7-M, B1.5.2), and its first interrupt.
_NO_FAULTS: Final = {11: "an svc instruction", 12: "a DebugMonitor exception", 14: "PendSV"}
_INTERRUPTS: Final = 16
NULL_PAGE: Final = 4096
_READ_FAULT: Final = 5
_WRITE_FAULT: Final = 7
# Zephyr's messages and names of faults.
_PHRASES: Final = {
    "Divide by zero": "divided by zero",
    "division by zero": "divided by zero",
    "unaligned access": UNALIGNED,
    "no coprocessor": NO_COPROCESSOR,
    "Invalid opcode": NO_INSTRUCTION,
    "SIGILL": NO_INSTRUCTION,
    "SIGFPE": "divided by zero, or another error of arithmetic",
    "SIGABRT": "aborted",
    "SIGBUS": "a bus error: an unaligned access, or a file that got shorter",
}
_PAGE_FAULT: Final = re.compile(r"Page fault at address (?:0x)?([0-9a-fA-F]+) \(error code (0x[0-9a-f]+)\)")
_INTEGER_DIVISION: Final = 1
# The kernel's own code of a SIGSEGV: on x86-64 it stands for an address that can't be mapped, which is not
# reported.
_NO_ADDRESS: Final = 128


@dataclass(frozen=True)
class ProgramEnd:
    """The end of a program by its own code: an assertion, exit, abort, a damaged heap.

    function, file, line: of an assertion.
    """

    how: str
    function: str = ""
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class LastWords:
    """values: registers and other named values, by name. callers: return addresses, some may be stale.

    text: the line itself. dump: the text printed before it.
    said: a cause from another source. page_fault: True if it is an x86 page fault.
    """

    text: str
    values: Mapping[str, int] = field(default_factory=dict)
    callers: tuple[int, ...] = ()
    dump: str = ""
    said: str = ""
    page_fault: bool = False

    @property
    def ended(self) -> ProgramEnd | None:
        """The end of the program by its own code; None if it crashed."""
        match = _ENDED.fullmatch(self.text)
        if match is None:
            return None
        asserted = _ASSERTED.fullmatch(match["how"])
        if asserted is None:
            return ProgramEnd(match["how"])
        return ProgramEnd(asserted["how"], asserted["function"], asserted["file"], int(asserted["line"]))

    @property
    def overflow(self) -> bool:
        """True if the stack overflowed. Zephyr 3.7 on x86 says so of a null pointer in an interrupt, too."""
        null = self.in_interrupt and 0 < self.values.get("address", 0) < NULL_PAGE
        return "stack overflow" in self.text and not null

    @property
    def in_interrupt(self) -> bool:
        """True if Zephyr reports that an interrupt's handler crashed."""
        return " in an interrupt" in self.text

    @property
    def stack_size(self) -> int | None:
        """Size of the overflowed stack in bytes, if the device reports it."""
        match = _STACK.search(self.text)
        return int(match[1]) if match else None

    @property
    def address(self) -> int | None:
        """The address of the failed access; None if it is unknown, or the crash has another cause."""
        page = _PAGE_FAULT.search(self.dump)
        if page:
            return int(page[1], 16)
        known = (
            self.page_fault
            or self.values.get("cfsr", 0) & _ACCESS_BITS
            or self.values.get("mcause") in (_READ_FAULT, _WRITE_FAULT)
            or self.values.get("esr", 0) >> _ESR_CLASS in _ESR_ACCESSES
            or ("SIGSEGV" in self.text and self.values.get("code") != _NO_ADDRESS)
            or "protection fault" in self.text
            or "bus fault" in self.text
        )
        return self.values.get("address") if known else None

    @property
    def wrote(self) -> bool | None:
        """True if the access was a write; None if the message does not say."""
        page = _PAGE_FAULT.search(self.dump)
        if page:
            return bool(int(page[2], 16) & 2)
        if self.page_fault:
            return bool(self.values.get("code", 0) & 2)
        if self.values.get("mcause") in (_READ_FAULT, _WRITE_FAULT):
            return self.values["mcause"] == _WRITE_FAULT
        if "esr" in self.values:
            return bool(self.values["esr"] & _ESR_WRITE)
        return True if ", write" in self.text else False if ", read" in self.text else None

    @property
    def cause(self) -> str:
        """The cause in words; "" if it is a failed access, or unknown."""
        status = self.values.get("cfsr", 0)
        if self.said:
            return self.said
        for bit, words in _CFSR.items():
            if status >> bit & 1:
                return words
        number = self.values.get("exception", 0)
        if number in _NO_FAULTS or number >= _INTERRUPTS:
            what = _NO_FAULTS.get(number, f"interrupt {number - _INTERRUPTS}")
            return f"{what}, for which no handler is there"
        if "mcause" in self.values:
            return _MCAUSE.get(self.values["mcause"], "")
        if "esr" in self.values:
            return _ESR.get(self.values["esr"] >> _ESR_CLASS, "")
        if "SIGFPE" in self.text and self.values.get("code") == _INTEGER_DIVISION:
            return "divided by zero"
        if "SIGSEGV" in self.text and self.values.get("code") == _NO_ADDRESS:
            return "an access to an address that no memory can have"
        complaint = _COMPLAINT.search(self.dump) if "SIGABRT" in self.text else None
        if complaint:
            return f"aborted: {complaint[1]}"
        said = f"{self.dump}\n{self.text}"
        return next((words for phrase, words in _PHRASES.items() if phrase in said), "")


def last_words(console: str) -> LastWords | None:
    """The last words of a crash near the end of the device's output; None if there was no crash."""
    lines = console.splitlines()
    matches = {index: match for index, line in enumerate(lines) if (match := _FATAL.search(line))}
    index = max(matches, default=-1)
    if index < max(0, len(lines) - _LINES):
        return None
    match = matches[index]
    after = _CALLERS.search("\n".join(lines[index:]))
    # The message may be there twice: from the console, and from the link.
    first = next(at for at in matches if lines[at].endswith(match[0]))
    earlier = max((at + 1 for at in matches if at < first), default=0)
    return LastWords(
        match[0],
        {name: int(text, 0) for name, text in _VALUE.findall(match[0])},
        tuple(int(word, 16) for word in after[1].split()) if after else (),
        "\n".join(lines[max(earlier, first - _DUMP_LINES) : first]),
    )


def place_told(console: str) -> tuple[int, tuple[int, ...]] | None:
    """The program counter and the return addresses in a program's answer; None without an answer."""
    match = _PLACE.search(console)
    if match is None:
        return None
    return int(match[2], 16), tuple(int(word, 16) for word in (match[1] or "").split())
