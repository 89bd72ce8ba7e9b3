# SPDX-License-Identifier: Apache-2.0
"""Starts a firmware, or attaches to a firmware that already runs."""

from __future__ import annotations

from dataclasses import replace

from minrpc.counters import QemuCounters, counters_for
from minrpc.cycles import core_or_reason
from minrpc.errors import ConfigurationError, MissingError
from minrpc.firmware import Firmware, build
from minrpc.firmware.zephyr_boards import resolved
from minrpc.host.deadline import Deadline, WallClock
from minrpc.host.system import WHAT_HELPS, why_nothing_starts
from minrpc.replay import MemoryCheck, check_for
from minrpc.running.board import open_port
from minrpc.running.flashing import put_firmware
from minrpc.running.lease import lease
from minrpc.running.local import start_process
from minrpc.running.qemu import start_qemu
from minrpc.running.running_device import RunningDevice
from minrpc.running.verilated import start_rtl
from minrpc.targets import Icount, Target
from minrpc.targets.qemu_command import processors_of
from minrpc.targets.target import elf_without_port


def start(
    what: Target | Firmware, *, counters: QemuCounters | None = None, total: Deadline | None = None
) -> RunningDevice:
    """Starts a firmware, or builds and starts a target, or attaches to the target's serial port.

    The link is open before the first instruction, so no output is lost. Leaving the block of the
    running device, or `stop`, ends all that was started.

    counters: counts the guest in QEMU; by default as the target says. Closed with the device.
    total: a second deadline for the start.

    Raises the errors of `build`, QemuMissingError, EmulatorExitedError, ConfigurationError, DeadlineError;
    for a board PortBusyError (by whom), PortGoneError, AmbiguousBoardError, FlashError.
    """
    if not isinstance(what, Target | Firmware):
        raise TypeError(f"a target or a firmware is started, not {what!r}")
    target = what.target if isinstance(what, Firmware) else what
    if why_nothing_starts() and not target.attached:
        raise MissingError(why_nothing_starts(), stage="start", next_step=WHAT_HELPS)
    if isinstance(what, Target):
        if what.attached:
            return _attach(what)
        if what.elf is not None:
            raise elf_without_port()
        # The files of a Zephyr board, or of a finished build, say how it starts.
        finished = what.build_dir is not None
        what = build(what) if finished else replace(what, platform=resolved(what.platform))
        target = what.target if isinstance(what, Firmware) else what
    _check_startable(target, counters)
    return _launch(what if isinstance(what, Firmware) else build(what), counters, total)


def _check_startable(target: Target, counters: QemuCounters | None) -> None:
    """Raises ConfigurationError if a firmware of the target can't be started here; needs no build."""
    platform = target.platform
    if target.wave is not None and platform.starts != "rtl":
        step = "name an RTL platform: rtl_ibex"
        raise ConfigurationError(f"{platform.name} is not RTL: it has no waveform", next_step=step)
    core_or_reason(platform)  # A wrong name is refused even if nothing is counted.
    if platform.starts == "qemu":
        _check_link(target)
        return
    if target.check is not None:
        raise _unchecked(platform.name)
    if counters is not None or target.counters:
        raise ConfigurationError(
            f"{platform.name} does not run under QEMU: nothing counts in it",
            next_step="name a platform that runs under QEMU: see `minrpc platforms`",
        )
    if platform.starts == "rtl":
        if target.timing not in (None, "exact"):
            raise ConfigurationError(f"{platform.name} counts the core's cycles: its timing is exact")
        return
    if target.timing == "exact":
        raise ConfigurationError(f"{platform.name} does not run under QEMU: its times can't be exact")
    if platform.starts != "process":
        raise ConfigurationError(
            f"{platform.name} is a board and can't be started from here",
            next_step="flash it, connect it, and name its port with --serial-port",
        )


def _check_link(target: Target) -> None:
    """Raises ConfigurationError if QEMU has nothing at the other end of the firmware's link."""
    platform = target.platform
    if platform.firmware_link == "rtt":
        step = "attach to it through a debug probe's server: --serial-port socket://HOST:PORT"
        raise ConfigurationError(f"{platform.name} speaks RTT, and QEMU has no debug probe", next_step=step)
    if platform.firmware_link == "semihosting" and target.link != "pty":
        raise ConfigurationError(
            f"{platform.name}: semihosting goes over a pseudo-terminal",
            next_step='leave out link = "socket"',
        )


def _launch(firmware: Firmware, counters: QemuCounters | None, total: Deadline | None) -> RunningDevice:
    target = firmware.target
    starts = target.platform.starts
    if starts == "qemu":
        if counters is None and target.counters:
            counters = all_counters(firmware)
        return start_qemu(firmware, _icount(firmware), counters, _check(firmware), total)
    return start_rtl(firmware) if starts == "rtl" else start_process(firmware)


def _check(firmware: Firmware) -> MemoryCheck | None:
    return None if firmware.target.check is None else check_for(firmware.elf)


def _unchecked(name: str) -> ConfigurationError:
    """The error for calls that can't be recorded."""
    return ConfigurationError(
        f'{name} does not run under QEMU: nothing records its accesses for check="memory"',
        next_step="check the function on a platform that runs under QEMU: see `minrpc platforms`",
    )


def all_counters(firmware: Firmware) -> QemuCounters:
    """All that can be counted of the firmware under QEMU, with the cycles of its platform's core.

    Raises ConfigurationError for an unknown core.
    """
    core, reason = core_or_reason(firmware.target.platform)
    return counters_for(firmware.elf, flow=True, memory=True, core=core, no_cycles=reason)


def _attach(target: Target) -> RunningDevice:
    if target.check is not None:
        raise _unchecked(target.name)
    if target.wave is not None or target.counters:
        lacks = "it has no waveform" if target.wave is not None else "nothing counts in it"
        step = "name a platform that is started here: see `minrpc platforms`"
        raise ConfigurationError(f"{target.name} is attached: {lacks}", next_step=step)
    held = lease(target)
    try:
        flashes = target.flash != "never"
        firmware = build(held.target) if flashes or target.build_dir is not None else None
        if firmware is not None:
            if flashes:
                put_firmware(firmware, held.target)
            held.target = replace(held.target, platform=firmware.platform)
        link = open_port(held.target)
    except BaseException:
        held.release()
        raise
    return RunningDevice(
        name=link.name,
        target=held.target,
        transport=link,
        clock=WallClock(),
        timing="board",
        firmware=firmware,
        lease=held,
    )


def _icount(firmware: Firmware) -> Icount | None:
    target, name = firmware.target, firmware.target.name
    shift = target.platform.icount_shift
    shift = firmware.icount_shift if shift is None else shift
    if target.timing == "board":
        raise ConfigurationError(f"{name} runs under QEMU: its timing is exact or wall")
    if target.timing == "exact" and shift is None:
        step = f"put icount_shift = N under [platforms.{name}] in minrpc.toml, or use --timing wall"
        raise ConfigurationError(f"nothing defines how fast {name} runs by instruction count", next_step=step)
    several = processors_of(firmware.qemu_argv) > 1
    if target.timing == "exact" and several:
        step = "build it for one processor, CONFIG_SMP=n and CONFIG_MP_MAX_NUM_CPUS=1, or use --timing wall"
        message = f"{name} runs on several processors: QEMU counts the instructions of all together"
        raise ConfigurationError(message, next_step=step)
    wall = target.timing == "wall" or several
    return None if wall or shift is None else Icount(shift, target.icount_sleep)
