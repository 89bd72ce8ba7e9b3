# SPDX-License-Identifier: Apache-2.0
"""Tests on several processes with pytest-xdist (`-n 2`): each worker has devices of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

import pytest

from minrpc.targets.options import Options
from minrpc.timing import DeviceClock

_CLOCKS: Final = "minrpc_clocks"


class Worker(Protocol):
    """xdist's handle of a worker; one that died has no output."""

    config: pytest.Config


def check_one_board(config: pytest.Config, options: Options) -> None:
    """Raise pytest.UsageError for a board that several processes would fight over."""
    if options.serial_port is not None and config.getoption("numprocesses", default=None):
        raise pytest.UsageError("--serial-port leads to one device, for one process: leave -n out")


def send_clocks(config: pytest.Config, clocks: Mapping[str, DeviceClock | None]) -> None:
    """From a worker to the process that reports; in that process nothing is to be done."""
    output: dict[str, Any] | None = getattr(config, "workeroutput", None)
    if output is not None:
        output[_CLOCKS] = {name: clock and clock.to_json() for name, clock in clocks.items()}


def received_clocks(worker: Worker) -> dict[str, DeviceClock | None]:
    """What `worker` sent: nothing when it died."""
    output: dict[str, Any] = getattr(worker, "workeroutput", {})
    sent = output.get(_CLOCKS, {})
    return {name: clock and DeviceClock.from_json(clock) for name, clock in sent.items()}
