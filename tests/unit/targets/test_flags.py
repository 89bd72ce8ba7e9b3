# SPDX-License-Identifier: Apache-2.0
"""Relative paths in options of a compiler start at the directory that is given."""

from __future__ import annotations

from pathlib import Path

import pytest
from minrpc.targets.flags import flags_at


@pytest.mark.parametrize(
    ("flags", "placed"),
    [
        (["-O3", "-DX=inc", "-Iinc", "-I."], ["-O3", "-DX=inc", "-I{at}/inc", "-I{at}"]),
        (["-I", "inc", "inc"], ["-I", "{at}/inc", "inc"]),
        (["-isystem", "../inc", "-iquoteinc"], ["-isystem", "{at}/../inc", "-iquote{at}/inc"]),
        (["-I/usr/include", "-I=/inc", "-I$SYSROOT/inc"], ["-I/usr/include", "-I=/inc", "-I$SYSROOT/inc"]),
        (["-Wa,-Iinc", "--sysroot=inc", "-g"], ["-Wa,-I{at}/inc", "--sysroot={at}/inc", "-g"]),
        (["-include", "config.h", "@flags"], ["-include", "{at}/config.h", "@{at}/flags"]),
        (["-include", "stdint.h", "-imacrosa.h", "@none"], ["-include", "stdint.h", "-imacrosa.h", "@none"]),
        (["-I"], ["-I"]),
    ],
)  # fmt: skip
def test_paths_start_at_the_directory(tmp_path: Path, flags: list[str], placed: list[str]) -> None:
    for name in ("config.h", "flags"):
        (tmp_path / name).touch()
    assert flags_at(flags, tmp_path) == [word.format(at=tmp_path) for word in placed]
