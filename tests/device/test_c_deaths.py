# SPDX-License-Identifier: Apache-2.0
"""Loaded code that never comes back: the failure names the function, and the next session loads again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from minrpc.client import Device
from minrpc.errors import DeadlineError, HarnessError
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
    minrpc_shared.discard()


def test_a_recursion_without_end(kinds: LoadedLibrary, device: Device, minrpc_shared: SharedDevice) -> None:
    device.call_timeout_s = 5.0
    with pytest.raises(HarnessError) as caught:
        kinds.recurse(0)
    assert caught.value.stage == "call recurse"
    minrpc_shared.discard()


def test_a_loop_without_end(kinds: LoadedLibrary, device: Device, minrpc_shared: SharedDevice) -> None:
    device.call_timeout_s = 0.5
    with pytest.raises(DeadlineError) as caught:
        kinds.hang()
    assert caught.value.stage == "call hang"
    minrpc_shared.discard()
