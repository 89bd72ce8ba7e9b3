# SPDX-License-Identifier: Apache-2.0
"""This machine: its processes, and how its time is charged. The lowest room: every other room may use this
room.

The names here are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minrpc.host.deadline import ClockSample, Deadline, read_before, write_before
    from minrpc.host.process import describe_status

__all__ = ["ClockSample", "Deadline", "describe_status", "read_before", "write_before"]

_HOMES = {**dict.fromkeys(__all__, "deadline"), "describe_status": "process"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
