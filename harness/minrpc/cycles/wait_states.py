# SPDX-License-Identifier: Apache-2.0
"""Wait states of flash, added to a core's table, whose cycles assume memory without wait states.

Flash is read in lines. While a core executes a line, the next one is read ahead. So straight code waits for
the time by which reading the next line exceeds the code of the present line, and a jump to another line waits
for the whole reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from minrpc.cycles.instructions import Instruction
from minrpc.errors import ConfigurationError

_MOST_WAIT_STATES: Final = 255
_BYTE: Final = 8


@dataclass(frozen=True, slots=True)
class Flash:
    """Flash that answers after `wait_states` more cycles, and is read in lines of `width` bits.

    Raises ConfigurationError.
    """

    wait_states: int = 0
    width: int = 64

    def __post_init__(self) -> None:
        if not 0 <= self.wait_states <= _MOST_WAIT_STATES:
            raise ConfigurationError(
                f"flash has 0 to {_MOST_WAIT_STATES} wait states, not {self.wait_states}"
            )
        if self.width < 2 * _BYTE or self.width & (self.width - 1):
            raise ConfigurationError(
                f"flash is read in lines of 16, 32, 64, 128 or more bits, not {self.width}"
            )

    @property
    def about(self) -> str:
        """The flash in a few words, for messages."""
        if not self.wait_states:
            return "without wait states"
        states = f"{self.wait_states} wait state{'s' * (self.wait_states > 1)}"
        return f"{states} of flash that is read {self.width} bits at once and ahead, without its caches"

    def head(self, code: Sequence[Instruction]) -> int:
        """Number of instructions of straight code that lie in the line in which it begins."""
        line = self._line(code[0].start)
        return next((i for i, item in enumerate(code) if self._line(item.end - 1) != line), len(code))

    def crossings(self, code: Sequence[Instruction], cycles: Sequence[int]) -> Iterator[int]:
        """Cycles that each instruction of straight code waits for its line; the first instruction's line has
        been read.

        cycles: the cycles of each instruction by itself.
        """
        line, spent = None, 0
        for instruction, took in zip(code, cycles, strict=True):
            needed = self._line(instruction.end - 1)
            yield 0 if line in (None, needed) else self.left(spent)
            line, spent = needed, took if needed != line else spent + took

    def spent(self, code: Sequence[Instruction], cycles: Sequence[int]) -> int:
        """Cycles of straight code since the line of its last instruction was read."""
        line = self._line(code[-1].end - 1)
        ends = zip(code, cycles, strict=True)
        return sum(took for instruction, took in ends if self._line(instruction.end - 1) == line)

    def arrival(self, last: Instruction, spent: int, to: Instruction) -> tuple[int, int]:
        """Cycles that `to`, after `last`, waits for its line, and cycles since its line was read.

        spent: cycles since the line of `last` was read.
        """
        ahead = self._line(to.start) - self._line(last.end - 1)
        if ahead == 0:
            return 0, spent
        return (self.left(spent) if ahead == 1 else self.wait_states), 0

    def _line(self, address: int) -> int:
        return address // (self.width // _BYTE)

    def left(self, spent: int) -> int:
        """Cycles until the next line is read, `spent` cycles after this line was."""
        return max(0, self.wait_states + 1 - spent)


AT_ONCE: Final = Flash()
"""Flash without wait states, as core tables assume."""
