# SPDX-License-Identifier: Apache-2.0
"""The steps from a target to a device with a session; all commands, the fixtures and the bench use them.

Target -> build -> Firmware -> start -> RunningDevice -> connect -> Device
"""

from minrpc.pipeline.device import Device
from minrpc.pipeline.opening import connect, open_device, open_devices
from minrpc.pipeline.requirements import Requirement, lacking, requirements
from minrpc.pipeline.selection import Selection, select

__all__ = [
    "Device",
    "Requirement",
    "Selection",
    "connect",
    "lacking",
    "open_device",
    "open_devices",
    "requirements",
    "select",
]
