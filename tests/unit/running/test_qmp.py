# SPDX-License-Identifier: Apache-2.0
"""QEMU's monitor: an answer belongs to its own command."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from minrpc.errors import QmpError
from minrpc.host import Deadline
from minrpc.running.qmp import Qmp

LIMIT_S = 10.0


def replies(*answers: dict[str, object]) -> bytes:
    return b"".join(json.dumps(answer).encode() + b"\n" for answer in answers)


def test_the_answer_of_an_earlier_command_is_passed_over() -> None:
    ours, theirs = socket.socketpair()
    asking: list[bool] = []

    @contextmanager
    def around() -> Iterator[None]:
        asking.append(True)
        yield
        asking.append(False)

    with ours, theirs:
        qmp = Qmp(ours, around)
        qmp.send("cont")
        theirs.sendall(replies({"return": {}, "id": 1}, {"event": "RESUME"}, {"return": "r0 1", "id": 2}))
        assert qmp.execute("info", Deadline("ask", LIMIT_S), name="registers") == "r0 1"
        assert asking == [True, False]
        sent = [json.loads(line) for line in theirs.recv(4096).splitlines()]
        assert [(line["execute"], line["id"]) for line in sent] == [("cont", 1), ("info", 2)]
        theirs.sendall(replies({"error": {"desc": "no such command"}, "id": 3}))
        with pytest.raises(QmpError, match="QEMU refused stop: no such command"):
            qmp.execute("stop", Deadline("ask", LIMIT_S))
        qmp.close()
