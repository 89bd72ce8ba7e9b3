# SPDX-License-Identifier: Apache-2.0
"""Accesses to addresses at which QEMU's machine has nothing, from QEMU's log.

QEMU reads 0 there and drops what is written, as if the code were right. Its log tells a device that it does
not implement by the name of a region and an offset, an undefined register of a device only in words, and both
without the place in the code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Final

from minrpc.errors import RegisterError

_UNIMPLEMENTED: Final = re.compile(
    r"(?P<region>.+): unimplemented device (?P<kind>read|write) +\(size (?P<size>\d+), "
    r"offset 0x(?P<offset>[0-9a-f]+)(?:, value 0x(?P<value>[0-9a-f]+))?\)"
)
# Debug and trace units of a Cortex-M, from 0xe0000000, behind the ITM: DWT, with its CYCCNT.
_UNASSIGNED: Final = re.compile(
    r"(?P<kind>Read|Write) of unassigned area of PPB: offset 0x(?P<offset>[0-9a-f]+)"
)
# Machines that ignore the failure of an access, such as QEMU's Stellaris, have no fault behind this line.
_INVALID: Final = re.compile(
    r"Invalid (?P<kind>read|write) at addr 0x(?P<address>[0-9A-F]+), size (?P<size>\d+), .*"
)
_PPB: Final = 0xE0000000
_ITM: Final = range(0x1000)
# NVIC: undefined registers of the core itself read as 0 on a real core, too.
_UNDEFINED: Final = re.compile(r"(?!NVIC).*(?:bad offset|write to RO offset|bad reg) ", re.IGNORECASE)
# A line of the monitor's "info mtree": "0000000040013000-0000000040013fff (prio -1000, i/o): cmsdk-ahb-gpio".
_REGION: Final = re.compile(r" *(?P<base>[0-9a-f]{16})-[0-9a-f]{16} \(prio -?\d+, i/o\): (?P<region>.+)")
_SHOWN: Final = 4
_VERBS: Final = {"read": "read", "write": "wrote"}
_MODEL: Final = (
    "minrpc.registers(lib, ADDRESS, TYPE) answers such accesses from Python on a core with an MPU, and names "
    "their lines of C"
)
_REPLACE: Final = (
    "QEMU's cores have no such unit (DWT, TPIU): replace the function that uses it (load's replace=)"
)


def strays(log: str, regions: Callable[[], str]) -> list[str]:
    """The accesses in a part of QEMU's log, a line for each kind of access, the most frequent first.

    regions: gives the monitor's answer to "info mtree"; asked once, and only if a line needs it.
    """
    bases = cache(lambda: _bases(regions()))
    told = [
        access + (f", {count:,} times or more" if count > 1 else "")
        for line, count in Counter(log.splitlines()).most_common()
        if (access := _told(line, bases))
    ]
    further = len(told) - _SHOWN
    return told if further <= 1 else [*told[:_SHOWN], f"and {further:,} other accesses"]


def stray_error(told: list[str], machine: str) -> RegisterError:
    """The error for accesses that a call has made. told: by `strays`. machine: its name for the message."""
    return RegisterError(
        f"{told[0]}: {machine} has nothing there, so a read gives 0 and a write is lost",
        details=told[1:],
        next_step=_REPLACE if any(at.startswith("0xe00") for at in _addresses(told[0])) else _MODEL,
    )


def is_told(line: str, message: str) -> bool:
    """True if the message of a crash names an address in a line of `strays`."""
    return any(re.search(rf"\b{address}\b", message) for address in _addresses(line))


def _addresses(line: str) -> list[str]:
    """The addresses in a line of `strays`; not the value of a write, which stands in front of "to"."""
    return re.findall(r"\b0x[0-9a-f]+\b(?! to )", line)


def _told(line: str, bases: Callable[[], dict[str, list[int]]]) -> str:
    """The access in a line of the log, in words; "" for other lines."""
    if match := _UNASSIGNED.fullmatch(line):
        offset = int(match["offset"], 16)
        return "" if offset in _ITM else f"C {_VERBS[match['kind'].lower()]} 0x{_PPB + offset:x}"
    if match := _INVALID.fullmatch(line):
        return f"C {_VERBS[match['kind']]} {_bytes(match['size'])} at 0x{match['address'].lower()}"
    if match := _UNIMPLEMENTED.fullmatch(line):
        offset, value = int(match["offset"], 16), match["value"]
        places = [f"0x{base + offset:x}" for base in bases().get(match["region"], [])]
        at = " or ".join(places) or f"offset 0x{offset:x} of {match['region']}"
        what = f"0x{int(value, 16):x} to" if value else f"{_bytes(match['size'])} at"
        return f"C {_VERBS[match['kind']]} {what} {at}"
    return f"C accessed an undefined register ({line.strip()})" if _UNDEFINED.match(line) else ""


def _bytes(size: str) -> str:
    return "1 byte" if size == "1" else f"{size} bytes"


def _bases(regions: str) -> dict[str, list[int]]:
    """The addresses at which regions of a name begin."""
    bases: dict[str, list[int]] = {}
    for match in filter(None, map(_REGION.fullmatch, regions.splitlines())):
        known = bases.setdefault(match["region"].strip(), [])
        base = int(match["base"], 16)
        if base not in known:
            known.append(base)
    return bases
