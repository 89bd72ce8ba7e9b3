# SPDX-License-Identifier: Apache-2.0
"""Build, boot, call and time functions on microTVM-compatible devices.

with open_device("posix") as device:
    c = device.empty((2,), "int8")
    device.system_lib()["add"](device.array(a), device.array(b), c)

One step at a time: `Target.named("posix")` -> `build` -> `Firmware` -> `start` -> `RunningDevice` ->
`connect` -> `Device`. `open_device` takes any of them, and goes the rest of the way.

What is named here is imported when it is first used: the parts below don't load each other.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minrpc.client import DeviceInfo, RemoteArray, RemoteFunction, Session, SystemLibrary, TimingResult
    from minrpc.client.filling import random_values
    from minrpc.errors import HarnessError
    from minrpc.firmware import Firmware, build
    from minrpc.library import Address
    from minrpc.pipeline import Device, connect, open_device, open_devices
    from minrpc.running import RunningDevice, start
    from minrpc.targets import Platform, Target

    __version__: str
    """Version of the installed package, such as "0.1.0"."""

__all__ = [
    "Address",
    "Device",
    "DeviceInfo",
    "Firmware",
    "HarnessError",
    "Platform",
    "RemoteArray",
    "RemoteFunction",
    "RunningDevice",
    "Session",
    "SystemLibrary",
    "Target",
    "TimingResult",
    "build",
    "connect",
    "open_device",
    "open_devices",
    "random_values",
    "start",
]

_HOMES = {
    **dict.fromkeys(__all__, "minrpc.client"),
    "HarnessError": "minrpc.errors",
    "random_values": "minrpc.client.filling",
    "Address": "minrpc.library",
    **dict.fromkeys(("Platform", "Target"), "minrpc.targets"),
    **dict.fromkeys(("Firmware", "build"), "minrpc.firmware"),
    **dict.fromkeys(("RunningDevice", "start"), "minrpc.running"),
    **dict.fromkeys(("Device", "connect", "open_device", "open_devices"), "minrpc.pipeline"),
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("minrpc.reports.document").package_version()
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
