# SPDX-License-Identifier: Apache-2.0
"""The golden requests and answers, packet by packet, against the device itself."""

import pytest
from minrpc import RunningDevice
from minrpc.client import SessionLink

from tests.vectors import Row, rows
from tests.vectors.replay import replay

TIMEOUT_S = 30.0


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in rows("rpc")])
def test_rpc(running_device: RunningDevice, row: Row) -> None:
    link = SessionLink(running_device.transport, running_device)
    link.start(TIMEOUT_S)
    replay(row, lambda packet: bytes(link.request(packet, row.name, TIMEOUT_S)))
