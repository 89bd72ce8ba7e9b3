# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/boards.md that test_pages.py does not run, as they stand there, on a bench without
hardware."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from minrpc.cli.board_table import COMMON
from minrpc.firmware import firmware_root, workspaces
from minrpc.host.owned_lock import DIRECTORY_VARIABLE
from minrpc.host.sandbox import why_not

from tests.docs.bench import Bench
from tests.docs.pages import ROOT, Block, blocks_of, differs, shell
from tests.native import need_tools
from tests.unit.plugin.test_board_rack import free_port, ser2net

PAGE = (ROOT / "docs/boards.md").read_text(encoding="utf-8")
# Blocks of commands by the beginning of their first command: these run below, those can't, for the reason.
RUN = (
    'eval "$(minrpc env --platform qemu_x86)"',
    "minrpc check --platform mps2/an521/cpu0",
    "minrpc board add nrf52840dk/nrf52840",
    "minrpc board flash",
    "minrpc board scan",
)
NOT_RUN = {
    "mkdir workspace": "it takes a network, and root; .ci/run runs the last command",
    "minrpc board table": "twenty builds with each Zephyr, and modules that no other test needs",
    "pytest tests/device": "a quarter of an hour; .ci/run nightly runs the core tests so",
    "openocd": "a debug probe; tests/ports/test_baremetal_links.py runs OpenOCD's RTT on QEMU's memory",
}
TESTS = """
import numpy as np

def test_add(device):
    a, b = device.array(np.arange(64, dtype=np.int8)), device.array(np.ones(64, np.int8))
    c = device.empty((64,), "int8")
    device.system_lib()["add"](a, b, c)
    assert c.numpy().tolist() == list(range(1, 65))

def test_load(load, tmp_path):
    (tmp_path / "twice.c").write_text("int twice(int x) { return 2 * x; }")
    assert load(tmp_path / "twice.c").twice(21) == 42
"""
RACK = """
import pytest

@pytest.mark.parametrize("number", range(12))
def test_inc(device, running_device, number):
    assert device.system_lib()["inc"](number) == number + 1
    with open("used", "a") as used:
        used.write(f"{running_device.name}\\n")
"""


def commands_of(first: str) -> list[tuple[str, list[str]]]:
    """The commands of the page's only block whose first command starts so, with the lines that they print."""
    (block,) = (block for block in not_run() if next(block.commands())[0].startswith(first))
    return list(block.commands())


def not_run() -> list[Block]:
    return [block for block in blocks_of(PAGE) if block.kind == "console" and block.not_run]


def succeeds(ran: subprocess.CompletedProcess[str]) -> str:
    """The output of a command, which must succeed."""
    assert ran.returncode == 0, f"{ran.args[-1]}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout + ran.stderr


def test_each_block_of_commands_runs_or_has_a_reason() -> None:
    for block in not_run():
        first = next(block.commands())[0]
        assert sum(map(first.startswith, [*RUN, *NOT_RUN])) == 1, (
            f"docs/boards.md:{block.line}: nobody runs it"
        )
    assert len(not_run()) == len(RUN) + len(NOT_RUN) + 1  # The first variables are set twice.


def test_the_table_of_common_boards_has_the_commands_rows() -> None:
    section = PAGE.partition("### Twenty common boards")[2].partition("\n### ")[0]
    assert tuple(re.findall(r"^\| `(\S+)`", section, re.MULTILINE)) == COMMON
    (command,) = (command for command, _ in commands_of("minrpc board table"))
    (head,) = re.findall(r"^\| board .*", section, re.MULTILINE)
    assert head.count("flash, RAM") == command.count("--zephyr ")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A bench with one kind of board; its entry has the commands of a probe and of a power switch."""
    need_tools("qemu-system-arm", "arm-none-eabi-gcc")
    if reason := why_not():
        pytest.skip(f"no bench: {reason}")
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "locks"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("bench", "project"):
        (tmp_path / name).mkdir()
    bench = Bench(tmp_path / "bench", tmp_path / "project")
    describe(bench, "066A0")
    (bench.directory / "test_desk.py").write_text(TESTS)
    return bench


def describe(bench: Bench, board: str) -> None:
    """Writes the entry; board: its id as the commands have it."""
    (bench.directory / "minrpc.toml").write_text(
        '[platforms.nucleo_f746zg]\nextends = "bare_mps2_an385"\n'
        f'flash_command = "{bench.lab} flash {board} {{elf}}"\n'
        f'reset_command = "{bench.lab} reset {board}"\n'
        f'power_command = "{bench.lab} power {board}"\n'
    )


@pytest.mark.slow
def test_a_board_is_flashed_checked_and_tested(bench: Bench) -> None:
    flash, check, test = (command for command, _ in commands_of("minrpc board flash"))
    with bench.board(0) as board:
        silent = bench.shell(check)
        assert silent.returncode == 1
        assert "not one byte came at 115200 baud" in silent.stdout
        assert "done; try: minrpc check" in succeeds(bench.shell(flash))
        assert bench.flashed() == [board]
        assert "add int8 256: right" in succeeds(bench.shell(check))
        assert "2 passed" in succeeds(bench.shell(test))
        for link in (board, f"{board}:if02", "0483:374e", "'hwgrep://st-link'"):
            assert "answered after" in succeeds(bench.shell(f"{check.partition(' /dev')[0]} {link}"))


@pytest.mark.slow
def test_boards_of_a_map_are_found_flashed_and_shared(bench: Bench) -> None:
    """Three boards without firmware; names are written into the map, as the page says."""
    describe(bench, "{id}")
    (bench.directory / "test_desk.py").write_text(RACK)
    scan, again, check, test = (command for command, _ in commands_of("minrpc board scan"))
    map_file = bench.directory / "map.yml"
    with ExitStack() as stack:
        ids = [stack.enter_context(bench.board(number)) for number in range(3)]
        assert "write the board's name for platform:" in succeeds(bench.shell(scan))
        map_file.write_text(map_file.read_text().replace("unknown", "nucleo_f746zg"))
        succeeds(bench.shell(again))
        assert (bench.directory / "new.yml").read_text() == map_file.read_text()
        assert "passed" in succeeds(bench.shell(check))
        assert bench.flashed() == ids[:1]
        assert "passed" in succeeds(bench.shell(check))
        assert bench.flashed() == ids[:1]
        flashing = succeeds(bench.shell(f"{test} --minrpc-flash auto"))
        assert "12 passed" in flashing
        assert sorted(bench.flashed()) == ids
        (bench.directory / "used").unlink()
        assert "12 passed" in succeeds(bench.shell(test))
        used = (bench.directory / "used").read_text().split()
        assert len(set(used)) == len(ids)
        listed = succeeds(bench.shell("minrpc board list --hardware-map map.yml --json list.json"))
        assert listed.count("platform       nucleo_f746zg") == len(ids)
        boards = json.loads((bench.directory / "list.json").read_text())["boards"]
        assert [board["serial_number"] for board in boards] == ids
        assert not any(board["in_use"] or board["quarantine"] for board in boards)
        # An unplugged board stays in the map, and the others are still found.
        bench.run_lab("unplug", ids[1])
        succeeds(bench.shell(again))
        assert (bench.directory / "new.yml").read_text().count("connected: false") == 1


@pytest.mark.slow
def test_a_board_behind_ser2net_and_a_switch(bench: Bench, tmp_path: Path) -> None:
    """A board of another machine: ser2net serves its terminal; a test that hangs it costs one test."""
    need_tools("ser2net")
    (bench.directory / "test_desk.py").write_text(
        "import pytest\n\n"
        "def test_good(device):\n    assert device.system_lib()['inc'](1) == 2\n\n"
        "@pytest.mark.call_timeout(0.3)\n"
        "def test_hangs(device):\n    device.system_lib()['testing.hang']()\n\n"
        "def test_next(device):\n    assert device.system_lib()['inc'](1) == 2\n"
    )
    port = free_port()
    with bench.board(0) as board:
        (tmp_path / "ser2net.yaml").write_text(
            "connection: &desk\n"
            f"  accepter: telnet(rfc2217),tcp,127.0.0.1,{port}\n"
            f"  connector: serialdev,{bench.root / board},115200n81,local\n"
            "  options: {kickolduser: false}\n"
        )
        with ser2net(tmp_path / "ser2net.yaml", 1):
            link = f"--platform nucleo_f746zg --serial-port=rfc2217://127.0.0.1:{port}"
            succeeds(bench.shell(f"minrpc board flash {link}"))
            assert "add int8 256: right" in succeeds(bench.shell(f"minrpc check {link}"))
            ran = bench.shell(f"pytest -p no:cacheprovider {link} --minrpc-session-timeout 2")
            assert "1 failed, 2 passed" in ran.stdout, ran.stdout


@pytest.fixture
def zephyr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone of this repository, with the first Zephyr."""
    found = next(iter(workspaces(firmware_root())), None)
    if found is None:
        pytest.skip("no Zephyr")
    if not Path(sys.executable).with_name("west").exists():
        pytest.skip("no west: pip install -e '.[zephyr]'")
    monkeypatch.setenv("ZEPHYR_BASE", str(found.base))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    return clone


@pytest.mark.slow
def test_a_build_of_wests_own_is_checked(zephyr: Path) -> None:
    build, twister = (block for block in not_run() if next(block.commands())[0].startswith("eval"))
    whole = " && ".join(command for command, _ in build.commands())
    assert "add int8 256: right" in succeeds(shell(whole, zephyr))
    whole = " && ".join(command for command, _ in twister.commands())
    assert re.search(r"\b0 failed", succeeds(shell(whole, zephyr)))


@pytest.mark.slow
def test_a_board_of_zephyrs_is_checked_and_added(zephyr: Path, tmp_path: Path) -> None:
    ((check, _),) = commands_of("minrpc check --platform mps2/an521/cpu0")
    assert "add int8 256: right" in succeeds(shell(check, tmp_path))
    ((add, shown),) = commands_of("minrpc board add")
    ran = shell(add, tmp_path)
    if ran.returncode == 1:
        assert "run `west update hal_nordic`" in ran.stderr
        return
    assert not differs(shown, succeeds(ran).splitlines()), ran.stdout
    overlay = tmp_path / "boards/nrf52840dk_nrf52840.overlay"
    assert "minrpc,uart = &uart1" in overlay.read_text()
