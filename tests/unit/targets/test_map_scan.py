# SPDX-License-Identifier: Apache-2.0
"""A map of an earlier scan, and the boards that are connected now."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from minrpc.targets.map_file import MapLoader, read_map
from minrpc.targets.map_scan import MapScan, scan
from minrpc.transport import ports
from serial.tools.list_ports_common import ListPortInfo

MAP = """\
# The rack in room 3.
- connected: true
  id: 0011   # the blue one
  platform: nucleo_h743zi
  product: STLINK-V3
  runner: openocd
  serial: /dev/ttyACM0
  baud: 921600
  probe_id: 0044
  fixtures: [gpio_loopback]
  flash_timeout: 90
  notes: 007
  post_script: /opt/off.sh
  of_a_later_twister: {a: 0x10}
- {id: away, platform: reel_board, product: x, runner: pyocd, serial: /dev/ttyACM9, connected: true}
- id: net
  connected: true
  platform: qemu_x86
  product: none
  runner: misc
  serial: rfc2217://rack:4000
"""


def port(number: int, serial: str | None, where: str = "1-1:1.0", product: str = "STLINK-V3") -> ListPortInfo:
    found = ListPortInfo(f"/dev/ttyACM{number}")
    found.vid, found.pid, found.serial_number, found.product = 0x0483, 0x374E, serial, product
    found.location = where
    return found


@pytest.fixture(autouse=True)
def _no_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "BY_ID", tmp_path)


def rescan(text: str, *found: ListPortInfo) -> MapScan:
    return scan(found, text, yaml.load(text, MapLoader))


def test_a_board_at_another_port_keeps_all_of_its_entry() -> None:
    result = rescan(MAP, port(3, "0011"))
    assert result.text == (
        MAP.replace("/dev/ttyACM0", "/dev/ttyACM3").replace("connected: true}", "connected: false}")
    )
    assert (result.notes, result.unnamed) == ((), ())
    assert rescan(result.text, port(3, "0011")).text == result.text
    assert rescan(result.text, port(3, "0011"), port(9, "away", "1-2:1.0")).text.count("connected: true") == 3


def test_the_probe_of_a_board_that_has_its_own_id() -> None:
    assert "serial: /dev/ttyACM5\n" in rescan(MAP, port(5, "0044")).text


def test_another_board_at_a_numbered_port_is_not_the_board_of_the_entry() -> None:
    result = rescan(MAP, port(0, "0099"))
    first, *_, new = yaml.load(result.text, MapLoader)
    assert (first["connected"], first["serial"]) == (False, "/dev/ttyACM0")
    assert (new["id"], new["platform"], new["serial"]) == ("0099", "unknown", "/dev/ttyACM0")
    assert result.notes == ("0011 is not connected: at /dev/ttyACM0 is STLINK-V3 0099 now",)
    assert result.text.startswith("# The rack")


def test_an_entry_without_ids_has_the_board_that_its_port_has_now() -> None:
    one = "- {id: unknown, platform: x, serial: /dev/ttyACM0, connected: true, product: STLINK-V3}\n"
    assert rescan(one, port(0, "0099")).text == one


def test_of_two_boards_with_one_id_the_product_decides() -> None:
    """Some makers give all of their boards one serial number."""
    one = "- {id: A, platform: x, serial: /dev/ttyACM9, connected: true, product: STLINK-V3}\n"
    result = rescan(one, port(1, "A", product="J-Link"), port(2, "A", "1-2:1.0"))
    assert result.text.startswith(one.replace("ACM9", "ACM2"))


TWO = """
- {id: A, platform: x, serial: /dev/ttyACM9, connected: true, product: STLINK-V3, runner: openocd}
- {id: A, platform: y, serial: /dev/ttyACM9, connected: true, product: STLINK-V3, runner: openocd}
- {id: A, platform: x, serial: /dev/ttyACM10, connected: true, product: STLINK-V3, runner: openocd}
"""


def test_the_ports_of_a_board_keep_their_order_and_its_variants_their_port() -> None:
    entries = yaml.safe_load(rescan(TWO, port(1, "A"), port(2, "A", "1-1:1.2")).text)
    assert [entry["serial"] for entry in entries] == ["/dev/ttyACM1", "/dev/ttyACM1", "/dev/ttyACM2"]


@pytest.mark.parametrize("where", ["1-1:1.2", "1-2:1.0"], ids=["one board", "two boards of one id"])
def test_the_port_is_not_guessed(where: str) -> None:
    """Makers give several boards one serial number."""
    one = (
        "- {id: A, platform: x, serial: /dev/ttyACM9, connected: true, product: STLINK-V3, runner: openocd}\n"
    )
    result = rescan(one, port(1, "A"), port(2, "A", where))
    assert result.text == one.replace("true", "false")
    step = "write one for serial: of its entry, and connected: true"
    assert result.notes == (f"A is at 2 ports (/dev/ttyACM1, /dev/ttyACM2): {step}",)
    chosen = one.replace("ACM9", "ACM2")
    assert rescan(chosen, port(1, "A"), port(2, "A", "1-1:1.2")).text == chosen


def test_a_name_under_by_id_decides_the_interface(tmp_path: Path) -> None:
    one = "- {id: A, platform: x, serial: /dev/serial/by-id/usb-X_A-if02, connected: true}\n"
    assert "serial: /dev/ttyACM2" in rescan(one, port(1, "A"), port(2, "A", "1-1:1.2")).text
    assert rescan(one, port(1, "A")).text.startswith(one.replace("true", "false"))
    (tmp_path / "usb-X_A-if02").symlink_to("/dev/ttyACM2")
    assert str(tmp_path / "usb-X_A-if02") in rescan(one, port(1, "A"), port(2, "A", "1-1:1.2")).text


def test_links_without_usb_stay(tmp_path: Path) -> None:
    (tmp_path / "pty").touch()
    text = f"- connected: true\n  id: a\n  platform: x\n  serial: {tmp_path / 'pty'}\n"
    text += "- connected: true\n  id: b\n  platform: x\n  serial_pty: /opt/b.py\n"
    assert rescan(text).text == text
    number = "- connected: true\n  id: b\n  platform: x\n  serial: 0011:if00\n"
    assert rescan(number, port(4, "0011")).text == number


@pytest.mark.parametrize(
    "text",
    [
        "[{id: A, platform: x, serial: /dev/ttyACM9}]",
        "- id: A\n  platform: x\n  serial:\n",
        "  - id: A\n    platform: x\n",
        "- &a {id: A, platform: [x, y], serial: /dev/ttyACM9}\n- <<: *a\n  platform: z\n",
        "- id: A\n  serial: &p /dev/ttyACM9\n  notes: *p\n  platform: x",
        "---\n- id: A\n  serial: 'no'\n  platform: x\n...\n",
        "- {connected: yes, id: A, serial: /dev/ttyACM1, platform: x}",
    ],
)
def test_each_way_to_write_a_map(text: str) -> None:
    before = yaml.load(text, MapLoader)
    result = yaml.load(rescan(text, port(1, "A"), port(2, "B", "1-2:1.0")).text, MapLoader)
    assert len(result) == len(before) + 1
    for entry, old in zip(result, before, strict=False):
        assert entry == {**old, "connected": True, "serial": "/dev/ttyACM1"} | {
            key: entry[key] for key in ("notes",) if key in entry
        }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "- id: A\r\n  serial: /dev/x # why\r\n",
            "- connected: true\r\n  id: A\r\n  serial: /dev/ttyACM1 # why\r\n",
        ),
        (
            "# why\n- id: A\n  serial: >-\n    /dev/x\n  connected: true\n",
            "# why\n- id: A\n  serial: /dev/ttyACM1\n  connected: true\n",
        ),
        (
            "[{id: A, serial: /dev/x, connected: true}] # why\n",
            "[{id: A, serial: /dev/ttyACM1, connected: true}] # why\n",
        ),
        (
            "- id: A # why\n  serial:\n  connected: true\n",
            "- id: A # why\n  serial: /dev/ttyACM1\n  connected: true\n",
        ),
    ],
    ids=["CRLF", "folded", "flow", "empty"],
)
def test_a_text_is_changed_in_its_places(text: str, expected: str) -> None:
    result = rescan(text, port(1, "A"))
    assert (result.text, result.notes) == (expected, ())
    more = rescan(text, port(1, "A"), port(2, "B", "1-2:1.0"))
    assert "# why" in more.text
    assert more.text.count("\r\n") == (more.text.count("\n") if "\r" in text else 0)
    assert yaml.load(more.text, MapLoader)[1]["serial"] == "/dev/ttyACM2"


def test_a_text_that_can_not_be_changed_in_its_places_is_told() -> None:
    result = rescan("- id: A\n  serial: &p /dev/x  # why\n  notes: *p\n", port(1, "A"))
    entry = {"id": "A", "serial": "/dev/ttyACM1", "notes": "/dev/x", "connected": True}
    assert yaml.safe_load(result.text) == [entry]
    (note,) = result.notes
    assert "written anew, without its comments" in note


def test_a_map_that_the_shell_emptied(tmp_path: Path) -> None:
    (tmp_path / "map.yml").touch()
    with pytest.raises(Exception, match="is empty") as caught:
        read_map(tmp_path / "map.yml")
    assert "a shell empties FILE of `> FILE` first" in str(caught.value.next_step)  # type: ignore[attr-defined]
