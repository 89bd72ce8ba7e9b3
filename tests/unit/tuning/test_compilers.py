# SPDX-License-Identifier: Apache-2.0
"""A process that compiles and is killed costs no candidate its verdict."""

from __future__ import annotations

from typing import cast

import pytest
from minrpc.library import Sources
from minrpc.library.toolset import Toolset
from minrpc.tuning import compilers
from minrpc.tuning.compilers import Built, Compilers

SOURCES, TOOLSET = cast(Sources, None), cast(Toolset, None)


class Killed:
    """Ends in its first `deaths` builds, over all processes."""

    deaths = 0
    ended = 0

    def build(self, *given: object) -> Built:
        if Killed.deaths:
            Killed.deaths -= 1
            raise EOFError
        return Built(1.0)

    def end(self) -> str:
        Killed.ended += 1
        return "Killed"


@pytest.mark.parametrize(
    ("deaths", "outcome", "ended"), [(0, "correct", 1), (1, "correct", 2), (2, "compile", 3)]
)
def test_it_is_compiled_again_by_another(
    monkeypatch: pytest.MonkeyPatch, deaths: int, outcome: str, ended: int
) -> None:
    monkeypatch.setattr(compilers, "_Compiler", Killed)
    Killed.deaths, Killed.ended = deaths, 0
    with Compilers(1) as pool:
        built = pool.submit(SOURCES, TOOLSET, None).result()
        assert built.outcome == outcome
        assert ("ended twice: Killed" in built.reason) == (outcome == "compile")
        assert pool.submit(SOURCES, TOOLSET, None).result().outcome == "correct"
    assert Killed.ended == ended
