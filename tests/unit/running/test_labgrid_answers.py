# SPDX-License-Identifier: Apache-2.0
"""The answers of labgrid's client, from a program of the test's own; test_labgrid.py has labgrid itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from minrpc import AmbiguousBoardError, BoardBusyError, ConfigurationError, HarnessError
from minrpc.host.owned_lock import DIRECTORY_VARIABLE, holder_of
from minrpc.running.labgrid import acquire

ENV = """# of the place
targets:
  desk:
    resources:
    - NetworkSerialPort: {name: debug, host: rack, port: 7, protocol: raw}
    - NetworkPowerPort: {name: power}
"""
POWER = ENV.replace("NetworkSerialPort", "NetworkPowerPort")
SECOND = "    - NetworkSerialPort: {name: log, host: rack, port: 8}\n"
FINE = {
    "acquire": (0, ""),
    "show": (0, "  changed: noon\n"),
    "env": (0, ENV),
    "power": (0, ""),
    "release": (0, ""),
}


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the answers, each with its status; "asked" has the actions."""
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "locks"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    program = tmp_path / "labgrid-client"
    program.write_text('#!/bin/sh\ncd "$(dirname "$0")"\necho $3 >>asked\ncat $3\nexit $(cat $3.status)\n')
    program.chmod(0o755)
    return tmp_path


def answer(client: Path, **answers: tuple[int, str]) -> None:
    for action, (status, output) in {**FINE, **answers}.items():
        (client / action).write_text(output)
        (client / f"{action}.status").write_text(str(status))


def asked(client: Path) -> list[str]:
    return (client / "asked").read_text().split()


def test_a_place_is_acquired_and_released(client: Path) -> None:
    answer(client)
    place = acquire("labgrid:desk")
    assert (place.url, place.ours) == ("socket://rack:7", True)
    assert place.power_command.endswith("labgrid-client -p desk power cycle")
    assert holder_of("labgrid:desk") is not None
    place.release()
    assert holder_of("labgrid:desk") is None
    assert asked(client) == ["acquire", "show", "env", "power", "release"]


def test_a_port_by_its_name_without_power(client: Path) -> None:
    answer(client, env=(0, ENV + SECOND), power=(1, "no compatible resource"))
    place = acquire("labgrid:desk/log")
    assert (place.url, place.power_command) == ("rfc2217://rack:8", "")
    place.release()


@pytest.mark.parametrize(("changed", "ours"), [("noon", True), ("later", False)])
def test_a_place_that_was_acquired_before(client: Path, changed: str, ours: bool) -> None:
    """By a run that was killed, or by the user since then."""
    answer(client)
    killed = acquire("labgrid:desk")
    assert killed.lock is not None
    killed.lock.release()
    answer(client, acquire=(1, "You have already acquired desk"), show=(0, f"  changed: {changed}\n"))
    acquire("labgrid:desk").release()
    assert ("release" in asked(client)) is ours


@pytest.mark.parametrize(
    ("link", "action", "status", "output", "error", "text"),
    [
        ("labgrid:desk", "acquire", 1, "already acquired by ann/x.", BoardBusyError, "ann/x"),
        ("labgrid:desk", "acquire", 1, "no network", HarnessError, "acquire of the place desk failed"),
        ("labgrid:desk", "show", 2, "", HarnessError, "show of the place desk failed"),
        ("labgrid:desk", "show", 0, "nothing", HarnessError, "no time of change"),
        ("labgrid:desk", "env", 1, "", HarnessError, "env of the place desk failed"),
        ("labgrid:desk", "env", 0, ENV + SECOND, AmbiguousBoardError, "labgrid:desk/log"),
        ("labgrid:desk/jtag", "env", 0, ENV, ConfigurationError, "name one of debug"),
        ("labgrid:desk", "env", 0, POWER, ConfigurationError, "it has NetworkPowerPort"),
        ("labgrid:desk", "power", 1, "no matching remote resource", HarnessError, "start labgrid-exporter"),
    ],
)
def test_what_is_wrong_is_told_and_the_place_is_released(
    client: Path, link: str, action: str, status: int, output: str, error: type[HarnessError], text: str
) -> None:
    answer(client, **{action: (status, output)})
    with pytest.raises(error) as caught:
        acquire(link)
    assert text in str(caught.value)
    assert ("release" in asked(client)) is (action != "acquire")
