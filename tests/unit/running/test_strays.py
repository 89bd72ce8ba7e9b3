# SPDX-License-Identifier: Apache-2.0
"""Accesses at which a machine has nothing, by QEMU's log: lines of QEMU 7.2."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
from minrpc import RunningDevice
from minrpc.errors import HarnessError, SessionTerminatedError
from minrpc.host.deadline import WallClock
from minrpc.running.strays import is_told, stray_error, strays
from minrpc.targets.qemu_command import log_of_strays

REGIONS = """
address-space: memory
  0000000000000000-ffffffffffffffff (prio -1, i/o): system
    0000000040010000-0000000040010fff (prio -1000, i/o): cmsdk-ahb-gpio
    0000000040013000-0000000040013fff (prio -1000, i/o): cmsdk-ahb-gpio
    0000000040030000-00000000401fffff (prio -1000, i/o): RESERVED 4
address-space: cpu-memory-0
      0000000040030000-00000000401fffff (prio -1000, i/o): RESERVED 4
"""


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("RESERVED 4: unimplemented device read  (size 2, offset 0x000810)", "C read 2 bytes at 0x40030810"),
        (
            "RESERVED 4: unimplemented device write (size 4, offset 0x000000, value 0x0000000a)",
            "C wrote 0xa to 0x40030000",
        ),
        (
            "cmsdk-ahb-gpio: unimplemented device read  (size 4, offset 0x800)",
            "C read 4 bytes at 0x40010800 or 0x40013800",
        ),
        ("i2s: unimplemented device read  (size 1, offset 0x010)", "C read 1 byte at offset 0x10 of i2s"),
        (
            "Invalid read at addr 0x4003D000, size 1, region '(null)', reason: rejected",
            "C read 1 byte at 0x4003d000",
        ),
        ("Invalid write at addr 0x4, size 4, region 'uart', reason: invalid size", "C wrote 4 bytes at 0x4"),
        ("Read of unassigned area of PPB: offset 0x1004", "C read 0xe0001004"),
        ("Write of unassigned area of PPB: offset 0x1000", "C wrote 0xe0001000"),
        (
            "CMSDK APB UART read: bad offset 400",
            "C accessed an undefined register (CMSDK APB UART read: bad offset 400)",
        ),
        (
            "lan9118_write: Bad reg 0x44 = 5",
            "C accessed an undefined register (lan9118_write: Bad reg 0x44 = 5)",
        ),
    ],
)
def test_an_access_is_told_by_its_address(line: str, told: str) -> None:
    assert strays(f"qemu-system-arm: warning: nic lan9118.0 has no peer\n{line}\n", lambda: REGIONS) == [told]


@pytest.mark.parametrize(
    "line",
    [
        "qemu-system-arm: warning: nic lan9118.0 has no peer",
        "NVIC: Bad read offset 0xd10",
        "Aux Fault status registers unimplemented",
        "Read of unassigned area of PPB: offset 0xe80",
        "Timer with period zero, disabling",
    ],
)
def test_other_lines_of_the_log_are_none(line: str) -> None:
    def regions() -> str:
        raise AssertionError("the monitor is asked without need")

    assert strays(f"{line}\n", regions) == []


def test_a_loop_is_told_once_and_few_of_many() -> None:
    line = "RESERVED 4: unimplemented device {}  (size 4, offset 0x{:06x})\n"
    log = line.format("read", 0) * 1200 + "".join(line.format("read", 4 * at) for at in range(1, 9))
    told = strays(log, lambda: REGIONS)
    assert told[0] == "C read 4 bytes at 0x40030000, 1,200 times or more"
    assert told[1:4] == [f"C read 4 bytes at 0x4003000{at:x}" for at in (4, 8, 12)]
    assert told[4:] == ["and 5 other accesses"]


def test_the_error_says_the_effect_and_the_next_step() -> None:
    error = stray_error(["C read 4 bytes at 0x40030000", "C wrote 0x1 to 0x40030004"], "bare_mps2_an385")
    what = "bare_mps2_an385 has nothing there, so a read gives 0 and a write is lost"
    assert error.message == f"C read 4 bytes at 0x40030000: {what}"
    assert error.details == ("C wrote 0x1 to 0x40030004",)
    assert "minrpc.registers(lib, ADDRESS, TYPE)" in str(error)
    assert "replace the function" in str(stray_error(["C read 0xe0001004"], "bare_mps2_an385"))
    assert "minrpc.registers" in str(stray_error(["C wrote 0xe0012345 to 0x40030000"], "bare_mps2_an385"))


def test_qemu_tells_them_unless_the_command_line_has_a_log() -> None:
    assert log_of_strays(["/usr/bin/qemu-system-arm", "-M", "microbit"]) == ["-d", "unimp,guest_errors"]
    assert log_of_strays(["qemu-system-riscv32"]) == ["-d", "unimp"]
    assert log_of_strays(["qemu-system-arm", "-d", "in_asm"]) == []
    assert log_of_strays(["qemu-system-i386"]) == []


def test_the_address_of_a_crash_is_told_once() -> None:
    assert is_told("C read 4 bytes at 0x50000000", "read from 0x50000000: no memory there, in peek")
    assert is_told("C wrote 0x1 to 0x40010800 or 0x40013800", "wrote to 0x40013800: no memory there")
    assert not is_told("C read 4 bytes at 0x40013800", "divided by zero, in baud")
    assert not is_told("C wrote 0x1 to 0x40013800", "read from 0x1bab0000: no memory there")
    assert not is_told("and 5 other accesses", "divided by zero, in baud")


@pytest.mark.parametrize("ended", [SessionTerminatedError("it restarted"), HarnessError("no answer")])
def test_accesses_of_the_boot_are_none_of_a_crash(ended: HarnessError) -> None:
    """A device that has crashed makes them again before the report."""
    boot, call = (f"Invalid read at addr 0x{at:X}, size 4, (null)" for at in (16, 32))
    tail = Mock(position=len(boot))
    device = RunningDevice(
        "m3",
        Mock(),
        Mock(),
        WallClock(),
        "exact",
        process=Mock(**{"poll.return_value": None}),
        output_tail=tail,
        tells_strays=True,
    )
    tail.text.side_effect = lambda since=0: boot
    device.session_began()
    tail.position += 100
    tail.text.side_effect = lambda since=0: f"{call}\n{boot}"
    assert "C read 4 bytes at 0x20" in device.diagnose(ended).details
    assert not [line for line in ended.details if "0x10" in line]
