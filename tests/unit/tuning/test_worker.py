# SPDX-License-Identifier: Apache-2.0
"""A thread of a cluster's worker: it keeps its device as long as the candidates are for the same target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
from minrpc.host import sandbox
from minrpc.tuning import Candidate, cluster


class OneBench:
    """A bench that reports its firmware and its kernel."""

    def __init__(self, kernel: object, firmware: SimpleNamespace, toolset: object) -> None:
        self.kernel, self.firmware, self.toolset = kernel, firmware, toolset
        self.closed = 0
        self.confined: list[bool] = []
        opened.append(self)

    def judge(self, candidate: Candidate, done: object, *, check: bool | None) -> object:
        self.confined.append(sandbox.is_up())
        return self.firmware.target, self.kernel, candidate.number, check

    def close(self) -> None:
        self.closed += 1


opened: list[OneBench] = []


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    opened.clear()
    monkeypatch.setattr(cluster, "Bench", OneBench)
    monkeypatch.setattr(cluster, "build", lambda target: SimpleNamespace(target=target))
    monkeypatch.setattr(cluster, "toolset_of", lambda firmware: None)
    monkeypatch.setattr(cluster, "likely_base", lambda toolset: None)
    monkeypatch.setattr(cluster, "built", lambda sources, toolset, base: None)
    yield
    cluster.end_devices()


def judged(kernel: object, target: object, number: int, *, sandbox: bool = False) -> object:
    judge: Callable[..., object] = cluster.judge
    return judge((kernel, target, sandbox), Candidate(number, ()), None)


def test_a_device_is_replaced_when_the_target_is_another() -> None:
    first, second = (SimpleNamespace(sources=lambda candidate: None) for _ in range(2))
    assert judged(first, "posix", 0) == ("posix", first, 0, None)
    assert judged(second, "posix", 1) == ("posix", second, 1, None)
    assert len(opened) == 1
    assert judged(second, "bare_rv32", 2) == ("bare_rv32", second, 2, None)
    assert [item.closed for item in opened] == [1, 0]
    cluster.end_devices()
    assert [item.closed for item in opened] == [1, 1]


def test_a_device_without_a_sandbox_is_for_no_candidate_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "why_not", lambda: "")
    kernel = SimpleNamespace(sources=lambda candidate: None)
    for confined in (False, True, True):
        judged(kernel, "posix", 0, sandbox=confined)
    assert [item.confined for item in opened] == [[False], [True, True]]
    assert not sandbox.is_up()
