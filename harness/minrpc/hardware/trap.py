# SPDX-License-Identifier: Apache-2.0
"""The trap on a device: loaded code that asks Python about each access to trapped registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from itertools import takewhile
from typing import Any, Final
from weakref import WeakKeyDictionary

from minrpc.client.conversation import Conversation
from minrpc.client.session import Session
from minrpc.errors import RegisterError
from minrpc.hardware.arm import Arm
from minrpc.hardware.machine_code import texts_of
from minrpc.hardware.registers import HandlerOnDevice, Registers
from minrpc.hardware.riscv import RiscV, RiscV64
from minrpc.hardware.trap_interface import Core
from minrpc.hardware.x86 import X86
from minrpc.library.c_library import CFunction
from minrpc.library.compiling import Sources, compile_text
from minrpc.library.faking import require_asking
from minrpc.library.loading import firmware_of, load
from minrpc.library.stubs import ASKING
from minrpc.library.toolset import program_facts, toolset_of
from minrpc.program import Program, read_program
from minrpc.program.compiler import attributes_of

# Bytes that the firmware gets for a device of its own.
_PAGE: Final = 256
_DEVICES: Final = range(0x40000000, 0x60000000)
_BITS: Final = range(0x42000000, 0x44000000)
_MODELS: Final = 16  # as MODELS in trap.c
_WAITING: Final = 16  # as RAISED in trap.c
# A result of trap_interrupt.
_BUSY: Final = 2

# Values of Tag_CPU_arch.
_ARMV6_M: Final = (11, 12)

_CORES: Final[Mapping[str, type[Core]]] = {
    "EM_ARM, 32 bits": Arm,
    "EM_RISCV, 32 bits": RiscV,
    "EM_RISCV, 64 bits": RiscV64,
    "EM_X86_64, 64 bits": X86,
}
"""By the machine's name in ELF files."""


def core_of(machine: str, pointer_size: int, attributes: Mapping[str, object]) -> type[Core]:
    """The core of a machine by its name in ELF files. attributes: of .ARM.attributes.

    Raises RegisterError for a core that can't trap accesses.
    """
    name = f"{machine}, {8 * pointer_size} bits"
    if name not in _CORES:
        raise _cannot(f"{name}: registers and interrupts in Python are not there for this processor")
    if attributes.get("TAG_CPU_ARCH") in _ARMV6_M:
        raise _cannot(
            "an Armv6-M has no MPU, its vectors are in flash, and access without a device may be no fault"
        )
    return _CORES[name]


class Trap:
    """The trap of a session's device, with all peripherals that are in Python."""

    name = "an access to a register"

    def __init__(self, session: Session) -> None:
        """Raises RegisterError for a target that can't trap accesses."""
        toolset = toolset_of(firmware_of(session))
        require_asking(toolset)
        self._firmware = read_program(toolset.elf)
        self._peripherals: list[Registers] = []
        self._programs: list[tuple[range, Program]] = []
        self._lines: dict[int, str] = {}
        self._at = 0
        self._answering = False
        # Interrupts of the answer that is being given, and those that wait for its second question.
        self._raising: list[HandlerOnDevice] = []
        self._late: list[HandlerOnDevice] = []
        self._handlers: dict[int, object] = {}
        self._raised = ""
        facts = program_facts(toolset.elf)
        if facts.machine == "EM_X86_64" and not facts.dynamic:
            raise _cannot(f"{toolset.elf.name}: on an x86-64 a process only can trap accesses")
        self._pointer = facts.pointer_size
        attributes = attributes_of(self._firmware, ".ARM.attributes")
        self._core: Core = core_of(facts.machine, self._pointer, attributes)()
        self.instruction_set = self._core.instruction_set
        self.piece = 1 if self.instruction_set == "x86_64" else 2
        object_file = compile_text(_together(self._core.source), toolset, ("-g", "-std=gnu11"))
        self._library = load(session, Sources.of(object_file))
        self.has_bits = facts.machine == "EM_ARM" and bool(self.call("trap_has_bits"))
        session.rpc.facts.fakes[self.address("trap_resume")] = self
        session.rpc.facts.on_host = self
        code = [item for item in self._firmware.elf.segments if item.executable]
        base = min(item.address for item in code)
        end = max(item.address + item.size for item in code)
        if not self.call("trap_begin", base, end - base):
            raise _cannot(f"{toolset.elf.name}: this core has no way to trap accesses and to go on")
        if not self.call("trap_connect", -1):
            raise _cannot(f"{toolset.elf.name}: the firmware uses all lines of the interrupts")

    def call(self, name: str, *arguments: object) -> Any:  # noqa: ANN401 - a C function's result
        """Call a function of the trap's code."""
        return self._library[name](*arguments)

    def variable(self, name: str) -> Any:  # noqa: ANN401 - number, numpy array, struct
        """A variable of the trap's code."""
        return self._library.variables[name].read()

    def interrupt(self, handler: HandlerOnDevice) -> None:
        """The interrupt comes behind the access that is being answered. handler: its function.

        Raises RegisterError outside an answer.
        """
        if not self._answering:
            raise RegisterError(
                "an interrupt behind an access is raised by a function that answers an access",
                next_step="minrpc.interrupt(handler) raises one between calls",
            )
        self.require_handler(handler)
        self._raising.append(handler)
        self._raised = handler.name

    def interrupt_now(self, handler: CFunction) -> None:
        """The interrupt comes now. Raises RegisterError if it can't."""
        came = _BUSY if self._answering else self.call("trap_interrupt", handler.address)
        if came == _BUSY:
            place = "the answer of an access" if self._answering else "a handler of an interrupt"
            raise RegisterError(
                f"{handler.name} can't come: C is in {place}",
                next_step="in a function that answers an access, call `interrupt` of its peripheral",
            )
        if not came:
            raise RegisterError(f"{handler.name} did not come: interrupts are off")

    def require_handler(self, handler: object) -> None:
        """Raise TypeError or RegisterError unless an interrupt can call `handler`."""
        function = require_function(handler)
        image = getattr(function.library, "image", None)
        if self._handlers.get(function.address, self) is image:
            return
        if function.function.type.parameters:
            raise TypeError(f"an interrupt gives no arguments: {function.prototype}")
        self.know(function.library)
        is_riscv = self.instruction_set.startswith("riscv")
        texts = texts_of(function, [function.name], self.instruction_set) if is_riscv else ()
        if any(text.startswith("mret") for _, text in texts):
            raise RegisterError(
                f"{function.name} returns by mret, as an interrupt does that the processor has entered",
                next_step="leave out its interrupt attribute for this test, by a macro that `defines` sets",
            )
        self._handlers[function.address] = image

    def require_on(self, handler: str, steps: Any = None) -> None:  # noqa: ANN401 - the trap's struct
        """Raise RegisterError if this handler has not returned, or has left interrupts off.

        steps: the present `trap_steps`, if they are known.
        """
        steps = self.variable("trap_steps") if steps is None else steps
        left = self.call("trap_left") if steps.left or steps.entered else 0
        if steps.entered:
            rpc = self._library.session.rpc
            rpc.link.owner.start_again()
            rpc.restart()
            raise RegisterError(
                f"{handler} did not return: it left by longjmp, so the core stayed in the interrupt, and no "
                "other comes; the device was started again",
                next_step="let the handler return, then load the library again",
            )
        if left:
            mask = "PRIMASK" if left & 1 else "BASEPRI"
            raise RegisterError(
                f"{handler} returned with interrupts off: it set {mask}, which outlives it",
                next_step="set it back at the end of the handler",
            )

    @property
    def ended(self) -> bool:
        """True if its code is no longer on the device."""
        return not self._library.module.usable_on(self._library.module.rpc)

    def add(self, peripheral: Registers, library: Any) -> None:  # noqa: ANN401 - any library
        """Trap the peripheral for the code of `library`. Raises RegisterError, ValueError."""
        if len(self._peripherals) == _MODELS:
            raise RegisterError(
                f"{_MODELS} peripherals are open, which is the most",
                next_step="close one of them, or open several as one struct",
            )
        for other in self._peripherals:
            if peripheral.overlaps(other.base, other.size):
                raise ValueError(f"{peripheral!r} and {other!r} overlap")
        if peripheral.base not in _DEVICES or peripheral.base + peripheral.size > _DEVICES.stop:
            raise _cannot(f"0x{peripheral.base:x} is not among the peripherals, 0x40000000 to 0x5fffffff")
        self.know(library)
        if not self._peripherals and not (self.call("trap_forbid") and self.call("trap_forbid")):
            self.call("trap_allow")
            raise _cannot(f"{self._firmware.name}: the core has no MPU, or the firmware's kernel uses it")
        for page in self.pages:
            if page and peripheral.overlaps(page, _PAGE):
                self._end_if_unused()
                raise _cannot(f"the firmware itself uses a device in {peripheral!r}")
        self._tell(peripheral)
        peripheral.trap = self
        self._peripherals.append(peripheral)

    def know(self, library: Any) -> None:  # noqa: ANN401 - any library
        """Remember the lines of a library's code, in place of code that it overwrites."""
        image = getattr(library, "image", None)
        if image is not None and all(item.elf.content is not image.program for _, item in self._programs):
            self._lines.clear()
            begin, end = image.base, image.base + image.size
            kept = [known for known in self._programs if known[0].stop <= begin or end <= known[0].start]
            self._programs = [*kept, (range(begin, end), Program(library.name, image.program))]

    def remove(self, peripheral: Registers) -> None:
        """Answer for this peripheral no more; the last one ends the trap.

        Raises RegisterError if a handler that was raised behind an access has left interrupts off.
        """
        self._peripherals.remove(peripheral)
        raised, self._raised = self._raised, ""
        if not self.ended:
            self._tell()
            self._end_if_unused()
            if raised:
                self.require_on(raised)

    def _end_if_unused(self) -> None:
        if not self._peripherals:
            self.call("trap_allow")

    def _tell(self, *more: Registers) -> None:
        """The device traps the peripherals, and these."""
        places = [number for item in (*self._peripherals, *more) for number in (item.base, item.size)]
        self._library.variables["trap_models"].write([*places, *[0] * (2 * _MODELS + 2 - len(places))])

    @property
    def pages(self) -> Sequence[int]:
        """Addresses of the pages of devices that the firmware itself uses, as known by now; 0: none."""
        return [int(page) for page in self.variable("trap_pages")]

    def respond(self, conversation: Conversation, words: memoryview) -> int:
        """Answer one access; see `FunctionOnHost`."""
        outer = self._answering, self._raising
        self._answering, self._raising, self._late = True, self._late, []
        try:
            answer = self._core.answer(self, conversation, words)
            raised = self._raising
        finally:
            self._answering, self._raising = outer
        if not answer.complete:
            self._late = raised
        elif raised:
            self._add(conversation, raised)
        return answer.number

    def _add(self, conversation: Conversation, raised: Sequence[HandlerOnDevice]) -> None:
        """The interrupts wait on the device; one that waits already comes once."""
        place, size = self.address("trap_raised"), self._pointer
        content = conversation.read(place, _WAITING * size)
        numbers = (int.from_bytes(content[at : at + size], "little") for at in range(0, len(content), size))
        waiting = list(takewhile(bool, numbers))
        added = dict.fromkeys(item.address for item in raised if item.address not in waiting)
        if len(waiting) + len(added) > _WAITING:
            raise RegisterError(f"more than {_WAITING} interrupts wait for the end of a handler or of a mask")
        data = b"".join(address.to_bytes(size, "little") for address in added)
        conversation.write(place + len(waiting) * size, data + bytes(size))

    def asked_at(self, words: memoryview) -> int:
        """See `FunctionOnHost`: the last access."""
        return self._at

    def address(self, name: str) -> int:
        """The address of a variable of the trap's code."""
        return self._library.symbols.addresses[name]

    def line(self, pc: int) -> str:
        """The line of C at `pc`, "file.c:12"; "" if unknown."""
        self._at = pc
        known = self._lines.get(pc)
        if known is None:
            program = next((item for place, item in self._programs if pc in place), self._firmware)
            line = program.line_at(pc)
            known = f"{line.file.rpartition('/')[2]}:{line.number}" if line is not None else ""
            self._lines[pc] = known
        return known

    def load(self, address: int, size: int, line: str) -> int:
        """C reads `size` bytes at `address`. Raises RegisterError if no model covers it."""
        if self._is_bit(address):
            word, bit = _bit(address)
            return self.find(word, line).load(word, 4, line) >> bit & 1
        return self.find(address, line).load(address, size, line)

    def store(self, address: int, size: int, value: int, line: str) -> None:
        """C writes `size` bytes at `address`. Raises as `load` does."""
        if self._is_bit(address):
            word, bit = _bit(address)
            peripheral = self.find(word, line)
            others = peripheral.load(word, 4, line) & ~(1 << bit)
            peripheral.store(word, 4, others | (value & 1) << bit, line)
        else:
            self.find(address, line).store(address, size, value, line)

    def _is_bit(self, address: int) -> bool:
        """True for the address of a single bit, if no peripheral is there."""
        may_be = self.has_bits and address in _BITS
        return may_be and not any(item.overlaps(address, 1) for item in self._peripherals)

    def content(self, address: int, size: int) -> bytes | None:
        """See `MemoryOnHost`: of registers, without an access, as while Python answers C makes none."""
        region = self._around(address, size)
        return bytes(region.content[address - region.base :][:size]) if region is not None else None

    def overwrite(self, address: int, data: bytes) -> bool:
        """See `MemoryOnHost`: of registers, without an access."""
        region = self._around(address, len(data))
        if region is not None:
            at = address - region.base
            region.content[at : at + len(data)] = data
        return region is not None

    def _around(self, address: int, size: int) -> Registers | None:
        """The peripheral that these bytes belong to. Raises RegisterError if some of them do only."""
        for item in self._peripherals:
            if item.overlaps(address, size):
                if item.base <= address and address + size <= item.base + item.size:
                    return item
                raise RegisterError(f"Python accesses {size} bytes at 0x{address:x}: {item!r} has some only")
        return None

    def find(self, address: int, line: str) -> Registers:
        """The peripheral at an address. Raises RegisterError if there is none."""
        for item in self._peripherals:
            if item.overlaps(address, 1):
                return item
        raise RegisterError(f"C accesses 0x{address:x}, {line or 'in an unknown line'}: no model covers it")


def require_function(handler: object) -> CFunction:
    """The handler of an interrupt. Raises TypeError if it is no function of C."""
    if not isinstance(handler, CFunction):
        raise TypeError(f"an interrupt calls a function of C, not {handler!r}")
    return handler


def _bit(address: int) -> tuple[int, int]:
    """The word, and the number of the bit in it, that an address among the bits stands for."""
    offset = address - _BITS.start
    return _DEVICES.start + (offset >> 5 & ~3), offset >> 2 & 31


def _together(source: str) -> str:
    """The trap's source behind that of questions; a feature test macro of the C library comes first."""
    files = [(resources.files("minrpc.hardware") / name).read_text() for name in ("trap.c", source)]
    return "".join(["#define _GNU_SOURCE\n", ASKING, *files])


def _cannot(reason: str) -> RegisterError:
    return RegisterError(
        reason, next_step="test this driver on a target with an MPU, such as bare_mps2_an385, or on posix"
    )


_traps: WeakKeyDictionary[Session, Trap] = WeakKeyDictionary()


def trap_of(session: Session) -> Trap:
    """The trap of the session's device; loaded at the first use. Raises RegisterError."""
    known = _traps.get(session)
    if known is None or known.ended:
        known = _traps[session] = Trap(session)
    return known
