# SPDX-License-Identifier: Apache-2.0
"""The process that serves a device of its parent."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from minrpc.tvm import child_server


@pytest.mark.parametrize(("word", "resend"), [("1", True), ("0", False)])
def test_the_device_is_as_its_parent_has_it(
    word: str, resend: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[dict[str, object]] = []
    served: list[int] = []

    def device(link: Any, owner: object, **options: object) -> None:  # noqa: ANN401
        made.append({"link": link.name, "owner": owner, **options})

    class Server:
        def __init__(self, listener: Any, *_: object) -> None:  # noqa: ANN401
            served.append(listener.getsockname()[1])

        def serve(self, stop_fd: int) -> None:
            assert stop_fd == 0

    class Input:
        def fileno(self) -> int:
            return 0

    monkeypatch.setattr(child_server, "Device", device)
    monkeypatch.setattr(child_server, "Server", Server)
    monkeypatch.setattr(child_server, "FdTransport", lambda _, name: type("Link", (), {"name": name}))
    monkeypatch.setattr("sys.stdin", Input())
    child_server.main(["7", word, "2.5", pickle.dumps("owner").hex()])
    assert made == [{"link": "descriptor 7", "owner": "owner", "resend": resend, "call_timeout_s": 2.5}]
    assert served == [int(capsys.readouterr().out)]
