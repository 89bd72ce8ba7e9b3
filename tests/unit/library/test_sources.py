# SPDX-License-Identifier: Apache-2.0
"""Sources as a user writes them: lists, and texts in place of lists of one word."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from minrpc import ConfigurationError, Target
from minrpc.library import Sources
from minrpc.library.loading import firmware_from
from minrpc.library.toolset import toolset_of


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "one.c"
    path.write_text("")
    return path


@pytest.mark.parametrize(
    ("given", "flags"),
    [
        ("-O3", ("-O3",)),
        ("-O3 -DNAME='a b'", ("-O3", "-DNAME=a b")),
        (["-O3", "-g"], ("-O3", "-g")),
        ("", ()),
    ],
)
def test_flags(source: Path, given: str | list[str], flags: tuple[str, ...]) -> None:
    assert Sources.of(source, flags=given).flags == flags


@pytest.mark.parametrize(
    ("given", "defines"),
    [
        ("X=1", ("X=1",)),
        ("-DX=1 Y", ("X=1", "Y")),
        (["X=1", "-DY"], ("X=1", "Y")),
        ({"X": 1, "Y": "2"}, ("X=1", "Y=2")),
    ],
)
def test_defines(source: Path, given: str | list[str], defines: tuple[str, ...]) -> None:
    assert Sources.of(source, defines=given).defines == defines


def test_a_path_stands_for_a_list_of_it(source: Path, tmp_path: Path) -> None:
    made = Sources.of(str(source), include=str(tmp_path), headers=source, declare="int f(int)")
    assert (made.files, made.include, made.headers) == ((source,), (tmp_path,), (source,))
    assert made.declare == ("int f(int)",)


def test_a_header_may_lie_in_a_directory_of_include(source: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "regs.h").touch()
    directories = [tmp_path / "one", tmp_path / "two"]
    made = Sources.of("regs.h", include=directories, headers="regs.h")
    assert (made.files, made.headers) == ((tmp_path / "one" / "regs.h",),) * 2
    with pytest.raises(ConfigurationError, match=r"there is no file g\.h") as caught:
        Sources.of(source, include=directories, headers="g.h")
    assert "name its directory in include" in str(caught.value)


def test_an_open_quote_is_told(source: Path) -> None:
    with pytest.raises(ConfigurationError, match="no closing quotation"):
        Sources.of(source, flags="-DX='a")


def test_a_directory_of_headers_that_is_missing_is_told(source: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no directory /nope"):
        Sources.of(source, include=["/nope"])


@pytest.mark.parametrize("given", [5, None, [5]])
def test_other_than_paths_is_told(given: Any) -> None:  # noqa: ANN401 - also values of wrong types
    with pytest.raises(TypeError, match="a path or a list of paths is expected, not "):
        Sources.of(given)


@pytest.mark.parametrize("given", [5, [5]])
def test_other_than_texts_is_told(source: Path, given: Any) -> None:  # noqa: ANN401
    with pytest.raises(TypeError, match="a text or a list of texts is expected, not "):
        Sources.of(source, flags=given)


def test_a_pattern_stands_for_its_files(tmp_path: Path) -> None:
    directory = tmp_path / "a[b]"
    directory.mkdir()
    for name in ("two.c", "one.c", "note.txt"):
        (directory / name).write_text("")
    assert Sources.of(directory / "*.c").files == (directory / "one.c", directory / "two.c")
    assert Sources.of(directory / "one.c").files == (directory / "one.c",)
    with pytest.raises(ConfigurationError, match=r"there is no file .*/\*\.cpp"):
        Sources.of(directory / "*.cpp")


@pytest.mark.parametrize("text", ["int f(int **p) { return **p; }", "int f(void);\n" * 30, "x" * 256 + ".c"])
def test_a_text_in_place_of_a_file_is_told(source: Path, text: str) -> None:
    told = r"not a file's name: (.{0,60}\.\.\.|.* return \*\*p; })\n"
    for files, more in ((text, {}), (source, {"include": text}), (source, {"libraries": [text]})):
        with pytest.raises(ConfigurationError, match=told) as caught:
            Sources.of(files, **more)
        assert caught.value.next_step == "write C to a file, and name the file"


def test_a_pattern_that_no_python_takes_names_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"there is no file .*/\*\*b\.c"):
        Sources.of(tmp_path / "**b.c")


def test_a_path_that_is_not_utf8_is_told(tmp_path: Path) -> None:
    directory = Path(os.fsdecode(bytes(tmp_path) + b"/d\xff"))
    directory.mkdir()
    (directory / "f.c").touch()
    (tmp_path / "f.c").symlink_to(directory / "f.c")
    assert Sources.of(tmp_path / "f.c").files == (tmp_path / "f.c",)
    for given in (directory / "f.c", str(directory / "*.c")):
        with pytest.raises(ConfigurationError, match=r"the path /.*/d\\xff/f.c is not UTF-8") as caught:
            Sources.of(given)
        assert "symbolic link" in caught.value.next_step
    for options in (
        {"include": [directory]},
        {"flags": [f"-I{directory}"]},
        {"headers": [directory / "f.c"]},
    ):
        with pytest.raises(ConfigurationError, match=r"/d\\xff"):
            Sources.of(tmp_path / "f.c", **options)


@pytest.mark.parametrize(("level", "found"), [(0, 0), (1, 1), (2, 2), (3, 0)])
def test_a_programs_build_is_beside_it_or_up_to_two_directories_above(
    tmp_path: Path, level: int, found: int
) -> None:
    elf = tmp_path / "b" / "c" / "d" / "program.elf"
    elf.parent.mkdir(parents=True)
    shutil.copy("/bin/true", elf)
    (elf.parents[level] / "compile_commands.json").write_text("[]")
    firmware = firmware_from(Target.named("posix"), elf)
    assert (firmware.build_dir, firmware.cached) == (elf.parents[found], True)


def test_code_has_the_flags_of_its_firmware_that_change_code(tmp_path: Path) -> None:
    elf = tmp_path / "program.elf"
    shutil.copy("/bin/true", elf)
    notes = "-MD -MF a.o.d -MT a.o -Wa,--MD,a.o.as.d -o a.o -c a.c"
    command = f"cc -Wall -std=c11 -g -O2 -Wa,-mtune=i686 -DA=1 -DMINRPC_X=1 -Iinclude {notes}"
    entry = {"directory": str(tmp_path), "command": command, "file": "a.c"}
    (tmp_path / "compile_commands.json").write_text(json.dumps([entry]))
    toolset = toolset_of(firmware_from(Target.named("posix"), elf))
    assert toolset.flags == ("-O2", "-Wa,-mtune=i686", "-DA=1")
