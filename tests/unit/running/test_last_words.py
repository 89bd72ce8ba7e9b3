# SPDX-License-Identifier: Apache-2.0
"""Ports' last words at a crash, explained. The lines are those that devices printed."""

from __future__ import annotations

import pytest
from minrpc.running.last_words import ProgramEnd, last_words, place_told

BOOT = "minrpc: MPS2 AN385 ready\n"


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (
            "fatal: UsageFault at pc 0x210000ba, lr 0x1, sp 0x2, cfsr 0x2000000, address 0x0",
            "divided by zero",
        ),
        (
            "fatal: UsageFault at pc 0x210000ba, lr 0x1, sp 0x2, cfsr 0x1000000, address 0x0",
            "unaligned access",
        ),
        (
            "fatal: illegal instruction at pc 0x80800040, ra 0x1, sp 0x2, mcause 2, address 0x0",
            "__builtin_trap",
        ),
        (
            "fatal: CPU exception (reason 0) at pc 0x401, lr 0x1, address 0x10, esr 4060086248 in minrpc",
            "a breakpoint, as of __builtin_trap",
        ),
        (
            "fatal: SIGSEGV at pc 0x1460200, sp 0x7ffc4b7b5068, code 128, address 0x0, read",
            "an access to an address that no memory can have",
        ),
        ("fatal: SIGFPE at pc 0x1460200, sp 0x7ffc4b7b5068, code 1", "divided by zero"),
        (
            "fatal: division by zero (reason 23) at pc 0x21000128, sp 0x2, address 0x0 in minrpc",
            "divided by zero",
        ),
    ],
)
def test_the_cause_is_said_in_words(line: str, cause: str) -> None:
    words = last_words(f"{BOOT}{line}\ncallers: 0x103f 0x1115\n{BOOT}")
    assert words is not None
    assert cause in words.cause
    assert words.address is None
    assert words.callers == (0x103F, 0x1115)
    assert not words.overflow


@pytest.mark.parametrize(
    ("console", "wrote"),
    [
        ("fatal: MemManage at pc 0x21000042, lr 0x1, sp 0x2, cfsr 0x82, hfsr 0x0, address 0x10", None),
        ("fatal: store access fault at pc 0x80800040, ra 0x1, sp 0x2, mcause 7, address 0x10", True),
        ("fatal: load access fault at pc 0x80800040, ra 0x1, sp 0x2, mcause 5, address 0x10", False),
        ("fatal: CPU exception (reason 0) at pc 0x401, address 0x10, esr 2516582470 in minrpc", True),
        ("fatal: CPU exception (reason 0) at pc 0x401, address 0x10, esr 2516582406 in minrpc", False),
        ("fatal: SIGSEGV at pc 0x1460040, sp 0x7ffc5eb7d878, code 1, address 0x10, write", True),
        (
            "Page fault at address 0x10 (error code 0x2)\nEIP: 0x03ef2042\n"
            "fatal: CPU exception (reason 0) at pc 0x3ef2042, lr 0x0, sp 0x3eefec0, address 0x10 in minrpc",
            True,
        ),
        (
            "Page fault at address 0x10 (error code 0x0)\nEIP: 0x03ef2042\n"
            "fatal: CPU exception (reason 0) at pc 0x3ef2042, lr 0x0, sp 0x3eefec0, address 0x10 in minrpc",
            False,
        ),
    ],
)
def test_an_access_has_its_address_and_direction(console: str, wrote: bool | None) -> None:
    words = last_words(BOOT + console)
    assert words is not None
    assert (words.address, words.wrote, words.cause) == (0x10, wrote, "")


def test_a_fetch_where_no_memory_is_has_its_address() -> None:
    """An instruction abort of a 64-bit Arm, in the same exception level."""
    words = last_words(
        "fatal: CPU exception (reason 0) at pc 0x10, lr 0x1, address 0x10, esr 2248146950 in minrpc"
    )
    assert words is not None
    assert (words.address, words.cause) == (0x10, "")


def test_a_division_on_x86_is_no_access() -> None:
    """The processor's register for fault addresses has an earlier address."""
    words = last_words(
        "Divide by zero\nEAX: 5\nfatal: CPU exception (reason 0) at pc 0x3, address 0x77 in minrpc"
    )
    assert words is not None
    assert (words.address, words.cause) == (None, "divided by zero")


def test_a_stack_that_ran_out_may_say_its_size() -> None:
    words = last_words(
        "fatal: stack overflow: SIGSEGV at pc 0x14, sp 0x7f, address 0x7e, write, stack of 4096 bytes"
    )
    assert words is not None
    assert words.overflow
    assert words.stack_size == 4096


def test_words_far_from_the_end_are_of_another_crash() -> None:
    assert last_words("fatal: HardFault at pc 0x1, lr 0x2\n" + "line\n" * 30) is None
    assert last_words(BOOT) is None


def test_the_last_of_two_crashes_counts() -> None:
    twice = (
        "fatal: BusFault at pc 0x10, lr 0x1\ncallers: 0x21\n" * 2 + "fatal: UsageFault at pc 0x20, lr 0x3\n"
    )
    words = last_words(twice)
    assert words is not None
    assert words.values["pc"] == 0x20
    assert words.callers == ()


def test_a_program_that_ends_itself() -> None:
    asserted = last_words("fatal: assertion failed: f(a, b) && n, in check, at /a b/x.c:12\ncallers: 0x1\n")
    left = last_words("fatal: exit(-3); lr 0x2100\n")
    crashed = last_words("fatal: UsageFault at pc 0x2\n")
    assert asserted is not None
    assert left is not None
    assert crashed is not None
    assert asserted.ended == ProgramEnd("assertion failed: f(a, b) && n", "check", "/a b/x.c", 12)
    assert left.ended == ProgramEnd("exit(-3)")
    assert left.values == {"lr": 0x2100}
    assert crashed.ended is None


def test_the_c_library_of_a_process_says_why_it_aborts() -> None:
    words = last_words("minrpc\nfree(): double free detected in tcache 2\nfatal: SIGABRT at pc 0x1, sp 0x2\n")
    assert words is not None
    assert words.cause == "aborted: free(): double free detected in tcache 2"


@pytest.mark.parametrize(
    ("console", "place"),
    [
        ("hot\ncallers: 0x404584 0x40467a\nplace: pc 0x14604fb\n", (0x14604FB, (0x404584, 0x40467A))),
        ("place: pc 0x10\n", (0x10, ())),
        ("callers: 0x404584\n", None),
        ("callers:\nplace: pc 0x1", None),
        ("", None),
    ],
)
def test_a_place_is_told_by_a_whole_line(console: str, place: tuple[int, tuple[int, ...]] | None) -> None:
    assert place_told(console) == place


def test_an_earlier_crash_gives_no_cause() -> None:
    """A device that was started again has the same console."""
    console = "fatal: SIGILL at pc 0x14\ncallers: 0x5\nfatal: SIGSEGV at pc 0x18, code 1, address 0x0"
    words = last_words(console)
    assert words is not None
    assert (words.cause, words.address) == ("", 0)


@pytest.mark.parametrize(("address", "overflow"), [(8, False), (0x153FFC, True), (0, True)])
def test_a_null_pointer_in_an_interrupt_is_no_overflow(address: int, overflow: bool) -> None:
    """The message of Zephyr 3.7 on a 32-bit x86."""
    words = last_words(
        f"fatal: stack overflow (reason 2) at pc 0x3ef2040, lr 0x0, sp 0x154fac, address 0x{address:x}, "
        "code 2 in an interrupt; restarting"
    )
    assert words is not None
    assert words.overflow is overflow
