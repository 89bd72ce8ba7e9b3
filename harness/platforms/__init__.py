# SPDX-License-Identifier: Apache-2.0
"""Platforms: what they are, how their firmware is built, and how it is started.

platform = find_platform(load_platforms(), "qemu_x86")
with launch(build(platform)) as device:
    device.transport.write(...)
"""

from harness.platforms.build import build
from harness.platforms.config import find_platform, load_platforms
from harness.platforms.device import RunningDevice, Timing
from harness.platforms.firmware import Firmware, Sizes
from harness.platforms.flash import flash
from harness.platforms.launch import Link, attach_serial, launch
from harness.platforms.qemu_command import Icount
from harness.platforms.table import PLATFORMS, Platform

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
