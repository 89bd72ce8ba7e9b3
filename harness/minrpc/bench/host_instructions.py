# SPDX-License-Identifier: Apache-2.0
"""Instructions that the host executes for a call: they hardly depend on the machine and its other work.

Counted by Valgrind's callgrind in a process of its own, which makes calls whose answers are there at once: so
it is what is ours alone, Python's interpreter included, and nothing of the kernel, the link or the device. A
run with few calls is subtracted from one with many.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
import subprocess
import sys
from typing import Final

from minrpc.bench.cpu import replayed_calls
from minrpc.bench.peers import Peers
from minrpc.bench.rows import Row
from minrpc.errors import HarnessError, MissingError
from minrpc.firmware import Firmware

_VALGRIND: Final = "valgrind"
_FEW: Final = 50
_MANY: Final = 1050
_LIMIT_S: Final = 1800.0
_COLLECTED: Final = re.compile(r"Collected : (\d+)")
_CHILD: Final = "import sys; from minrpc.bench.host_instructions import child; child(*sys.argv[1:])"


def measure(peers: Peers) -> list[Row]:
    """A row for each call, on the posix port only: the host does the same for all. Raises HarnessError."""
    if peers.platform.starts != "process":
        return []
    if shutil.which(_VALGRIND) is None:
        step = "run `sudo apt-get install valgrind`, or leave this group out"
        raise MissingError(f"{_VALGRIND} is not installed", stage="bench", next_step=step)
    return [_row(peers, name) for name in ("inc", "add, 3 tensors")]


def _row(peers: Peers, name: str) -> Row:
    few, many = (_collected(peers.server, name, calls) for calls in (_FEW, _MANY))
    return Row(
        group="host instructions",
        name=f"ours alone, a call of {name}",
        platform=peers.platform.name,
        unit="instructions",
        value=(many - few) / (_MANY - _FEW),
        note=f"callgrind, Python {sys.version.split()[0]}",
    )


def _collected(firmware: Firmware, name: str, calls: int) -> int:
    """Instructions of a process that makes so many calls, its start included."""
    words = [_VALGRIND, "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, "-c", _CHILD]
    given = [pickle.dumps(firmware).hex(), name, str(calls)]
    # Sets would have another order each time.
    environment = {"PYTHONHASHSEED": "0", "PATH": "/usr/local/bin:/usr/bin:/bin"}
    ran = subprocess.run(
        [*words, *given], capture_output=True, text=True, timeout=_LIMIT_S, check=False, env=environment
    )
    found = _COLLECTED.search(ran.stderr)
    if ran.returncode or found is None:
        last = ran.stderr.strip().splitlines()[-3:]
        raise HarnessError(f"{_VALGRIND} ended with status {ran.returncode}", stage="bench", details=last)
    return int(found[1])


def child(firmware: str, name: str, calls: str) -> None:
    """What Valgrind runs. It ends at once, its device with it: Valgrind has no pidfd_open to stop that by."""
    with replayed_calls(pickle.loads(bytes.fromhex(firmware))) as functions:
        call = functions[name]
        for _ in range(int(calls)):
            call()
        os._exit(0)
