# SPDX-License-Identifier: Apache-2.0
"""From a platform to its firmware: sources, compilers, builds and their cache, flashing."""

from minrpc.firmware.build import build
from minrpc.firmware.firmware import Firmware, Sizes
from minrpc.firmware.flash import flash

__all__ = ["Firmware", "Sizes", "build", "flash"]
