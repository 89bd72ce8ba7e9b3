# SPDX-License-Identifier: Apache-2.0
"""Platforms: what they are, how their firmware is built, and how it is started.

platform = find_platform(load_platforms(), "qemu_x86")
with launch(build(platform)) as device:
    device.transport.write(...)
"""

from minrpc.platforms.build import build
from minrpc.platforms.config import find_platform, load_platforms
from minrpc.platforms.device import RunningDevice, Timing
from minrpc.platforms.firmware import Firmware, Sizes
from minrpc.platforms.flash import flash
from minrpc.platforms.launch import Link, attach_serial, launch
from minrpc.platforms.qemu_command import Icount
from minrpc.platforms.table import PLATFORMS, Platform

__all__ = [
    "PLATFORMS",
    "Firmware",
    "Icount",
    "Link",
    "Platform",
    "RunningDevice",
    "Sizes",
    "Timing",
    "attach_serial",
    "build",
    "find_platform",
    "flash",
    "launch",
    "load_platforms",
]
