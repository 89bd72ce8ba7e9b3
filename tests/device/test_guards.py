# SPDX-License-Identifier: Apache-2.0
"""A function that writes beside an array: its own call fails with the reason, and the session goes on."""

import numpy as np
import pytest
from minrpc import Device, HarnessError, RemoteError, SystemLibrary

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
