# SPDX-License-Identifier: Apache-2.0
"""Calls of a device with check="memory": an access that is not allowed fails its call, and no other does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minrpc import (
    AccessError,
    CFunctions,
    Device,
    Firmware,
    RegisterError,
    SessionTerminatedError,
    open_device,
    registers,
)
from minrpc.library import program_facts

SOURCE = Path(__file__).parent / "c/accesses.c"
X = np.arange(6, dtype=np.int16)


@pytest.fixture
def checked(image: Firmware) -> Iterator[Device]:
    """A device whose calls are judged."""
    with open_device(image.changed(check="memory")) as device:
        yield device


def loaded(device: Device) -> CFunctions:
    return device.load(SOURCE, flags=["-O1"], fakes={"hal_read": lambda n: 10 * n})


def test_an_access_outside_is_told_and_the_next_call_works(checked: Device) -> None:
    lib = loaded(checked)
    array = checked.array(X)

    def refused(text: str, name: str, *args: Any) -> AccessError:  # noqa: ANN401 - any arguments
        with pytest.raises(AccessError, match=text) as caught:
            lib[name](*args)
        assert lib.sum_of(X, 6) == 16
        return caught.value

    error = refused(r"sum_of read 2 bytes at 0x\w+, 2 bytes past the end of x \(int16\[6\]\)", "sum_of", X, 7)
    assert error.details == ("in sum at accesses.c:15", "called by sum_of at accesses.c:22")
    refused(r"2 bytes past the end of an array of the device \(int16\[6\]\)", "sum_of", array, 8)
    error = refused(
        "read 1 byte at 0x.*, 1 byte past the end of a block of 10 bytes from malloc", "in_heap", 10, 10
    )
    assert "the block was allocated in in_heap at accesses.c:27" in error.details
    refused("1 byte before a block of 10 bytes from malloc", "in_heap", 10, -1)
    error = refused("3 bytes into a block of 9 bytes from malloc, which was freed", "after_free", 9, 3)
    assert "and freed in after_free at accesses.c:38" in error.details
    error = refused(r"read \d bytes? at 0x\w+, .* from \(int8\[4\]\)", "copy", *np.zeros((2, 4), np.int8), 5)
    assert "memcpy" in error.details[0]
    with pytest.raises((AccessError, RegisterError), match=r"read 4 bytes at 0x\w+[,:] "):
        lib.at(100_000)  # No memory is there on a small machine.
    refused(r"read 1 byte at 0x\w+, ", "at_address", array.address - 1)
    assert lib.at(1) == 7
    assert lib.many(60) == 60
    assert lib.in_heap(10, 9) == lib.in_heap(10, 9)
    assert lib.asks(np.arange(8, dtype=np.int16), 2) == 24
    refused(r"read 2 bytes .* past the end of x \(int16\[8\]\)", "asks", np.arange(8, dtype=np.int16), 8)


def test_a_pointer_stays_in_its_object(checked: Device) -> None:
    if checked.owner.firmware is None or checked.owner.firmware.platform.qemu.endswith(
        ("i386", "x86_64", "aarch64")
    ):
        pytest.skip("instructions of x86 and of a 64-bit Arm are not replayed")
    lib = checked.load(SOURCE, flags=["-O0"], fakes={"hal_read": int})
    for name, good, bad, text in (
        ("copied_on_stack", 40, 42, r"\d+ bytes? at 0x.*past the end of first"),
        ("copied_on_stack", 41, 43, r"\d+ bytes? at 0x.*past the end of second"),
        ("beside_global", 7, 8, "wrote 4 bytes at 0x.*, 4 bytes past the end of rows"),
        ("two_blocks", -100, 0, "read 1 byte at 0x.* of 16 bytes from malloc"),
        ("never_written", 8, 5, "used 4 bytes.* at 0x.*, which were never written"),
    ):
        if good != -100:
            lib[name](good)
        with pytest.raises(AccessError, match=text):
            lib[name](bad)


def test_registers_in_python_are_no_memory(checked: Device) -> None:
    lib = loaded(checked)
    if checked.owner.firmware is None or checked.owner.firmware.platform.port != "baremetal":
        pytest.skip("not each platform has registers in Python")
    with registers(lib, 0x40013800, "unit") as unit:
        unit.status.reads = [5, 5]
        assert lib.sent(X, 6) == 5
        with pytest.raises(AccessError, match="2 bytes past the end of x") as caught:
            lib.sent(X, 7)
    assert len(caught.value.details) == 1, "an access to a register is no call"


def test_thread_locals_are_for_the_call(checked: Device, tmp_path: Path) -> None:
    """Zephyr has them at the end of the stack, as errno."""
    firmware = checked.owner.firmware
    assert firmware is not None
    facts = program_facts(firmware.elf)
    source = tmp_path / "own.c"
    source.write_text(
        "#include <errno.h>\n#include <stdlib.h>\n#if OWN\n"
        "__thread int counted = 7; __thread char zeros[8];\n"
        "int count(int at) { zeros[at]++; return counted++; }\n#endif\n"
        "int parse(const char *text) { errno = 0; strtol(text, 0, 10); return errno == ERANGE; }\n"
    )
    has_own = not facts.dynamic and facts.machine in ("EM_ARM", "EM_RISCV")
    first, second = (checked.load(source, defines=[f"OWN={int(has_own)}"]) for _ in range(2))
    assert [second["parse"]("99999999999999999999"), first["parse"]("12")] == [1, 0]
    if has_own:
        assert [first["count"](0), second["count"](7), first["count"](7)] == [7, 7, 8]
        with pytest.raises((AccessError, RegisterError), match=r"(read|wrote) 1 byte at"):
            first["count"](100_000)  # No memory is there on a small machine.
        assert second["count"](0) == 8


def test_a_write_to_a_constant_is_told_with_its_line(checked: Device) -> None:
    lib = loaded(checked)
    with pytest.raises(AccessError, match=r"wrote 4 bytes at .* of accesses\.c, which is constant") as caught:
        lib.write_constant(5)
    assert caught.value.details[0].startswith("in write_constant at accesses.c:")
    assert loaded(checked).sum_of(X, 6) == 16


def test_the_first_fault_is_told_with_a_crash_and_the_next_session_is_judged(checked: Device) -> None:
    with pytest.raises((SessionTerminatedError, AccessError)) as caught:
        loaded(checked).wild(X)
    assert "wild read 2 bytes" in str(caught.value)
    lib = loaded(checked)
    assert lib.sum_of(X, 6) == 16
    with pytest.raises(AccessError, match="past the end of x"):
        lib.sum_of(X, 7)
    checked.relayout(arena=32768)
    lib = loaded(checked)
    assert lib.in_heap(10, 9) is not None
    with pytest.raises(AccessError, match="past the end of x"):
        lib.sum_of(X, 7)
