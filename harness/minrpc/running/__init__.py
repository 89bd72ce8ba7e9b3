# SPDX-License-Identifier: Apache-2.0
"""From a firmware to a device that runs: a process, an emulator, a board at a serial port."""

from minrpc.running.device import RunningDevice, Timing
from minrpc.running.launch import Link, attach_serial, launch

__all__ = ["Link", "RunningDevice", "Timing", "attach_serial", "launch"]
