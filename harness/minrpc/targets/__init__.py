# SPDX-License-Identifier: Apache-2.0
"""What can be run: the table of platforms and a user's own, as values."""

from minrpc.targets.config import find_platform, load_platforms
from minrpc.targets.qemu_command import Icount
from minrpc.targets.table import PLATFORMS, Platform

__all__ = ["PLATFORMS", "Icount", "Platform", "find_platform", "load_platforms"]
