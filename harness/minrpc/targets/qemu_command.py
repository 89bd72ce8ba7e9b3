# SPDX-License-Identifier: Apache-2.0
"""QEMU's command line: taken from Zephyr's build, and connected to the harness. No I/O here."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# Options that the harness replaces with its own wiring, or that end QEMU when the guest resets. Each
# takes one argument, except those in _FLAGS.
_REPLACED: Final = frozenset(
    {"-serial", "-chardev", "-mon", "-monitor", "-qmp", "-icount", "-pidfile", "-display", "-gdb", "-action"}
)
_FLAGS: Final = frozenset({"-nographic", "-no-reboot", "-no-shutdown", "-S", "-s", "-daemonize"})

# QEMU's log, by the end of its program's name: a PC has no devices without function. On RISC-V a trap
# takes the faults that "guest_errors" tells, too.
_STRAYS: Final = {
    "-arm": "unimp,guest_errors",
    "-aarch64": "unimp,guest_errors",
    "-riscv32": "unimp",
    "-riscv64": "unimp",
}

# The id that Zephyr gives its console's chardev; other options of its command line refer to it.
CONSOLE_ID: Final = "con"
LINK_ID: Final = "link"
MONITOR_ID: Final = "minrpc-monitor"


@dataclass(frozen=True, slots=True)
class Icount:
    """QEMU's instruction counting: one instruction takes 2 ** shift ns of virtual time.

    sleep: while the guest idles, virtual time passes at host speed (True) or jumps to the next timer (False).
    """

    shift: int
    sleep: bool = True

    def argument(self) -> str:
        """The value of QEMU's `-icount`."""
        return f"shift={self.shift},align=off,sleep={'on' if self.sleep else 'off'}"


@dataclass(frozen=True, slots=True)
class Wiring:
    """The connections of the machine's ports.

    link, console: backends as `-chardev` takes them, without an id; "null" for none.
    link_uart: None if QEMU's standard input and output carry RPC, by semihosting.
    monitor_fd: descriptor of the connected socket for the monitor.
    """

    link: str
    link_uart: int | None
    console: str
    console_uart: int | None
    monitor_fd: int


def find_qemu(commands: str) -> list[str]:
    """QEMU's arguments, the program first, in the shell `commands` of a run target; [] when there are none.

    commands: as `ninja -t commands run_qemu` prints them: lines of "cd DIR && COMMAND ...", QEMU's the last.
    """
    for line in reversed(commands.splitlines()):
        words = shlex.split(line)
        for index, word in enumerate(words):
            if word.rpartition("/")[2].startswith("qemu-system-"):
                return _until_separator(words[index:])
    return []


def _until_separator(words: Sequence[str]) -> list[str]:
    ends = [index for index, word in enumerate(words) if word in ("&&", "||", ";", "|")]
    return list(words[: ends[0]] if ends else words)


def processors_of(argv: Sequence[str]) -> int:
    """The number of processors in a command line: from `-smp 2` or `-smp cpus=2,...`; else 1."""
    at = [index for index, word in enumerate(argv[:-1]) if word in ("-smp", "--smp")]
    number = argv[at[-1] + 1].partition(",")[0].removeprefix("cpus=") if at else "1"
    return int(number) if number.isdecimal() else 1


def log_of_strays(argv: Sequence[str]) -> list[str]:
    """The options that have QEMU tell accesses to addresses at which its machine has nothing.

    None for machines that always have a fault there, and if `argv` has a log of its own.
    """
    log = next((log for end, log in _STRAYS.items() if argv[0].endswith(end)), "")
    return ["-d", log] if log and "-d" not in argv else []


def without_wired(argv: Sequence[str]) -> list[str]:
    """`argv` without the options that `wire` adds."""
    kept: list[str] = []
    words = iter(argv)
    for word in words:
        option = "-" + word.lstrip("-") if word.startswith("--") else word
        if option in _REPLACED:
            next(words, None)
        elif option not in _FLAGS:
            kept.append(word)
    return kept


def wire(argv: Sequence[str], wiring: Wiring, icount: Icount | None) -> list[str]:
    """`argv` with the harness's serial ports, monitor and clock; QEMU then starts paused."""
    words = [*without_wired(argv), "-display", "none", "-S"]
    words += ["-chardev", f"socket,id={MONITOR_ID},fd={wiring.monitor_fd}"]
    words += ["-monitor", f"chardev:{MONITOR_ID}"]
    words += ["-chardev", _with_id(wiring.link, LINK_ID), "-chardev", _with_id(wiring.console, CONSOLE_ID)]
    if wiring.link_uart is None:
        words += ["-semihosting-config", "enable=on,target=native"]
    for uart in range(max(wiring.link_uart or 0, wiring.console_uart or 0) + 1):
        words += ["-serial", _serial(uart, wiring)]
    if icount is not None:
        words += ["-icount", icount.argument()]
    return words


def _serial(uart: int, wiring: Wiring) -> str:
    if uart == wiring.link_uart:
        return f"chardev:{LINK_ID}"
    return f"chardev:{CONSOLE_ID}" if uart == wiring.console_uart else "null"


def _with_id(backend: str, name: str) -> str:
    kind, comma, rest = backend.partition(",")
    return f"{kind},id={name}{comma}{rest}"
