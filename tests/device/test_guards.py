# SPDX-License-Identifier: Apache-2.0
"""A function that writes beside an array: its own call fails with the reason, and the session goes on."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from minrpc import (
    Device,
    GuardError,
    HarnessError,
    LoadedLibrary,
    RemoteError,
    RunningDevice,
    SystemLibrary,
    library_of,
)

SIZE = 40


@pytest.mark.parametrize(
    ("at", "where"), [(SIZE, "past"), (SIZE + 7, "past"), (-1, "before"), (-4, "before")]
)
def test_a_byte_beside_an_array_is_told(device: Device, lib: SystemLibrary, at: int, where: str) -> None:
    data = np.arange(SIZE, dtype=np.int8)
    _, array, _ = (device.array(data) for _ in range(3))
    with pytest.raises(RemoteError, match=rf"testing\.overrun wrote {where} the array at 0x[0-9a-f]+"):
        lib["testing.overrun"](array, at)
    lib["testing.overrun"](array, SIZE - 1)
    data[-1] ^= 0x10
    assert array.numpy().tolist() == data.tolist()


def test_damage_beyond_the_guards_ends_the_session_and_says_who_did_it(device: Device) -> None:
    """The device can't know the extent of the damage, so it restarts."""
    array = device.array(np.zeros(SIZE, np.int8))
    with pytest.raises(RemoteError, match=r"testing\.overrun wrote far beside the array at 0x"):
        device.system_lib()["testing.overrun"](array, -16)
    # The class depends on whether the end of the session has already been seen.
    with pytest.raises((HarnessError, ValueError)):
        device.system_lib()["add"](array, array, array)
    assert device.system_lib()["inc"](1) == 2


@pytest.fixture
def watched(
    device: Device, running_device: RunningDevice, need_memory: Callable[[int], None]
) -> LoadedLibrary:
    """A library whose code is in memory that its device shares."""
    need_memory(24_000)
    lib = device.load(Path(__file__).parent / "c/kinds.c")
    loaded = library_of(lib)
    assert isinstance(loaded, LoadedLibrary)
    if running_device.peek(loaded.image.base, 1) is None:
        pytest.skip("nothing but the device can read its code")
    return loaded


def test_a_write_to_loaded_constants_is_told(watched: LoadedLibrary) -> None:
    with pytest.raises(GuardError, match=r"write_constant wrote 1 byte of kinds\.c's .* 0x\w+, in fixed"):
        watched["write_constant"](9)
    # The memory is not repaired: further calls fail, and tell the function that wrote.
    with pytest.raises(GuardError, match=r"^write_constant wrote 1 byte of kinds\.c's .*"):
        watched["product"](2, 3)
    watched["write_constant"].__call__(8, guards=False)
    assert watched["product"](2, 3) == 6


def test_a_write_to_loaded_code_is_told(watched: LoadedLibrary) -> None:
    with pytest.raises(GuardError, match=r"write_code wrote 1 byte of kinds\.c's .* 0x\w+, in recurse"):
        watched["write_code"](watched["recurse"], 255)
    watched["write_code"](watched["recurse"], 255)


def test_what_the_host_writes_to_constants_is_no_damage(watched: LoadedLibrary) -> None:
    address = watched.symbols.addresses["fixed"]
    watched.write(address, np.array([5, 6], np.int16).tobytes())
    watched["write_constant"](6)
    assert np.frombuffer(watched.read(address, 4), np.int16).tolist() == [5, 6]
