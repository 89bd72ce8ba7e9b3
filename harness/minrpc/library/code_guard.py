# SPDX-License-Identifier: Apache-2.0
"""Finds writes to a loaded library's code and constants, by a comparison with the bytes that were loaded.

Only the owner of an emulator or a process can read them without the device's help.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

from minrpc.client.owner import Owner
from minrpc.errors import GuardError
from minrpc.library.linking import LinkedImage

# A comparison takes a tenth of a short call: after so many calls of a library only one of 16 has it.
_EACH: Final = 64
_OF: Final = 16


class CodeGuard:
    """The code and constants of one library. `of` makes it."""

    def __init__(self, owner: Owner, name: str, image: LinkedImage, expected: bytearray) -> None:
        self._peek = owner.peek
        self._read = owner.reader(image.base, len(expected))
        self._name = name
        self._base = image.base
        self._symbols: Mapping[str, int] = image.symbols
        self._sizes: Mapping[str, int] = image.sizes
        self._expected = expected
        self._calls = 0
        # The changed bytes that were found last, and the function that wrote them.
        self._found: tuple[bytes, str] = b"", ""

    @classmethod
    def of(cls, owner: Owner, name: str, image: LinkedImage) -> Self | None:
        """None if the owner can't read the device's memory at the library's address."""
        expected = image.data[: image.constant_size]
        if not expected or owner.peek(image.base, len(expected)) != expected:
            return None
        return cls(owner, name, image, bytearray(expected))

    def written(self, address: int, data: bytes) -> None:
        """Notes that the library's user has written `data` at `address`."""
        begin = address - self._base
        if 0 <= begin < len(self._expected):
            data = data[: len(self._expected) - begin]
            self._expected[begin : begin + len(data)] = data

    def is_whole(self) -> bool:
        """True if the code and the constants are unchanged, or not compared after this call.

        False also if they can't be read this time.
        """
        self._calls += 1
        if self._calls > _EACH and self._calls % _OF:
            return True
        try:
            actual = self._read()
            return actual is not None and actual == self._expected
        except OSError:
            return False

    def require(self, function: str) -> None:
        """Raise GuardError if the code or the constants have changed, in the call of `function`."""
        actual = self._peek(self._base, len(self._expected))
        if actual is None or actual == self._expected:
            return
        by = function if self._calls <= _EACH else f"{function}, or one of the {_OF - 1} calls before it,"
        if actual != self._found[0]:
            self._found = bytes(actual), by
        changed = [i for i, (was, now) in enumerate(zip(self._expected, actual, strict=True)) if was != now]
        first = self._base + changed[0]
        count = f"{len(changed)} byte{'s' * (len(changed) > 1)}"
        raise GuardError(
            f"{self._found[1]} wrote {count} of {self._name}'s code or constants, "
            f"the first at 0x{first:x}{self._inside(first)}",
            stage=f"call {function}",
            next_step=f"correct the function, and load {self._name} again: its memory is not repaired",
        )

    def _inside(self, address: int) -> str:
        for name, begin in self._symbols.items():
            if (begin & ~1) <= address < (begin & ~1) + self._sizes.get(name, 0):
                return f", in {name}"
        return ""
