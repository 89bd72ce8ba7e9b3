# SPDX-License-Identifier: Apache-2.0
"""The texts for a Zephyr board: its entry in minrpc.toml, and an overlay. No I/O here."""

from __future__ import annotations

from minrpc.errors import ConfigurationError
from minrpc.firmware.zephyr_boards import Board, Uart

# Clocks of Zephyr's cycle counter that run at 32,768 Hz: a count is 30 us.
_SLOW_CLOCKS = ("RTC",)
# Bytes below which zephyr/Kconfig's MINRPC_SMALL is on, and up to which its MINRPC_LEAST is.
_SMALL_RAM = 16 << 10
_SMALL_FLASH = 64 << 10
_LEAST_FLASH = 32 << 10
_SMALL = ("C functions that are loaded", "arrays that are filled and compared on the board")
_LEAST = (
    "texts of failures: a source file and line are told",
    "printk's text, exp, malloc",
    "copies that are longer than the receive buffer: the client sends pieces",
    "tvm.contrib.random.random_fill, the check of the configuration at the start",
)


def left_out(board: Board) -> tuple[str, ...]:
    """The parts of the firmware for which zephyr/Kconfig sees no room in the board's flash or RAM."""
    if 0 < board.flash <= _LEAST_FLASH:
        return _SMALL + _LEAST
    return _SMALL if 0 < board.ram < _SMALL_RAM or 0 < board.flash < _SMALL_FLASH else ()


def stem_of(name: str) -> str:
    """The name of the board's entry and of its files, in the form of Zephyr's: "mps2_an521_cpu0"."""
    return name.replace("/", "_")


def entry_text(board: Board) -> str:
    """The board's table in minrpc.toml: the values that Zephyr's own files don't give."""
    lines = [f"[platforms.{stem_of(board.identifier)}]", f'zephyr_board = "{board.identifier}"']
    if board.simulators:
        return "\n".join(
            [*lines, 'starts = "qemu"' if "qemu" in board.simulators else 'starts = "process"', ""]
        )
    lines.append(f'description = "{board.identifier} on my desk"')
    if board.clock in _SLOW_CLOCKS:
        lines += [
            "# Zephyr's cycle counter runs at 32,768 Hz, a count is 30 us: this selects a finer clock.",
            'cmake_options = ["-DCONFIG_MINRPC_CLOCK_TIMING=y"]',
            'clock = "TIMER2"',
        ]
    if parts := left_out(board):
        texts = ', "-DCONFIG_MINRPC_ERROR_TEXTS=y", "-DCONFIG_PRINTK=y"' if parts != _SMALL else ""
        lines += [
            f"# Flash has {board.flash:,} bytes, RAM {board.ram:,}, so these are left out:",
            *(f"# - {part}" for part in parts),
            "# If there is room, this brings some back:",
            f'# cmake_options = ["-DCONFIG_MINRPC_CODE_LOADING=y", "-DCONFIG_MINRPC_FILL=y"{texts}]',
        ]
    lines += [
        "# Resets it when a test has hung it; {port} is its serial port:",
        "# reset_command = \"openocd -f board/... -c 'init; reset; exit'\"",
    ]
    return "\n".join(lines) + "\n"


def overlay_text(board: Board, uart: Uart) -> str:
    """An overlay that gives `uart` to RPC, and enables it if it is disabled."""
    on = "" if uart in board.uarts else f'\n&{uart.label} {{\n\tstatus = "okay";\n}};\n'
    return f"/ {{\n\tchosen {{\n\t\tminrpc,uart = &{uart.label};\n\t}};\n}};\n{on}"


def uart_named(board: Board, label: str) -> Uart:
    """The UART with that label in the devicetree. Raises ConfigurationError with the known labels."""
    for uart in (*board.uarts, *board.resting):
        if uart.label == label:
            return uart
    raise ConfigurationError(
        f"{board.identifier} has no UART {label!r}", next_step=f"it has {uarts_text(board)}"
    )


def uarts_text(board: Board) -> str:
    """All UARTs by label, with the facts known of each."""
    on = [f"{uart.label} (the console)" if uart == board.console else uart.label for uart in board.uarts]
    off = [f"{uart.label} (off)" for uart in board.resting]
    return ", ".join(on + off) or "none"
