# SPDX-License-Identifier: Apache-2.0
"""From a platform's name to a device with a session."""

from __future__ import annotations

from pathlib import Path

from minrpc.client import Device, LinkOwner
from minrpc.deadline import Deadline
from minrpc.firmware import Firmware, build
from minrpc.options import Options
from minrpc.running import Link, RunningDevice, Timing, attach_serial, launch
from minrpc.selection import DEFAULT_BAUD, Target
from minrpc.targets import find_platform, load_platforms
from minrpc.transport import Transport


def open_device(
    platform: str = "posix",
    *,
    serial_port: str | None = None,
    baud: int | None = None,
    link: Link = "pty",
    timing: Timing | None = None,
    platforms_file: Path | None = None,
    session_timeout_s: float = 30.0,
    call_timeout_s: float = 60.0,
    total_timeout_s: float | None = None,
    resend: bool | None = None,
) -> Device:
    """Build a platform's firmware unless that is done, start it, and return it with a session established.

    platform: a name of `minrpc platforms`.
    serial_port: attach to firmware that runs already on this port instead, at `baud` bits per second; by
        default the platform's rate, or 115200.
    link: what carries RPC to an emulator, "pty" or "socket".
    timing: "exact" counts instructions (QEMU only, and the default there), "wall" follows the host's clock.
    platforms_file: a TOML file merged over the table of platforms.
    session_timeout_s, call_timeout_s: seconds until a session is there, and for each call, not counting those
        in which a busy host kept the emulator waiting.
    total_timeout_s: seconds of plain wall time for everything that is waited for; None for no limit.
    resend: send again what the link loses, each request still running once, where the device can do that;
        None for serial ports only, since links inside this machine lose nothing.

    Closing the device stops what was started. Raises a HarnessError that says which stage failed and what
    to do.
    """
    total = None if total_timeout_s is None else Deadline("total", total_timeout_s)
    running = _attach(platform, serial_port, baud, platforms_file) if serial_port else None
    if running is None:
        firmware = build(find_platform(load_platforms(platforms_file), platform))
        running = launch(firmware, link=link, timing=timing, total=total)
    try:
        device = device_on(
            running,
            total,
            session_timeout_s=session_timeout_s,
            call_timeout_s=call_timeout_s,
            resend=resend,
        )
        device.connect()
    except BaseException:
        running.stop()
        raise
    return device


def run_target(
    target: Target, firmware: Firmware | None, options: Options, total: Deadline | None
) -> RunningDevice:
    """Start `firmware` as `options` say; None for a target with a serial port, where something runs already.

    Raises what `launch` and `attach_serial` raise.
    """
    if firmware is not None:
        return launch(firmware, link=options.link, timing=options.timing, total=total)
    assert target.serial_port is not None
    return attach_serial(target.serial_port, target.baud, target.platform)


def device_on(
    running: RunningDevice,
    total: Deadline | None = None,
    *,
    transport: Transport | None = None,
    session_timeout_s: float = 30.0,
    call_timeout_s: float = 60.0,
    resend: bool | None = None,
) -> Device:
    """The client of what runs already, no session yet. Closing it stops what runs.

    transport: the link to use instead of `running`'s own; closing the device then closes this, and nothing
        stops.
    resend: as for `open_device`.
    """
    return Device(
        transport or running.transport,
        LinkOwner(running.clock, total, running.diagnose, lambda: running.console, running.timebase),
        session_timeout_s=session_timeout_s,
        call_timeout_s=call_timeout_s,
        resend=running.process is None if resend is None else resend,
        on_close=None if transport else running.stop,
    )


def _attach(name: str, port: str, baud: int | None, platforms_file: Path | None) -> RunningDevice:
    """A board need not be in the table."""
    platform = load_platforms(platforms_file).get(name)
    return attach_serial(port, baud or (platform.baud if platform else DEFAULT_BAUD), platform)
