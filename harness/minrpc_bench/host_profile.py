# SPDX-License-Identifier: Apache-2.0
"""Where the host's time goes: the standard library's profiler over calls and copies."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable
from io import StringIO
from typing import Final

from minrpc_bench.copies import copies_of
from minrpc_bench.peers import Peers, running_device
from minrpc_bench.round_trip import calls_of

_CALLS: Final = {"process": 2000, "qemu": 50}
_COPIES: Final = {"process": 20, "qemu": 1}
_LINES: Final = 16


def profile(peers: Peers) -> str:
    """A table for each: functions by their own time. The profiler makes small functions look dearer."""
    starts = peers.platform.starts
    with running_device(peers.server) as (device, _):
        jobs = {name: (call, _CALLS[starts]) for name, call in calls_of(device).items()}
        jobs |= {copy.name: (copy.run, _COPIES[starts]) for copy in copies_of(device, peers.platform)}
        return "\n".join(f"## {name}\n{_profiled(call, times)}" for name, (call, times) in jobs.items())


def _profiled(call: Callable[[], object], times: int) -> str:
    call()
    profiler = cProfile.Profile()
    with profiler:
        for _ in range(times):
            call()
    text = StringIO()
    pstats.Stats(profiler, stream=text).strip_dirs().sort_stats("tottime").print_stats(_LINES)
    return text.getvalue().strip()
