# SPDX-License-Identifier: Apache-2.0
"""Boards by their name alone: platforms from a board's facts, and the facts in each installed Zephyr."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from minrpc import (
    PLATFORMS,
    BuildError,
    ConfigurationError,
    NoSuchBoardError,
    Platform,
    Target,
    ZephyrMissingError,
    build,
)
from minrpc.firmware import Workspace
from minrpc.firmware.board_names import BoardTarget, ListedBoard
from minrpc.firmware.zephyr_boards import (
    Board,
    Uart,
    completed,
    link_of,
    missing_module,
    qemu_program,
    read_board,
    resolved,
)
from minrpc.targets import Platforms, find_platform

from tests.native import need_tools

UART0 = Uart("uart0", "/soc/uart@40004000", 0, 115200)
UART1 = Uart("uart1", "/soc/uart@40005000", 1, 9600)
BOARD = Board(
    identifier="acme/a1",
    directory=Path("/zephyr/boards/acme"),
    arch="arm",
    simulators=("qemu",),
    qemu="qemu-system-arm",
    uarts=(UART0, UART1),
    console=UART0,
    chosen=None,
    clock="SysTick",
    smp=False,
)
ENTRY = Platform("acme", port="zephyr", starts="board", zephyr_board="acme/a1")


pytestmark = pytest.mark.usefixtures("listed_once")


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def options(platform: Platform) -> dict[str, str]:
    return dict(word.removeprefix("-D").split("=", 1) for word in platform.cmake_options)


def test_in_qemu_rpc_gets_the_uart_that_is_free() -> None:
    made = completed(ENTRY, BOARD, None, None)
    assert (made.starts, made.arch, made.qemu) == ("qemu", "arm", "qemu-system-arm")
    assert (made.link_uart, made.console_uart, made.baud, made.clock) == (1, 0, 9600, "SysTick")
    (name, overlay), *more = options(made).items()
    assert name == "EXTRA_DTC_OVERLAY_FILE"
    assert not more
    assert "minrpc,uart = &uart1;" in Path(overlay).read_text()


def test_what_the_devicetree_chooses_needs_no_overlay() -> None:
    made = completed(ENTRY, replace(BOARD, chosen=UART1), None, None)
    assert not made.cmake_options


def test_one_uart_is_for_rpc_and_the_text_goes_over_the_link() -> None:
    made = completed(ENTRY, replace(BOARD, uarts=(UART0,)), None, None)
    assert (made.link_uart, made.console_uart) == (0, None)
    assert options(made)["EXTRA_CONF_FILE"].endswith("boards/one_uart.conf")


def test_of_a_board_on_a_desk_the_console_is_wired() -> None:
    board = replace(BOARD, simulators=())
    assert link_of(board, "board") == UART0
    assert completed(ENTRY, board, None, None).starts == "board"


def test_several_processors_are_one_where_instructions_are_counted() -> None:
    made = completed(ENTRY, replace(BOARD, smp=True, chosen=UART1), None, None)
    assert options(made)["EXTRA_CONF_FILE"].endswith("boards/one_cpu.conf")
    assert not completed(
        ENTRY, replace(BOARD, smp=True, chosen=UART1, simulators=()), None, None
    ).cmake_options


@pytest.mark.parametrize(("identifier", "mhz"), [("mps2/an521/cpu0", 20), ("mps3/corstone300/an547", 32)])
def test_a_clock_has_qemus_rate_in_qemu_only(identifier: str, mhz: int) -> None:
    board = replace(BOARD, identifier=identifier, chosen=UART1)
    made = completed(ENTRY, board, None, None)
    assert options(made)["EXTRA_CONF_FILE"].endswith(f"boards/qemu_{mhz}_mhz.conf")
    assert not completed(ENTRY, replace(board, simulators=()), None, None).cmake_options


def test_the_users_files_come_last_so_they_win() -> None:
    overlay, conf = Path("/p/boards/acme_a1.overlay"), Path("/p/boards/acme_a1.conf")
    entry = replace(ENTRY, cmake_options=("-DEXTRA_CONF_FILE=/p/fast.conf", "-DX=1"))
    made = completed(entry, replace(BOARD, chosen=UART0), overlay, conf)
    given = options(made)
    assert given["X"] == "1"
    assert given["EXTRA_DTC_OVERLAY_FILE"] == str(overlay)
    assert given["EXTRA_CONF_FILE"].split(";")[1:] == [str(conf), "/p/fast.conf"]


def test_what_the_entry_says_stays() -> None:
    entry = replace(ENTRY, starts="qemu", description="mine", clock="DWT", qemu="/opt/qemu")
    made = completed(entry, BOARD, None, None)
    assert (made.description, made.clock, made.qemu) == ("mine", "DWT", "/opt/qemu")


@pytest.mark.parametrize(
    ("name", "arch", "cmake", "program"),
    [
        ("qemu_x86_64", "x86", "if(CONFIG_X86_64)\n  set(QEMU_binary_suffix x86_64)\n", "x86_64"),
        ("qemu_x86", "x86", "if(CONFIG_X86_64)\n  set(QEMU_binary_suffix x86_64)\n", "i386"),
        ("qemu_leon3", "sparc", "set(QEMU_binary_suffix sparc)", "sparc"),
        # Zephyr 4.5:
        ("qemu_x86_64", "x86", "include(${ZEPHYR_BASE}/boards/common/qemu_x86.board.cmake)", "x86_64"),
        ("qemu_x86", "x86", "include(${ZEPHYR_BASE}/boards/common/qemu_x86.board.cmake)", "i386"),
        ("qemu_riscv64", "riscv", "qemu_riscv_binary_suffix(QEMU_BINARY_SUFFIX)", "riscv64"),
        ("hifive1", "riscv", "set(QEMU_BINARY_SUFFIX riscv32)", "riscv32"),
        ("qemu_tc3x", "tricore", "set(QEMU_BINARY_SUFFIX tricore)", "tricore"),
    ],
)
def test_the_qemu_of_a_board(tmp_path: Path, name: str, arch: str, cmake: str, program: str) -> None:
    (tmp_path / "board.cmake").write_text(cmake)
    board = ListedBoard(name, (tmp_path,), "", "", False, (), ("soc",), ("soc",))
    assert qemu_program(BoardTarget(board, "", "soc"), arch) == f"qemu-system-{program}"


def test_a_clock_that_an_option_takes_has_its_name() -> None:
    entry = replace(ENTRY, cmake_options=("-DCONFIG_MINRPC_CLOCK_TIMING=y",))
    assert completed(entry, BOARD, None, None).clock == "Zephyr's timing functions"
    assert completed(replace(entry, clock="TIMER2"), BOARD, None, None).clock == "TIMER2"


@pytest.mark.parametrize("name", ["posix", "bare_mps2_an385", "qemu_x86"])
def test_a_platform_that_is_whole_is_left_alone(name: str) -> None:
    assert resolved(PLATFORMS[name]) is PLATFORMS[name]


def test_a_name_that_nothing_has() -> None:
    with pytest.raises(ConfigurationError, match="there is no platform 'posxi'") as caught:
        resolved(find_platform(Platforms(PLATFORMS), "posxi"))
    assert "did you mean posix" in caught.value.next_step


@pytest.mark.parametrize(
    ("name", "arch", "qemu", "link", "console"),
    [
        ("qemu_x86", "x86", "qemu-system-i386", 1, 0),
        ("qemu_x86_64", "x86", "qemu-system-x86_64", 1, 0),
        ("mps2/an385", "arm", "qemu-system-arm", 1, 0),
        ("mps2/an521/cpu0", "arm", "qemu-system-arm", 1, 0),
        ("qemu_riscv32", "riscv32", "qemu-system-riscv32", 0, None),
        ("qemu_riscv64", "riscv", "qemu-system-riscv64", 0, None),
        ("qemu_cortex_a53", "arm64", "qemu-system-aarch64", 0, None),
        ("qemu_cortex_a9", "arm", "qemu-system-xilinx-aarch64", 1, 0),
    ],
)
def test_a_board_of_zephyrs(
    workspace: Workspace, name: str, arch: str, qemu: str, link: int, console: int | None
) -> None:
    board = read_board(workspace, name)
    made = completed(replace(ENTRY, zephyr_board=name), board, None, None)
    assert (made.starts, made.arch, made.qemu) == ("qemu", arch, qemu)
    assert (made.link_uart, made.console_uart) == (link, console)
    assert board.smp == (name == "qemu_x86_64")


@pytest.mark.parametrize(
    ("name", "clock"),
    [("litex_vexriscv", "LiteX's timer"), ("it8xxx2_evb", "ITE's timer"), ("neorv32", "mtime")],
)
def test_the_clock_of_a_riscv_board(workspace: Workspace, name: str, clock: str) -> None:
    assert read_board(workspace, name).clock == clock


def test_a_name_without_the_cores_is_the_first_of_them(workspace: Workspace) -> None:
    made = completed(ENTRY, read_board(workspace, "mps2/an521"), None, None)
    assert made.zephyr_board == "mps2/an521/cpu0"


def test_a_board_that_zephyr_has_not(workspace: Workspace) -> None:
    with pytest.raises(NoSuchBoardError, match="has no board 'no_such_board'"):
        read_board(workspace, "no_such_board")


def test_a_users_overlay_is_read(workspace: Workspace, tmp_path: Path) -> None:
    overlay = tmp_path / "x.overlay"
    overlay.write_text('/ { chosen { minrpc,uart = &uart2; }; };\n&uart2 { status = "okay"; };\n')
    board = read_board(workspace, "mps2/an385", overlay)
    assert board.chosen is not None
    assert board.chosen.index == 2
    unit = "sercom3: sercom@50000000 { current-speed = <9600>; };"
    overlay.write_text(f"/ {{ {unit} chosen {{ minrpc,uart = &sercom3; }}; }};\n")
    board = read_board(workspace, "mps2/an385", overlay)
    assert board.chosen is not None
    assert (board.chosen.label, board.chosen.baud) == ("sercom3", 9600)
    overlay.write_text("&no_such_label { };\n")
    with pytest.raises(ConfigurationError, match="no_such_label"):
        read_board(workspace, "mps2/an385", overlay)


def test_a_module_that_is_missing_is_named(workspace: Workspace) -> None:
    without = replace(workspace, topdir=None)
    assert missing_module(without, "st") == "hal_stm32"
    assert missing_module(without, "acme") is None
    with pytest.raises(ZephyrMissingError, match="needs Zephyr's module hal_stm32") as caught:
        read_board(without, "nucleo_f746zg")
    assert "west update hal_stm32" in caught.value.next_step
    with pytest.raises(ZephyrMissingError, match="needs Zephyr's module hal_nordic"):
        read_board(without, "nrf52840dk/nrf52840")
    with pytest.raises(ZephyrMissingError, match="needs Zephyr's module hal_espressif"):
        read_board(without, "xiao_esp32c3")  # Only its core names the vendor.
    with pytest.raises(ZephyrMissingError, match="needs Zephyr's module hal_gigadevice"):
        read_board(without, "longan_nano")  # An include file of the module has no vendor in its path.
    assert read_board(without, "up_squared").arch == "x86"


@pytest.mark.slow
def test_a_board_whose_uarts_have_no_interrupts_is_refused(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_tools("riscv64-unknown-elf-gcc")
    monkeypatch.setenv("ZEPHYR_BASE", str(workspace.base))
    with pytest.raises(BuildError) as caught:
        build(Target(replace(ENTRY, zephyr_board="m2gl025_miv")))
    assert "UARTs of m2gl025_miv has no interrupts" in " ".join(" ".join(caught.value.details).split())
