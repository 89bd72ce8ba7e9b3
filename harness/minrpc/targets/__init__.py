# SPDX-License-Identifier: Apache-2.0
"""What can be run: the table of platforms, a user's own, and targets, as values."""

from minrpc.targets.config import find_platform, load_platforms
from minrpc.targets.qemu_command import Icount
from minrpc.targets.table import PLATFORMS, Platform
from minrpc.targets.target import Link, SessionFields, StartFields, Target, TargetFields, Timing

__all__ = [
    "PLATFORMS",
    "Icount",
    "Link",
    "Platform",
    "SessionFields",
    "StartFields",
    "Target",
    "TargetFields",
    "Timing",
    "find_platform",
    "load_platforms",
]
