# SPDX-License-Identifier: Apache-2.0
"""Platforms (the harness's and the users') and targets, as values.

The names here are imported on first use: the table of options alone loads nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minrpc.targets.config import Platforms, find_platform, load_platforms, merge
    from minrpc.targets.hardware_map import load_hardware_map
    from minrpc.targets.limits import load_limits
    from minrpc.targets.options import Options, options_from
    from minrpc.targets.qemu_command import Icount
    from minrpc.targets.table import PLATFORMS, Platform
    from minrpc.targets.target import Link, SessionFields, StartFields, Target, TargetFields, Timing

__all__ = [
    "PLATFORMS",
    "Icount",
    "Link",
    "Options",
    "Platform",
    "Platforms",
    "SessionFields",
    "StartFields",
    "Target",
    "TargetFields",
    "Timing",
    "find_platform",
    "load_hardware_map",
    "load_limits",
    "load_platforms",
    "merge",
    "options_from",
]

_HOMES = {
    **dict.fromkeys(__all__, "target"),
    **dict.fromkeys(("Platforms", "find_platform", "load_platforms", "merge"), "config"),
    **dict.fromkeys(("PLATFORMS", "Platform"), "table"),
    **dict.fromkeys(("Options", "options_from"), "options"),
    "Icount": "qemu_command",
    "load_hardware_map": "hardware_map",
    "load_limits": "limits",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
