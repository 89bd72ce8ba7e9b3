# SPDX-License-Identifier: Apache-2.0
"""Explanations of a crash in a program of this machine that has no symbols."""

from __future__ import annotations

from pathlib import Path

import pytest
from minrpc.counters import Image
from minrpc.library.thunks import linked_thunk, thunk_name
from minrpc.running.crash import _NOT_THE_USERS, explain
from minrpc.running.last_words import last_words


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("SIGABRT at pc 0x7f594c4faeec, code -6", "aborted"),
        (
            "SIGSEGV at pc 0x7f594c4faeec, code 1, address 0x10, read",
            "read from 0x10: a null",
        ),
        (
            "SIGSEGV at pc 0x5550, code 1, address 0x5550, read",
            "returned to 0x5550, where no",
        ),
        (
            "SIGSEGV at pc 0x0, sp 0x7ffd8d64b698, code 1, address 0x0, read",
            "call of a null function pointer, 0x0, in leave, or in a function that it called",
        ),
        (
            "SIGSEGV at pc 0x7f594c4faeec, sp 0xfc4a3fdd9e412846, code 128, address 0x0, no memory at sp",
            "pointer is wrong: 0xfc4",
        ),
        ("SIGSEGV at pc 0x5550, sp 0x10000, code 1, address 0xfff8, write", "pointer is wrong: 0x10000"),
    ],
)
def test_the_cause_of_a_crash(words: str, reason: str) -> None:
    """Libraries of this machine have code that the program's file does not have."""
    found = last_words(f"fatal: {words}\n")
    assert found is not None
    assert reason in explain(found, Image(Path("/bin/true")), None, "leave").reason


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        (thunk_name(12), True),
        (linked_thunk("dsp.fir"), True),
        (f"{thunk_name(3)}.constprop.0", True),
        ("minrpc_fits.part.0", True),
        ("__extendsfdf2", True),
        ("__truncdfsf2", True),
        ("minrpc_tune", False),
        ("minrpc_fitsall", False),
    ],
)
def test_the_runtimes_callers_are_no_callers_of_the_users(name: str, left_out: bool) -> None:
    assert bool(_NOT_THE_USERS.match(name)) is left_out
