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
    """Whether this process runs tests for another one."""
    return hasattr(config, "workerinput")


def has_workers(config: pytest.Config) -> bool:
    """Whether other processes run this one's tests."""
    return bool(config.getoption("numprocesses", default=None)) and not is_worker(config)


def send(config: pytest.Config, tally: dict[str, Any]) -> None:
    """From a worker to the process that reports; in that process nothing is to be done."""
    output: dict[str, Any] | None = getattr(config, "workeroutput", None)
    if output is not None:
        output[_TALLY] = tally


def received(worker: Worker) -> dict[str, Any] | None:
    """What `worker` sent; None when it died, or needed no device."""
    output: dict[str, Any] = getattr(worker, "workeroutput", {})
    sent: dict[str, Any] | None = output.get(_TALLY)
    return sent
