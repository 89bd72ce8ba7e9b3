# SPDX-License-Identifier: Apache-2.0
"""Board names as Zephyr resolves them: revisions, qualifiers, files, roots; every target of each Zephyr."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from minrpc import ConfigurationError, NoSuchBoardError
from minrpc.firmware import Workspace, board_names
from minrpc.firmware.board_names import BoardTarget, ListedBoard, Roots, find_board
from minrpc.firmware.zephyr_boards import read_target

ONE_SOC = ListedBoard(
    name="acme",
    directories=(Path("/boards/acme"),),
    revision_format="major.minor.patch",
    revision_default="1.0.0",
    revision_exact=False,
    revisions=("1.0.0", "1.2.0", "2.0.0"),
    socs=("a1",),
    qualifiers=("a1", "a1/cpu0", "a1/cpu1"),
)
TWO_SOCS = replace(ONE_SOC, revision_format="", revisions=(), socs=("a1", "b2"), qualifiers=("a1", "b2/m0"))
NOWHERE = Workspace(Path("/nowhere"), None, "4.2.0", "the test")


def found(monkeypatch: pytest.MonkeyPatch, board: ListedBoard, name: str) -> BoardTarget:
    monkeypatch.setattr(board_names, "_listed", lambda workspace, roots, name: (board,))
    return find_board(NOWHERE, name)


@pytest.mark.parametrize(
    ("name", "identifier", "revision", "stems"),
    [
        ("acme", "acme", "1.0.0", ("acme_a1", "acme", "acme_a1_1_0_0", "acme_1_0_0")),
        ("acme/a1", "acme", "1.0.0", ("acme_a1", "acme", "acme_a1_1_0_0", "acme_1_0_0")),
        ("acme@2", "acme@2", "2.0.0", ("acme_a1", "acme", "acme_a1_2_0_0", "acme_2_0_0")),
        ("acme@1.9/a1", "acme@1.9", "1.2.0", ("acme_a1", "acme", "acme_a1_1_2_0", "acme_1_2_0")),
        (
            "acme//cpu1",
            "acme/a1/cpu1",
            "1.0.0",
            ("acme_a1_cpu1", "acme_cpu1", "acme_a1_cpu1_1_0_0", "acme_cpu1_1_0_0"),
        ),
    ],
)
def test_a_name_is_resolved(
    monkeypatch: pytest.MonkeyPatch, name: str, identifier: str, revision: str, stems: tuple[str, ...]
) -> None:
    target = found(monkeypatch, ONE_SOC, name)
    assert (target.identifier, target.revision, target.revised_stems) == (identifier, revision, stems)


def test_of_several_socs_each_has_its_name_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, TWO_SOCS, "acme/b2").identifier == "acme/b2/m0"
    assert found(monkeypatch, TWO_SOCS, "acme/a1").stems == ("acme_a1",)
    with pytest.raises(ConfigurationError, match="several targets") as caught:
        found(monkeypatch, TWO_SOCS, "acme")
    assert "acme/a1, acme/b2/m0" in caught.value.next_step


@pytest.mark.parametrize(
    ("board", "name", "message"),
    [
        (ONE_SOC, "acme@0.9", "has no revision 0.9"),
        (replace(ONE_SOC, revision_exact=True), "acme@1.9", "has no revision 1.9"),
        (TWO_SOCS, "acme@1/a1", "has no revisions"),
        (ONE_SOC, "acme/c3", "has no target acme/c3"),
        (ONE_SOC, "acme@1@2", "is no board"),
    ],
)
def test_a_name_that_is_refused(
    monkeypatch: pytest.MonkeyPatch, board: ListedBoard, name: str, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        found(monkeypatch, board, name)


def test_letters_are_revisions_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    board = replace(ONE_SOC, revision_format="letter", revision_default="B", revisions=("B", "D"))
    assert found(monkeypatch, board, "acme@C").revision == "B"


def test_files_of_the_board_its_revision_and_its_extension(tmp_path: Path) -> None:
    own, root = tmp_path / "acme", tmp_path / "root"
    extension = root / "boards" / "extensions" / "acme"
    own.mkdir()
    extension.mkdir(parents=True)
    files = [
        own / "acme.dts",
        own / "acme_a1_1_0_0.overlay",
        extension / "acme.overlay",
        own / "acme_defconfig",
    ]
    for file in files:
        file.touch()
    target = BoardTarget(replace(ONE_SOC, directories=(own,)), "1.0.0", "a1", roots=Roots((root,), (), ()))
    assert (target.dts, target.overlays, target.defconfigs) == (files[0], files[1:3], files[3:])
    (own / "acme_v2.yaml").write_text("identifier: acme@2.0.0\narch: arm\n")
    assert target.facts() == {"arch": "arm"}
    (own / "acme.yaml").write_text("identifier: acme\narch: riscv\nsimulation: qemu\n")
    assert target.facts()["simulation"] == "qemu"
    (own / "twister.yaml").write_text("arch: x86\nvariants:\n  acme/a1:\n    simulation: []\n")
    assert target.facts()["arch"] in ("riscv", "x86")


@pytest.mark.usefixtures("listed_once")
def test_a_former_name_leads_to_the_new(workspace: Workspace) -> None:
    former = re.search(
        r"set\((\w+)_DEPRECATED\s+([^\s)]+)", (workspace.base / "boards/deprecated.cmake").read_text()
    )
    assert former is not None
    assert find_board(workspace, former[1]).identifier == find_board(workspace, former[2]).identifier


@pytest.mark.usefixtures("listed_once")
def test_a_name_that_is_nearly_right(workspace: Workspace) -> None:
    with pytest.raises(NoSuchBoardError, match="has no board 'qemu_x68'") as caught:
        find_board(workspace, "qemu_x68")
    assert "did you mean qemu_x86" in caught.value.next_step


def test_a_board_of_ones_own(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A board outside Zephyr's tree: BOARD_ROOT in the environment or in CMake's options, and an alias."""
    place = tmp_path / "boards" / "me" / "desk"
    shutil.copytree(workspace.base / "boards" / "qemu" / "x86", place)
    for file in list(place.iterdir()):
        file.rename(place / file.name.replace("qemu_x86", "desk"))
    for name in ("board.yml", "desk.yaml"):
        text = (place / name).read_text()
        (place / name).write_text(text.replace("qemu_x86", "desk"))
    with pytest.raises(NoSuchBoardError):
        find_board(workspace, "desk")
    assert find_board(workspace, "desk", [f"-DBOARD_ROOT={tmp_path}"]).directory == place
    monkeypatch.setenv("BOARD_ROOT", str(tmp_path))
    board = read_target(workspace, find_board(workspace, "desk"))
    assert (board.identifier, board.arch, board.simulators) == ("desk", "x86", ("qemu",))
    (tmp_path / "aliases.cmake").write_text("set(mine_BOARD_ALIAS desk)\n")
    monkeypatch.setenv("ZEPHYR_BOARD_ALIASES", str(tmp_path / "aliases.cmake"))
    assert find_board(workspace, "mine").identifier == "desk"


@pytest.mark.slow
@pytest.mark.usefixtures("listed_once")
def test_every_target_of_the_tree_is_known(workspace: Workspace) -> None:
    files = (workspace.base / "boards").rglob("*.yaml")
    names = [
        name
        for file in files
        for name in re.findall(r"(?m)^identifier: *['\"]?([^'\"\s]+)", file.read_text())
    ]
    assert len(names) > 700
    for name in names:
        target = find_board(workspace, name)
        assert target.dts is not None, name
        assert target.facts()["arch"], name
