# SPDX-License-Identifier: Apache-2.0
"""Boards that several processes and users share: each has one user at a time, or is in quarantine."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from minrpc.errors import BoardBusyError, ConfigurationError, HarnessError, PortGoneError
from minrpc.host.deadline import Deadline
from minrpc.host.files import write_whole
from minrpc.host.owned_lock import Holder, OwnedLock, file_of, holder_of, take
from minrpc.host.process import run_command, shell_words
from minrpc.running.labgrid import LABGRID, Place, acquire
from minrpc.targets import Target
from minrpc.targets.hardware_map import HardwareBoard, boards_for, load_hardware_map
from minrpc.transport import port_of

# The kernel gives no notice when one of several locks is free.
_LOOK_AGAIN_S: Final = 0.2
_QUARANTINE_S: Final = 3600.0
_OUTPUT_LINES: Final = 6

Say = Callable[[str], None]


@dataclass
class Lease:
    """A board that this process uses alone until `release`.

    target: with the board's link, and the map's way to flash it.
    board: the map's entry; None for a link that the user named.
    """

    target: Target
    board: HardwareBoard | None = None
    _locks: list[OwnedLock] = field(default_factory=list)
    _place: Place | None = None

    def follow_port(self) -> bool:
        """Hold the device to which the link leads now: a port that was unplugged may be another device.

        False if another process has that device.
        """
        assert self.board is not None
        held, self._locks = self._locks, _locks_of(self.board.link)
        for lock in held:
            lock.release()
        return bool(self._locks)

    def release(self) -> None:
        """Run the board's last script, and free it. A second call does nothing."""
        locks, self._locks = self._locks, []
        try:
            if locks and self.board is not None:
                run_script(self.board, "post_script", self.board.post_script)
        finally:
            try:
                place, self._place = self._place, None
                if place is not None:
                    place.release()
            finally:
                for lock in locks:
                    lock.release()


def candidates(target: Target) -> tuple[HardwareBoard, ...]:
    """The boards of the target's hardware map that it can run on. Raises ConfigurationError."""
    assert target.hardware_map is not None
    boards = load_hardware_map(target.hardware_map)
    return boards_for(boards, target.name, target.platform.zephyr_board)


def lease(target: Target, say: Say = lambda text: None) -> Lease:
    """Take the target's link, or a free board of its hardware map; wait as long as the target says.

    say: shows the user of the board that it waits for.
    Raises BoardBusyError with all holders, HarnessError when all its boards are in quarantine.
    """
    boards = None if target.serial_port is not None else candidates(target)
    choices: Sequence[HardwareBoard | None] = [None]
    deadline = Deadline("wait for a board", target.wait_board_s)
    said = ""
    while True:
        if boards is not None:  # Another process may find out meanwhile that a board does not answer.
            choices = _out_of_quarantine(target, boards)
        elsewhere: list[str] = []
        for board in choices:
            try:
                taken = _take(target, board)
            except BoardBusyError as error:  # A user of another machine has it.
                elsewhere += error.holders
                continue
            if taken is not None:
                return taken
        holders = [*_holders(target, choices), *elsewhere]
        if deadline.expired():
            raise BoardBusyError(f"{_wanted(target, choices)} in use", holders=holders)
        text = "; ".join(holders)
        if text and text.partition(" for ")[0] != said:
            said = text.partition(" for ")[0]
            say(f"{target.name}: waits up to {target.wait_board_s:g} s: {text}")
        time.sleep(min(_LOOK_AGAIN_S, deadline.remaining()))


def leased_target(target: Target, board: HardwareBoard) -> Target:
    """`target` with the link of `board`."""
    baud = board.baud or target.platform.baud
    platform = replace(target.platform, baud=baud, starts="board")
    return replace(
        target,
        platform=platform,
        serial_port=board.link,
        board=board,
        flash_arguments=(*(() if platform.flash_command else board.flash_arguments), *target.flash_arguments),
    )


def key_of(link: str) -> str:
    """The name of a link's lock: for a serial port of this machine, the device to which its path leads.

    The lock of an absent port has the name of its path.
    """
    try:
        port = port_of(link)
    except PortGoneError:
        return link
    return os.path.realpath(port) if port.startswith("/") else port


def put_into_quarantine(board: HardwareBoard, reason: str) -> None:
    """Put the board into quarantine for an hour, or until it is released by hand; a board whose port is not
    there, until its port is back."""
    holder = Holder.this_process()
    note = {"reason": reason, "since": time.time(), "by": f"pid {holder.pid} of {holder.user}"}
    write_whole(_note(board), json.dumps(note))
    os.chmod(_note(board), 0o666)


def end_quarantine(board: HardwareBoard) -> bool:
    """End the board's quarantine; False if it was not in quarantine."""
    try:
        _note(board).unlink()
    except FileNotFoundError:
        return False
    return True


def quarantine_of(board: HardwareBoard) -> str:
    """The reason why the board is in quarantine; "" if it is not."""
    try:
        note = json.loads(_note(board).read_text())
        young = time.time() - float(note["since"]) < _QUARANTINE_S
        return f"{note['reason']} ({note['by']})" if young else ""
    except (FileNotFoundError, ValueError, KeyError):
        return ""


def run_script(board: HardwareBoard, name: str, script: str) -> None:
    """Run a script of the map within its time. Raises HarnessError with its output."""
    if not script:
        return
    argv = shell_words(script)
    try:
        status, output = run_command(argv, board.script_timeout(name))
    except OSError as error:
        raise ConfigurationError(f"{name} of {board.id}: {argv[0]} can't be run: {error.strerror}") from error
    if status != 0:
        limit = board.script_timeout(name)
        how = f"did not end within {limit:g} s" if status is None else f"failed with status {status}"
        details = output.strip().splitlines()[-_OUTPUT_LINES:]
        raise HarnessError(
            f"{name} of {board.id} {how}: {script}",
            stage=name,
            details=details,
            next_step="correct the script",
        )


def _take(target: Target, board: HardwareBoard | None) -> Lease | None:
    link = target.serial_port if board is None else board.link
    assert link is not None
    locks = _locks_of(link)
    if not locks:
        return None
    taken = Lease(target, None, locks)
    try:
        if board is not None:
            if quarantine_of(board):  # Its last user has just put it there.
                taken.release()
                return None
            taken.target = leased_target(target, board)
        if link.startswith(LABGRID):
            place = taken._place = acquire(link)
            taken.target = _at_place(taken.target, place)
        if board is not None:
            run_script(board, "pre_script", board.pre_script)
    except BaseException:
        taken.release()
        raise
    taken.board = board
    return taken


def _locks_of(link: str) -> list[OwnedLock]:
    """The locks of the link's name and of the device to which it leads; none if another process has one.

    The name keeps a board while it is unplugged.
    """
    locks: list[OwnedLock] = []
    for key in dict.fromkeys((link, key_of(link))):
        lock = take(key)
        if lock is None:
            for held in locks:
                held.release()
            return []
        locks.append(lock)
    return locks


def _at_place(target: Target, place: Place) -> Target:
    """`target` at a place's serial port, with its power; the rate is the user's, if one was given."""
    platform = target.platform
    command = platform.power_command or place.power_command
    return replace(target, serial_port=place.url, platform=replace(platform, power_command=command))


def _out_of_quarantine(target: Target, boards: Sequence[HardwareBoard]) -> list[HardwareBoard]:
    reasons = {board: quarantine_of(board) for board in boards}
    free = [board for board in boards if not reasons[board]]
    if not free:
        raise HarnessError(
            f"every {target.name} of the hardware map is in quarantine",
            stage="find board",
            details=[f"{board.name}: {reason}" for board, reason in reasons.items()],
            next_step="mend a board, then run `minrpc board release ID`",
        )
    return free


def _holders(target: Target, choices: Sequence[HardwareBoard | None]) -> list[str]:
    links = {
        board.name if board else target.serial_port: board.link if board else target.serial_port
        for board in choices
    }
    holders = {name: holder_of(key_of(link or "")) for name, link in links.items()}
    return [f"{name}: {holder}" for name, holder in holders.items() if holder]


def _wanted(target: Target, choices: Sequence[HardwareBoard | None]) -> str:
    if choices and choices[0] is not None:
        return f"all {len(choices)} boards of the kind {target.name} are"
    return f"{target.serial_port} is"


def _note(board: HardwareBoard) -> Path:
    return file_of(key_of(board.link), "quarantine")
