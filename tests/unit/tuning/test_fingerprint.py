# SPDX-License-Identifier: Apache-2.0
"""Hashes of a result's inputs: a change of a part changes the hash of this part, and no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minrpc import Firmware, Target
from minrpc.library import Toolset
from minrpc.tuning import Kernel, fingerprint
from minrpc.tuning.fingerprint import identity as identity_of


def right(x: object) -> int:
    return 1


def other(x: object) -> int:
    return 2


class Bed:
    """A kernel in files, and a firmware."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "include").mkdir()
        (directory / "k.c").write_text('#include "near.h"\n#include <far.h>\n#include <stdint.h>\n')
        (directory / "near.h").write_text("#define NEAR 1\n")
        (directory / "include" / "far.h").write_text('#include "deep.h"\n')
        (directory / "include" / "deep.h").write_text("#define DEEP 1\n")
        (directory / "fw.elf").write_bytes(b"1")
        self.kernel = Kernel(directory / "k.c", "k", (np.arange(3), 4), right, (directory / "include",))
        self.flags = ("-O2",)

    def identity(self) -> dict[str, str]:
        elf = self.directory / "fw.elf"
        firmware = Firmware(Target.named("posix"), elf, elf.parent, "", cached=True, seconds=0.0)
        return dict(identity_of(self.kernel, firmware))


@pytest.fixture
def bed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bed:
    made = Bed(tmp_path)
    monkeypatch.setattr(fingerprint, "toolset_of", lambda image: Toolset("gcc", made.flags, (), image.elf))
    monkeypatch.setattr(Toolset, "code_flags", property(lambda toolset: toolset.flags))
    return made


def changed(**values: Any) -> Callable[[Bed], object]:  # noqa: ANN401 - of any field
    return lambda bed: setattr(bed, "kernel", replace(bed.kernel, **values))


def text(name: str) -> Callable[[Bed], object]:
    return lambda bed: (bed.directory / name).write_text("#define OTHER\n")


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (text("k.c"), "source"),
        (text("near.h"), "source"),
        (text("include/far.h"), "source"),
        (text("include/deep.h"), "source"),
        (changed(function="f"), "source"),
        (changed(arguments=(np.arange(3), 5)), "arguments"),
        (changed(arguments=(np.arange(3, dtype=np.int8), 4)), "arguments"),
        (changed(arguments=(np.array([0, 1, 3]), 4)), "arguments"),
        (changed(repeat=4), "arguments"),
        (changed(check=other), "check"),
        (changed(check=None), "check"),
        (changed(rtol=0.1), "check"),
        (lambda bed: setattr(bed, "flags", ("-O3",)), "compiler"),
        (text("fw.elf"), "firmware"),
    ],
)
def test_each_part(bed: Bed, change: Callable[[Bed], object], part: str) -> None:
    before = bed.identity()
    assert bed.identity() == before
    change(bed)
    after = bed.identity()
    assert [name for name in before if before[name] != after[name]] == [part]
