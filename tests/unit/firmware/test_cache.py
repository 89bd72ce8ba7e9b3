# SPDX-License-Identifier: Apache-2.0
"""The errors that a user gets if the cache can't be written."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

import pytest
from minrpc import ConfigurationError
from minrpc.firmware import cache_home
from minrpc.firmware.cache import in_the_cache, kept, kept_file, scratch
from minrpc.firmware.store import program_with


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return cache_home()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_told_without_a_files_name(home: Path, number: int) -> None:
    def fill(_: Path) -> None:
        raise OSError(number, os.strerror(number))

    with pytest.raises(ConfigurationError, match=f"the cache can't be written: {home}: ") as caught:
        kept(home / "objects" / "one", fill)
    assert "make room in" in str(caught.value)
    assert not list((home / "objects").iterdir())


def test_a_file_where_a_directory_should_be(home: Path) -> None:
    for name in ("objects", "scratch"):
        (home / name).write_text("")
    with pytest.raises(ConfigurationError, match=r"the cache can't be written: .*objects"):
        kept(home / "objects" / "one", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"the cache can't be written: .*scratch"), scratch():
        pass


def test_what_the_block_can_not_write() -> None:
    with pytest.raises(ConfigurationError, match="the cache can't be written"), scratch() as directory:
        (directory / "none" / "x").write_text("")


@pytest.mark.parametrize("name", ["source.o", "thunks.c"])
def test_an_empty_file_is_made_again(tmp_path: Path, name: str) -> None:
    """A loss of power leaves such files; each later load failed."""

    def fill(directory: Path) -> None:
        (directory / name).write_bytes(b"content")

    made = kept(tmp_path / "key", fill) / name
    made.write_bytes(b"")
    assert (kept(tmp_path / "key", fill) / name).read_bytes() == b"content"


def test_a_program_is_found_while_another_process_removes_firmware(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        (home / "firmware" / name).mkdir(parents=True)
    program = home / "firmware" / "b" / "minrpc.elf"
    program.write_bytes(b"\x7fELF" + bytes.fromhex("0123cdef"))
    scandir = os.scandir

    def remove_after(path: str) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        with scandir(path) as entries:
            found = list(entries)
        for gone in ("a", "c"):
            with suppress(FileNotFoundError):
                (home / "firmware" / gone).rmdir()
        return nullcontext(iter(found))

    monkeypatch.setattr(os, "scandir", remove_after)
    assert program_with("0123cdef") == program
    assert program_with("4567cdef") is None


def test_what_is_no_affair_of_the_cache_goes_through(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), in_the_cache():
        (tmp_path / "none").read_text()


def test_a_kept_file_is_found_by_its_name_and_content() -> None:
    contents = [("a", b"b"), ("a", b"c"), ("ab", b""), ("b", b"b"), ("a", b"b")]
    files = [kept_file(name, content) for name, content in contents]
    assert len(set(files)) == 4
    assert files[0] == files[4]
    assert [path.read_bytes() for path in files] == [b"b", b"c", b"", b"b", b"b"]
