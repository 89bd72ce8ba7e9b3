# SPDX-License-Identifier: Apache-2.0
"""[libraries.NAME] in minrpc.toml: its keys, and errors for other keys."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from minrpc import PLATFORMS, ConfigurationError
from minrpc.targets import Platforms, merge, options_from
from minrpc.targets.libraries import NamedLibrary


def libraries(text: str, directory: Path) -> tuple[NamedLibrary, ...]:
    return merge(Platforms(PLATFORMS), tomllib.loads(text), "my.toml", directory)["posix"].named_libraries


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("fir.c", "biquad.c", "fast.S", "made.o", "config.h", "m.a"):
        (tmp_path / name).touch()
    (tmp_path / "include").mkdir()
    return tmp_path


def test_all_that_can_be_said(project: Path) -> None:
    text = """
        [libraries.dsp]
        sources = ["*.c", "fast.S", "made.o"]
        include = ["include"]
        flags = ["-O3", "-Iinclude/ST"]
        defines = { TILE = 8, FAST = true }
        headers = ["config.h"]
        libraries = ["m.a"]
        linked = false
        [libraries.fir]
        sources = ["fir.c"]
    """
    at = str(project)
    assert libraries(text, project) == (
        NamedLibrary(
            "dsp",
            (f"{at}/biquad.c", f"{at}/fir.c", f"{at}/fast.S", f"{at}/made.o"),
            (f"{at}/include",),
            ("-O3", f"-I{at}/include/ST"),
            ("TILE=8", "FAST"),
            (f"{at}/config.h",),
            (f"{at}/m.a",),
            linked=False,
        ),
        NamedLibrary("fir", (f"{at}/fir.c",)),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[libraries.dsp]", "libraries.dsp: sources is missing"),
        ('[libraries."a-b"]\nsources = ["fir.c"]', "'a-b' is no name for a library"),
        ('[libraries.dsp]\nsources = ["none.c"]', "libraries.dsp.sources: there is no file none.c"),
        ('[libraries.dsp]\nsources = ["config.h"]', "config.h: unknown kind of file"),
        ('[libraries.dsp]\nsources = ["fir.c"]\nflag = []', "libraries.dsp.flag: unknown key"),
        ('[libraries.dsp]\nsources = ["fir.c"]\nflags = ["O3"]', "'O3' is no option of a compiler"),
        ('[libraries.dsp]\nsources = ["fir.c"]\nflags = "-O3"', "libraries.dsp.flags: must be a list"),
        (
            '[libraries.dsp]\nsources = ["fir.c"]\nlinked = "no"',
            "libraries.dsp.linked: must be true or false",
        ),
        ('[libraries.dsp]\nsources = ["fir.c"]\ninclude = ["fir.c"]', "there is no directory fir.c"),
        ("libraries = 3", "libraries must be a table"),
        ("[libraries]\ndsp = 3", "libraries.dsp must be a table"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str, project: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        libraries(text, project)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("given", "linked"), [(None, [True, False]), ("loaded", [False] * 2), ("linked", [True] * 2)]
)
def test_an_option_says_how_for_all(given: str | None, linked: list[bool], project: Path) -> None:
    text = '[libraries.a]\nsources = ["fir.c"]\n[libraries.b]\nsources = ["biquad.c"]\nlinked = false'
    platform = merge(Platforms(PLATFORMS), tomllib.loads(text), "my.toml", project)["posix"]
    target = options_from({"libraries_as": given}).target(platform)
    assert [named_library.linked for named_library in target.platform.named_libraries] == linked
