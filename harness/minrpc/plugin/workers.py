# SPDX-License-Identifier: Apache-2.0
"""Tests on several processes with pytest-xdist (`-n 2`): each worker has devices of its own."""

from __future__ import annotations

from typing import Any, Final, Protocol

import pytest

_TALLY: Final = "minrpc_tally"


class Worker(Protocol):
    """xdist's handle of a worker; one that died has no output."""

    config: pytest.Config


def is_worker(config: pytest.Config) -> bool:
    """True if this process runs tests for another process."""
    return hasattr(config, "workerinput")


def has_workers(config: pytest.Config) -> bool:
    """True if other processes run this process's tests."""
    return bool(config.getoption("numprocesses", default=None)) and not is_worker(config)


def send(config: pytest.Config, tally: dict[str, Any]) -> None:
    """Send the counts from a worker to the reporting process; no-op in that process."""
    output: dict[str, Any] | None = getattr(config, "workeroutput", None)
    if output is not None:
        output[_TALLY] = tally


def received(worker: Worker) -> dict[str, Any] | None:
    """The counts from `worker`; None if it died, or needed no device."""
    output: dict[str, Any] = getattr(worker, "workeroutput", {})
    sent: dict[str, Any] | None = output.get(_TALLY)
    return sent
