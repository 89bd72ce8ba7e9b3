# SPDX-License-Identifier: Apache-2.0
"""What `minrpc time --constant-time` does: compare what calls with different elements execute and access."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Final

import numpy as np

from minrpc.cli.call_arguments import Argument, Array
from minrpc.cli.source_options import load_with
from minrpc.counters import counters_for
from minrpc.counters.constant_time import ConstantTime, check_constant_time
from minrpc.errors import ConfigurationError
from minrpc.firmware import build
from minrpc.host.deadline import Deadline
from minrpc.library import Sources
from minrpc.pipeline import connect
from minrpc.running import start
from minrpc.targets import Target

_RANDOM: Final = 6


def constant_time(
    target: Target, function: str, plan: Sequence[Argument], total: Deadline, sources: Sources | None = None
) -> ConstantTime:
    """Check `function` with arrays of zeros, of ones, and of random elements; numbers are what they are.

    sources: what has it, loaded for this; else the firmware's own library has.

    Raises ConfigurationError where nothing differs, or for a target that QEMU does not run.
    """
    if target.platform.starts != "qemu":
        message = f"{target.name} does not run under QEMU: nothing can be compared there"
        raise ConfigurationError(message, next_step="name one: --platform bare_mps2_an385")
    if not any(isinstance(one, Array) for one in plan):
        message = f"{function} has no array among its arguments: no input differs from another"
        raise ConfigurationError(message, next_step="give one: --arg 'uint8[32]'")
    firmware = build(target)
    counters = counters_for(firmware.elf, trace=True)
    with ExitStack() as stack:
        running = stack.enter_context(start(firmware, counters=counters, total=total))
        device = stack.enter_context(connect(running, total=total))
        library = load_with(function, device, sources, stack) if sources else None
        return check_constant_time(device, counters, function, _inputs(plan), library)


def _inputs(plan: Sequence[Argument]) -> list[list[Any]]:
    random = [_input(plan, np.random.default_rng(seed)) for seed in range(_RANDOM)]
    same = [
        [np.full_like(one, number) if isinstance(one, np.ndarray) else one for one in random[0]]
        for number in (0, 1)
    ]
    return [*same, *random]


def _input(plan: Sequence[Argument], rng: np.random.Generator) -> list[Any]:
    return [one.host(rng) if isinstance(one, Array) else one for one in plan]
