# SPDX-License-Identifier: Apache-2.0
"""The server among clients that misbehave: its row, and a good client that fails."""

from __future__ import annotations

import pytest
from minrpc import HarnessError, Target, build
from minrpc_bench import service
from minrpc_bench.peers import Peers


@pytest.mark.slow
def test_a_good_client_is_compared_with_one_that_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_GOOD", 2)
    monkeypatch.setattr(service, "_BAD", 5)
    firmware = build(Target.named("posix"))
    row = service._crowd(Peers(firmware, firmware), 1)
    assert row.ratio == pytest.approx(row.value / row.baseline)  # type: ignore[operator]
    assert row.value > 0
    monkeypatch.setattr(service, "_SOURCE", b"#error %d\n")
    with pytest.raises(HarnessError, match="does not compile"):
        service._crowd(Peers(firmware, firmware), 1)
