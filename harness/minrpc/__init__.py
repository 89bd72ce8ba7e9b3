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
        CpuTimeMeter as CpuTimeMeter,
        DeviceInfo as DeviceInfo,
        DeviceStats as DeviceStats,
        Measurer as Measurer,
        Meter as Meter,
        RemoteArray as RemoteArray,
        RemoteFunction as RemoteFunction,
        RemoteModule as RemoteModule,
        Session as Session,
        SystemLibrary as SystemLibrary,
        TimeEvaluator as TimeEvaluator,
        TimingResult as TimingResult,
    )
    from minrpc.client.filling import (
        random_values as random_values,
    )
    from minrpc.counters import (
        QemuCounters as QemuCounters,
        counters_for as counters_for,
    )
    from minrpc.counters.constant_time import (
        ConstantTime as ConstantTime,
        check_constant_time as check_constant_time,
    )
    from minrpc.counters.profile import (
        Profile as Profile,
        profile_call as profile_call,
    )
    from minrpc.counters.secret_inputs import (
        secret_inputs as secret_inputs,
    )
    from minrpc.errors import *  # noqa: F403
    from minrpc.firmware import (
        Firmware as Firmware,
        build as build,
    )
    from minrpc.hardware import (
        interrupt as interrupt,
        interruptions as interruptions,
        registers as registers,
    )
    from minrpc.host.sandbox import (
        sandboxed as sandboxed,
    )
    from minrpc.library import (
        Address as Address,
        CFunction as CFunction,
        CFunctions as CFunctions,
        CLibrary as CLibrary,
        FirmwareFunctions as FirmwareFunctions,
        LoadedLibrary as LoadedLibrary,
        Placed as Placed,
        StructValue as StructValue,
        allow_kept_pointers as allow_kept_pointers,
        fake as fake,
        fakes as fakes,
        library_of as library_of,
        measure as measure,
        out as out,
        place as place,
        read as read,
        time_evaluator as time_evaluator,
        types as types,
        unload as unload,
        variables as variables,
        write as write,
    )
    from minrpc.pipeline import (
        Device as Device,
        connect as connect,
        lacking as lacking,
        open_device as open_device,
        open_devices as open_devices,
    )
    from minrpc.pipeline.debugging import (
        debug as debug,
    )
    from minrpc.publish.pages import (
        write_page as write_page,
    )
    from minrpc.publish.recording import (
        CallOptions as CallOptions,
        CallRecord as CallRecord,
        record_call as record_call,
        run_of_calls as run_of_calls,
    )
    from minrpc.running import (
        RunningDevice as RunningDevice,
        start as start,
    )
    from minrpc.targets import (
        PLATFORMS as PLATFORMS,
        Platform as Platform,
        Target as Target,
    )
    from minrpc.timing import (
        DeviceClock as DeviceClock,
        Measurement as Measurement,
        Sample as Sample,
    )

    __all__: list[str]
    __version__: str
    """Version of the installed package, such as "0.1.0"."""

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
    "minrpc.hardware": ("interrupt", "interruptions", "registers"),
    "minrpc.host.sandbox": ("sandboxed",),
    "minrpc.library": (
        "Address",
        "CFunction",
        "CFunctions",
        "CLibrary",
        "FirmwareFunctions",
        "LoadedLibrary",
        "Placed",
        "StructValue",
        "allow_kept_pointers",
        "fake",
        "fakes",
        "library_of",
        "measure",
        "out",
        "place",
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
    "minrpc.pipeline.debugging": ("debug",),
    "minrpc.publish.pages": ("write_page",),
    "minrpc.publish.recording": ("CallOptions", "CallRecord", "record_call", "run_of_calls"),
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
_ERRORS: Final = "minrpc.errors"


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("minrpc.reports.document").package_version()
    if name == "__all__":
        return [*_HOMES, *(error for error in vars(import_module(_ERRORS)) if error.endswith("Error"))]
    if name not in _HOMES and not name.endswith("Error"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, _ERRORS)), name)
