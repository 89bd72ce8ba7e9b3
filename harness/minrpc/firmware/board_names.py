# SPDX-License-Identifier: Apache-2.0
"""Resolves a board's name as Zephyr's build does: "BOARD[@REVISION][/QUALIFIERS]" in its trees of boards.

Zephyr's own scripts/list_boards.py finds the boards: of Zephyr, of BOARD_ROOT, of modules. Aliases, former
names, revisions and omitted qualifiers follow Zephyr's cmake/modules/boards.cmake, files dts.cmake.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from minrpc.errors import ConfigurationError, MissingError, NoSuchBoardError
from minrpc.firmware.sources import firmware_root
from minrpc.firmware.zephyr_workspace import Workspace, projects_of
from minrpc.host.process import ask_tool
from minrpc.names import did_you_mean

_NAME: Final = re.compile(r"(?P<board>[^@/]+)(?:@(?P<revision>[^@/]+))?(?:/(?P<qualifiers>[^@]+))?")
_KEYS: Final = ("NAME", "DIR", "REVISION_FORMAT", "REVISION_DEFAULT", "REVISION_EXACT", "REVISIONS", "SOCS")
_FORMAT: Final = "|".join(f"{{{key}}}" for key in (*_KEYS, "QUALIFIERS"))
_NONE: Final = "NOTFOUND"
_MODULE_VARIABLES: Final = ("ZEPHYR_MODULES", "ZEPHYR_EXTRA_MODULES", "EXTRA_ZEPHYR_MODULES")
_REVISIONS: Final = {"letter": r"[A-Z]", "number": r"\d+", "major.minor.patch": r"(0|[1-9]\d*)\.\d+\.\d+"}


@dataclass(frozen=True, slots=True)
class Roots:
    """The directories of Zephyr's variables BOARD_ROOT, SOC_ROOT and DTS_ROOT; Zephyr's own comes last."""

    boards: tuple[Path, ...]
    socs: tuple[Path, ...]
    dts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class ListedBoard:
    """A board of list_boards.py, with its extensions' directories behind its own."""

    name: str
    directories: tuple[Path, ...]
    revision_format: str
    revision_default: str
    revision_exact: bool
    revisions: tuple[str, ...]
    socs: tuple[str, ...]
    qualifiers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BoardTarget:
    """A board with its revision and qualifiers.

    revision: the revision whose files are used; "" if the board has none.
    asked_revision: the revision in the name; "" for the default.
    """

    board: ListedBoard
    revision: str
    qualifiers: str
    asked_revision: str = ""
    roots: Roots = Roots((), (), ())

    @property
    def identifier(self) -> str:
        """The shortest name that `west build -b` takes."""
        revision = f"@{self.asked_revision}" if self.asked_revision else ""
        only = self.board.socs == (self.qualifiers,) or not self.qualifiers
        return f"{self.board.name}{revision}" + ("" if only else f"/{self.qualifiers}")

    @property
    def stems(self) -> tuple[str, ...]:
        """Stems of its files without the revision: with the SoC, and without it if the board has one SoC
        only."""
        parts = [part for part in self.qualifiers.split("/") if part]
        full = "_".join([self.board.name, *parts])
        short = "_".join([self.board.name, *parts[1:]])
        return (full, short) if len(self.board.socs) == 1 and short != full else (full,)

    @property
    def revised_stems(self) -> tuple[str, ...]:
        """Stems of its files without and then with the revision; only those without if there is no
        revision."""
        tail = "_" + self.revision.replace(".", "_")
        return (*self.stems, *(f"{stem}{tail}" for stem in self.stems if self.revision))

    @property
    def dts(self) -> Path | None:
        """Its devicetree; None if it has none."""
        return next(reversed(self._present(self.board.directories, self.stems, ".dts")), None)

    @property
    def overlays(self) -> list[Path]:
        """The overlays of its revision and of board extensions."""
        own = [stem for stem in self.revised_stems if stem not in self.stems]
        extensions = [root / "boards" / "extensions" / self.directory.name for root in self.roots.boards]
        return [
            *self._present(self.board.directories, own, ".overlay"),
            *self._present(extensions, self.revised_stems, ".overlay"),
        ]

    @property
    def defconfigs(self) -> list[Path]:
        """Its Kconfig fragments."""
        return self._present(self.board.directories, self.revised_stems, "_defconfig")

    @property
    def directory(self) -> Path:
        """The board's main directory."""
        return self.board.directories[0]

    @property
    def aliases(self) -> frozenset[str]:
        """All names of the target that twister's files may use."""
        revisions = {f"@{self.revision}"} if self.revision else {""}
        if self.revision == self.board.revision_default:
            revisions.add("")
        names = {f"{self.board.name}{revision}/{self.qualifiers}" for revision in revisions}
        if len(self.board.socs) == 1 and "/" not in self.qualifiers:
            names |= {f"{self.board.name}{revision}" for revision in revisions}
        return frozenset(names)

    def facts(self) -> dict[str, Any]:
        """Its entry in twister's files: arch, simulation; only `arch` for a target without an entry."""
        others: list[dict[str, Any]] = []
        for directory in self.board.directories:
            for file in sorted(directory.glob("*.yaml")):
                data = _read_yaml(file)
                variants = data.pop("variants", {}) if file.name == "twister.yaml" else {}
                for name in self.aliases & variants.keys():
                    return {**data, **variants[name]}
                if data.get("identifier") in self.aliases:
                    return data
                if file.name == "twister.yaml" and directory == self.directory:
                    return data
                others.append(data)
        return {"arch": max(others, key=self._shared, default={}).get("arch", "")}

    def _shared(self, data: dict[str, Any]) -> int:
        """The number of name parts that another target of the board shares with this."""
        return len({*str(data.get("identifier", "")).split("/")} & {*self.identifier.split("/")})

    @staticmethod
    def _present(directories: Iterable[Path], stems: Iterable[str], suffix: str) -> list[Path]:
        names = [f"{stem}{suffix}" for stem in stems]
        return [file for place in directories for name in names if (file := place / name).is_file()]


def find_board(workspace: Workspace, name: str, options: Sequence[str] = ()) -> BoardTarget:
    """The board target `name`. A SoC's name without the cluster's is its first cluster.

    options: CMake's, of which BOARD_ROOT, SOC_ROOT, DTS_ROOT and Zephyr's extra modules count.

    Raises NoSuchBoardError; ConfigurationError for a revision that the board does not have, and for
    qualifiers that are missing or wrong.
    """
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"{name!r} is no board", next_step="write BOARD[@REVISION][/QUALIFIERS]")
    roots = find_roots(workspace, options)
    board, revision, qualifiers = _renamed(workspace, name)
    listed = next(iter(_listed(workspace, roots, board)), None)
    if listed is None:
        near = did_you_mean(board, {item.name: item for item in list_boards(workspace, roots)})
        step = near or "`west boards` lists the boards"
        raise NoSuchBoardError(f"Zephyr {workspace.version} has no board {name!r}", next_step=step)
    active = _revision(workspace, listed, revision)
    return BoardTarget(listed, active, _qualifiers(listed, qualifiers), revision, roots)


def list_boards(workspace: Workspace, roots: Roots | None = None) -> tuple[ListedBoard, ...]:
    """All boards of the workspace and of `roots`."""
    return _listed(workspace, roots or find_roots(workspace), "")


def find_roots(workspace: Workspace, options: Sequence[str] = ()) -> Roots:
    """The roots of `options`, of the environment, of modules, and Zephyr's own."""
    given = dict(word.removeprefix("-D").split("=", 1) for word in options if "=" in word)
    modules = [(path, _module_settings(path)) for path in _modules(workspace, given)]

    def roots(variable: str) -> tuple[Path, ...]:
        own = _paths(given.get(variable, "")) + _paths(os.environ.get(variable, ""))
        ofs = [path / settings[key] for path, settings in modules if (key := variable.lower()) in settings]
        return tuple(dict.fromkeys([*own, *ofs, workspace.base]))

    return Roots(roots("BOARD_ROOT"), roots("SOC_ROOT"), roots("DTS_ROOT"))


def _modules(workspace: Workspace, given: dict[str, str]) -> list[Path]:
    values = [given.get(name, os.environ.get(name, "")) for name in _MODULE_VARIABLES]
    alone, *more = (_paths(value) for value in values)
    return [*(alone or projects_of(workspace)), *(path for paths in more for path in paths)]


def _paths(value: str) -> list[Path]:
    """The paths of a CMake list; relative paths start at the application."""
    return [firmware_root() / item for item in value.split(";") if item]


def _module_settings(module: Path) -> dict[str, str]:
    for name in ("module.yml", "module.yaml"):
        file = module / "zephyr" / name
        if file.is_file():
            build = _read_yaml(file).get("build") or {}
            return {key: str(value) for key, value in (build.get("settings") or {}).items()}
    return {}


def _renamed(workspace: Workspace, name: str) -> tuple[str, str, str]:
    """Board, revision and qualifiers of `name`, after the user's aliases and Zephyr's former names are
    resolved."""
    board, revision, qualifiers = _split(name)
    aliases = os.environ.get("ZEPHYR_BOARD_ALIASES", "")
    alias = _set_values(Path(aliases), "_BOARD_ALIAS").get(board) if aliases else None
    if alias:
        board, other, more = _split(alias)
        revision, qualifiers = revision or other, "/".join(filter(None, (more, qualifiers)))
    former = _set_values(workspace.base / "boards" / "deprecated.cmake", "_DEPRECATED")
    new = former.get("/".join(filter(None, (board, qualifiers))))
    if new:
        board, other, qualifiers = _split(new)
        if other and revision:
            message = f"{name}: the board is now {new}, so there is no revision {revision}"
            raise ConfigurationError(message, next_step=f"write {new}")
        revision = revision or other
    return board, revision, qualifiers


def _split(name: str) -> tuple[str, str, str]:
    match = _NAME.fullmatch(name)
    return (match["board"], match["revision"] or "", match["qualifiers"] or "") if match else (name, "", "")


def _set_values(file: Path, suffix: str) -> dict[str, str]:
    """The values of CMake's `set(NAME<suffix> VALUE)` in a file, by NAME."""
    try:
        text = file.read_text()
    except OSError:
        return {}
    return dict(re.findall(rf"(?m)^\s*set\(\s*(\S+){suffix}\s+([^\s)]+)", text))


@cache
def _listed(workspace: Workspace, roots: Roots, name: str) -> tuple[ListedBoard, ...]:
    """The boards that Zephyr's script lists; if `name` is given, only boards of this name."""
    script = workspace.base / "scripts" / "list_boards.py"
    words = [sys.executable, str(script), f"--arch-root={workspace.base}", f"--cmakeformat={_FORMAT}"]
    words += [f"--board-root={path}" for path in roots.boards if (path / "boards").is_dir()]
    words += [f"--soc-root={path}" for path in roots.socs]
    words += ["--board", name] if name else []
    ran = ask_tool(words)
    if ran.returncode != 0:
        said = ran.stderr.strip().splitlines()[-2:]
        raise ConfigurationError("Zephyr can't list its boards", details=said, next_step=f"run {words[1]}")
    return tuple(_parsed(line) for line in ran.stdout.splitlines() if "|" in line)


def _parsed(line: str) -> ListedBoard:
    values = {key: [item for item in rest if item != _NONE] for key, *rest in _fields(line)}
    first = {key: (rest[0] if rest else "") for key, rest in values.items()}
    return ListedBoard(
        name=first["NAME"],
        directories=tuple(map(Path, values["DIR"])),
        revision_format=first["REVISION_FORMAT"],
        revision_default=first["REVISION_DEFAULT"],
        revision_exact=first["REVISION_EXACT"] == "True",
        revisions=tuple(values["REVISIONS"]),
        socs=tuple(values["SOCS"]),
        qualifiers=tuple(values["QUALIFIERS"]),
    )


def _fields(line: str) -> Iterator[list[str]]:
    """Each field of a line, "NAME;VALUE;VALUE"."""
    return ([item for item in field.split(";") if item] for field in line.split("|"))


def _qualifiers(board: ListedBoard, given: str) -> str:
    if not board.qualifiers:
        return given
    if len(board.socs) == 1 and (not given or given.startswith("/")):
        given = board.socs[0] + given
    if given in board.qualifiers:
        return given
    within = [item for item in board.qualifiers if given and item.startswith(f"{given}/")]
    if within:
        return within[0]
    targets = ", ".join(f"{board.name}/{item}" for item in board.qualifiers)
    problem = f"has no target {board.name}/{given}" if given else "has several targets"
    raise ConfigurationError(f"the board {board.name} {problem}", next_step=f"name one of {targets}")


def _revision(workspace: Workspace, board: ListedBoard, given: str) -> str:
    """The revision whose files Zephyr takes: the given revision, or the highest revision below it unless it
    must be exact."""
    if not board.revision_format:
        if given:
            raise ConfigurationError(f"the board {board.name} has no revisions", next_step="leave it out")
        return ""
    if board.revision_format == "custom":
        return given or _custom_default(workspace, board)
    wanted = given or board.revision_default
    if board.revision_format == "major.minor.patch":
        wanted += ".0" * (2 - wanted.count("."))
    if wanted in board.revisions:
        return wanted
    if re.fullmatch(_REVISIONS[board.revision_format], wanted) and not board.revision_exact:
        below = [item for item in board.revisions if _key(item) < _key(wanted)]
        if below:
            return max(below, key=_key)
    known = ", ".join(board.revisions)
    raise ConfigurationError(f"the board {board.name} has no revision {given}", next_step=f"it has {known}")


def _key(revision: str) -> tuple[int, ...]:
    """Letters and numbers in their order."""
    return tuple(int(part) if part.isdigit() else ord(part[0]) for part in revision.split("."))


@cache
def _custom_default(workspace: Workspace, board: ListedBoard) -> str:
    """The default revision, which the board's own revision.cmake sets."""
    script = board.directories[0] / "revision.cmake"
    code = f'set(BOARD "{board.name}")\nset(BOARD_DIR "{board.directories[0]}")\n'
    code += f'set(CMAKE_MODULE_PATH "{workspace.base}/cmake/modules")\ninclude("{script}")\n'
    code += 'message("minrpc:${BOARD_REVISION}:")\n'
    words = ["cmake", "-P", "/dev/stdin"]
    try:
        ran = ask_tool(words, text=code)
    except MissingError:
        return ""  # Without CMake the build fails, too, and reports it.
    match = re.search(r"minrpc:(.*):", ran.stderr)
    return match[1] if match else ""


def _read_yaml(path: Path) -> dict[str, Any]:
    import yaml  # Zephyr's own scripts need PyYAML; other ports don't.

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # PyYAML's loader in C is ten times as fast.
    document: dict[str, Any] = yaml.load(path.read_text(), loader) or {}
    return document
