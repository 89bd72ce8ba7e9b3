# SPDX-License-Identifier: Apache-2.0
"""A firmware's identity covers all files that it was built from, Zephyr's drivers and modules, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from minrpc import Firmware
from minrpc.firmware.identity import Content

EDITED = "the hash of the present files after an edit"


@pytest.fixture
def built(firmware: Firmware | None) -> Firmware:
    """A firmware that this test built."""
    if firmware is None or not (firmware.build_dir / "inputs.json").is_file():
        pytest.skip("this firmware was not built here")
    return firmware


@pytest.fixture
def content(built: Firmware) -> Content:
    """Files that the firmware's build has read."""
    return Content.from_json(json.loads((built.build_dir / "inputs.json").read_text()))


def tail(path: Path) -> tuple[str, ...]:
    """The end of a path: another checkout of the same state may have built the firmware."""
    return path.parts[-3:]


def test_each_file_that_was_compiled_counts(built: Firmware, content: Content) -> None:
    known = {tail(Path(file)) for file in content.files}
    commands = json.loads((built.build_dir / "compile_commands.json").read_text())
    # The build's own directory is gone, and sources that are not linked may not have been compiled.
    sources = [
        Path(command["file"]) for command in commands if not command["file"].startswith(command["directory"])
    ]
    image = built.elf.read_bytes()
    linked = {tail(path) for path in sources if path.name.encode() + b"\0" in image}
    assert len(linked) > 10
    assert linked <= known


def test_the_host_s_side_of_a_simulated_board_counts(built: Firmware, content: Content) -> None:
    """The simulator's own makefile compiles these files, and not ninja."""
    if built.target.name != "native_sim":
        pytest.skip("the firmware is no simulated board")
    known = {tail(Path(file)) for file in content.tools}
    assert {
        ("ports", "zephyr", "native_host.c"),
        ("ports", "host", "fault.c"),
        ("common", "src", "nct.c"),
    } <= known


def test_an_edit_of_any_of_them_makes_another_firmware(built: Firmware, content: Content) -> None:
    hashes = {built.places.expand_path(path): was for path, was in (content.files | content.tools).items()}
    assert content.holds(built.places, hashes.__getitem__)
    for path in list(map(built.places.expand_path, content.files))[::20]:
        assert not content.holds(built.places, (hashes | {path: EDITED}).__getitem__), path
