# SPDX-License-Identifier: Apache-2.0
"""Makes a platform's firmware: sources, compilers, builds and their cache, flashing."""

from minrpc.firmware.build import build
from minrpc.firmware.cache import cache_home
from minrpc.firmware.firmware import Firmware
from minrpc.firmware.flash import flash
from minrpc.firmware.sources import firmware_root
from minrpc.firmware.zephyr_workspace import Workspace, find_workspace, workspaces

__all__ = [
    "Firmware",
    "Workspace",
    "build",
    "cache_home",
    "find_workspace",
    "firmware_root",
    "flash",
    "workspaces",
]
