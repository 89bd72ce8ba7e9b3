# SPDX-License-Identifier: Apache-2.0
"""Loaded code that never comes back: the failure names the function, and the next session loads again."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from minrpc import Device
from minrpc.errors import DeadlineError, EmulatorExitedError, HarnessError
from minrpc.library import LoadedLibrary
from minrpc.plugin.shared import SharedDevice

Load = Callable[..., LoadedLibrary]


@pytest.fixture
def kinds(load: Load, minrpc_shared: SharedDevice) -> LoadedLibrary:
    """Of a device that is not used again."""
    if minrpc_shared.target.serial_port is not None:
        pytest.skip("a board that hangs has to be reset by hand")
    return load("c/kinds.c")


def test_a_fault(kinds: LoadedLibrary, minrpc_shared: SharedDevice) -> None:
    with pytest.raises(HarnessError) as caught:
        kinds.fault()
    assert caught.value.stage == "call fault"
    if re.search(r"fatal: .*\b(pc|mepc) 0x", caught.value.console_tail or ""):
        assert re.search(r"p?c 0x\w+ is in fault of kinds\.c, at byte \d", str(caught.value))
    minrpc_shared.discard()


def test_a_recursion_without_end(kinds: LoadedLibrary, device: Device, minrpc_shared: SharedDevice) -> None:
    if minrpc_shared.name == "qemu_cortex_m3":
        pytest.skip("it has no MPU: such a stack runs over the kernel's memory, and what follows is chance")
    device.call_timeout_s = 5.0
    with pytest.raises(HarnessError) as caught:
        kinds.recurse(0)
    assert caught.value.stage == "call recurse"
    if isinstance(caught.value, EmulatorExitedError):
        assert "the stack ran out" in " ".join(caught.value.details)
        with pytest.raises(EmulatorExitedError) as again:
            kinds.product(1, 2)
        assert "that was in an earlier request: call recurse" in again.value.details
    elif minrpc_shared.name == "bare_rv32":
        assert "the stack ran out: its pointer is 0x" in " ".join(caught.value.details)
    minrpc_shared.discard()


def test_a_loop_without_end(kinds: LoadedLibrary, device: Device, minrpc_shared: SharedDevice) -> None:
    device.call_timeout_s = 0.5
    with pytest.raises(DeadlineError) as caught:
        kinds.hang()
    assert caught.value.stage == "call hang"
    assert "the stack ran out" not in " ".join(caught.value.details)
    minrpc_shared.discard()
