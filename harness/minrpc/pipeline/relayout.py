# SPDX-License-Identifier: Apache-2.0
"""Changes the layout of a device's memory, in its session or by a restart; the `Device` stays the same."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypedDict

from minrpc.client import Session
from minrpc.client.info import DeviceInfo, MemoryRegion
from minrpc.client.layout import STAGE, How, Layout, LayoutRequest, Where, home, places_of, told_memory
from minrpc.errors import ConfigurationError, DialectError
from minrpc.firmware import build
from minrpc.firmware.cache import cache_home
from minrpc.pipeline.connecting import session_on
from minrpc.running import RunningDevice, start
from minrpc.targets import Target, Timing
from minrpc.targets.table import Port
from minrpc.targets.target import Check, Link, require

log = logging.getLogger("minrpc.layout")

# The build options for sizes, by port.
_STACK: Final[Mapping[Port, str]] = {
    "zephyr": "-DCONFIG_MINRPC_STACK_SIZE={}",
    "baremetal": "-DMINRPC_STACK_BYTES={}",
}
_ARENA: Final[Mapping[Port, str]] = {"zephyr": "-DCONFIG_MINRPC_ARENA_SIZE={}"}
_LIMIT: Final = 1 << 32


class RestartFields(TypedDict, total=False):
    """The fields of a target that a restart can change; each as in `TargetFields`."""

    sources: Sequence[str | Path]
    include_dirs: Sequence[str | Path]
    defines: Sequence[str] | Mapping[str, object]
    libraries: Sequence[str | Path]
    cmake_options: Sequence[str]
    link: Link
    timing: Timing | None
    icount_shift: int | None
    icount_sleep: bool
    counters: bool
    check: Check | None


class Relayout:
    """Changes the layout of one device; see `Device.relayout`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._opened = _running(session)
        self._target = self._opened.target
        # The firmware's default size of memory for arrays, if the device now has more.
        self._own_size = 0

    def __call__(
        self, arena: Where | None, code: Where | None, stack: int | None, given: RestartFields
    ) -> Layout:
        target = self._asked(stack, require(given, RestartFields, "relayout takes no"))
        with self._session.rpc.lock:
            if target != self._target:
                layout = self._restart(target, arena, code, "it is built or started with other options")
            else:
                info = self._session.info()
                size = _bytes_of(arena)
                if size > home(info, self._session.name).size:
                    layout = self._restart(target, arena, code, _too_large(size))
                elif self._own_size and arena is None:
                    layout = self._restart(target, arena, code, "it had more memory than its own")
                else:
                    layout = self._in_session(places_of(info, self._session.name, arena, code))
            if arena is None and not code:
                self._session.rpc.layout = None
        if layout.how != "session":
            log.warning("%s: %s; arrays, functions and libraries are gone", self._session.name, layout)
        else:
            log.info("%s: %s", self._session.name, layout)
        return layout

    def _asked(self, stack: int | None, given: RestartFields) -> Target:
        """The target that the device was opened with, changed by `stack` and `given`."""
        target = self._opened.target.changed(**given)
        if stack is None:
            return target
        if not isinstance(stack, int) or stack < 1:
            raise ValueError(f"a stack of {stack!r} bytes: the size must be above 0, a whole number")
        option = _STACK.get(target.platform.port)
        if option is None:
            raise ConfigurationError(
                f"the functions of {target.name} run on a stack of this machine",
                stage=STAGE,
                next_step="ulimit -s, before the device is opened",
            )
        return target.changed(cmake_options=[option.format(stack)])

    def _in_session(self, places: LayoutRequest) -> Layout:
        """Lays out the memory in the running session, else in a new session."""
        rpc = self._session.rpc
        rpc.ready()
        how: How = "session"
        why = ""
        if not rpc.lay_out(places):
            how, why = "new session", "live arrays, functions or code were in the way"
        before, rpc.layout = rpc.layout, places
        if how != "session":
            try:
                rpc.restart()
            except BaseException:
                rpc.layout = before
                raise
        return self._layout(how, why)

    def _layout(self, how: How, why: str) -> Layout:
        regions: dict[str, MemoryRegion] = {region.kind: region for region in self._session.info().regions}
        if "arena" not in regions:
            raise DialectError(f"{self._session.name} reports no memory for arrays", stage=STAGE)
        return Layout(regions["arena"], regions.get("code"), how, why)

    def _restart(self, target: Target, arena: Where | None, code: Where | None, why: str) -> Layout:
        """Starts another device, and ends the present device only after the other answers and has the
        memory."""
        _require_startable(self._opened)
        running = self._started(target)
        try:
            info = _ask(running)
            size, own_size = _bytes_of(arena), home(info, running.name).size
            if size > own_size:
                larger = _with_arena(target, size, info)
                running.stop()
                running = self._started(larger)
                why = _too_large(size)
                info = _ask(running)
                _require_memory(info, running.name, size)
            places = places_of(info, running.name, arena, code)
            with session_on(Session, running) as trial:
                trial.connect()
                if not trial.rpc.lay_out(places):
                    raise ConfigurationError(
                        "functions of the firmware keep memory there", stage=STAGE, details=told_memory(info)
                    )
        except BaseException:
            running.stop()
            raise
        self._session.rpc.layout = places
        self._target = target
        self._own_size = own_size if size > own_size else 0
        self._session.move_to(running.transport, running, running.stop)
        self._session.connect()
        return self._layout("restart", why)

    def _started(self, target: Target) -> RunningDevice:
        """Starts the target; the previous firmware if only the start differs."""
        known, total = self._opened.firmware, self._session.rpc.link.total
        if known is not None and target.platform == known.target.platform:
            return start(replace(known, target=target), total=total)
        if known is not None and not known.build_dir.is_relative_to(cache_home()):
            raise ConfigurationError(
                f"{known.elf} was built elsewhere: its options can't be changed from here",
                stage=STAGE,
                next_step="build it again, and open a device with the new firmware",
            )
        return start(build(target), total=total)


def _running(session: Session) -> RunningDevice:
    owner = session.owner
    if isinstance(owner, RunningDevice):
        return owner
    raise ConfigurationError(
        f"the target of {session.name} is not known, so it can't be started again",
        stage=STAGE,
        next_step="open it by open_device, or by connect(start(...))",
    )


def _require_startable(running: RunningDevice) -> None:
    if running.process is None:
        raise ConfigurationError(
            f"{running.name} is a board: options of its build can't change from here",
            stage=STAGE,
            next_step="build the firmware with them, flash it, and open the device again",
        )


def _ask(running: RunningDevice) -> DeviceInfo:
    with session_on(Session, running) as session:
        return session.info()


def _bytes_of(arena: Where | None) -> int:
    """The requested size of the arena in bytes, if it stays at its usual place."""
    return arena if isinstance(arena, int) else 0


def _with_arena(target: Target, size: int, info: DeviceInfo) -> Target:
    """The target, built or started with `size` bytes for arrays. Raises ConfigurationError if neither is
    possible."""
    platform = target.platform
    option = _ARENA.get(platform.port)
    if option is not None:
        return target.changed(cmake_options=[option.format(size)])
    if platform.starts == "process" and platform.memory_at is not None and target.direct and size < _LIMIT:
        return replace(target, platform=replace(platform, memory_size=size))
    raise _no_more(target.name, size, info)


def _require_memory(info: DeviceInfo, name: str, size: int) -> None:
    """Raise ConfigurationError if the arena is too small: a devicetree can override its size in Kconfig."""
    if home(info, name).size < size:
        raise _no_more(name, size, info)


def _no_more(name: str, size: int, info: DeviceInfo) -> ConfigurationError:
    return ConfigurationError(
        f"{name} can't have {size:,} bytes for arrays",
        stage=STAGE,
        details=told_memory(info),
        next_step="ask for less",
    )


def _too_large(size: int) -> str:
    return f"{size:,} bytes for arrays are more than the firmware had"
