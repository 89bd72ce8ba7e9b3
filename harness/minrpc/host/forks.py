# SPDX-License-Identifier: Apache-2.0
"""Resources of this process that a fork of it, such as os.fork() makes, must not use or end."""

from __future__ import annotations

import os
from typing import Final, Protocol
from weakref import WeakSet


class Owner(Protocol):
    """A resource that stays its process's own."""

    def leave_to(self, process: int) -> None:
        """In a fork: from now on use nothing; the resource belongs to `process`."""


_owners: Final[WeakSet[Owner]] = WeakSet()


def stay_own(owner: Owner) -> None:
    """Call `owner.leave_to` in each fork of this process that is made while `owner` exists."""
    _owners.add(owner)


def _in_fork() -> None:
    for owner in list(_owners):
        owner.leave_to(os.getppid())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_fork)
