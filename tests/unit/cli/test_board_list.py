# SPDX-License-Identifier: Apache-2.0
"""`minrpc board list`, `scan` and `release`, for ports as pyserial lists them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from minrpc.host.owned_lock import DIRECTORY_VARIABLE, take
from minrpc.running.lease import key_of, put_into_quarantine
from minrpc.targets import load_hardware_map
from minrpc.transport import ports
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

Minrpc = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def connected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ports of an ST-Link, and a port without USB."""
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "locks"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "by-id").mkdir()
    found = []
    for interface in (0, 2):
        port = ListPortInfo(str(tmp_path / f"ttyACM{interface}"))
        Path(port.device).touch()
        port.vid, port.pid, port.serial_number, port.product = 0x0483, 0x374E, "0011", "STLINK-V3"
        port.location = f"1-1:1.{interface}"
        (tmp_path / "by-id" / f"usb-STLINK-V3_0011-if{interface:02}").symlink_to(port.device)
        found.append(port)
    monkeypatch.setattr(list_ports, "comports", lambda: [*found, ListPortInfo("/dev/ttyS0")])
    monkeypatch.setattr(ports, "BY_ID", tmp_path / "by-id")


def test_scan_writes_a_map_that_is_read_again(minrpc: Minrpc, tmp_path: Path) -> None:
    status, text, err = minrpc("board", "scan")
    assert status == 0
    assert "write the board's name for platform:" in err
    (tmp_path / "map.yml").write_text(text.replace("unknown", "nucleo_h743zi"))
    first, second = load_hardware_map(tmp_path / "map.yml")
    assert (first.id, first.runner, first.platforms) == ("0011", "openocd", ("nucleo_h743zi",))
    assert second.serial.endswith("by-id/usb-STLINK-V3_0011-if02")
    _, again, err = minrpc("board", "scan", "--hardware-map", "map.yml")
    assert (again, err) == ((tmp_path / "map.yml").read_text(), "")


def test_list_says_what_it_is_who_has_it_and_why_it_is_out(minrpc: Minrpc, tmp_path: Path) -> None:
    (tmp_path / "map.yml").write_text(minrpc("board", "scan")[1].replace("unknown", "nucleo_h743zi"))
    first, second = load_hardware_map(tmp_path / "map.yml")
    lock = take(key_of(first.link))
    assert lock is not None
    put_into_quarantine(second, "session: not one byte came")
    status, out, _ = minrpc("board", "list", "--hardware-map", "map.yml", "--json", "list.json")
    assert status == 0
    other, *boards = json.loads((tmp_path / "list.json").read_text())["boards"]
    assert (other["link"], other["usb"], other["in_use"]) == ("/dev/ttyS0", "", "")
    assert [board["interface"] for board in boards] == ["if00", "if02"]
    assert boards[0]["in_use"].startswith("pid ")
    assert boards[0]["usb"] == "0483:374e"
    assert boards[1]["quarantine"].startswith("session: not one byte came (pid ")
    assert "platform       nucleo_h743zi" in out
    lock.release()
    assert minrpc("board", "release", "0011", "--hardware-map", "map.yml")[1] == "0011: may be used again\n"
    assert "in use" not in minrpc("board", "list")[1]
    status, _, err = minrpc("board", "release", "0012", "--hardware-map", "map.yml")
    assert (status, "has no board 0012" in err) == (2, True)
