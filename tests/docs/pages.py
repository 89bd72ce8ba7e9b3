# SPDX-License-Identifier: Apache-2.0
"""README.md, docs/*.md and others as programs: their fenced blocks, and how each is run.

    ```console      lines of "$ COMMAND", which a shell runs, each with the output that it must have
    ```python       run; with a function test_... in it, by pytest on posix; or a file, as C is
    ```toml         minrpc.toml from there on; it must be right
    ```c            a file, named by the comment before it: <!-- negate.c -->

A comment <!-- not run: REASON --> before a block of commands gives the reason why it can't be run here: then
only the options of `minrpc` are checked. All blocks of a page share one directory. Output is compared without
the width of its columns; "..." stands for any lines. With the programs that README names, its numbers are
compared, too, except those that a comment before the block names with words, <!-- masked: # s, up # -->, or
all of them after <!-- masked -->. REFRESH=1 in the environment writes the printed numbers into the pages.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
)

_BLOCK: Final = re.compile(
    r"(?:^<!-- (?P<note>.*?) -->\n\n?)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_NUMBER: Final = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?: (?:[fpnµm]?s|[kMG]Hz|[KMG]i?B)\b)?")
_ANY: Final = "..."


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block.

    note: the comment before it; "" for none. line: of the page, counted from 1.
    """

    kind: str
    text: str
    note: str
    line: int
    start: int
    end: int

    @property
    def not_run(self) -> bool:
        """True if the block can't be run by a test."""
        return self.note.startswith("not run: ")

    def masked(self) -> Sequence[str] | None:
        """The figures that differ from run to run, with "#" for the number; None if all do."""
        return None if self.note == "masked" else self.note.removeprefix("masked: ").split(", ")

    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """Each command of a console, with the lines that it prints."""
        lines = self.text.replace("\\\n", "").splitlines()
        for index, line in enumerate(lines):
            if line.startswith("$ "):
                after = takewhile(lambda line: not line.startswith("$ "), lines[index + 1 :])
                yield line.removeprefix("$ "), list(after)


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [
        Block(
            found["kind"],
            found["text"],
            found["note"] or "",
            page[: found.start()].count("\n") + 1,
            found.start("text"),
            found.end("text"),
        )
        for found in _BLOCK.finditer(page)
    ]


def shell(command: str, directory: Path, sandbox: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run a command as if typed in `directory`, with this Python's programs first.

    sandbox: the words before the shell's.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # A page's output must not depend on the directory or the environment of the tests.
    gone = ("PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER", "COLUMNS")
    environment = {name: value for name, value in os.environ.items() if name not in gone}
    return subprocess.run(
        [*sandbox, "bash", "-c", command],
        cwd=directory,
        env={**environment, "PATH": path},
        text=True,
        capture_output=True,
        check=False,
    )


def tidy(line: str) -> str:
    """A line without the parts that differ from run to run: places, and widths of a table's columns."""
    line = line.replace("from the cache", "built")
    line = re.sub(r"/dev/pts/\d+|/(?:tmp|root|home)/[\w./-]+|\b[0-9a-f]{12,}\b", "PLACE", line)
    line = re.sub(r"-{3,}:?|-+:(?= )", "---", line)
    return re.sub(r"\s+", " ", line).strip()


def alike(shown: str, printed: str, masked: Sequence[str] | None = None) -> bool:
    """True if the lines agree but for places, widths, and masked figures; None: all are masked."""
    if masked is None:
        return _NUMBER.sub("#", tidy(shown)) == _NUMBER.sub("#", tidy(printed))
    any_of = "|".join(re.escape(figure).replace(r"\#", _NUMBER.pattern) for figure in masked if figure)
    figures = f"(?:{any_of or '(?!)'})"
    return (
        re.fullmatch(figures.join(map(re.escape, re.split(figures, tidy(shown)))), tidy(printed)) is not None
    )


def stale(
    shown: list[str], printed: list[str], masked: Sequence[str] | None = None
) -> Iterator[tuple[str, str]]:
    """Lines of `shown` whose numbers alone differ from those of a printed line, with this line."""
    rest = printed
    for line in shown:
        found = [at for how in (masked, None) for at, other in enumerate(rest) if alike(line, other, how)]
        if line.strip() != _ANY and found:
            if not alike(line, rest[found[0]], masked):
                yield line, rest[found[0]].rstrip()
            rest = rest[found[0] + 1 :]


@cache
def figures_hold() -> bool:
    """True if the programs that README names are those of this machine: its figures are theirs."""
    compiler, emulator = re.findall(
        r"arm-none-eabi-gcc ([\d.]+) and qemu-system-arm ([\d.]+)\.\n", PAGES[0].read_text()
    )[0]
    return (
        shell("arm-none-eabi-gcc -dumpversion", ROOT).stdout.startswith(compiler)
        and f"version {emulator}." in shell("qemu-system-arm --version", ROOT).stdout
    )


def differs(shown: list[str], printed: list[str], masked: Sequence[str] | None = None) -> str:
    """The first line of `shown` that `printed` does not have at its place; "" when they agree."""
    rest = [line for line in printed if line.strip()]
    anywhere = False
    for line in filter(str.strip, shown):
        if line.strip() == _ANY:
            anywhere = True
            continue
        found = next((at for at, other in enumerate(rest) if alike(line, other, masked)), None)
        if found is None or (not anywhere and found):
            return line
        rest = rest[found + 1 :]
        anywhere = False
    return "" if anywhere or not rest or not shown else f"nothing after this, but it goes on: {rest[0]}"
