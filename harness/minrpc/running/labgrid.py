# SPDX-License-Identifier: Apache-2.0
"""A board at a place of labgrid's: acquired, powered, and released by labgrid's own client.

The coordinator is named by LG_COORDINATOR, as for all of labgrid's programs.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from minrpc.errors import AmbiguousBoardError, BoardBusyError, ConfigurationError, HarnessError, MissingError
from minrpc.host.files import write_whole
from minrpc.host.owned_lock import Holder, OwnedLock, file_of, take
from minrpc.host.process import run_command

LABGRID: Final = "labgrid:"
"""The scheme of such a link: "labgrid:PLACE", or "labgrid:PLACE/NAME" for one of several serial ports."""

_COMMAND_S: Final = 60.0
_OUTPUT_LINES: Final = 6
_SCHEMES: Final = {"rfc2217": "rfc2217", "raw": "socket"}


@dataclass(frozen=True, slots=True)
class Place:
    """A place that this process may use.

    url: its serial port, as `open_url` takes it.
    power_command: switches it off and on; "" if it has no power resource.
    ours: True if it was acquired here, or by a run that was killed, so that `release` gives it back.
    lock: shows other runs of this machine that the run lives which acquired the place.
    """

    name: str
    url: str = ""
    power_command: str = ""
    ours: bool = False
    lock: OwnedLock | None = None

    def release(self) -> None:
        """Give the place back, unless the user had acquired it. Raises HarnessError."""
        try:
            if self.ours:
                _expect_client(self.name, "release")
                _note(self.name).unlink(missing_ok=True)
        finally:
            if self.lock is not None:
                self.lock.release()


def acquire(link: str) -> Place:
    """Acquire the place of "labgrid:PLACE" and switch it on.

    A place that the user has acquired is used, too. Raises BoardBusyError with the present user, MissingError
    without labgrid, AmbiguousBoardError for several serial ports, ConfigurationError for none, HarnessError
    for a resource that is broken or not there.
    """
    name, _, port = link.removeprefix(LABGRID).partition("/")
    if not name:
        raise ConfigurationError(f"{link} names no place", next_step="write labgrid:PLACE")
    place = Place(name, lock=take(f"{LABGRID}{name}"))
    try:
        place = replace(place, ours=_acquired(name))
        if place.ours:
            write_whole(_note(name), _last_change(name))
        elif place.lock is not None:
            place = replace(place, ours=_note_of(name) == _last_change(name))
        return replace(place, url=_serial_port(link, name, port), power_command=_switched_on(name))
    except BaseException:
        with suppress(HarnessError):
            place.release()
        raise


def _acquired(name: str) -> bool:
    """False if this user of labgrid had acquired it before."""
    status, output = _client(name, "acquire")
    if status == 0:
        return True
    if "You have already acquired" in output and " on " not in output.partition("already acquired")[2]:
        return False
    if (broken := re.search(r"\((\S+)\) already acquired by place '<broken>'", output)) is not None:
        step = "mend what labgrid-exporter's log says of it, then start labgrid-exporter again"
        raise HarnessError(
            f"labgrid: {broken[1]} of the place {name} is broken", stage="find board", next_step=step
        )
    if "lready acquired" in output:
        holder = re.search(r"already acquired (?:by|place \S+ on) (\S+)", output)
        raise BoardBusyError(
            f"the place {name} is in use",
            holders=[f"{name}: acquired by {holder[1].rstrip('.,')}" if holder else output.strip()],
        )
    raise _failed(name, "acquire", status, output)


def _note(name: str) -> Path:
    """The file with the place's last change, which is its acquisition by a run of this machine.

    A run holds the place's lock: if a place is found with such a note and without a lock, its run was killed.
    """
    return file_of(f"{LABGRID}{name} {Holder.this_process().user}", "acquired")


def _note_of(name: str) -> str:
    try:
        return _note(name).read_text()
    except FileNotFoundError:
        return ""


def _last_change(name: str) -> str:
    """The time of the place's last change, as labgrid writes it."""
    output = _expect_client(name, "show")
    match = re.search(r"^\s*changed: (.+)$", output, re.MULTILINE)
    if match is None:
        raise HarnessError(
            f"labgrid shows no time of change for the place {name}", details=output.splitlines()
        )
    return match[1]


def _serial_port(link: str, name: str, wanted: str) -> str:
    import yaml

    output = _expect_client(name, "env")
    document: dict[str, Any] = yaml.safe_load(output[output.index("targets:") :])
    resources = document["targets"][name]["resources"]
    ports = {
        str(item["NetworkSerialPort"].get("name", "NetworkSerialPort")): item["NetworkSerialPort"]
        for item in resources
        if "NetworkSerialPort" in item
    }
    matching = {key: port for key, port in ports.items() if wanted in ("", key)}
    if not matching:
        there = ", ".join(kind for item in resources for kind in item) or "no resource"
        step = f"name one of {', '.join(ports)}" if ports else f"it has {there}"
        raise ConfigurationError(f"{link}: the place has no such serial port", next_step=step)
    if len(matching) > 1:
        raise AmbiguousBoardError(
            f"the place {name} has {len(matching)} serial ports",
            candidates=[f"labgrid:{name}/{key}" for key in matching],
        )
    (port,) = matching.values()
    scheme = _SCHEMES.get(port.get("protocol", "rfc2217"), "rfc2217")
    return f"{scheme}://{port['host']}:{port['port']}"


def _switched_on(name: str) -> str:
    """The command that switches it off and on; "" without a power resource."""
    status, output = _client(name, "power", "on")
    if status != 0 and "no compatible resource" in output:
        return ""
    if status != 0:
        raise _failed(name, "power on", status, output)
    return shlex.join(_words(name, "power", "cycle"))


def _words(name: str, *action: str) -> list[str]:
    beside = Path(sys.executable).with_name("labgrid-client")
    program = str(beside) if beside.is_file() else shutil.which("labgrid-client")
    if program is None:
        step = "install it: `pip install minrpc-harness[labgrid]`"
        raise MissingError("labgrid-client is not installed", stage="find board", next_step=step)
    return [program, "-p", name, *action]


def _client(name: str, *action: str) -> tuple[int | None, str]:
    return run_command(_words(name, *action), _COMMAND_S)


def _expect_client(name: str, *action: str) -> str:
    status, output = _client(name, *action)
    if status != 0:
        raise _failed(name, " ".join(action), status, output)
    return output


def _failed(name: str, action: str, status: int | None, output: str) -> HarnessError:
    how = "did not end in time" if status is None else "failed"
    step = f"check that `labgrid-client -p {name} show` works: LG_COORDINATOR names the coordinator"
    if "no matching remote resource" in output:
        step = "start labgrid-exporter, which offers the resource, or correct the place's match"
    return HarnessError(
        f"labgrid: {action} of the place {name} {how}",
        stage="find board",
        details=output.strip().splitlines()[-_OUTPUT_LINES:],
        next_step=step,
    )
