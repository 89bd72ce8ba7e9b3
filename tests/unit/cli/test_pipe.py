# SPDX-License-Identifier: Apache-2.0
"""`minrpc serve --pipe`: a program that is a device, as TVM's PopenSession runs it."""

from __future__ import annotations

import os
import select
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from minrpc.cli import main
from minrpc.wire.requests import CallFunc

from tests.device.tvm_client import LIMIT_S, RefusedError, TvmClient


@contextmanager
def running(program: Path) -> Iterator[tuple[subprocess.Popen[str], socket.socket]]:
    """The process, and the test's end of its only descriptor, which carries both directions."""
    ours, its = socket.socketpair()
    ours.settimeout(LIMIT_S)
    with ours, its:
        command = [str(program), str(its.fileno()), str(its.fileno())]
        with subprocess.Popen(command, pass_fds=[its.fileno()], stderr=subprocess.PIPE, text=True) as process:
            its.close()
            try:
                yield process, ours
            finally:
                ours.close()
                process.wait(LIMIT_S)


@pytest.fixture
def program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    file = tmp_path / "device"
    assert main(["serve", "--pipe", str(file)]) == 0
    assert capsys.readouterr().out == f'try: tvm.rpc.client.PopenSession("{file}")\n'
    return file


@pytest.mark.parametrize("today", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_it_serves_one_client(program: Path, today: bool) -> None:
    with running(program) as (process, pipe):
        with TvmClient(0, today, pipe=pipe) as client:
            assert client.call(client.library_function("inc"), 41) == 42
        assert process.wait(LIMIT_S) == 0


def test_a_platform_of_the_users_wherever_it_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.toml").write_text('[platforms.mine]\nextends = "posix"\n')
    monkeypatch.chdir(tmp_path)
    assert main(["serve", "--pipe", "device", "--platform", "mine", "--platforms-file", "mine.toml"]) == 0
    monkeypatch.chdir("/")
    with running(tmp_path / "device") as (_, pipe), TvmClient(0, True, pipe=pipe) as client:
        assert client.call(client.library_function("inc"), 41) == 42


def test_a_platform_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TVM starts the program in another directory, with another nearest minrpc.toml."""
    (tmp_path / "minrpc.toml").write_text('[platforms.mine]\nextends = "posix"\n')
    monkeypatch.chdir(tmp_path)
    assert main(["serve", "--pipe", "device", "--platform", "mine"]) == 0
    monkeypatch.chdir("/")
    with running(tmp_path / "device") as (_, pipe), TvmClient(0, True, pipe=pipe) as client:
        assert client.call(client.library_function("inc"), 41) == 42


def test_a_platform_that_has_gone(tmp_path: Path) -> None:
    """The client gets the error in its own packing: an answer in another packing ends its whole process."""
    file = tmp_path / "mine.toml"
    file.write_text('[platforms.mine]\nextends = "posix"\n')
    given = ["--platform", "mine", "--platforms-file", str(file)]
    assert main(["serve", "--pipe", str(tmp_path / "device"), *given]) == 0
    file.unlink()
    with (
        running(tmp_path / "device") as (process, pipe),
        TvmClient(0, True, pipe=pipe) as client,
        pytest.raises(RefusedError, match=r"mine\.toml can't be read"),
    ):
        client.function("ffi.SystemLib")
    assert process.returncode == 0


def test_a_device_that_crashed_says_so(program: Path) -> None:
    with (
        running(program) as (process, pipe),
        TvmClient(0, True, pipe=pipe) as client,
        pytest.raises(RefusedError, match="killed by SIGSEGV"),
    ):
        client.call(client.library_function("testing.crash"))
    assert process.returncode == 0


def test_a_client_that_goes_away_ends_what_runs(program: Path) -> None:
    with running(program) as (process, pipe), TvmClient(0, True, pipe=pipe) as client:
        client.send(CallFunc(client.library_function("testing.hang"), []))
    assert process.returncode == 0


def test_who_is_no_client(program: Path) -> None:
    with running(program) as (process, pipe):
        pipe.sendall(b"\xff" * 8)
        assert process.stderr is not None
        assert process.stderr.read() == f"minrpc: a packet of {(1 << 64) - 1} bytes\n"
    assert process.returncode == 1


def test_killed_it_leaves_no_device_behind(program: Path) -> None:
    """SIGKILL is TVM's way to end the program."""
    with running(program) as (process, pipe), TvmClient(0, True, pipe=pipe) as client:
        assert client.call(client.library_function("inc"), 1) == 2
        (device,) = children_of(process.pid)
        watched = os.pidfd_open(device)
        process.kill()
        with os.fdopen(watched):
            assert select.select([watched], [], [], LIMIT_S)[0]


def children_of(pid: int) -> list[int]:
    return [
        int(word)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for word in (task / "children").read_text().split()
    ]


def test_what_does_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--pipe", str(tmp_path / "device"), "--platforms-file", "none.toml"]) == 2
    assert "none.toml" in capsys.readouterr().err
    for name in ("nope", "posix,bare_mps2_an385", "all"):
        assert main(["serve", "--pipe", str(tmp_path / "device"), "--platform", name]) == 2
        assert f"there is no platform '{name}'" in capsys.readouterr().err
    assert not (tmp_path / "device").exists()
    assert main(["serve", "--pipe", str(tmp_path / "no" / "device")]) == 2
    assert "can't be written" in capsys.readouterr().err
