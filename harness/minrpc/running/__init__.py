# SPDX-License-Identifier: Apache-2.0
"""Makes a running device from a firmware: a process, an emulator, a board at a serial port."""

from minrpc.running.running_device import RunningDevice
from minrpc.running.start import all_counters, start

__all__ = ["RunningDevice", "all_counters", "start"]
