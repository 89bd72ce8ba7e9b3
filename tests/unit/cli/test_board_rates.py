# SPDX-License-Identifier: Apache-2.0
"""A board whose UART has another baud rate than its port, on a wire that is true to the bit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from minrpc import HarnessError, Target, build, open_device
from minrpc.host.owned_lock import DIRECTORY_VARIABLE
from minrpc.pipeline import probing
from minrpc.targets import load_hardware_map
from serial.tools import list_ports

Minrpc = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parents[3]


@contextmanager
def board(path: Path, rate: int) -> Iterator[None]:
    """A board behind the terminal `path`, with a UART of this rate."""
    argv = [sys.executable, "-m", "tests.unit.plugin.board", str(build(Target.named("posix")).elf), str(path)]
    with subprocess.Popen(
        [*argv, str(rate)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield
        process.communicate()


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Own locks, no USB ports, and a short wait at each rate."""
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "locks"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(list_ports, "comports", list)
    monkeypatch.setattr(probing, "_ANSWER_S", 0.3)


@pytest.mark.parametrize("rate", [9600, 57600, 460800])
def test_another_rate_is_an_error_that_names_the_rate_and_the_command(tmp_path: Path, rate: int) -> None:
    port = tmp_path / "tty"
    with board(port, rate):
        with pytest.raises(HarnessError, match="at 115200 baud") as caught:
            open_device(serial_port=str(port), session_timeout_s=0.5).connect()
        assert f"`minrpc board scan --probe {port}` looks for it" in caught.value.next_step
        with open_device(serial_port=str(port), baud=rate) as device:
            assert device.system_lib()["inc"](1) == 2


@pytest.mark.parametrize("rate", [9600, 230400])
def test_a_probe_finds_the_rate(minrpc: Minrpc, tmp_path: Path, rate: int) -> None:
    port = tmp_path / "tty"
    with board(port, rate):
        status, text, err = minrpc("board", "scan", "--probe", str(port))
        assert (status, f"{port}: a board answers at {rate} baud, build " in err) == (0, True)
        (tmp_path / "map.yml").write_text(text.replace("unknown", "desk"))
        (entry,) = load_hardware_map(tmp_path / "map.yml")
        assert (entry.baud, entry.serial) == (rate, str(port))
        _, again, _ = minrpc("board", "scan", "--hardware-map", str(tmp_path / "map.yml"), "--probe")
        assert again == (tmp_path / "map.yml").read_text()
        target = Target.named("desk", hardware_map=tmp_path / "map.yml")
        with open_device(target) as device:
            assert device.system_lib()["inc"](1) == 2


def test_a_probe_tells_of_silence_and_of_ports_that_can_not_be_opened(
    minrpc: Minrpc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "RATES", (115200, 9600))
    with board(tmp_path / "tty", 300):
        _, text, err = minrpc("board", "scan", "--probe", str(tmp_path / "tty"))
    assert "baud" not in text
    assert f"{tmp_path}/tty: no answer at 9600, 115200 baud" in err
    status, text, err = minrpc("board", "scan", "--probe", str(tmp_path / "nowhere"))
    assert (status, text) == (1, "")
    assert f"{tmp_path}/nowhere is not there" in err
