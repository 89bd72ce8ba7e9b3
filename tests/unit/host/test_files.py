# SPDX-License-Identifier: Apache-2.0
"""Results replace files, and nothing else."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from minrpc import ConfigurationError
from minrpc.host.files import change_whole, check_writable, write_output, write_whole
from minrpc.plugin.hooks import start_coverage
from minrpc.reports.figures import check_target, save_figure


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text("before")
    file.chmod(0o640)
    write_whole(file, "after")
    assert file.read_text() == "after"
    assert file.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_stays_one_and_what_it_points_to_is_replaced(tmp_path: Path) -> None:
    directory = tmp_path / "elsewhere"
    directory.mkdir()
    link = tmp_path / "latest.json"
    link.symlink_to(directory / "result.json")
    check_writable(link)
    write_whole(link, "one")
    change_whole(link, lambda text: f"{text} two")
    assert link.is_symlink()
    assert (directory / "result.json").read_text() == "one two"


def test_changes_at_once_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "kept"
    together = threading.Barrier(8)

    def add(letter: str) -> None:
        together.wait()
        for _ in range(20):
            change_whole(file, lambda text: (text or "") + letter)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, "abcdefgh"))
    assert sorted(file.read_text()) == sorted("abcdefgh" * 20)
    assert list(tmp_path.iterdir()) == [file]


def test_what_is_no_file_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_writable(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, "text")
    reader.join(timeout=10)
    assert read == ["text"]
    assert pipe.is_fifo()


def test_a_directory_can_not_be_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="it is a directory"):
        check_writable(tmp_path)


def test_a_picture_is_refused_before_the_work_where_nothing_can_be_written() -> None:
    if not Path("/proc/self").is_dir():
        pytest.skip("there is no directory that nobody may write to")
    with pytest.raises(ConfigurationError, match="can't be written"):
        check_target(Path("/proc/self/times.png"))


def test_a_full_disk_is_blamed_on_the_file_that_was_named() -> None:
    full = "/dev/full can't be written: No space left on device"
    with pytest.raises(ConfigurationError, match=full):
        write_output(Path("/dev/full"), "text")
    with Path("/dev/full").open("w") as stream, pytest.raises(ConfigurationError, match=full):
        save_figure(SimpleNamespace(savefig=lambda _: os.write(stream.fileno(), b"text")), Path("/dev/full"))


def test_a_special_file_has_no_text_to_change() -> None:
    """/dev/full has no end."""
    before: list[str | None] = [""]

    def changed(text: str | None) -> str:
        before.append(text)
        return ""

    change_whole(Path("/dev/zero"), changed)
    assert before[-1] is None


def test_a_special_file_is_no_coverage_of_before(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lines.info")
    start_coverage(tmp_path / "lines.info")
    assert (tmp_path / "lines.info").is_fifo()
