# SPDX-License-Identifier: Apache-2.0
"""Settings of Hypothesis: the same examples in each run, so that no run fails by chance or on a slow machine;
the installed Zephyrs; and a terminal.

`HYPOTHESIS_PROFILE=search pytest tests/unit/wire` tries other and far more examples each time.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings
from minrpc.firmware import Workspace, board_names, firmware_root, workspaces

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=5000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture(params=workspaces(firmware_root()), ids=lambda workspace: f"Zephyr {workspace.version}")
def workspace(request: pytest.FixtureRequest) -> Workspace:
    """Each installed Zephyr."""
    here: Workspace = request.param
    return here


@pytest.fixture
def terminal() -> Iterator[str]:
    """The path of a terminal at which nothing answers."""
    board, port = os.openpty()
    yield os.ttyname(port)
    os.close(port)
    os.close(board)


@pytest.fixture
def listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zephyr lists its boards once for the tests of a process, not once for each name."""
    listed = board_names._listed
    monkeypatch.setattr(
        board_names,
        "_listed",
        lambda workspace, roots, name: tuple(
            board for board in listed(workspace, roots, "") if name in ("", board.name)
        ),
    )
