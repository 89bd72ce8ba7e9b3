# SPDX-License-Identifier: Apache-2.0
"""Build, boot, call and time functions on microTVM-compatible devices.

with open_device("posix") as device:
    c = device.empty((2,), "int8")
    device.system_lib()["add"](device.array(a), device.array(b), c)

What is named here is imported when it is first used: the parts below don't load each other.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minrpc.client import Device, DeviceInfo, RemoteArray, RemoteFunction, SystemLibrary, TimingResult
    from minrpc.errors import HarnessError
    from minrpc.opening import open_device

__all__ = [
    "Device",
    "DeviceInfo",
    "HarnessError",
    "RemoteArray",
    "RemoteFunction",
    "SystemLibrary",
    "TimingResult",
    "open_device",
]

_HOMES = dict.fromkeys(__all__, "minrpc.client") | {
    "HarnessError": "minrpc.errors",
    "open_device": "minrpc.opening",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
