# SPDX-License-Identifier: Apache-2.0
"""Build, boot, call and time functions on microTVM-compatible devices.

with open_device("posix") as device:
    c = device.empty((2,), "int8")
    device.system_lib()["add"](device.array(a), device.array(b), c)

One step at a time: `Target.named("posix")` -> `build` -> `Firmware` -> `start` -> `RunningDevice` ->
`connect` -> `Device`. `open_device` takes any of these and does the remaining steps.

Each name is imported at its first use, so that a program loads only the parts that it uses.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from minrpc.client import (
        CpuTimeMeter,
        DeviceInfo,
        DeviceStats,
        Measurer,
        Meter,
        RemoteArray,
        RemoteFunction,
        RemoteModule,
        Session,
        SystemLibrary,
        TimeEvaluator,
        TimingResult,
    )
    from minrpc.client.filling import random_values
    from minrpc.counters import QemuCounters, counters_for
    from minrpc.counters.constant_time import ConstantTime, check_constant_time
    from minrpc.counters.profile import Profile, profile_call
    from minrpc.counters.secret_inputs import secret_inputs
    from minrpc.errors import (
        AmbiguousBoardError,
        BoardBusyError,
        BoardLostError,
        BuildError,
        CompileError,
        ConfigurationError,
        DeadlineError,
        DeviceMemoryError,
        DialectError,
        EmulatorExitedError,
        FlashError,
        FunctionNotFoundError,
        GuardError,
        HarnessError,
        LinkClosedError,
        LinkerError,
        LinkError,
        LoadError,
        MissingError,
        ModelError,
        ModuleError,
        NoSuchBoardError,
        NothingHeardError,
        PortBusyError,
        PortGoneError,
        QemuMissingError,
        QmpError,
        RemoteError,
        ResetError,
        SessionError,
        SessionTerminatedError,
        TimerError,
        ToolchainMissingError,
        UndefinedSymbolsError,
        WrongBoardError,
        ZephyrMissingError,
    )
    from minrpc.firmware import Firmware, build
    from minrpc.library import (
        Address,
        CFunction,
        CFunctions,
        CLibrary,
        FirmwareFunctions,
        LoadedLibrary,
        StructValue,
        fake,
        fakes,
        library_of,
        measure,
        out,
        read,
        time_evaluator,
        types,
        unload,
        variables,
        write,
    )
    from minrpc.pipeline import Device, connect, lacking, open_device, open_devices
    from minrpc.running import RunningDevice, start
    from minrpc.targets import PLATFORMS, Platform, Target
    from minrpc.timing import DeviceClock, Measurement, Sample

    __version__: str
    """Version of the installed package, such as "0.1.0"."""

__all__ = [
    "PLATFORMS",
    "Address",
    "AmbiguousBoardError",
    "BoardBusyError",
    "BoardLostError",
    "BuildError",
    "CFunction",
    "CFunctions",
    "CLibrary",
    "CompileError",
    "ConfigurationError",
    "ConstantTime",
    "CpuTimeMeter",
    "DeadlineError",
    "Device",
    "DeviceClock",
    "DeviceInfo",
    "DeviceMemoryError",
    "DeviceStats",
    "DialectError",
    "EmulatorExitedError",
    "Firmware",
    "FirmwareFunctions",
    "FlashError",
    "FunctionNotFoundError",
    "GuardError",
    "HarnessError",
    "LinkClosedError",
    "LinkError",
    "LinkerError",
    "LoadError",
    "LoadedLibrary",
    "Measurement",
    "Measurer",
    "Meter",
    "MissingError",
    "ModelError",
    "ModuleError",
    "NoSuchBoardError",
    "NothingHeardError",
    "Platform",
    "PortBusyError",
    "PortGoneError",
    "Profile",
    "QemuCounters",
    "QemuMissingError",
    "QmpError",
    "RemoteArray",
    "RemoteError",
    "RemoteFunction",
    "RemoteModule",
    "ResetError",
    "RunningDevice",
    "Sample",
    "Session",
    "SessionError",
    "SessionTerminatedError",
    "StructValue",
    "SystemLibrary",
    "Target",
    "TimeEvaluator",
    "TimerError",
    "TimingResult",
    "ToolchainMissingError",
    "UndefinedSymbolsError",
    "WrongBoardError",
    "ZephyrMissingError",
    "build",
    "check_constant_time",
    "connect",
    "counters_for",
    "fake",
    "fakes",
    "lacking",
    "library_of",
    "measure",
    "open_device",
    "open_devices",
    "out",
    "profile_call",
    "random_values",
    "read",
    "secret_inputs",
    "start",
    "time_evaluator",
    "types",
    "unload",
    "variables",
    "write",
]

_EXPORTS: Final[Mapping[str, tuple[str, ...]]] = {
    "minrpc.client": (
        "CpuTimeMeter",
        "DeviceInfo",
        "DeviceStats",
        "Measurer",
        "Meter",
        "RemoteArray",
        "RemoteFunction",
        "RemoteModule",
        "Session",
        "SystemLibrary",
        "TimeEvaluator",
        "TimingResult",
    ),
    "minrpc.client.filling": ("random_values",),
    "minrpc.counters": (
        "QemuCounters",
        "counters_for",
    ),
    "minrpc.counters.constant_time": ("ConstantTime", "check_constant_time"),
    "minrpc.counters.profile": ("Profile", "profile_call"),
    "minrpc.counters.secret_inputs": ("secret_inputs",),
    "minrpc.firmware": (
        "Firmware",
        "build",
    ),
    "minrpc.library": (
        "Address",
        "CFunction",
        "CFunctions",
        "CLibrary",
        "FirmwareFunctions",
        "LoadedLibrary",
        "StructValue",
        "fake",
        "fakes",
        "library_of",
        "measure",
        "out",
        "read",
        "time_evaluator",
        "types",
        "unload",
        "variables",
        "write",
    ),
    "minrpc.pipeline": (
        "Device",
        "connect",
        "lacking",
        "open_device",
        "open_devices",
    ),
    "minrpc.running": (
        "RunningDevice",
        "start",
    ),
    "minrpc.targets": (
        "PLATFORMS",
        "Platform",
        "Target",
    ),
    "minrpc.timing": (
        "DeviceClock",
        "Measurement",
        "Sample",
    ),
}
_HOMES: Final = {name: home for home, names in _EXPORTS.items() for name in names}


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("minrpc.reports.document").package_version()
    home = _HOMES.get(name) or (name in __all__ and name.endswith("Error") and "minrpc.errors")
    if not home:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
