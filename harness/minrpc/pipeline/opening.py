# SPDX-License-Identifier: Apache-2.0
"""Opens a device with a session from a platform, target, firmware or running device; also several at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Unpack

from minrpc.firmware import Firmware
from minrpc.host.deadline import Deadline
from minrpc.pipeline.connecting import session_on
from minrpc.pipeline.device import Device
from minrpc.running import RunningDevice, start
from minrpc.targets import SessionFields, StartFields, Target, TargetFields
from minrpc.targets.target import require
from minrpc.transport import Transport

DEFAULT_PLATFORM: Final = "posix"

Source = str | Target | Firmware | RunningDevice
"""Types that a device can be opened from: a platform's name, or any value of the pipeline."""


def open_device(
    what: Source | None = None, /, *, platforms_file: str | Path | None = None, **given: Unpack[TargetFields]
) -> Device:
    """A device with a session, from any stage of the pipeline.

    what: a name of `minrpc platforms`, a target, a firmware, or a running device. By default "posix", or a
        board if there is a `serial_port`.
    platforms_file: a TOML file in place of minrpc.toml.
    given: fields of a target, see `TargetFields`: sources, cmake_options, serial_port, baud, limits, ...
        A firmware takes only fields for its start, a running device only fields for the session.

    Closing the device stops only the processes that were started for it.

    Raises a HarnessError that names the failed stage and the next step.
    """
    if isinstance(what, RunningDevice):
        return _ready(connect(what, **require(given, SessionFields, "a running device can't be given")))
    if isinstance(what, Firmware):
        what = what.changed(**require(given, StartFields, "a built firmware can't be given"))
        target = what.target
    else:
        what = target = _target(what, platforms_file, given)
    total = None if target.total_timeout_s is None else Deadline("total", target.total_timeout_s)
    running = start(what, total=total)
    return _ready(connect(running, total=total, from_boot=True, on_close=running.stop))


@contextmanager
def open_devices(
    several: Sequence[Source], /, *, platforms_file: str | Path | None = None, **given: Unpack[TargetFields]
) -> Iterator[list[Device]]:
    """Several devices, each as `open_device` opens it, all at the same time; closed at the end of the block.

    with open_devices(["posix", "bare_mps2_an385"]) as (posix, arm): ...

    Raises the first failing device's error, after closing the others.
    """
    with ExitStack() as stack:
        with ThreadPoolExecutor(max(1, len(several))) as pool:
            opening = [
                pool.submit(open_device, what, platforms_file=platforms_file, **given) for what in several
            ]
        for future in opening:
            if future.exception() is None:
                stack.enter_context(future.result())
        yield [future.result() for future in opening]


def connect(
    running: RunningDevice,
    *,
    total: Deadline | None = None,
    transport: Transport | None = None,
    from_boot: bool = False,
    on_close: Callable[[], None] | None = None,
    **given: Unpack[SessionFields],
) -> Device:
    """The client of a running device; its session starts with the first request.

    Closing it ends its session; `running` and its link stay open.

    total: a deadline for all waits together.
    transport: the link to use instead of `running`'s own; it is closed with the device.
    from_boot: `running` was started for this device, so the device's console begins at the boot.
    on_close: called last by `Device.close`.
    given: replaces values of the target of `running`.
    """
    if not isinstance(running, RunningDevice):
        raise TypeError(f"a client is connected to a running device, not to {running!r}")
    return session_on(
        Device,
        running,
        total=total,
        transport=transport,
        from_boot=from_boot,
        on_close=on_close,
        **given,
    )


def _target(what: str | Target | None, platforms_file: str | Path | None, given: TargetFields) -> Target:
    if isinstance(what, Target):
        return what.changed(**given)
    if not isinstance(what, str | None):
        raise TypeError(f"a device is opened by a platform's name, a target or a firmware, not by {what!r}")
    port = given.get("serial_port")
    mapped = given.get("hardware_map")
    name = DEFAULT_PLATFORM if what is None and port is None and mapped is None else what
    return Target.named(name, platforms_file=platforms_file, **given)


def _ready(device: Device) -> Device:
    try:
        device.connect()
    except BaseException:
        device.close()
        raise
    return device
