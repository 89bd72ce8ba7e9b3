# SPDX-License-Identifier: Apache-2.0
"""The inputs of a compilation as the compiler itself tells them. No I/O here.

    -MD, --MD   the files that the preprocessor and the assembler have read
    -v          the programs that ran, their options, and the directories of headers, also missing ones
    the text of the files: headers that __has_include has not found

A text may ask for an input that none of these tells: such a compilation is never taken from a cache.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

PREPROCESSED: Final = "source.d"
ASSEMBLED: Final = "source.as.d"
"""The dependency files of a compiler and of its assembler, in the directory of the compilation."""

_SEARCHED: Final = re.compile(r"^#include [<\"].*search starts here:\n((?: .*\n)*)", re.MULTILINE)
_MISSING: Final = re.compile(r'^ignoring (?:nonexistent|duplicate) directory "(.*)"$', re.MULTILINE)
_SPECS: Final = re.compile(r"^Reading specs from (.*)$", re.MULTILINE)
_PROGRAMS: Final = re.compile(r"^COMPILER_PATH=(.*)$", re.MULTILINE)
_COMMAND: Final = re.compile(r"^ (?:\S*/)?\S+ .*-.*$", re.MULTILINE)
_PLACE: Final = re.compile(r"-(?:I|isystem|iquote|idirafter)(.*)")

PROGRAM_NAMES: Final = frozenset({"cc1", "cc1plus", "as", "specs"})
"""The programs that a compiler searches, and the file of its options."""

_ASKED: Final = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+__has_\w+.*"
    r"|__has_(?:include(?:_next)?|embed)[ \t]*\([ \t]*(?:<([^>\n]*)>|\"([^\"\n]*)\")?",
    re.MULTILINE,
)
_TIME: Final = re.compile(rb"__(?:TIME|DATE|TIMESTAMP)__")
_BYTES: Final = re.compile(rb"incbin")
# Options by which a compiler reads files that it does not tell.
_UNTOLD: Final = re.compile(r"@.*|-fprofile-use.*|-fauto-profile.*|-fbranch-probabilities|-wrapper.*")


@dataclass(frozen=True, slots=True)
class CompilerNotes:
    """The answer to -v, with the words of the command. Paths are as the compiler names them.

    programs: and their specs. options: paths that options name, of files or of other things.
    directories: in which headers, and files of the assembler, are searched, also missing directories.
    program_places: directories in which the compiler searches its programs.
    """

    programs: frozenset[str]
    options: frozenset[str]
    directories: frozenset[str]
    program_places: frozenset[str]


def noting(command: Sequence[str], *, preprocessed: bool = True, assembled: bool = True) -> list[str]:
    """The command with the options by which the compiler tells its inputs."""
    rules = ["-MD", "-MF", PREPROCESSED] if preprocessed else []
    return [*command, "-v", *rules, *([f"-Wa,--MD,{ASSEMBLED}"] if assembled else [])]


def notes_of(command: Sequence[str], told: str) -> CompilerNotes:
    """Reads the output of a compiler that was started with -v."""
    commands = [command, *(_words(line) for line in _COMMAND.findall(told))]
    lists = "".join(_SEARCHED.findall(told)).splitlines()
    named = {place for words in commands for place in _places(words)}
    listed = [place for line in _PROGRAMS.findall(told) for place in line.split(":")]
    given = [word.removeprefix("-B") for word in command if word.startswith("-B")]
    return CompilerNotes(
        programs=frozenset([*(words[0] for words in commands), *_SPECS.findall(told)]),
        options=frozenset(path for words in commands for word in words[1:] for path in _paths(word)),
        directories=frozenset([*(line[1:] for line in lists), *_MISSING.findall(told), *named]),
        program_places=frozenset(place.rstrip("/") for place in [*listed, *given] if place),
    )


def files_of_rule(text: str) -> list[str]:
    """The prerequisites of the first rule of a dependency file."""
    rule = re.sub(r"\\\r?\n", " ", text).partition("\n")[0].partition(": ")[2]
    return [
        item.replace("\\ ", " ").replace("\\#", "#").replace("$$", "$")
        for item in re.findall(r"(?:\\ |\S)+", rule)
    ]


def looked_for(
    read: Iterable[str], directories: Iterable[str], asked: Iterable[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Directories and names: a file of these names in one of them would be read before, or beside, the
    files that were read.

    read: the headers. asked: headers by the name that __has_include has, such as "deep/k.h".
    """
    places = frozenset(directories)
    below = {path[len(place) + 1 :] for path in read for place in places if path.startswith(f"{place}/")}
    operands = [operand for operand in (*below, *asked) if operand and not operand.startswith("/")]
    deep = {os.path.dirname(operand) for operand in operands}
    names = {os.path.basename(operand) for operand in operands}
    # A directory may itself be new: its name counts in the directory above.
    return (
        frozenset(f"{place}/{inner}" if inner else place for place in places for inner in deep),
        frozenset([*names, *(f"{name}.gch" for name in names)]),
    )


@dataclass(frozen=True, slots=True)
class AskedFiles:
    """asked: headers that __has_include names. unsure: the reason why there may be further inputs, or ""."""

    asked: frozenset[str]
    unsure: str


def asked_files(texts: Mapping[str, bytes], *, times: bool, bytes_told: bool) -> AskedFiles:
    """Reads the texts of the files that were read.

    times: the time of the compilation counts. bytes_told: the assembler has told its files.
    """
    asked: set[str] = set()
    reasons: dict[str, str] = {}
    for path, text in texts.items():
        if b"__has_" in text:
            for match in _ASKED.finditer(text.decode(errors="replace")):
                name = match[1] or match[2]
                if name:
                    asked.add(name)
                elif not match[0].lstrip().startswith("#"):
                    reasons[path] = "__has_include of a macro"
        if times and _TIME.search(text):
            reasons[path] = "the time of the compilation"
        if not bytes_told and _BYTES.search(text):
            reasons[path] = "a file that the assembler reads"
    return AskedFiles(frozenset(asked), "; ".join(f"{path}: {reason}" for path, reason in reasons.items()))


def untold_by(command: Iterable[str]) -> str:
    """The options by which a compiler reads files that it does not tell; "" if there are none."""
    return " ".join(word for word in command if _UNTOLD.fullmatch(word))


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line) if '"' in line else line.split()
    except ValueError:  # A path with a quotation mark: GCC does not quote it.
        return line.split()


def _places(words: Sequence[str]) -> Iterator[str]:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option = _PLACE.fullmatch(word)
        if option:
            yield option[1] or following


def _paths(word: str) -> Iterator[str]:
    """The word, or the parts of an option, that are absolute paths."""
    for part in re.split(r"[=,]", word.removeprefix("@")):
        if part.startswith("/"):
            yield part
