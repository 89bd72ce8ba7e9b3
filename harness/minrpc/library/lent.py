# SPDX-License-Identifier: Apache-2.0
"""Pointers into a call's arguments that C returns: they are right until a call uses that memory again."""

from __future__ import annotations

from typing import Protocol

from minrpc.errors import GuardError


class Owner(Protocol):
    """Protocol: the memory of a library's calls."""

    @property
    def is_there(self) -> bool:
        """False when it was freed, or its session has ended."""
        ...


class Lent:
    """The memory of a call's arguments, as long as no later call has used it.

    owner: the memory of a library's calls; None for the stack of a function that waits for Python.
    function: the function that returned a pointer into it.
    """

    __slots__ = ("function", "over", "owner")

    def __init__(self, owner: Owner | None, function: str) -> None:
        self.owner = owner
        self.function = function
        self.over = False

    def require(self, function: str, user: object, *, waiting: bool) -> None:
        """Raise GuardError if the memory has been used again, or if a call of `user` is about to use it.

        waiting: a function waits for Python.
        """
        owner = self.owner
        if self.over or (not waiting if owner is None else owner is user or not owner.is_there):
            raise GuardError(
                f"{function} was given a pointer into the arguments of an earlier call of {self.function}: "
                "their memory belongs to the next call, and ends with the session",
                stage=f"call {function}",
                next_step=f"give {self.function} an object that stays: minrpc.place(lib, value), "
                "device.array(...); or allow this by minrpc.allow_kept_pointers(lib)",
            )
