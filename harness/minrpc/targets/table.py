# SPDX-License-Identifier: Apache-2.0
"""Platforms as data, and the table of the platforms that come with the harness.

The code treats two platforms differently only because a field differs, so that a user's file can describe a
new board (`minrpc.targets.config`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from minrpc.targets.libraries import NamedLibrary
from minrpc.targets.rtl import CV32E40P, IBEX, PICORV32, Rtl
from minrpc.timing.clock import CountUnit

Port = Literal["posix", "baremetal", "zephyr"]
Start = Literal["process", "qemu", "rtl", "board"]
ResetLine = Literal["", "dtr", "rts", "break"]
FirmwareLink = Literal["uart", "semihosting", "rtt"]


class TimeBound(NamedTuple):
    """Least and most seconds of a call of `function`, as the board's owner measured them."""

    function: str
    least_s: float
    most_s: float

    def holds(self, seconds: float) -> bool:
        """True if `seconds` is within the bounds."""
        return self.least_s <= seconds <= self.most_s

    def __str__(self) -> str:
        return f"{self.least_s:g} to {self.most_s:g} s"


@dataclass(frozen=True, slots=True)
class Platform:
    """One kind of device.

    port: the port of the firmware, which it is built from.
    starts: "process" (the firmware is a program of this machine), "qemu", "rtl" (a Verilated core runs it),
        or "board" (attached by a port).
    arguments: of a process; "{path}" stands for the link's terminal, "{fd}" for a descriptor of it,
        "{parent}" for its parent's process id: such a program lets the kernel kill it when the parent ends.
    description: one line for lists.
    default: tested if no platform is named.
    arch: processor family, which decides the compiler: "host", "x86", "arm", "riscv", ...
    zephyr_board: the board's name as `west build -b` takes it.
    elf: the program, relative to the build directory.
    sources: C files that are linked into the firmware beside its own.
    include_dirs: directories in which C files find headers.
    defines: of C's preprocessor, each "NAME" or "NAME=VALUE".
    libraries: archives and object files that are linked in.
    named_libraries: C libraries, linked in or loaded when they are used.
    cmake_options: further arguments for CMake, each "-DNAME=VALUE".
    rtl: the core that runs it, with "rtl".
    qemu: the emulator's program.
    qemu_args: options for its machine, if Zephyr's own build doesn't give them.
    memory_at: the address of the main memory that QEMU can share (`-machine memory-backend=`), or at which a
        process maps the file of `--memory`; None if it can't, or if the firmware's addresses differ from the
        machine's.
    memory_size: in bytes; 0 if QEMU's command line gives it.
    icount_shift: nanoseconds per instruction as a power of two; None if Zephyr's own build gives it.
    firmware_link: what carries RPC on a machine of the bare-metal port: a UART, or the debugger, by
        semihosting or RTT.
    link_uart: number of the machine's serial port for RPC, counted from 0.
    console_uart: number of the serial port for text; None if there is no second port.
    baud: rate of a board's serial port.
    reset_command: words of a shell that reset the board; "{port}" in them stands for its serial port, "{id}"
        for its id in the hardware map.
    power_command: as reset_command, switches the board off and on again.
    reset_line: "dtr" or "rts", the modem line of its serial port that resets it; "break" if a BREAK resets
        it; "" for none.
    flash_command: words of a shell that flash the board, in place of `west flash`; "{elf}" and "{build}" in
        them stand for the firmware and its directory.
    core: the core whose cycles are estimated, as `minrpc.cycles` names it, or a file NAME.toml of the user's.
    flash_wait_states, flash_width: cycles that the core waits for flash, and bits that are read at once.
    clock: the counter behind the platform timer, for reports.
    clock_counts: its unit; "ticks" if neither the core's cycles nor instructions.
    device_options: the options of devices that minrpc.toml sets, by `Target`'s field.
    project: the directory of the user's file that defines the platform; "" for none.
    time_bounds: limits of calls' times; advice, unless --strict-timing makes it a test.
    """

    name: str
    port: Port
    starts: Start
    description: str = ""
    default: bool = False
    arch: str = ""
    zephyr_board: str = ""
    elf: str = "zephyr/zephyr.elf"
    arguments: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    include_dirs: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    named_libraries: tuple[NamedLibrary, ...] = ()
    cmake_options: tuple[str, ...] = ()
    rtl: Rtl | None = None
    qemu: str = ""
    qemu_args: tuple[str, ...] = ()
    memory_at: int | None = None
    memory_size: int = 0
    icount_shift: int | None = None
    firmware_link: FirmwareLink = "uart"
    link_uart: int = 0
    console_uart: int | None = None
    baud: int = 115200
    reset_command: str = ""
    reset_line: ResetLine = ""
    power_command: str = ""
    flash_command: str = ""
    core: str = ""
    flash_wait_states: int = 0
    flash_width: int = 64
    clock: str = ""
    clock_counts: CountUnit = "ticks"
    time_bounds: tuple[TimeBound, ...] = ()
    device_options: tuple[tuple[str, Any], ...] = ()
    project: str = ""


# Code can be loaded while the firmware runs, and loaded code can call Python.
_CODE_LOADING = ("-DMINRPC_CODE_LOADING=ON", "-DMINRPC_ASK=ON")

# Arrays can be filled and compared on the device.
_FILL = "-DMINRPC_FILL=ON"

# The firmware reads counters of the processor and the kernel, and peaks of memory.
_COUNTERS = "-DMINRPC_COUNTERS=ON"

# The places of arrays and code can be changed while the firmware runs.
_LAYOUT = "-DMINRPC_LAYOUT=ON"

# The firmware has functions for this project's own tests: testing.crash and others.
_TESTING = "-DMINRPC_TESTING=ON"


def _bare(
    machine: str,
    core: str,
    *,
    qemu: str = "qemu-system-arm",
    qemu_machine: str,
    qemu_args: tuple[str, ...] = (),
    arch: str = "arm",
    uarts: tuple[int, int | None] = (1, 0),
    clock: str = "SysTick",
    table: str = "",
    memory: tuple[int | None, int] = (None, 0),
    options: tuple[str, ...] = _CODE_LOADING,
    default: bool = False,
) -> Platform:
    """A machine of the bare-metal port, in QEMU.

    machine: of zephyr-app/ports/baremetal/machines.
    core: its processor, for descriptions. table: the name of its timing table.
    uarts: numbers of the serial ports for RPC and for text.
    memory: address and bytes of the memory of QEMU's `-machine memory-backend=` on this machine.
    """
    return Platform(
        memory_at=memory[0],
        memory_size=memory[1],
        name=f"bare_{machine}",
        port="baremetal",
        starts="qemu",
        description=f"{core} in QEMU, no RTOS, picolibc",
        default=default,
        arch=arch,
        elf="minrpc.elf",
        cmake_options=(f"-DMINRPC_MACHINE={machine}", *options),
        qemu=qemu,
        qemu_args=("-machine", qemu_machine, "-net", "none", *qemu_args),
        icount_shift=7,
        link_uart=uarts[0],
        console_uart=uarts[1],
        core=table,
        clock=clock,
    )


def _zephyr(
    name: str,
    description: str,
    *,
    zephyr_board: str = "",
    arch: str = "arm",
    qemu: str = "qemu-system-arm",
    memory: tuple[int | None, int] = (0x21000000, 16 << 20),
    uarts: tuple[int, int | None] = (1, 0),
    clock: str = "SysTick",
    table: str = "",
    default: bool = False,
) -> Platform:
    """A board of Zephyr's in QEMU.

    zephyr_board: the board's name if it differs from the platform's.
    memory: address and bytes of the memory that QEMU can share; for most platforms here the PSRAM of an MPS2
        board.
    uarts: numbers of the serial ports for RPC and for text.
    """
    return Platform(
        name=name,
        port="zephyr",
        starts="qemu",
        description=description,
        default=default,
        arch=arch,
        zephyr_board=zephyr_board or name,
        cmake_options=_CODE_LOADING,
        qemu=qemu,
        memory_at=memory[0],
        memory_size=memory[1],
        link_uart=uarts[0],
        console_uart=uarts[1],
        core=table,
        clock=clock,
    )


def _rtl(name: str, core: str, rtl: Rtl, *, machine: str = "rtl", table: str = "") -> Platform:
    """A core's RTL, simulated by Verilator."""
    return Platform(
        name=f"rtl_{name}",
        port="baremetal",
        starts="rtl",
        description=f"{core}: its RTL, simulated by Verilator, no RTOS, picolibc",
        arch="riscv",
        elf="minrpc.elf",
        cmake_options=(f"-DMINRPC_MACHINE={machine}", *_CODE_LOADING),
        rtl=rtl,
        memory_at=0x80000000,
        memory_size=24 << 20,
        firmware_link="rtt",
        core=table,
        clock="mcycle",
        clock_counts="core cycles",
    )


_VIRT: Final[Mapping[str, Any]] = {
    "arch": "riscv",
    "qemu_machine": "virt",
    # Its real-time clock follows virtual time, as the counters of other machines do.
    "qemu_args": ("-bios", "none", "-rtc", "clock=vm"),
    "uarts": (0, None),
    "clock": "mtime",
    "memory": (0x80000000, 128 << 20),
}

_TABLE = (
    Platform(
        name="posix",
        port="posix",
        starts="process",
        description="the firmware as a process of this machine",
        default=True,
        arch="host",
        elf="minrpc_posix",
        cmake_options=_CODE_LOADING,
        clock="CLOCK_MONOTONIC",
        arguments=("--fd", "{fd}", "--parent", "{parent}"),
        # A free address: far from programs, libraries, heaps, stacks.
        memory_at=0x200000000000,
        memory_size=16 << 20,
    ),
    _bare(
        "mps2_an385",
        "Cortex-M3",
        table="cortex-m3",
        qemu_machine="mps2-an385",
        memory=(0x21000000, 16 << 20),
        default=True,
    ),
    _bare(
        "mps2_an386",
        "Cortex-M4 with FPU",
        table="cortex-m4",
        qemu_machine="mps2-an386",
        memory=(0x21000000, 16 << 20),
    ),
    _bare(
        "mps2_an500",
        "Cortex-M7 with double FPU",
        table="cortex-m7",
        qemu_machine="mps2-an500",
        memory=(0x60000000, 16 << 20),
    ),
    _bare(
        "mps2_an505",
        "Cortex-M33 with FPU",
        table="cortex-m33",
        qemu_machine="mps2-an505",
        memory=(0x80000000, 16 << 20),
    ),
    _bare(
        "mps2_an521",
        "Cortex-M33 without FPU",
        table="cortex-m33",
        qemu_machine="mps2-an521",
        memory=(0x80000000, 16 << 20),
    ),
    _bare(
        "mps3_an547",
        "Cortex-M55 with FPU and vectors (MVE)",
        table="cortex-m55",
        qemu_machine="mps3-an547",
        memory=(0x60000000, 2 << 30),
    ),
    _bare(
        "microbit",
        "Cortex-M0 with 16 KiB of RAM",
        table="cortex-m0",
        qemu_machine="microbit",
        uarts=(0, None),
    ),
    _bare("rv32", "RV32IMAC", qemu="qemu-system-riscv32", table="cv32e40p", **_VIRT),
    _bare("rv64", "RV64GC", qemu="qemu-system-riscv64", **_VIRT),
    _bare(
        "rv64v",
        "RV64GC with vectors",
        qemu="qemu-system-riscv64",
        **{**_VIRT, "qemu_args": ("-cpu", "rv64,v=true,vlen=128", *_VIRT["qemu_args"])},
    ),
    _rtl("ibex", "Ibex (RV32IMC)", IBEX, table="ibex"),
    _rtl("cv32e40p", "CV32E40P (RV32IMC)", CV32E40P, table="cv32e40p"),
    _rtl("picorv32", "PicoRV32 (RV32IMC, no traps)", PICORV32, machine="rtl_no_traps"),
    _zephyr(
        "qemu_x86",
        "Zephyr on a 32-bit PC in QEMU",
        arch="x86",
        qemu="qemu-system-i386",
        memory=(0, 0),
        clock="HPET",
        default=True,
    ),
    _zephyr(
        "qemu_cortex_m3", "Zephyr on a Cortex-M3 (LM3S6965) in QEMU", table="cortex-m3", memory=(None, 0)
    ),
    _zephyr(
        "mps2_an385",
        "Zephyr on a Cortex-M3 (ARM MPS2 AN385) in QEMU",
        table="cortex-m3",
        zephyr_board="mps2/an385",
    ),
    replace(
        _zephyr(
            "mps2_an386",
            "Zephyr on a Cortex-M4 with FPU (ARM MPS2 AN386) in QEMU",
            table="cortex-m4",
            zephyr_board="mps2/an386",
        ),
        # Zephyr runs this board in Arm's FVP only, so its build has no command line for QEMU.
        qemu_args=("-machine", "mps2-an386", "-net", "none", "-vga", "none"),
        icount_shift=7,
    ),
    replace(
        _zephyr(
            "native_sim",
            "Zephyr as a process of this machine",
            arch="host",
            qemu="",
            memory=(None, 0),
            uarts=(0, None),
            clock="CLOCK_MONOTONIC",
        ),
        starts="process",
        elf="zephyr/zephyr.exe",
        arguments=("--minrpc_uart_port={path}",),
    ),
)

PLATFORMS: Final[Mapping[str, Platform]] = MappingProxyType(
    {
        platform.name: replace(
            platform, cmake_options=(*platform.cmake_options, _FILL, _COUNTERS, _LAYOUT, _TESTING)
        )
        for platform in _TABLE
    }
)
"""The platforms that come with the harness, by name."""
