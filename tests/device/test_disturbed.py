# SPDX-License-Identifier: Apache-2.0
"""Functions that change what clock and link need: times stay right, or are refused with the reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from minrpc import (
    CFunctions,
    ClockError,
    Device,
    RunningDevice,
    SessionTerminatedError,
    connect,
    measure,
)

SOURCE = Path(__file__).parent / "c/disturb.c"
# More than two rounds of SysTick's 24 bits.
LONG = 6_000_000


@pytest.fixture
def lib(device: Device) -> CFunctions:
    return device.load(SOURCE)


def need(lib: CFunctions, name: str) -> None:
    if name not in lib:
        pytest.skip(f"{name} is for another processor")


def ticks(lib: CFunctions, name: str, *arguments: int) -> float:
    return float(measure(lib, name, number=1, repeat=1)(*arguments).samples[0].ticks)


def test_interrupts_that_the_function_masks_lose_no_time(device: Device, lib: CFunctions) -> None:
    clock = device.clock()
    if clock is None or not clock.exact:
        pytest.skip("the clock is not exact")
    plain, masked = ticks(lib, "spin", LONG), ticks(lib, "masked", LONG)
    assert masked == pytest.approx(plain, rel=1e-3)


@pytest.mark.parametrize(("name", "arguments"), [("config", (25000,)), ("stop", ())])
def test_a_changed_clock_is_named_and_put_back(
    running_device: RunningDevice, lib: CFunctions, name: str, arguments: tuple[int, ...]
) -> None:
    need(lib, name)
    if running_device.target.platform.port == "zephyr" and name != "stop":
        pytest.skip("the kernel itself changes SysTick's LOAD")
    before = ticks(lib, "spin", 20000)
    lib[name](*arguments)
    assert ticks(lib, "spin", 20000) == pytest.approx(before, rel=0.01)
    with pytest.raises(
        ClockError, match=r"changed SysTick's .*, the device's clock: its time is not known"
    ) as caught:
        measure(lib, name, number=1, repeat=1)(*arguments)
    assert caught.value.next_step == "time the function without the part that sets the clock"
    assert ticks(lib, "spin", 20000) == pytest.approx(before, rel=0.01)


@pytest.mark.parametrize("count", [50000, 500_000])
def test_a_clock_that_was_set_back_is_noticed(
    running_device: RunningDevice, lib: CFunctions, count: int
) -> None:
    """Its registers are as before. Also after more than a round of SysTick, of which a part is lost."""
    need(lib, "zero")
    if running_device.target.platform.port == "zephyr":
        if "mps2" not in running_device.name:
            pytest.skip("its devicetree chooses no second clock")
        assert measure(lib, "zero", number=1, repeat=1)(count).samples[0].coarse
        return
    with pytest.raises(ClockError, match="the device's clocks disagree"):
        measure(lib, "zero", number=1, repeat=1)(count)


NEEDED = ["off", "lines_off", "vectors", "levels", "faults_off", "unaligned_off", "floats_off"]


@pytest.mark.parametrize("name", NEEDED)
def test_the_runtimes_needs_come_back_after_a_call(lib: CFunctions, name: str) -> None:
    """Interrupts, vectors, unaligned accesses, the FPU."""
    need(lib, name)
    lib[name]()
    assert lib["third"](3.0) == 1.0


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("floats_off_result", r"turned off the FPU in (CPACR|mstatus\.FS)"),
        ("unaligned_off_ask", "set UNALIGN_TRP in CCR"),
    ],
)
def test_a_death_for_a_changed_register_names_it(device: Device, name: str, told: str) -> None:
    """The runtime runs before the register is put back, and no array is written past its end."""
    lib = device.load(SOURCE, fakes={"ask": lambda x: x})
    need(lib, name)
    with pytest.raises(
        SessionTerminatedError, match=rf"^{name}, or a function that it called, {told}"
    ) as caught:
        lib[name](1)
    assert caught.value.next_step.startswith("put the register back")
    assert not any("may have damaged" in detail for detail in caught.value.details)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("supervisor", r"an (svc instruction|ecall), for which no handler is there, in supervisor, at "),
        ("pend", "PendSV, for which no handler is there, in pend, at "),
        ("interrupt", "(an interrupt came that has no handler|interrupt 30, for which no handler is there)"),
        ("unprivileged", "unprivileged, or a function that it called, left the privileged mode"),
    ],
)
def test_an_exception_without_a_handler_is_named(
    running_device: RunningDevice, lib: CFunctions, name: str, told: str
) -> None:
    need(lib, name)
    if running_device.target.platform.port != "baremetal" and name != "unprivileged":
        pytest.skip("the kernel has handlers of its own")
    with pytest.raises(SessionTerminatedError, match=f"^{told}"):
        lib[name]()


def test_the_next_session_has_the_first_sessions_processor(running_device: RunningDevice) -> None:
    """The modes of floating point and the protection of memory are a session's."""
    numbers = np.linspace(-3, 3, 97, dtype=np.float32)
    expected = [float(np.float32(x) / np.float32(3)) for x in numbers]
    with connect(running_device) as device:
        lib = device.load(SOURCE)
        assert [lib["third"](float(x)) for x in numbers] == expected
        # Zephyr's threads begin anew with an x86-64's modes whenever they are resumed.
        if "mode" in lib and running_device.platform.arch != "x86":
            lib["mode"]()
            assert [lib["third"](float(x)) for x in numbers] != expected
    with connect(running_device) as device:
        lib = device.load(SOURCE)
        assert [lib["third"](float(x)) for x in numbers] == expected
