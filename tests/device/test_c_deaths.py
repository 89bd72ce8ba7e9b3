# SPDX-License-Identifier: Apache-2.0
"""Loaded code that never comes back: the failure names the function, and the next session loads again."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from minrpc import Device
from minrpc.errors import DeadlineError, EmulatorExitedError, HarnessError, SessionTerminatedError
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


def has_stack_guard(shared: SharedDevice) -> bool:
    """The Cortex-M3 that Zephyr runs on as qemu_cortex_m3 has no MPU: the stack runs over other memory."""
    return shared.name != "qemu_cortex_m3"


def test_a_stack_that_runs_out(kinds: LoadedLibrary, device: Device, minrpc_shared: SharedDevice) -> None:
    if not has_stack_guard(minrpc_shared):
        pytest.skip("nothing guards its stacks: what follows is chance")
    device.call_timeout_s = 5.0
    with pytest.raises((SessionTerminatedError, EmulatorExitedError)) as caught:
        kinds.recurse(0)
    assert caught.value.stage == "call recurse"
    assert "fatal: stack overflow" in (caught.value.console_tail or "")
    if isinstance(caught.value, EmulatorExitedError):
        with pytest.raises(EmulatorExitedError) as again:
            kinds.product(1, 2)
        assert "that was in an earlier request: call recurse" in again.value.details
    minrpc_shared.discard()


def test_null_can_not_be_written(kinds: LoadedLibrary, device: Device, minrpc_shared: SharedDevice) -> None:
    """Where the core protects it, or nothing is there: vectors and code are as they were."""
    with pytest.raises((SessionTerminatedError, EmulatorExitedError)) as caught:
        kinds.set_null()
    assert caught.value.stage == "call set_null"
    assert "fatal: " in (caught.value.console_tail or "")
    minrpc_shared.discard()


def test_a_loop_without_end(kinds: LoadedLibrary, device: Device, minrpc_shared: SharedDevice) -> None:
    device.call_timeout_s = 0.5
    with pytest.raises(DeadlineError) as caught:
        kinds.hang()
    assert caught.value.stage == "call hang"
    assert "the stack ran out" not in " ".join(caught.value.details)
    minrpc_shared.discard()
