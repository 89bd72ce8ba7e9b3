# SPDX-License-Identifier: Apache-2.0
"""Runs the commands and snippets of each page; see `tests.docs.pages`."""

from __future__ import annotations

import os
import re
import shlex
from itertools import takewhile
from pathlib import Path

import pytest
from minrpc.cli import COMMANDS, _joined, added, make_parser
from minrpc.plugin import hooks
from minrpc.targets import load_limits, load_platforms
from minrpc.targets.config import _FIELDS

from tests.docs.pages import PAGES, ROOT, Block, alike, blocks_of, differs, figures_hold, shell, stale

KINDS = {"console", "python", "toml", "c", "json", "text", "yaml", "cmake", "sh", ""}


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_options_of_a_page_exist(page: Path) -> None:
    for block in blocks_of(page.read_text(encoding="utf-8")):
        where = f"{page.name}:{block.line}"
        assert block.kind in KINDS, f"{where}: nobody runs {block.kind}"
        if block.kind in ("console", "sh"):
            for command, _ in block.commands():
                check_words(command, where)
        elif block.kind == "python" and not block.not_run:
            compile(block.text, where, "exec")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "DESIGN.md"], ids=lambda page: page.name)
def test_tables_of_a_page_are_whole(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        rows = [re.sub(r"`[^`]*`", "", row).count("|") for row in table.splitlines()]
        assert rows == [rows[0]] * len(rows), table
        assert re.match(r".*\n\|[ :|-]+\|\n", table), f"a row that belongs to no table: {table}"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_true(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks_of(page.read_text(encoding="utf-8")):
        where = f"{page.name}:{block.line}"
        assert block.kind in KINDS, f"{where}: nobody runs {block.kind}"
        run(block, where, tmp_path, page)


def run(block: Block, where: str, directory: Path, page: Path) -> None:
    match block.kind:
        case "console" | "sh" if block.not_run:
            for command, _ in block.commands():
                check_words(command, where)
        case "console":
            run_commands(block, where, directory, page)
        case "toml":
            (directory / "minrpc.toml").write_text(block.text)
            load_platforms(directory / "minrpc.toml")
            load_limits(directory / "minrpc.toml")
        case "python" if block.note.endswith(".py"):
            (directory / block.note).write_text(block.text)
        case "python" if "def test_" in block.text:
            (directory / "test_page.py").write_text(block.text)
            ran = shell("python -m pytest -q --platform posix -p no:cacheprovider test_page.py", directory)
            assert ran.returncode == 0, f"{where}:\n{ran.stdout}\n{ran.stderr}"
        case "python" if not block.not_run:
            (directory / "page.py").write_text(block.text)
            ran = shell("python page.py", directory)
            assert ran.returncode == 0, f"{where}:\n{ran.stdout}\n{ran.stderr}"
        case _ if block.note and " " not in block.note:
            (directory / block.note).parent.mkdir(parents=True, exist_ok=True)
            (directory / block.note).write_text(block.text)


def run_commands(block: Block, where: str, directory: Path, page: Path) -> None:
    for command, shown in block.commands():
        ran = shell(command, directory)
        printed, masked = ran.stdout.splitlines(), block.masked() if figures_hold() else None
        if "REFRESH" in os.environ:
            for line, new in stale(shown, printed, masked):
                page.write_text(page.read_text().replace(line, new, 1))
                shown[shown.index(line)] = new
        wrong = differs(shown, printed, masked)
        assert not wrong, (
            f"{where}: $ {command}\nshows: {wrong}\nand this is what comes:\n{ran.stdout}\n{ran.stderr}"
        )


def check_words(command: str, where: str) -> None:
    """A command that can't be run here exists, at least."""
    words = [*takewhile(lambda word: not re.match(r"\d?[|>]", word), shlex.split(command, comments=True))]
    if words[:1] == ["minrpc"]:
        assert words[1] in {*COMMANDS, *added()}, f"{where}: {command}"
        make_parser(words[1]).parse_args(_joined(words[1:]))


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", prose):
            assert target.startswith("https://") or (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_key_and_fixture_is_on_a_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    fixtures = [
        name for name, var in vars(hooks).items() if type(var).__name__ == "FixtureFunctionDefinition"
    ]
    for name in (*_FIELDS, *(name for name in fixtures if not name.startswith("_")), *COMMANDS):
        assert f"`{name}" in text or f"minrpc {name}" in text, f"no page has {name}"
    assert fixtures


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


@pytest.mark.parametrize(
    ("shown", "printed", "wrong"),
    [
        (["a 1.5 ms b"], ["a  27 ns b"], ""),
        (["a"], ["b"], "a"),
        (["a", "...", "c"], ["a", "b", "b", "c"], ""),
        (["...", "c"], ["a", "d"], "c"),
        (["a"], ["a", "b"], "nothing after this, but it goes on: b"),
        (["a", "..."], ["a", "b"], ""),
        ([], ["a"], ""),
        (["a"], [], "a"),
    ],
)
def test_how_output_is_compared(shown: list[str], printed: list[str], wrong: str) -> None:
    assert differs(shown, printed) == wrong


@pytest.mark.parametrize(
    ("shown", "printed", "masked", "same"),
    [
        ("| x | ---: |  1,234.5 µs |", "| x | ------: | 7 s |", None, True),
        ("right, 3 ns a call", "WRONG, 3 ns a call", None, False),
        ("| 28,416 | 0.13 s |", "| 28,416 |  2.1 s |", ["# s"], True),
        ("| 28,416 | 0.13 s |", "| 32,016 | 0.13 s |", ["# s"], False),
        ("553.9", "553.3", [""], False),
    ],
)
def test_what_does_not_matter(shown: str, printed: str, masked: list[str] | None, same: bool) -> None:
    assert alike(shown, printed, masked) is same
