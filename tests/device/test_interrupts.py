# SPDX-License-Identifier: Apache-2.0
"""Interrupts of C: now, behind an access, and in front of each instruction."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import minrpc
import pytest
from minrpc import (
    CFunction,
    CFunctions,
    DeadlineError,
    Device,
    RegisterError,
    interrupt,
    interruptions,
    library_of,
    registers,
    variables,
)

DRIVER = Path(__file__).with_name("c") / "interrupts.c"
BASE = 0x40013800
USART = "USART_TypeDef"


@pytest.fixture
def driver(load: Callable[..., Any]) -> CFunctions:
    """The driver, on a target with interrupts from Python."""
    lib = CFunctions(load(DRIVER, flags=["-O2"]))
    try:
        with registers(lib, BASE, USART):
            return lib
    except RegisterError as error:
        pytest.skip(error.message)


def runs_in_handler_mode(driver: CFunctions) -> bool:
    """True if rx_isr ran as an exception; False on a target that has no handler mode."""
    assert library_of(driver).facts.machine in ("EM_ARM", "EM_X86_64", "EM_RISCV")
    number = int(variables(driver).exception)
    is_arm: bool = library_of(driver).facts.machine == "EM_ARM"
    return (number >= 16) == is_arm


def reset(driver: CFunctions) -> None:
    state = variables(driver)
    state.count, state.head, state.tail, state.calls = 1, 1, 0, 0


def test_a_handler_runs_as_an_interrupt(driver: CFunctions) -> None:
    state = variables(driver)
    interrupt(driver.rx_isr)
    assert (state.count, state.calls) == (1, 1)
    assert runs_in_handler_mode(driver)
    interrupt(driver.rx_isr)
    assert state.count == 2
    if "entered_isr" in driver:
        with pytest.raises(RegisterError, match="entered_isr returns by mret"):
            interrupt(driver.entered_isr)
    with pytest.raises(TypeError, match="an interrupt gives no arguments"):
        interrupt(driver.send_by_interrupts)


def test_a_handler_that_leaves_interrupts_off_is_told(driver: CFunctions) -> None:
    """Arm's end of an interrupt keeps PRIMASK; RISC-V's turns interrupts on again."""
    calls: list[Callable[[], object]] = [
        lambda: interrupt(driver.off_isr),
        lambda: [at() for at in interruptions(driver.get, handler=driver.off_isr)],
        lambda: raised_behind_an_access(driver, driver.off_isr),
    ]
    for call in calls:
        if library_of(driver).facts.machine == "EM_ARM":
            with pytest.raises(RegisterError, match="off_isr returned with interrupts off: it set PRIMASK"):
                call()
        else:
            call()
    raised_behind_an_access(driver, driver.rx_isr)
    interrupt(driver.rx_isr)
    assert variables(driver).calls == 2


def test_a_mask_of_priorities(driver: CFunctions) -> None:
    """A handler that leaves one is told, and an access in a masked section keeps it."""
    if "masked" not in driver:
        pytest.skip("this target masks no priorities")
    with pytest.raises(RegisterError, match="mask_isr returned with interrupts off: it set BASEPRI"):
        interrupt(driver.mask_isr)
    assert library_of(driver).facts.machine == "EM_ARM"
    with registers(driver, BASE, USART):
        assert driver.masked() == 0x20
    interrupt(driver.rx_isr)


def raised_behind_an_access(driver: CFunctions, handler: CFunction) -> None:
    with registers(driver, BASE, USART) as usart:
        usart.on_write("CR1", lambda _: usart.interrupt(handler))
        driver.send_by_interrupts("", 0)


def test_the_sweep_finds_the_lost_update_and_passes_its_mend(driver: CFunctions) -> None:
    state = variables(driver)
    lost = next(
        f"interrupts.c:{at}"
        for at, line in enumerate(DRIVER.read_text().splitlines(), 1)
        if "/* lost */" in line
    )
    broken = []
    for at in interruptions(driver.get, handler=driver.rx_isr):
        reset(driver)
        assert at() in (0, 42)
        assert state.calls == 1
        if state.count != 1:
            broken.append(at)
    assert at.number > 8
    assert at.instruction.startswith(("bx lr", "pop", "ret", "c.jr ra", "jr ra"))  # the last one, too
    assert lost in {item.line for item in broken}
    assert 2 <= len(broken) <= 4  # between the load and the store of count
    assert not any(item.deferred for item in broken)
    with pytest.raises(
        AssertionError, match=rf"breaks get at \d of {at.number + 1} places:\n.*{lost}.*1 -> 0"
    ):
        interruptions(driver.get, handler=driver.rx_isr).require(
            lambda: state.count == 1, prepare=lambda: reset(driver), watch=["count"]
        )
    chosen = []
    for at in interruptions(driver.get, handler=driver.rx_isr, line=lost):
        reset(driver)
        assert at() in (0, 42)
        chosen.append(at.line)
    assert set(chosen[1:]) == {lost}
    assert len(chosen) - 1 <= len(broken) + 2
    with pytest.raises(RegisterError, match=r"interrupts.c:1 has no instruction of"):
        interruptions(driver.get, handler=driver.rx_isr, line="interrupts.c:1")


def test_a_sweep_without_calls_is_an_error(driver: CFunctions) -> None:
    with pytest.raises(RegisterError, match="get was not called, so its instructions are not known"):
        list(interruptions(driver.get, handler=driver.rx_isr))


def test_a_wait_gets_the_interrupt(driver: CFunctions) -> None:
    """Each place before the wait defers the interrupt to it, as the wait itself does; no call sleeps."""
    if "receive" not in driver:
        pytest.skip("this target has no instruction that waits for interrupts")
    state = variables(driver)
    told = []
    for at in interruptions(driver.receive, handler=driver.rx_isr):
        state.head = state.tail = state.calls = 0
        assert (at(), state.calls) == (42, 1)
        told.append(str(at))
    assert told[0].startswith("in the wait of interrupts.c:")
    assert len(told) > 4
    assert any("off until" in text for text in told)


def test_a_lost_wake_up_sleeps_until_the_deadline(
    driver: CFunctions, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "receive_or_sleep" not in driver:
        pytest.skip("this target has no instruction that waits for interrupts")
    monkeypatch.setattr(device, "call_timeout_s", 1.0)
    sweep = interruptions(driver.receive_or_sleep, handler=driver.rx_isr)
    with pytest.raises(DeadlineError, match=r"rx_isr had come in front of instruction \d"):
        sweep.require(lambda: True, prepare=lambda: reset_ring(driver))


def reset_ring(driver: CFunctions) -> None:
    variables(driver).head = variables(driver).tail = 0


def test_a_handler_that_jumps_away_is_told(driver: CFunctions, device: Device) -> None:
    """Later interrupts come again."""
    sweep = interruptions(driver.guarded, handler=driver.jump_isr)
    with pytest.raises(RegisterError, match="jump_isr did not return: it left by longjmp"):
        sweep.require(lambda: True)
    lib = device.load(DRIVER, flags=["-O2"])
    assert sum(at() == 0 for at in interruptions(lib.guarded, handler=lib.rx_isr)) > 5


def test_interrupts_that_are_off_come_later(driver: CFunctions) -> None:
    if library_of(driver).facts.machine == "EM_X86_64":
        pytest.skip("this target can't turn interrupts off")
    state = variables(driver)
    sweep = interruptions(driver.get_mended, handler=driver.rx_isr)
    sweep.require(lambda: state.count == 1 and state.calls == 1, prepare=lambda: reset(driver))
    off = [at for at in sweep if at() in (-1, 42) and at.deferred]
    assert len(off) > 5
    assert {item.came for item in off} == {off[-1].came}
    assert (
        sum(at() > 0 and at.deferred for at in interruptions(driver.count_in_a_line, handler=driver.rx_isr))
        > 2
    )


def test_an_exclusive_access_is_not_parted(driver: CFunctions) -> None:
    """Its end would fail again and again."""
    state = variables(driver)
    sweep = interruptions(driver.count_exclusively.with_timeout(5), handler=driver.rx_isr)
    sweep.require(lambda: state.count == 3, prepare=lambda: reset(driver))


def test_a_handler_asks_for_its_registers(driver: CFunctions) -> None:
    """The model's interrupt stays raised while a byte can be sent, as a UART's does."""
    sent: list[int] = []

    def control(value: int) -> None:
        if value & 0x80:
            usart.interrupt(driver.usart_isr)

    def send(value: int) -> None:
        sent.append(value)
        if len(sent) < 5:
            usart.interrupt(driver.usart_isr)

    with registers(driver, BASE, USART) as usart:
        usart.SR.value = 0x80
        usart.on_write("CR1", control)
        usart.on_write("DR", send)
        driver.send_by_interrupts(b"hello", 5)
        assert bytes(sent) == b"hello"
        assert runs_in_handler_mode(driver)
        assert usart.CR1.value == 0
        with pytest.raises(RegisterError, match="by a function that answers an access"):
            usart.interrupt(driver.usart_isr)


def test_an_error_in_a_handler_ends_the_call_and_the_next_call_works(driver: CFunctions) -> None:
    with registers(driver, BASE, USART) as usart:
        usart.SR.reads = [0x80]
        interrupt(driver.usart_isr)
        with pytest.raises(RegisterError, match="SR is read again"):
            interrupt(driver.usart_isr)
        usart.SR.reads = [0]
        before = len(usart.accesses)
        interrupt(driver.usart_isr)
        assert len(usart.accesses) > before
        usart.SR.reads = [0]
        sweep = interruptions(driver.get, handler=driver.usart_isr)
        with pytest.raises(RegisterError, match="SR is read again"):
            sweep.require(lambda: True)
        usart.SR.reads = None
        assert [at() for at in interruptions(driver.get, handler=driver.usart_isr)]
    interrupt(driver.rx_isr)
    assert runs_in_handler_mode(driver)


def test_an_error_in_a_handler_ends_its_interrupts(driver: CFunctions) -> None:
    """One that was raised meanwhile does not come; one of the next call does."""
    state = variables(driver)
    with registers(driver, BASE, USART) as usart:

        def raised_again() -> int:
            usart.interrupt(driver.usart_isr)
            return 0x80

        usart.SR.reads = raised_again
        usart.CR1.reads = lambda: 1 // 0
        state.left = state.calls = 0
        with pytest.raises(ZeroDivisionError):
            interrupt(driver.usart_isr)
        assert [access.name for access in usart.accesses] == ["SR"]
        usart.SR.reads = usart.CR1.reads = None
        minrpc.read(driver, BASE, 4)
        usart.on_write("CR1", lambda _: usart.interrupt(driver.rx_isr))
        driver.send_by_interrupts("", 0)
        assert [access.name for access in usart.accesses] == ["SR", "SR", "CR1", "CR1"]
        assert state.calls == 1


def test_a_sweep_goes_on_behind_a_table_of_jumps(driver: CFunctions) -> None:
    state, lib = variables(driver), library_of(driver)
    if lib.facts.machine == "EM_X86_64":
        pytest.skip("one instruction makes the update, and an interrupt does not part it")
    with pytest.raises(AssertionError, match="rx_isr breaks step at"):
        interruptions(driver.step, handler=driver.rx_isr).require(
            lambda: state.count == 1, 2, prepare=lambda: reset(driver)
        )


def test_a_sweep_keeps_its_handler(driver: CFunctions) -> None:
    first = interruptions(driver.get, handler=driver.rx_isr)
    interruptions(driver.get, handler=driver.usart_isr)
    for at in first:
        reset(driver)
        at()
        assert (variables(driver).head, variables(driver).calls) == (2, 1), at


def test_a_model_raises_interrupts_in_a_sweep(driver: CFunctions) -> None:
    """Each comes once, with the function and at the place of its own."""
    state = variables(driver)

    def numbers(*, raising: bool) -> list[int]:
        def control(value: int) -> None:
            if value and raising:
                usart.interrupt(driver.usart_isr)

        with registers(driver, BASE, USART) as usart:
            usart.on_write("CR1", control)
            swept = []
            for at in interruptions(driver.send_by_interrupts, handler=driver.rx_isr):
                reset(driver)
                at("", 0)
                swept.append(at.number)
                assert (state.head, state.calls) == (2, 2 if raising else 1), at
            return swept

    assert numbers(raising=True) == numbers(raising=False)


def test_several_interrupts_wait_in_their_order(driver: CFunctions) -> None:
    state = variables(driver)
    with registers(driver, BASE, USART) as usart:

        def both(value: int) -> None:
            for handler in (driver.rx_isr, driver.usart_isr, driver.rx_isr) if value else ():
                usart.interrupt(handler)

        usart.on_write("CR1", both)
        reset(driver)
        driver.send_by_interrupts("", 0)
        assert (state.head, state.calls) == (2, 2)
        raised = iter([driver.rx_isr, driver.usart_isr])
        usart.on_write("BRR", lambda _: usart.interrupt(next(raised)))
        usart.on_write("CR1", None)
        reset(driver)
        driver.access_twice()
        assert (state.head, state.calls) == (2, 2)


def test_an_interrupt_of_an_answer_that_failed_does_not_come(driver: CFunctions) -> None:
    state = variables(driver)
    with registers(driver, BASE, USART) as usart:

        def fails(_: int) -> None:
            usart.interrupt(driver.rx_isr)
            raise ZeroDivisionError

        usart.on_write("CR1", fails)
        with pytest.raises(ZeroDivisionError):
            driver.send_by_interrupts("", 0)
        usart.on_write("CR1", None)
        state.calls = 0
        driver.send_by_interrupts("", 0)
        assert state.calls == 0


def test_lines_are_used_again(driver: CFunctions) -> None:
    if library_of(driver).facts.machine != "EM_ARM":
        pytest.skip("its interrupts have no lines")
    state = variables(driver)
    state.calls = 0
    for _ in range(20):
        interrupt(driver.rx_isr, line=29)
        interrupt(driver.rx_isr, line=28)
        interrupt(driver.rx_isr)
    assert state.calls == 60


def test_an_interrupt_in_an_answer_or_a_handler_is_refused(driver: CFunctions) -> None:
    state = variables(driver)
    wrong: list[tuple[Any, type[Exception], str]] = [
        ("rx", TypeError, "calls a function of C"),
        (driver.send_by_interrupts, TypeError, "gives no arguments"),
    ]
    with registers(driver, BASE, USART) as usart:
        for handler, error, reason in wrong:
            usart.on_write("CR1", lambda _: usart.interrupt(handler))  # noqa: B023 - the present one
            with pytest.raises(error, match=reason):
                driver.send_by_interrupts("", 0)
        usart.on_write("CR1", lambda _: interrupt(driver.rx_isr))
        with pytest.raises(RegisterError, match="rx_isr can't come: C is in the answer of an access"):
            driver.send_by_interrupts("", 0)
        with pytest.raises(RegisterError, match="rx_isr can't come: C is in the answer of an access"):
            interrupt(driver.usart_isr)
        usart.on_write("CR1", None)
        state.calls = 0
        interrupt(driver.usart_isr)
        assert state.calls == 1


def test_an_interrupt_while_a_handler_waits_for_a_fake_is_refused(
    driver: CFunctions, load: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "handler.c").write_text("int hal(int x);\nint done;\nvoid isr(void) { done = hal(1); }\n")
    lib = CFunctions(load(tmp_path / "handler.c", fakes={"hal": lambda x: interrupt(driver.rx_isr)}))
    with pytest.raises(RegisterError, match="rx_isr can't come: C is in a handler of an interrupt"):
        interrupt(lib.isr)
    reset(driver)
    interrupt(driver.rx_isr)
    assert variables(driver).calls == 1


MASKED = """
#if defined(__arm__)
#define OFF() __asm__ volatile("cpsid i" ::: "memory")
#define ON() __asm__ volatile("cpsie i" ::: "memory")
#elif defined(__riscv)
#define OFF() __asm__ volatile("csrci mstatus, 8" ::: "memory")
#define ON() __asm__ volatile("csrsi mstatus, 8" ::: "memory")
#else
#define OFF()
#define ON()
#endif
int hal_ping(int x);
volatile int first, second, torn, ran;
void isr(void) { ran++; if (first != second) { torn++; } }
void update(int x) { OFF(); first = x; second = hal_ping(x); ON(); }
"""


def test_a_masked_section_with_a_fake_is_not_interrupted(
    driver: CFunctions, load: Callable[..., Any], tmp_path: Path
) -> None:
    library = library_of(driver)
    zephyr = library.session.owner.target.platform.port == "zephyr"
    if library.facts.machine not in ("EM_ARM", "EM_RISCV") or zephyr:
        pytest.skip("no section is masked there, or interrupts run while C waits (docs/functions.md)")
    (tmp_path / "masked.c").write_text(MASKED)
    masked = CFunctions(load(tmp_path / "masked.c", fakes={"hal_ping": lambda x: x}, flags=["-O2"]))
    state, places = variables(masked), 0
    for at in interruptions(masked.update, handler=masked.isr):
        state.first = state.second = state.ran = 0
        at(5)
        assert (state.torn, state.ran) == (0, 1), at
        places += 1
    assert places > 5
