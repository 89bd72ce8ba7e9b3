# SPDX-License-Identifier: Apache-2.0
"""Tests on several processes with pytest-xdist (`-n 2`): each worker has devices of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import pytest

if TYPE_CHECKING:
    from minrpc.targets import Target

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


def share_boards(config: pytest.Config) -> None:
    """xdist's work stealing, so that other workers take over the tests of a worker whose board is lost."""
    if config.getoption("dist", default="no") == "load":
        config.option.dist = "worksteal"


def free_boards(targets: Sequence[Target]) -> int:
    """The number of free boards; waits for the first as long as the targets say.

    Raises pytest.UsageError with the holders if no board becomes free.
    """
    from minrpc.errors import HarnessError
    from minrpc.host.owned_lock import holder_of
    from minrpc.running.lease import candidates, key_of, lease, quarantine_of

    try:
        for target in targets:
            lease(target, lambda text: print(f"minrpc: {text}", flush=True)).release()
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from error
    boards = [{*candidates(target)} for target in targets]
    free = [
        {item for item in kind if not quarantine_of(item) and not holder_of(key_of(item.link))}
        for kind in boards
    ]
    return max(1, min(map(len, free), default=1))


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
