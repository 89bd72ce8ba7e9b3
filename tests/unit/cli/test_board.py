# SPDX-License-Identifier: Apache-2.0
"""`minrpc board add`: the written entry works, and existing entries stay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from minrpc import BuildError, ConfigurationError
from minrpc.cli.board_table import Built, reason_of, table_text
from minrpc.firmware import Workspace
from minrpc.firmware.board_entry import entry_text, overlay_text, uart_named
from minrpc.firmware.zephyr_boards import Board, Uart, missing_module, resolved
from minrpc.targets import load_platforms

Minrpc = Callable[..., tuple[int, str, str]]

UART0 = Uart("uart0", "/soc/uart@40002000", 0, 115200)
UART1 = Uart("uart1", "/soc/uart@40028000", 1, 115200)
BOARD = Board(
    identifier="acme/a1",
    directory=Path("/zephyr/boards/acme"),
    arch="arm",
    simulators=(),
    qemu="",
    uarts=(UART0,),
    console=UART0,
    chosen=None,
    clock="RTC",
    smp=False,
    resting=(UART1,),
)


def test_a_slow_cycle_counter_gets_a_finer_clock() -> None:
    assert "CONFIG_MINRPC_CLOCK_TIMING=y" in entry_text(BOARD)
    assert 'clock = "TIMER2"' in entry_text(BOARD)


@pytest.mark.parametrize(
    ("flash", "ram", "left_out"),
    [
        (0, 0, 0),
        (1 << 20, 8 << 10, 1),
        (33 << 10, 1 << 20, 1),
        (32 << 10, 1 << 20, 2),
        (64 << 10, 16 << 10, 0),
    ],
)
def test_options_that_have_no_room_stand_in_the_entry(flash: int, ram: int, left_out: int) -> None:
    text = entry_text(replace(BOARD, flash=flash, ram=ram))
    assert ("CONFIG_MINRPC_CODE_LOADING=y" in text) is (left_out > 0)
    assert ("CONFIG_MINRPC_ERROR_TEXTS=y" in text and "exp, malloc" in text) is (left_out > 1)
    assert not left_out or f"# Flash has {flash:,} bytes, RAM {ram:,}" in text


def test_a_uart_that_is_off_is_switched_on() -> None:
    assert overlay_text(BOARD, UART1).endswith('&uart1 {\n\tstatus = "okay";\n};\n')
    assert "status" not in overlay_text(BOARD, UART0)


def test_a_uart_that_there_is_not() -> None:
    with pytest.raises(ConfigurationError, match="has no UART 'uart7'") as caught:
        uart_named(BOARD, "uart7")
    assert caught.value.next_step == "it has uart0 (the console), uart1 (off)"


@pytest.fixture
def workspace(
    workspace: Workspace, listed_once: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Workspace:
    """Each installed Zephyr, and an empty working directory."""
    del listed_once
    monkeypatch.setenv("ZEPHYR_BASE", str(workspace.base))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return workspace


def test_the_entry_is_read_and_the_overlay_found(
    workspace: Workspace, tmp_path: Path, minrpc: Minrpc
) -> None:
    del workspace
    (tmp_path / "minrpc.toml").write_text('# Mine.\n[platforms.other]\nextends = "posix"\n')
    status, out, err = minrpc("board", "add", "mps2/an521/cpu0", "--uart", "uart2")
    assert status == 0, err
    assert "memory    flash 4,194,304 bytes, RAM 4,194,304 bytes" in out
    platforms = load_platforms()
    assert {"other", "mps2_an521_cpu0"} <= platforms.keys()
    assert (tmp_path / "minrpc.toml").read_text().startswith("# Mine.\n")


def test_a_board_on_a_desk(workspace: Workspace, tmp_path: Path, minrpc: Minrpc) -> None:
    if missing_module(workspace, "st"):
        status, _, err = minrpc("board", "add", "nucleo_f746zg")
        assert status == 1
        assert "west update hal_stm32" in err
        assert not (tmp_path / "minrpc.toml").exists()
        return
    status, out, err = minrpc("board", "add", "nucleo_f746zg", "--uart", "usart6")
    assert status == 0, err
    assert "minrpc board flash --platform nucleo_f746zg" in out
    assert "memory    flash 1,048,576 bytes, RAM 262,144 bytes" in out
    made = resolved(load_platforms()["nucleo_f746zg"])
    assert (made.starts, made.arch, made.console_uart is None) == ("board", "arm", False)
    (overlay,) = (word for word in made.cmake_options if "OVERLAY" in word)
    assert overlay.endswith("boards/nucleo_f746zg.overlay")
    text = (tmp_path / "minrpc.toml").read_text()
    status, _, err = minrpc("board", "add", "nucleo_f746zg")
    assert status == 2
    assert "there is a platform nucleo_f746zg already" in err
    assert f"change its entry in {tmp_path / 'minrpc.toml'}" in err
    assert (tmp_path / "minrpc.toml").read_text() == text
    status, _, err = minrpc("board", "add", "qemu_x86")
    assert status == 2
    assert "entry" not in err


def test_a_board_that_there_is_not(workspace: Workspace, tmp_path: Path, minrpc: Minrpc) -> None:
    del workspace
    status, _, err = minrpc("board", "add", "no_such_board")
    assert status == 2
    assert "has no board 'no_such_board'" in err
    assert not (tmp_path / "minrpc.toml").exists()


def test_a_row_says_why_a_board_does_not_build(workspace: Workspace, minrpc: Minrpc) -> None:
    version = workspace.version
    status, out, err = minrpc("board", "table", "no_such_board")
    assert status == 0, err
    assert f"| {version}: flash, RAM |" in out
    assert out.endswith(
        f"\n\n- (1): does not build with {version}: Zephyr {version} has no board 'no_such_board'\n"
    )


def test_a_table_of_two_zephyrs(
    workspace: Workspace, minrpc: Minrpc, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is built with its own: the environment's alone has no column."""
    base = str(workspace.base)
    monkeypatch.setenv("ZEPHYR_BASE", "/none")
    status, out, err = minrpc("board", "table", "no_such_board", "--zephyr", base, "--zephyr", base)
    assert status == 0, err
    assert out.count(f"| {workspace.version}: flash, RAM ") == 2


def test_a_table_tells_equal_facts_and_reasons_once() -> None:
    small = Built("2 lines", "usart2 (console)", "loads no C: flash has 32,768 bytes", 30252, 8276)
    large = Built("4 lines", "uart0 (console)", "", 48600, 179800)
    other = replace(large, entry="2 lines")
    first: list[Built | str] = [small, large, "does not build"]
    second: list[Built | str] = [small, other, "does not build"]
    assert table_text(["a", "b", "c"], [("4.2.99", first), ("3.7.1", second)]).splitlines()[2:] == [
        "| `a`   | 2 lines           | usart2 (console) | no (1)  | 30,252, 8,276      | 30,252, 8,276     |",
        "| `b`   | 4 lines / 2 lines | uart0 (console)  | yes     | 48,600, 179,800    | 48,600, 179,800   |",
        "| `c`   |                   |                  |         | no (2)             | no (2)            |",
        "",
        "- (1): loads no C: flash has 32,768 bytes",
        "- (2): does not build",
    ]


@pytest.mark.parametrize(
    ("details", "reason"),
    [
        (["/ws/a/b.c:3: error: no", "more"], "a/b.c:3: error: no"),
        (
            ["CMake Error at /x/y.cmake:5:", "Is no | file:", "/ws/hal/a.c", "Then"],
            "CMake Error at y.cmake:5: Is no \\| file: hal/a.c",
        ),
        (
            ["CMake Error at x:5:", "The directory", "/ws/hal", "has no", "list.", "Then"],
            "CMake Error at x:5: The directory hal has no list.",
        ),
        (
            ["ld: x.a(f.o): in function `f':", "f.c:3: undefined: `g'"],
            "ld: x.a(f.o): in function `f': f.c:3: undefined: `g'",
        ),
        ([], "it did not build"),
    ],
)
def test_the_first_error_of_a_build_is_the_reason(details: list[str], reason: str) -> None:
    assert reason_of(BuildError("it did not build", details=details), Path("/ws")) == reason.replace(
        "/ws/", ""
    )


def test_a_firmware_is_built_and_flashed(tmp_path: Path, minrpc: Minrpc) -> None:
    (tmp_path / "minrpc.toml").write_text('[platforms.desk]\nextends = "posix"\nflash_command = "cp {elf}"\n')
    status, out, _ = minrpc("board", "flash", "--platform", "desk", "--", "flashed")
    assert (status, out.splitlines()[:2]) == (0, ["desk: firmware", "desk: flash"])
    assert "desk: done" in out
    assert (tmp_path / "flashed").read_bytes().startswith(b"\x7fELF")
    status, out, told = minrpc("board", "flash", "--platform", "posix")
    assert (status, out, "posix is not flashed: it is a process" in told) == (2, "", True)
