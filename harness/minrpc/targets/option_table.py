# SPDX-License-Identifier: Apache-2.0
"""The options that say which devices are meant, as data: for the command line and for pytest.

It imports nothing, so that a pytest run which needs no device does not pay for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

SESSION_S: Final = 30.0
CALL_S: Final = 60.0
TOTAL_S: Final = 3600.0


def _limit(default: float, what: str) -> dict[str, Any]:
    text = f"limit for {what} (default {default:g})"
    return {"type": float, "default": default, "metavar": "SECONDS", "help": text}


DEVICE_OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "platform": {
            "action": "append",
            "default": [],
            "metavar": "NAME[,NAME...]",
            "help": "platforms to use, or all, bare, zephyr: those that can run here; by default all default "
            "ones that can run (see `minrpc platforms`)",
        },
        "serial-port": {"metavar": "PATH", "help": "use the device that already runs at this port"},
        "build-dir": {
            "type": Path,
            "metavar": "DIR",
            "help": "use the firmware of a finished `west build` as it is, and build nothing",
        },
        "elf": {
            "type": Path,
            "metavar": "FILE",
            "help": "with --serial-port: the program that runs there, which code is linked against",
        },
        "baud": {"type": int, "metavar": "N", "help": "bits per second of the serial port"},
        "platforms-file": {"type": Path, "metavar": "FILE", "help": "TOML file with more platforms"},
        "libraries": {
            "choices": ["linked", "loaded"],
            "help": "how the libraries of minrpc.toml get onto the device: in its firmware, or loaded when "
            "they are used (default: as each says)",
        },
        "timing": {
            "choices": ["exact", "wall", "board"],
            "help": "clock that times follow: exact (instructions counted, the default under QEMU), wall "
            "(the host's time), board",
        },
        "link": {
            "choices": ["pty", "socket"],
            "default": "pty",
            "help": "what carries RPC to a device started here",
        },
        "resend": {
            "choices": ["on", "off"],
            "help": "send again what the link loses, where the device can (default: on for a serial port)",
        },
        "direct": {
            "choices": ["on", "off"],
            "default": "on",
            "help": "arrays go through memory shared with the emulator where it can, not over the link",
        },
        "session-timeout": _limit(SESSION_S, "a session to come about, of time that the device could use"),
        "call-timeout": _limit(CALL_S, "each call, of time that the device could use"),
        "total-timeout": _limit(TOTAL_S, "all that is waited for, of plain time"),
    }
)
"""What `argparse.ArgumentParser.add_argument` takes, by the option's name without its dashes."""
