# SPDX-License-Identifier: Apache-2.0
"""The client: what a test author sees of a device."""

from harness.client.array import RemoteArray
from harness.client.counting import Measurer
from harness.client.device import Device
from harness.client.function import RemoteFunction, RemoteModule, SystemLibrary
from harness.client.info import DeviceInfo
from harness.client.link import LinkOwner
from harness.client.timing import TimeEvaluator, TimingResult

__all__ = [
    "Device",
    "DeviceInfo",
    "LinkOwner",
    "Measurer",
    "RemoteArray",
    "RemoteFunction",
    "RemoteModule",
    "SystemLibrary",
    "TimeEvaluator",
    "TimingResult",
]
