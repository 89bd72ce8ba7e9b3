# SPDX-License-Identifier: Apache-2.0
"""Linker scripts of picolibc, as its versions write them, get a build id and a heap behind all variables."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from minrpc.firmware import firmware_root

from tests.native import need_tools

MODULE = firmware_root() / "zephyr-app" / "ports" / "baremetal" / "link_script.cmake"
STACK = "\t.stack {}(NOLOAD) : {{\n"


@pytest.mark.parametrize(
    ("stack", "adapted"),
    [(STACK.format(""), True), (STACK.format("(__stack - __stack_size) "), True), ("\t.stack : {\n", False)],
    ids=["1.8", "1.8.12", "unknown"],
)
def test_a_linker_script_of_picolibcs(stack: str, adapted: bool, tmp_path: Path) -> None:
    need_tools("cmake")
    (tmp_path / "picolibc.ld").write_text(f"\t.text : {{\n\t}}\n{stack}\t}}\n")
    compiler = tmp_path / "gcc"
    compiler.write_text(f"#!/bin/sh\necho ' -L{tmp_path} -lc' >&2\n")
    compiler.chmod(0o755)
    script = tmp_path / "try.cmake"
    script.write_text(
        f"set(CMAKE_C_COMPILER {compiler})\ninclude({MODULE})\n"
        f'adapt_link_script({tmp_path}/made.ld options)\nmessage("options: ${{options}}")\n'
    )
    ran = subprocess.run(["cmake", "-P", script], capture_output=True, text=True, check=True)
    assert ("linker script is not as expected" in ran.stderr) is not adapted
    assert (f"options: -T{tmp_path}/made.ld;-Wl,--build-id=sha1" in ran.stderr) is adapted
    if adapted:
        places = [".note.gnu.build-id : {", "\t.text : {", "__heap_start = .;", stack]
        made = (tmp_path / "made.ld").read_text()
        assert [made.count(place) for place in places] == [1] * 4
        assert sorted(places, key=made.index) == places
