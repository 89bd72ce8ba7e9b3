# SPDX-License-Identifier: Apache-2.0
"""Loaded code that never returns: the failure names the function, and the next session loads again."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
from minrpc import (
    DeadlineError,
    Device,
    EmulatorExitedError,
    HarnessError,
    LoadedLibrary,
    RunningDevice,
    SessionEndedError,
    SessionTerminatedError,
)
from minrpc.plugin.shared import SharedDevice

Load = Callable[..., LoadedLibrary]

OPEN_AT_NULL = {"bare_microbit", "bare_mps2_an505", "bare_mps2_an521", "bare_mps3_an547"} | {
    "qemu_cortex_m3",
    "mps2_an385",
    "mps2_an386",
}

# Calls of Zephyr's timers, as its headers declare them, without its headers.
LATE = """
typedef struct {
	long long ticks;
} k_timeout_t;
void k_timer_init(void *timer, void (*expired)(void *timer), void (*stopped)(void *timer));
void z_impl_k_timer_start(void *timer, k_timeout_t duration, k_timeout_t period);

static char timer[512] __attribute__((aligned(16)));

static void late(void *timer)
{
	(void)timer;
	*(volatile int *)8 = 1;
	__builtin_trap(); /* where memory is at 8 */
}

int wait(void)
{
	k_timeout_t one = {1}, none = {0};

	k_timer_init(timer, late, 0);
	z_impl_k_timer_start(timer, one, none);
	for (;;) {
	}
}
"""


@pytest.fixture
def kinds(load: Load, minrpc_shared: SharedDevice) -> LoadedLibrary:
    """Functions that end the device, which begins anew at once."""
    if minrpc_shared.target.serial_port is not None:
        pytest.skip("a board that hangs has to be reset by hand")
    return load("c/kinds.c")


def lines_of(source: str, text: str) -> int:
    """The number of the line of `source` that has `text`."""
    rows = (Path(__file__).parent / "c" / source).read_text().splitlines()
    (found,) = (number for number, row in enumerate(rows, 1) if text in row)
    return found


def test_a_fault(kinds: LoadedLibrary, minrpc_shared: SharedDevice) -> None:
    with pytest.raises(HarnessError) as caught:
        kinds["fault"]()
    assert caught.value.stage == "call fault"
    if "fatal: " in (caught.value.console_tail or ""):
        line = lines_of("kinds.c", "__builtin_trap")
        assert re.search(rf"in fault, at \S*kinds\.c:{line}", caught.value.message)


def end_of(running: RunningDevice) -> type[HarnessError]:
    """A fault's error: a process ends, other devices restart and report the reason; no second fault stops an
    emulator."""
    restarts = running.qemu or running.recording
    return SessionTerminatedError if restarts else EmulatorExitedError


def test_a_stack_that_runs_out(
    kinds: LoadedLibrary, device: Device, minrpc_shared: SharedDevice, running_device: RunningDevice
) -> None:
    device.call_timeout_s = 5.0
    with pytest.raises(end_of(running_device)) as caught:
        kinds["recurse"](0)
    assert caught.value.stage == "call recurse"
    assert re.match(r"the stack ran out in recurse\b.*\([\d,]+ bytes", caught.value.message)
    caller = next(line for line in caught.value.details if line.startswith("called by "))
    assert re.search(rf"recurse, at \S*kinds\.c:{lines_of('kinds.c', 'return recurse(n + 1)')}", caller)
    # A Cortex-M has not stored the registers.
    assert not re.search("pc 0x0, lr 0x[^0]", str(caught.value))
    with pytest.raises(
        SessionEndedError, match=r"it ended in 'call recurse': the stack ran out|ended by itself"
    ):
        kinds["product"](1, 2)


@pytest.mark.parametrize("flag", ["-O1", "-Os"])
def test_a_stack_that_runs_out_at_a_push(
    load: Load, minrpc_shared: SharedDevice, device: Device, running_device: RunningDevice, flag: str
) -> None:
    """An instruction stores registers and moves the stack pointer."""
    if minrpc_shared.target.serial_port is not None:
        pytest.skip("a board that hangs has to be reset by hand")
    device.call_timeout_s = 5.0
    with pytest.raises(end_of(running_device), match=r"^the stack ran out in recurse\b"):
        load("c/kinds.c", flags=[flag])["recurse"](0)


def test_a_frame_far_larger_than_the_stack(
    kinds: LoadedLibrary, minrpc_shared: SharedDevice, running_device: RunningDevice
) -> None:
    """The write skips a small guard: it goes to memory far below the stack."""
    if minrpc_shared.name == "native_sim":
        pytest.skip("its functions run on a stack of the host's, with memory of others below it")
    assert kinds["write_below"](100) == 1
    with pytest.raises(end_of(running_device)) as caught:
        kinds["write_below"](16_000_000)
    assert caught.value.stage == "call write_below"
    assert caught.value.message.startswith("the stack ran out")


def test_null_can_not_be_written(
    kinds: LoadedLibrary, minrpc_shared: SharedDevice, running_device: RunningDevice
) -> None:
    """The core protects address 0, or no memory is there: vectors and code are unchanged."""
    with pytest.raises(end_of(running_device)) as caught:
        kinds["call_set_null"]()
    assert caught.value.stage == "call call_set_null"
    line = lines_of("kinds.c", "*nowhere = 1")
    # A Cortex-M0 does not report the accessed address.
    cause = "wrote to 0x0: a null pointer" if "HardFault" not in caught.value.message else "HardFault"
    assert re.match(rf"{cause}, in set_null, at \S*kinds\.c:{line};", caught.value.message)
    assert any(detail.startswith("called by call_set_null, at ") for detail in caught.value.details)


def test_a_device_says_that_it_restarts_if_it_can(
    kinds: LoadedLibrary, device: Device, running_device: RunningDevice
) -> None:
    firmware = running_device.firmware
    if firmware is None or running_device.platform.port != "zephyr":
        pytest.skip("a board's firmware, or its port, has words of its own")
    with pytest.raises(end_of(running_device)):
        kinds["fault"]()
    device.console.expect(r"fatal: [^\n]*\n")
    options = (firmware.elf.parent / ".config").read_text()
    can = "CONFIG_REBOOT=y\n" in options or "CONFIG_ARCH_POSIX=y\n" in options
    assert ("; restarting" in device.console.after) is can


def test_a_fault_in_an_interrupt(
    load: Load,
    minrpc_shared: SharedDevice,
    device: Device,
    running_device: RunningDevice,
    tmp_path: Path,
) -> None:
    """An interrupt has a stack of its own: the stack of the call did not run out."""
    if running_device.platform.port != "zephyr":
        pytest.skip("it takes a timer of Zephyr's")
    if minrpc_shared.target.serial_port is not None:
        pytest.skip("a board that hangs has to be reset by hand")
    source = tmp_path / "late.c"
    source.write_text(LATE)
    device.call_timeout_s = 5.0
    with pytest.raises(end_of(running_device)) as caught:
        load(source)["wait"]()
    assert re.match(r"(?!the stack).*in late, at \S*late\.c:", caught.value.message)


def test_null_can_not_be_read(
    kinds: LoadedLibrary, minrpc_shared: SharedDevice, running_device: RunningDevice
) -> None:
    """Only some cores can forbid reads of their vectors: an Armv7-M core with an MPU can."""
    if minrpc_shared.name in OPEN_AT_NULL:
        pytest.skip("its vectors, or other memory, lie at address 0, open to reading")
    with pytest.raises(end_of(running_device)) as caught:
        kinds["read_null"](50)
    line = lines_of("kinds.c", "calls += nowhere[index]")
    place = rf"read from 0xc8: a null pointer, in read_null, at \S*kinds\.c:{line}"
    assert re.match(place, caught.value.message)


def test_a_return_address_that_was_overwritten(
    kinds: LoadedLibrary, minrpc_shared: SharedDevice, running_device: RunningDevice
) -> None:
    with pytest.raises(end_of(running_device)) as caught:
        kinds["call_smash"](32)
    assert re.match(r"(call_smash|smash)(, or a function that it called,)? returned ", caught.value.message)
    assert any("a write past an array on its stack" in detail for detail in caught.value.details)


@pytest.mark.parametrize(
    ("function", "arguments", "told"),
    [
        ("leap", (), r"the stack pointer is wrong(: 0x\w+)?, in leap"),
        ("call_handler", (), "call of a null function pointer, 0x0, in call_handler"),
        ("divisor_of", (48_000_000, 0), r"divided by zero, in divisor_of, at \S*lost\.c:28"),
    ],
)
def test_a_function_that_loses_its_way(
    load: Load,
    minrpc_shared: SharedDevice,
    running_device: RunningDevice,
    function: str,
    arguments: Sequence[int],
    told: str,
) -> None:
    """A wrong stack pointer is no overflow, and a division in the compiler's library is not the port's."""
    lib = load("c/lost.c")
    if minrpc_shared.target.serial_port is not None:
        pytest.skip("a board that hangs has to be reset by hand")
    quotient = {"riscv": 2**32 - 1, "riscv32": 2**32 - 1, "arm64": 0}.get(running_device.platform.arch)
    if function == "divisor_of" and quotient is not None:
        assert lib[function](*arguments) == (quotient + 1) % 2**32
        return
    with pytest.raises(end_of(running_device)) as caught:
        lib[function](*arguments)
    assert re.match(told, caught.value.message)
    assert not any("may have damaged its memory" in detail for detail in caught.value.details)


def test_a_machine_that_ends(
    load: Load, device: Device, minrpc_shared: SharedDevice, running_device: RunningDevice
) -> None:
    """QEMU is started again each time; the fixture `device` of the next test works, too."""
    if (
        running_device.qemu is None
        or minrpc_shared.name == "bare_microbit"
        or running_device.platform.arch == "arm64"
    ):
        pytest.skip("no function ends it")
    with pytest.raises(SessionTerminatedError, match=r"^call of a null function pointer"):
        load("c/lost.c")["call_handler"]()
    for round_ in range(2):
        lib, array = load("c/lost.c"), device.array([1, 2])
        assert lib.measure("divisor_of")(9, 2).summary.median > 0
        with pytest.raises(EmulatorExitedError, match=r"^\w+ ended by itself") as caught:
            lib["end_machine"]()
        assert caught.value.stage == "call end_machine"
        assert caught.value.next_step.startswith("look in the function")
        assert "it was started again: arrays, functions and libraries are gone" in caught.value.details
        if running_device.platform.arch == "arm":
            line = lines_of("lost.c", "cpsid f")
            assert re.search(rf"it was in end_machine, at \S*lost\.c:{line}", caught.value.details[0])
            assert "fatal: Lockup" in caught.value.details[1]
        for use in (partial(lib["divisor_of"], 1, 1), array.numpy):
            with pytest.raises(SessionEndedError, match=r"ended\n +it ended in 'call end_machine'"):
                use()
        hal = load("c/hal.c", fakes={"hal_millis": Mock(return_value=round_), "*": "zero"})
        assert hal["elapsed"](0) == round_


def test_a_restart_is_not_told_as_the_crash_before(
    load: Load, device: Device, minrpc_shared: SharedDevice, running_device: RunningDevice
) -> None:
    """Nor is a hang; and the next crash is told again."""
    if minrpc_shared.target.serial_port is not None:
        pytest.skip("it has to be reset by hand")
    if running_device.platform.arch == "arm64":
        pytest.skip("no function restarts it")
    for round_ in range(2):
        with pytest.raises(end_of(running_device), match=r"^call of a null function pointer"):
            load("c/lost.c")["call_handler"]()
        with pytest.raises(end_of(running_device)) as caught:
            load("c/lost.c")["restart"]()
        told = "the device ended the session before it answered: it restarted"
        assert caught.value.message in (told, f"{minrpc_shared.name} ended by itself: exit status 0")
        assert caught.value.next_step.startswith("look in the function for a ")
        assert "called by" not in " ".join(caught.value.details)
        if round_ == 1:
            device.call_timeout_s = 0.5
            with pytest.raises(DeadlineError) as late:
                load("c/kinds.c")["hang"]()
            assert "null function" not in " ".join((late.value.message, *late.value.details))


def test_the_compiler_check_names_the_function_with_the_array(
    load: Load, minrpc_shared: SharedDevice, running_device: RunningDevice
) -> None:
    if running_device.platform.port == "zephyr":
        pytest.skip("loaded code can't have Zephyr's canary")
    lib = load("c/kinds.c", flags=["-fstack-protector-all"])
    with pytest.raises(end_of(running_device)) as caught:
        lib["call_smash"](32)
    said = " ".join((caught.value.message, *caught.value.details))
    assert re.search(r"(stack: a write past an array|stack smashing detected).* (in|by) smash, at", said)


def test_a_loop_without_end(
    kinds: LoadedLibrary, load: Load, device: Device, running_device: RunningDevice
) -> None:
    """The device begins anew at once, as often as it hangs, and old objects say why they are gone."""
    device.rpc.session_timeout_s = 5.0
    for round_ in range(2):
        old, array = kinds, device.array([1, 2])
        device.call_timeout_s = 0.5
        with pytest.raises(DeadlineError) as caught:
            kinds["hang"]()
        assert caught.value.stage == "call hang"
        said = " ".join(caught.value.details)
        assert "it was started again" in said
        if running_device.qemu is not None or running_device.platform.port == "posix":
            line = lines_of("kinds.c", "for (volatile int i = 0;;")
            assert re.search(rf"it was in hang, at \S*kinds\.c:{line}", said)
        device.call_timeout_s = 60.0
        for use in (partial(old["product"], 1, 2), partial(old.measure, "product"), array.numpy):
            with pytest.raises(SessionEndedError, match=r"ended\n +it ended in 'call hang'"):
                use()
        hal = load("c/hal.c", fakes={"hal_millis": Mock(return_value=round_), "*": "zero"})
        assert hal["elapsed"](0) == round_
        kinds = load("c/kinds.c")
        assert kinds["product"](3, 4) == 12
        assert kinds.measure("product")(3, 4).summary.median > 0
        assert device.relayout().how == "session"
