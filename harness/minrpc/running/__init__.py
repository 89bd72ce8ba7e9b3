# SPDX-License-Identifier: Apache-2.0
"""From a firmware to a device that runs: a process, an emulator, a board at a serial port."""

from minrpc.running.device import RunningDevice
from minrpc.running.start import all_counters, start

__all__ = ["RunningDevice", "all_counters", "start"]
