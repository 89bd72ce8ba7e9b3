# SPDX-License-Identifier: Apache-2.0
"""Interrupts of C functions: now, or in front of each instruction of a call in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minrpc.errors import HarnessError, RegisterError
from minrpc.hardware.machine_code import texts_of
from minrpc.hardware.trap import Trap, require_function, trap_of
from minrpc.library.c_library import CFunction

_NEVER: Final = 0xFFFFFFFF
_SHOWN: Final = 12
_UNKNOWN: Final = -1
"""The number of a function's instructions before its first call."""


def interrupt(handler: CFunction, *, line: int = -1) -> None:
    """Call `handler`, a function without arguments, as an interrupt: in handler mode, at the lowest priority.

    line: the number of the interrupt's line; by default one that nothing uses.

    Raises RegisterError for a target without it, if the line is in use, if interrupts are off, or while C is
    in an access or in a handler.
    """
    trap = _trap_for(handler, line)
    trap.interrupt_now(handler)
    trap.require_on(handler.name)


def _trap_for(handler: CFunction, line: int = -1) -> Trap:
    require_function(handler)
    trap = trap_of(handler.library.session)
    trap.require_handler(handler)
    if not trap.call("trap_connect", line):
        raise RegisterError(f"line {line} of the interrupts is in use, or does not exist")
    return trap


@dataclass
class Interruption:
    """One call that is interrupted in front of one instruction.

    number: of the instruction in the call, from 1 on; 0 for the call without an interrupt, after which, or in
        its wait for interrupts, the handler runs.
    line, instruction: the place, known after the call. came: the line in front of which the interrupt came,
        which is later if interrupts were off.
    """

    number: int
    _sweep: Interruptions
    line: str = ""
    instruction: str = ""
    came: str = ""
    place: int = 0
    came_place: int = 0

    def __call__(self, *arguments: object) -> Any:  # noqa: ANN401 - a C function's result
        """Call the function, with the interrupt in front of the instruction."""
        return self._sweep._run(self, arguments)

    @property
    def deferred(self) -> bool:
        """True if interrupts were off at this instruction, so that the interrupt came later."""
        return bool(self.number and self.came_place != self.place) and not self.instruction.startswith("wf")

    def __str__(self) -> str:
        if not self.number:
            return f"in the wait of {self.line}" if self.place else "behind the call"
        later = f", off until {self.came}" if self.deferred else ""
        return f"in front of instruction {self.number}, {self.line}: {self.instruction}{later}"


class Interruptions:
    """The calls of a function, each interrupted in front of another instruction: all of them, in order.

    for at in minrpc.interruptions(lib.get, handler=lib.rx_isr):
        reset()
        assert at() == 1          # calls get(), which is interrupted
        assert minrpc.variables(lib).count == 1
    """

    def __init__(self, function: CFunction, handler: CFunction, line: str = "") -> None:
        self._function = function
        self._handler = handler
        self._trap = _trap_for(handler)
        self._last = _UNKNOWN
        library: Any = function.library
        if getattr(library, "image", None) is None:
            raise RegisterError(
                f"{function.name} is not interrupted: its code is in the firmware, where it can't be changed",
                next_step="load its C file, with device.load",
            )
        self._texts = dict(texts_of(function, library.compiled.functions, self._trap.instruction_set))
        self._base = min(self._texts)
        self._size = max(self._texts) + 4 - self._base
        session = library.session
        starts = self._bits(address for address, text in self._texts.items() if text)
        counted = self._bits(self._places_of(line)) if line else starts
        piece = self._trap.piece
        code = session.empty((self._size // piece + 1,), f"uint{8 * piece}")
        self._rooms = code, session.array(starts), session.array(counted)

    def _places_of(self, line: str) -> Sequence[int]:
        places = [place for place, text in self._texts.items() if text and self._trap.line(place) == line]
        if not places:
            raise RegisterError(
                f"{line} has no instruction of {self._function.library.name}",
                next_step="name the line of a statement, as error messages do: ring.c:12",
            )
        return places

    def _bits(self, places: Iterable[int]) -> NDArray[np.uint8]:
        """A bit for each piece of the code, as the trap's code reads it."""
        piece = self._trap.piece
        bits = np.zeros(self._size // piece + 8, np.bool_)
        bits[[(place - self._base) // piece for place in places]] = True
        return np.packbits(bits, bitorder="little")

    def __iter__(self) -> Iterator[Interruption]:
        yield Interruption(0, self)
        if self._last == _UNKNOWN:
            raise RegisterError(
                f"{self._function.name} was not called, so its instructions are not known",
                next_step="call the interruption in the loop: `for at in ...: at()`",
            )
        for number in range(1, self._last + 1):
            yield Interruption(number, self)

    def require(
        self,
        holds: Callable[[], object],
        *arguments: object,
        prepare: Callable[[], object] = lambda: None,
        watch: Iterable[str] = (),
    ) -> None:
        """Raise AssertionError unless `holds()` is true after each of the calls.

        prepare: runs before each call. watch: variables whose values the error shows, before and after the
            call.

        The error lists each place at which an interrupt breaks it: line and instruction.
        """
        names = list(watch)
        failed: list[str] = []
        total = 0
        for at in self:
            total += 1
            prepare()
            before = self._values(names)
            at(*arguments)
            if not holds():
                failed.append(f"{at}{_changes(names, before, self._values(names))}")
        if failed:
            rest = [f"and {len(failed) - _SHOWN} more"] if len(failed) > _SHOWN else []
            places = "\n  ".join([*failed[:_SHOWN], *rest])
            raise AssertionError(
                f"{self._handler.name} breaks {self._function.name} at {len(failed)} of {total} places:\n"
                f"  {places}"
            )

    def _values(self, names: Sequence[str]) -> list[object]:
        variables = self._function.library.variables
        return [variables[name].read() for name in names]

    def _run(self, at: Interruption, arguments: Sequence[object]) -> Any:  # noqa: ANN401
        trap = self._trap
        handler = self._handler.address
        trap.call("trap_steps_begin", self._base, self._size, *self._rooms, at.number or _NEVER, handler)
        try:
            result = self._function(*arguments, guards=False)
        except BaseException as error:
            with suppress(HarnessError):  # The device may have ended, by this very error.
                trap.call("trap_steps_end")
            if isinstance(error, HarnessError) and at.number:
                error.details += (f"{self._handler.name} had come in front of instruction {at.number}",)
            raise
        trap.call("trap_steps_end")
        steps = trap.variable("trap_steps")
        if not at.number:
            self._last = int(steps.count)
        at.place = int(steps.place)
        if at.place:
            at.line, at.instruction = trap.line(at.place), self._texts.get(at.place, "")
            at.came_place = int(steps.came)
            at.came = trap.line(at.came_place)
        else:
            trap.interrupt_now(self._handler)
            steps = None
        trap.require_on(self._handler.name, steps)
        return result


def interruptions(function: CFunction, *, handler: CFunction, line: str = "") -> Interruptions:
    """Calls of `function`, interrupted by `handler` in front of each of its instructions in turn.

    The first call runs without an interrupt, and the handler behind it. Each further call is interrupted in
    front of the next instruction, also of functions that it calls, if they are of the same library. While the
    code has interrupts off, the interrupt comes later; exclusive accesses are not parted. An instruction that
    waits for interrupts (WFI, WFE) gets the interrupt, unless it has come: the sweep ends there.

    line: in front of the instructions of this line only, "ring.c:12".

    Raises RegisterError for a target without it, or if the line has no instruction.
    """
    return Interruptions(function, handler, line)


def _changes(names: Sequence[str], before: Sequence[object], after: Sequence[object]) -> str:
    shown = [f"{name} {old} -> {new}" for name, old, new in zip(names, before, after, strict=True)]
    return f"; {', '.join(shown)}" if shown else ""
