# SPDX-License-Identifier: Apache-2.0
"""Boards at serial ports share one queue of candidates: results are the same as of one device, even if boards
die."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from minrpc import BoardLostError, LoadError, Target, build
from minrpc.cli import main
from minrpc.tuning import Kernel, Space, tune

from tests.native import of_another_build
from tests.unit.plugin import board as board_program

SOURCE = Path(__file__).parents[2] / "device/c/tuned.c"
A = np.arange(64, dtype=np.int8)
KERNEL = Kernel(SOURCE, "dot", (A, A, 64), lambda a, b, n: int(np.dot(a.astype(int), b.astype(int))))
# The reset command returns when the board has restarted.
RESET = "sh -c 'rm -f $0.reset; kill -USR1 $(cat $0.pid); until [ -e $0.reset ]; do sleep 0.02; done' {port}"
TARGET = Target.named("posix", session_timeout_s=1.0)

Board = tuple[str, "subprocess.Popen[str]"]


@pytest.fixture
def boards(compiler_here: None, tmp_path: Path) -> Iterator[list[Board]]:
    """Two boards: their ports and their processes."""
    elf = str(build(TARGET).elf)
    started: list[Board] = []
    for name in ("one", "two"):
        path = tmp_path / name
        argv = [sys.executable, board_program.__file__, elf, str(path)]
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        path.with_suffix(".pid").write_text(process.stdout.readline())
        started.append((str(path), process))
    yield started
    for _, process in started:
        process.communicate()


def ports(boards: list[Board]) -> list[str]:
    return [port for port, _ in boards]


@pytest.mark.slow
def test_two_boards_say_what_one_device_says(boards: list[Board]) -> None:
    """A crash and a hang cost a reset each; both are tried again alone."""
    space = Space({"UNROLL": ["1", "4"], "FAULT": ["0", "3", "0", "4", "5", "1"]}, [("-O1",), ("-O2",)])
    firmware = build(TARGET.changed(reset_command=RESET))
    found = {
        item.candidate.number: item.outcome
        for item in tune(KERNEL, space, firmware, call_timeout_s=2.0, ports=ports(boards))
    }
    due = {"0": "correct", "1": "compile", "3": "crash", "4": "hang", "5": "wrong"}
    wanted = {item.number: due[dict(item.defines)["FAULT"]] for item in space}
    # The end of a board that is a process is not reported: no answer comes.
    assert {number: outcome.replace("crash", "hang") for number, outcome in found.items()} == {
        number: outcome.replace("crash", "hang") for number, outcome in wanted.items()
    }


def test_a_board_that_goes_costs_no_candidate(boards: list[Board]) -> None:
    space = Space({"UNROLL": ["1", "2", "4", "8"]}, [("-O1",), ("-O2",), ("-O3",)])
    outcomes = []
    for result in tune(KERNEL, space, build(TARGET), ports=ports(boards)):
        outcomes.append(result.outcome)
        if len(outcomes) == 2:
            boards[0][1].kill()
    # A busy machine disturbs the clock of a process, which is told as "clock".
    assert len(outcomes) == len(space)
    assert set(outcomes) <= {"correct", "clock"}


@pytest.mark.slow
def test_a_candidate_that_hangs_a_board_is_tried_again_on_another(
    boards: list[Board], caplog: pytest.LogCaptureFixture
) -> None:
    """The boards can't be reset: the board is lost, and the run goes on."""
    space = Space({"FAULT": ["4", "0", "0", "0"]})
    tried = tune(KERNEL, space, build(TARGET), call_timeout_s=0.3, ports=ports(boards))
    assert {item.candidate.number: item.outcome for item in tried} == {
        0: "hang",
        1: "correct",
        2: "correct",
        3: "correct",
    }
    assert "does not answer any more; 1 left" in caplog.text


def test_a_candidate_that_ends_the_last_board_has_its_verdict(boards: list[Board]) -> None:
    found = {}

    def all_of_it() -> None:
        space = Space({"FAULT": ["4", "0", "0", "0"]})
        for result in tune(KERNEL, space, build(TARGET), call_timeout_s=0.3, ports=ports(boards)[:1]):
            found[result.candidate.number] = result

    with pytest.raises(BoardLostError, match="does not answer any more") as caught:
        all_of_it()
    assert {number: item.outcome for number, item in found.items()} == {0: "hang"}
    assert "does not answer any more" in found[0].reason
    assert "reset_command" in caught.value.next_step


@pytest.mark.slow
def test_from_the_command_line(
    boards: list[Board], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(boards[0][0]).parent)
    at = [word for port in ports(boards) for word in ("--serial-port", port)]
    tuned = ["tune", str(SOURCE), "dot", "--param", "UNROLL=1,2,4"]
    given = ["--arg", "int8[64]", "--arg", "int8[64]", "--arg", "64", "--platform", "posix"]
    assert main([*tuned, *given, *at]) == 0
    assert "3 tried: 3 ran, without --check no result was compared" in capsys.readouterr().out
    assert main([*tuned, *given, *at, "--jobs", "2"]) != 0
    assert "--jobs is for devices that are started here" in capsys.readouterr().err
    Path("again").symlink_to(ports(boards)[0])
    assert main([*tuned, *given, *at, "--serial-port", "again"]) != 0
    assert "--serial-port names a board twice" in capsys.readouterr().err
    assert main([*tuned, *given[:-2], *at]) != 0
    assert "the running program is unknown at" in capsys.readouterr().err
    assert main([*tuned, *given[:-2], *at, "--elf", str(build(TARGET).elf)]) == 0


def test_another_firmware_is_refused(boards: list[Board], tmp_path: Path) -> None:
    firmware = build(TARGET.changed(reset_command="touch {port}.reset"))
    other = replace(firmware, elf=of_another_build(firmware.elf, tmp_path / "other"))
    with pytest.raises(LoadError, match=r"runs build \w{16}, other is build"):
        list(tune(KERNEL, Space({"UNROLL": ["1"]}), other, ports=ports(boards)))
    # A board that was not spoiled is not reset.
    assert not any(Path(f"{port}.reset").exists() for port in ports(boards))
