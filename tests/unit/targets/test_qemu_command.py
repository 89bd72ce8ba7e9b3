# SPDX-License-Identifier: Apache-2.0
"""QEMU's command line: made from Zephyr's."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from minrpc.firmware.recipes import configured_shift, files_in
from minrpc.targets import Icount
from minrpc.targets.qemu_command import Wiring, find_qemu, processors_of, wire, without_wired

# The end of `ninja -t commands run_qemu` for qemu_x86 in Zephyr 4.2.
X86 = (
    "cd /b/zephyr && /usr/bin/cmake -E true\n"
    "cd /b && /usr/bin/qemu-system-i386 -m 32 -cpu qemu32,+nx,+pae -machine q35 "
    "-device isa-debug-exit,iobase=0xf4,iosize=0x04 -no-reboot -nographic -machine acpi=off -net none "
    "-pidfile qemu.pid -chardev stdio,id=con,mux=on -serial chardev:con -mon chardev=con,mode=readline "
    "-icount shift=5,align=off,sleep=off -rtc clock=vm -kernel /b/zephyr/zephyr.elf"
)
X86_STRIPPED = [
    "/usr/bin/qemu-system-i386",
    "-m",
    "32",
    "-cpu",
    "qemu32,+nx,+pae",
    "-machine",
    "q35",
    "-device",
    "isa-debug-exit,iobase=0xf4,iosize=0x04",
    "-machine",
    "acpi=off",
    "-net",
    "none",
    "-rtc",
    "clock=vm",
    "-kernel",
    "/b/zephyr/zephyr.elf",
]
WIRING = Wiring(
    "serial,path=/dev/pts/3", link_uart=1, console="file,path=/dev/fd/9", console_uart=0, monitor_fd=7
)


def test_zephyrs_command_is_found() -> None:
    argv = find_qemu(X86)
    assert argv[0] == "/usr/bin/qemu-system-i386"
    assert argv[-2:] == ["-kernel", "/b/zephyr/zephyr.elf"]


@pytest.mark.parametrize(
    ("commands", "argv"),
    [
        ("", []),
        ("ninja: error: unknown target 'run_qemu'\n", []),
        ("cd /b && qemu-system-arm -M x && echo done", ["qemu-system-arm", "-M", "x"]),
        ("cd '/a b' && '/s 1/qemu-system-riscv32' -bios x", ["/s 1/qemu-system-riscv32", "-bios", "x"]),
        ("qemu-system-arm -first\nqemu-system-arm -last", ["qemu-system-arm", "-last"]),
    ],
)
def test_find_qemu(commands: str, argv: list[str]) -> None:
    assert find_qemu(commands) == argv


def test_zephyrs_wiring_and_clock_go_the_machine_stays() -> None:
    assert without_wired(find_qemu(X86)) == X86_STRIPPED


@pytest.mark.parametrize("network", ["-nic user,model=e1000", "-netdev user,id=n1 -device e1000,netdev=n1"])
def test_the_network_stays(network: str) -> None:
    """It is the second from Zephyr 4.5 on, which numbers the memory in hexadecimal, too."""
    new = {"-m 32": "-m 0x20", "-net none": network}
    command, kept = X86, " ".join(X86_STRIPPED)
    for old, text in new.items():
        command, kept = command.replace(old, text), kept.replace(old, text)
    assert " ".join(without_wired(find_qemu(command))) == kept


def test_two_dashes_are_an_option_too() -> None:
    assert without_wired(["q", "--serial", "stdio", "--no-reboot", "--machine", "x"]) == [
        "q",
        "--machine",
        "x",
    ]


def test_an_option_without_its_argument_is_no_crash() -> None:
    assert without_wired(["q", "-serial"]) == ["q"]


def pairs(argv: list[str], option: str) -> list[str]:
    return [argument for word, argument in pairwise(argv) if word == option]


def test_wired_as_ours() -> None:
    argv = wire(find_qemu(X86), WIRING, Icount(5))
    assert argv[: len(X86_STRIPPED)] == X86_STRIPPED
    assert pairs(argv, "-serial") == ["chardev:con", "chardev:link"]
    assert pairs(argv, "-chardev") == [
        "socket,id=minrpc-monitor,fd=7",
        "serial,id=link,path=/dev/pts/3",
        "file,id=con,path=/dev/fd/9",
    ]
    assert pairs(argv, "-monitor") == ["chardev:minrpc-monitor"]
    assert pairs(argv, "-icount") == ["shift=5,align=off,sleep=on"]
    assert "-S" in argv
    assert not {"-no-reboot", "-nographic", "-pidfile"} & set(argv)


@pytest.mark.parametrize(
    ("link_uart", "console_uart", "serials"),
    [
        (0, None, ["chardev:link"]),
        (0, 1, ["chardev:link", "chardev:con"]),
        (2, 0, ["chardev:con", "null", "chardev:link"]),
        (0, 2, ["chardev:link", "null", "chardev:con"]),
    ],
)
def test_uarts_in_their_order(link_uart: int, console_uart: int | None, serials: list[str]) -> None:
    argv = wire(["q"], Wiring("null", link_uart, "null", console_uart, 7), None)
    assert pairs(argv, "-serial") == serials
    assert "null,id=link" in argv
    assert not pairs(argv, "-icount")


def test_semihosting_takes_no_uart() -> None:
    argv = wire(["q"], Wiring("null", None, "null", 0, 7), None)
    assert argv[argv.index("-semihosting-config") + 1] == "enable=on,target=native"
    assert [argv[at + 1] for at, word in enumerate(argv) if word == "-serial"] == ["chardev:con"]
    assert "-semihosting-config" not in wire(["q"], Wiring("null", 1, "null", 0, 7), None)


def test_icount_argument() -> None:
    assert Icount(7, sleep=False).argument() == "shift=7,align=off,sleep=off"


def test_files_that_a_command_names() -> None:
    argv = ["q", "-kernel", "/b/z/locore.elf", "-device", "loader,file=/b/z/main.elf,cpu-num=0", "/bb/x"]
    assert files_in(argv, Path("/b")) == [Path("/b/z/locore.elf"), Path("/b/z/main.elf")]


@pytest.mark.parametrize(
    ("config", "shift"),
    [
        ("CONFIG_QEMU_ICOUNT=y\nCONFIG_QEMU_ICOUNT_SHIFT=6\n", 6),
        ("# CONFIG_QEMU_ICOUNT is not set\nCONFIG_QEMU_ICOUNT_SHIFT=6\n", None),
        ("CONFIG_QEMU_ICOUNT=y\n", None),
        ("", None),
    ],
)
def test_shift_from_zephyrs_configuration(config: str, shift: int | None) -> None:
    assert configured_shift(config) == shift


@pytest.mark.parametrize(
    ("words", "processors"),
    [
        ("", 1),
        ("-smp 2", 2),
        ("-smp cpus=4", 4),
        ("-smp 4,maxcpus=8 -nographic", 4),
        ("-smp 1 -smp cpus=2", 2),
    ],
)
def test_the_processors_of_a_machine(words: str, processors: int) -> None:
    assert processors_of(["qemu-system-x86_64", *words.split(), "-m", "32"]) == processors
