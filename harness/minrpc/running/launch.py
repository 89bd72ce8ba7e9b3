# SPDX-License-Identifier: Apache-2.0
"""Starts a firmware, or attaches to one that runs already."""

from __future__ import annotations

from typing import Literal

from minrpc.deadline import Deadline, WallClock
from minrpc.errors import ConfigurationError
from minrpc.firmware.firmware import Firmware
from minrpc.running.device import RunningDevice, Timing
from minrpc.running.local import start_process
from minrpc.running.qemu import Instrument, start_qemu
from minrpc.targets.qemu_command import Icount
from minrpc.targets.table import Platform
from minrpc.transport import SerialTransport, find_port

Link = Literal["pty", "socket"]


def launch(
    firmware: Firmware,
    *,
    link: Link = "pty",
    timing: Timing | None = None,
    icount_shift: int | None = None,
    icount_sleep: bool = True,
    instrument: Instrument | None = None,
    total: Deadline | None = None,
) -> RunningDevice:
    """Start `firmware`; its link is open before its first instruction, so nothing that it says is lost.

    link: what carries RPC, a pseudo-terminal or a Unix socket.
    timing: "exact" counts instructions (QEMU only, and the default there), "wall" follows the host's clock.
    icount_shift: overrides the platform's own; one instruction takes 2 ** icount_shift ns.
    icount_sleep: False lets virtual time jump while the guest idles, which may stall the link meanwhile.
    instrument: what QEMU loads to look into the guest, such as `minrpc.counters.QemuCounters`.
    total: a deadline above the start's own.

    Raises QemuMissingError, EmulatorExitedError, ConfigurationError, DeadlineError.
    """
    platform = firmware.platform
    if platform.starts == "qemu":
        shift = _first(icount_shift, platform.icount_shift, firmware.icount_shift)
        icount = _icount(platform.name, timing, shift, icount_sleep)
        return start_qemu(firmware, link, icount, instrument, total)
    if instrument is not None:
        step = "name a platform that runs under QEMU: see `minrpc platforms`"
        raise ConfigurationError(
            f"{platform.name} does not run under QEMU: nothing counts in it", next_step=step
        )
    if timing == "exact":
        raise ConfigurationError(f"{platform.name} does not run under QEMU: its times can't be exact")
    if platform.starts == "process":
        return start_process(firmware, link)
    raise ConfigurationError(
        f"{platform.name} is a board and can't be started from here",
        next_step="flash it, connect it, and name its port with --serial-port",
    )


def attach_serial(path: str, baud: int = 115200, platform: Platform | None = None) -> RunningDevice:
    """A board, or `minrpc serve`, on a serial port or terminal, whose firmware runs already.

    path: of the port, or what `find_port` knows it by.
    platform: its entry in the table, where it has one.

    Raises PortBusyError (by whom), PortGoneError, AmbiguousBoardError, and ConfigurationError for a baud rate
    that the port can't do.
    """
    path = find_port(path)
    transport = SerialTransport(path, baud)
    return RunningDevice(name=path, transport=transport, clock=WallClock(), timing="board", platform=platform)


def _icount(name: str, timing: Timing | None, shift: int | None, sleep: bool) -> Icount | None:
    if timing == "board":
        raise ConfigurationError(f"{name} runs under QEMU: its timing is exact or wall")
    if timing == "exact" and shift is None:
        step = f"put icount_shift = N under [platforms.{name}] in minrpc.toml, or use --timing wall"
        raise ConfigurationError(f"nothing says how fast {name} runs by instruction count", next_step=step)
    return None if timing == "wall" or shift is None else Icount(shift, sleep)


def _first(*shifts: int | None) -> int | None:
    return next((shift for shift in shifts if shift is not None), None)
