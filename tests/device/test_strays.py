# SPDX-License-Identifier: Apache-2.0
"""Accesses to addresses at which the device has nothing: never a silent 0."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from minrpc import (
    Address,
    CFunctions,
    DeadlineError,
    Device,
    HarnessError,
    RegisterError,
    fakes,
    measure,
    read,
    variables,
)
from minrpc.plugin.shared import SharedDevice

pytestmark = pytest.mark.once

NOWHERE = 0x4003D000
SOURCE = """
#include <stdint.h>
int hal_note(int value);
int done;
uint32_t peek(volatile uint32_t *at) { return *at; }
void poke(volatile uint32_t *at, uint32_t value) { *at = value; done++; }
uint32_t noted(volatile uint32_t *at) { return (uint32_t)hal_note((int)*at); }
int polls(volatile uint32_t *at) { while (!(*at & 0x80u)) { } return 1; }
"""


def library(device: Device, directory: Path) -> CFunctions:
    (directory / "strays.c").write_text(SOURCE)
    return device.load(directory / "strays.c", fakes="zero")


def test_an_access_without_a_device_is_an_error(
    device: Device, minrpc_shared: SharedDevice, tmp_path: Path
) -> None:
    """By a fault, or by QEMU's log: then the session goes on."""
    # A 64-bit Arm has its RAM there.
    nowhere = 0x0D03D000 if minrpc_shared.target.platform.arch == "arm64" else NOWHERE
    lib, at = library(device, tmp_path), Address(nowhere)
    with pytest.raises(HarnessError, match=rf"({nowhere:#x}|HardFault)") as first:
        lib.peek(at)
    if not isinstance(first.value, RegisterError):
        minrpc_shared.discard()
        assert ", in peek, at" in first.value.message
        return
    with pytest.raises(RegisterError, match=r"C wrote (0x7 to|4 bytes at) 0x4003d000"):
        lib.poke(at, 7)
    assert variables(lib).done == 1
    is_read = pytest.raises(RegisterError, match="C read 4 bytes at 0x4003d000")
    with is_read:
        lib.noted(at)
    fakes(lib).hal_note.answer = lambda value: value + lib.peek(at)
    with is_read:
        lib.noted(at)
    fakes(lib).hal_note.answer = lambda _: 1 // 0
    with pytest.raises(ZeroDivisionError):
        lib.noted(at)
    variables(lib).done = 2  # This request has not made the earlier calls' accesses.
    fakes(lib).hal_note.answer = lambda value: value + 5
    with is_read:
        measure(lib, "peek", number=3, repeat=2)(at)
    with is_read:
        read(lib, at, 4)
    with pytest.raises(DeadlineError, match=r"in polls, at") as caught:
        lib.polls.with_timeout(0.5)(at)
    assert re.search(r"C read 4 bytes at 0x4003d000, [\d,]{3,} times or more", str(caught.value))
    assert variables(library(device, tmp_path)).done == 0
