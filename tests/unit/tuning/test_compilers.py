# SPDX-License-Identifier: Apache-2.0
"""A process that compiles and is killed costs no candidate its verdict."""

from __future__ import annotations

from typing import ClassVar, cast

import pytest
from minrpc.library import Sources, Toolset
from minrpc.tuning import compilers
from minrpc.tuning.compilers import Built, Compilers

SOURCES, TOOLSET = cast(Sources, None), cast(Toolset, None)


class Killed:
    """A process that ends in the first `deaths` builds, counted over all processes."""

    deaths = 0
    ended = 0

    def build(self, *given: object) -> Built:
        if Killed.deaths:
            Killed.deaths -= 1
            raise EOFError
        return Built(1.0)

    def end(self, *, at_once: bool = False) -> str:
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


class Endless(Killed):
    """A process whose first build exceeds the time limit."""

    limits: ClassVar[list[object]] = []
    at_once: ClassVar[list[bool]] = []

    def build(self, *given: object) -> Built:
        Endless.limits.append(given[-1])
        if len(Endless.limits) == 1:
            raise TimeoutError
        return Built(1.0)

    def end(self, *, at_once: bool = False) -> str:
        Endless.at_once.append(at_once)
        return ""


def test_a_compiler_that_never_ends_is_stopped_and_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "_Compiler", Endless)
    with Compilers(1, timeout_s=7.0) as pool:
        built = pool.submit(SOURCES, TOOLSET, None).result()
        assert (built.outcome, built.reason) == ("compile", "the compiler has run for 7 s and was stopped")
        assert Endless.at_once == [True]
        assert pool.submit(SOURCES, TOOLSET, None).result().outcome == "correct"
    assert Endless.limits == [7.0, 7.0]
    assert Endless.at_once == [True, False]
