# SPDX-License-Identifier: Apache-2.0
"""Pointers into a call's arguments that C gives: they are right until a call uses that memory again."""

from __future__ import annotations

from typing import Protocol

from minrpc.errors import GuardError


class Owner(Protocol):
    """Protocol: the memory of a library's calls, or of a function that waits for Python."""

    @property
    def is_there(self) -> bool:
        """False when it was freed, the function has gone on, or the session has ended."""
        ...


class Lent:
    """The memory of a call's arguments, as long as no later call has used it.

    function: the function whose arguments they are. base, size: of the memory. noted: a pointer has it.
    """

    __slots__ = ("base", "function", "noted", "over", "owner", "size")

    def __init__(self, owner: Owner, function: str, base: int, size: int) -> None:
        self.owner = owner
        self.function = function
        self.base = base
        self.size = size
        self.over = False
        self.noted = False

    def has(self, address: int) -> bool:
        """True if the address lies in this memory."""
        return 0 <= address - self.base < self.size

    def require(self, function: str, user: object) -> None:
        """Raise GuardError if the memory has been used again, or if a call of `user` is about to use it."""
        if self.over or self.owner is user or not self.owner.is_there:
            raise GuardError(
                f"{function} was given a pointer into the arguments of an earlier call of {self.function}: "
                "their memory belongs to the next call, and ends with the session",
                stage=f"call {function}",
                next_step=f"give {self.function} an object that stays: minrpc.place(lib, value), "
                "device.array(...); or allow this by minrpc.allow_kept_pointers(lib)",
            )
