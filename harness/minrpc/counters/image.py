# SPDX-License-Identifier: Apache-2.0
"""A firmware's addresses from its ELF file: functions, code, and the begin and end of timing."""

from __future__ import annotations

import re
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final, Literal, NamedTuple

from minrpc.program import CodeRange, Program, read_program
from minrpc.program.lines import Line

TIMER_START: Final = "minrpc_timer_start"
TIMER_STOP: Final = "minrpc_timer_stop"

FIRMWARES: Final = "{} (firmware)"
"""The name of a function of the firmware that loaded code has, too."""

CONSTANTS_END: Final = "minrpc_constructors"
"""The symbol behind the code and constants of loaded code."""

# Machines whose instructions start only on even addresses; on others, at any address.
_EVEN: Final = frozenset({"EM_ARM", "EM_AARCH64", "EM_RISCV"})


ANYWHERE: Final = (0, 2**64 - 1)
"""A stack whose place is unknown: a batch's first store, by the evaluator or its callee, goes to it."""

# Zephyr has a symbol for each option of its configuration.
_MAPS_STACKS: Final = {"CONFIG_THREAD_STACK_MEM_MAPPED", "CONFIG_MINRPC_MAPPED_STACK"}

# The Zephyr port's name of the serving thread's stack.
_THREADS_STACK: Final = re.compile(r"stack|minrpc_(?:thread_)?stack|z_main_stack")


class CodeSegment(NamedTuple):
    """Executable memory of the image: `size` bytes at `base`."""

    base: int
    size: int


@dataclass(frozen=True)
class LoadedCode:
    """Code that was loaded into a running device: `size` bytes at `base`, of the ELF file `content`."""

    base: int
    size: int
    name: str
    content: bytes = field(repr=False)

    @cached_property
    def program(self) -> Program:
        """The parsed ELF file."""
        return Program(self.name, self.content)

    @cached_property
    def functions(self) -> tuple[CodeRange, ...]:
        """First all of the code, as "(name)", then its functions, with distinct names."""
        program = self.program
        named = (item._replace(name=program.name_of(item)) for item in program.functions)
        return CodeRange(self.base, self.base + self.size, f"({self.name})"), *named

    @cached_property
    def names(self) -> frozenset[str]:
        """The functions' names."""
        return frozenset(function.name for function in self.functions)

    @cached_property
    def flash_size(self) -> int:
        """Bytes at its start that a firmware would have in flash: code and constants, without variables."""
        ends = [symbol.value for symbol in self.program.elf.symbols if symbol.name == CONSTANTS_END]
        return ends[0] - self.base if ends else self.size

    def function_at(self, address: int) -> CodeRange | None:
        """The function at `address`, or the range of all code; None outside."""
        everything = self.functions[0]
        inside = everything.start <= address < everything.end
        function = self.program.function_at(address)
        if function is None:
            return everything if inside else None
        return function._replace(name=self.program.name_of(function))


class AddressRange(NamedTuple):
    """Memory by its kind: `size` bytes at `base`."""

    base: int
    size: int
    kind: Literal["flash", "ram"]


@dataclass(frozen=True, slots=True)
class Window:
    """Addresses of the instructions at which a timed batch begins, and at which it has ended."""

    opens: tuple[int, ...]
    closes: tuple[int, ...]


class Image:
    """The ELF file at `path`; its parts are read when they are needed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Code that was loaded into the running device, in order: later code overlies earlier code.
        self.loaded: list[LoadedCode] = []

    def as_of_now(self) -> Image:
        """A copy of the image, without code that is loaded later."""
        now = copy(self)
        now.loaded = list(self.loaded)
        return now

    def note_code(self, code: LoadedCode) -> None:
        """Register loaded code, in place of the code that it overwrites."""
        begin, end = code.base, code.base + code.size
        kept = [other for other in self.loaded if other.base + other.size <= begin or end <= other.base]
        self.loaded = [*kept, code]

    @cached_property
    def program(self) -> Program:
        """The parsed ELF file."""
        return read_program(self.path)

    @property
    def functions(self) -> tuple[CodeRange, ...]:
        """Functions by address, not overlapping."""
        return self.program.functions

    @cached_property
    def code(self) -> tuple[CodeSegment, ...]:
        """The executable load segments."""
        segments = self.program.elf.segments
        return tuple(CodeSegment(segment.address, segment.size) for segment in segments if segment.executable)

    @cached_property
    def regions(self) -> tuple[AddressRange, ...]:
        """The loaded memory: flash if it is only read, RAM if it is written, also zeroed and reserved memory.

        Segments that touch or share a page are distinguished by their sections.
        """
        elf = self.program.elf
        return tuple(
            AddressRange(item.address, item.size, "ram" if elf.writes(item) else "flash")
            for item in sorted(elf.sections, key=lambda section: section.address)
            if item.allocated and item.size and not item.thread_local
        )

    @property
    def machine(self) -> str:
        """ELF's name of the machine: "EM_ARM", "EM_386", "EM_X86_64", "EM_RISCV"."""
        return self.program.machine

    @cached_property
    def stack(self) -> tuple[int, int]:
        """Begin and end of the stack that functions run on; 0 and 0 if no symbol has them.

        Without an operating system it is an object of the runtime, or picolibc's linker script has its top
        and size as symbols. Zephyr has an object for each thread's stack; if Zephyr may map it elsewhere when
        the thread starts, the result is `ANYWHERE`.
        """
        symbols = {symbol.name: symbol for symbol in self.program.elf.symbols}
        if _MAPS_STACKS & symbols.keys():
            return ANYWHERE
        own = symbols.get("minrpc_stack")
        if own is not None and own.size:
            return own.value, own.value + own.size
        top, size = symbols.get("__stack"), symbols.get("__stack_size")
        if top is not None and size is not None:
            return top.value - size.value, top.value
        for name, symbol in symbols.items():
            if _THREADS_STACK.fullmatch(name) and symbol.size:
                return symbol.value, symbol.value + symbol.size
        return 0, 0

    @cached_property
    def shift(self) -> int:
        """An instruction starts on a multiple of 1 << shift bytes."""
        return 1 if self.machine in _EVEN else 0

    @cached_property
    def window(self) -> Window:
        """The instructions from the return of `minrpc_timer_start` to the call of `minrpc_timer_stop`.

        Without debug information, it begins at the start of `minrpc_timer_start`, so that it includes the
        timer's own cost.
        """
        starts = [function.start for function in self.functions if function.name == TIMER_START]
        stops = [function.start for function in self.functions if function.name == TIMER_STOP]
        returns = self.program.returns_from(TIMER_START)
        return Window(tuple(returns or starts), tuple(stops))

    def function_at(self, address: int) -> CodeRange | None:
        """The function whose code is at `address`, also in loaded code."""
        return (self._loaded_at(address) or self.program).function_at(address)

    def in_flash(self, address: int) -> bool:
        """True if the code at `address` lies in flash, or is loaded, as a firmware's code in flash would."""
        loaded = self._loaded_at(address)
        if loaded is not None:
            return address - loaded.base < loaded.flash_size
        return any(
            region.kind == "flash" and 0 <= address - region.base < region.size for region in self.regions
        )

    def name_of(self, function: CodeRange) -> str:
        """The function's name; "name (file.c)" for a static function whose name others have, too.

        "name (firmware)" for the firmware's own where loaded code has a function of that name.
        """
        name = self.program.name_of(function)
        shared = any(name in code.names for code in self.loaded)
        return FIRMWARES.format(name) if shared and self._is_own(function) else name

    def _is_own(self, function: CodeRange) -> bool:
        return self.program.function_at(function.start) == function

    def line_at(self, address: int) -> Line | None:
        """The source line of the code at `address`, also of loaded code; None if unknown."""
        return self._program_at(address).lines.at(address)

    def place_of(self, address: int) -> str:
        """Function, file and line of the code at `address`: "mul at scale.c:12"."""
        function, line = self.function_at(address), self.line_at(address)
        name = function.name if function else f"0x{address:x}"
        return f"{name} at {line.file.rpartition('/')[2]}:{line.number}" if line else name

    def bytes_at(self, address: int, size: int) -> bytes:
        """Up to `size` bytes of the program at `address`, also of loaded code; b"" if the program has none
        there."""
        for base, data in self._program_at(address).contents:
            if 0 <= address - base < len(data):
                return data[address - base : address - base + size]
        return b""

    def _program_at(self, address: int) -> Program:
        code = self._loaded_at(address)
        return self.program if code is None else code.program

    def program_at(self, address: int) -> Program:
        """The program with the code at `address`: the image itself, or loaded code."""
        return (self._loaded_at(address) or self).program

    def _loaded_at(self, address: int) -> LoadedCode | None:
        return next((code for code in reversed(self.loaded) if 0 <= address - code.base < code.size), None)

    @property
    def wide(self) -> bool:
        """True if addresses have 64 bits."""
        return self.program.elf.bits == 64
