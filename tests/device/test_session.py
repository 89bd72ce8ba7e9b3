# SPDX-License-Identifier: Apache-2.0
"""Sessions: a reset ends a session, the next session works, and nothing of the old session is left."""

import numpy as np
import pytest
from minrpc import DeadlineError, Device, RunningDevice, SessionTerminatedError, connect
from minrpc.host import Deadline, write_before


def add_works(device: Device) -> bool:
    """True if a whole round of allocating, copying, calling and reading gives the right result."""
    a, b = device.array(np.array([2, 3], np.int8)), device.array(np.array([4], np.int8))
    c = device.empty((2,), np.int8)
    device.system_lib()["add"](a, b, c)
    return bool(c.numpy().tolist() == [6, 7])


def test_reset_ends_the_session_and_the_next_works(device: Device, running_device: RunningDevice) -> None:
    if running_device.platform.arch == "arm64":
        pytest.skip("Zephyr has no restart of QEMU's 64-bit Arm")
    old = device.array(np.arange(4, dtype=np.int8))
    with pytest.raises(SessionTerminatedError, match="ended the session"):
        device.get_function("tvm.testing.reset_server")()
    device.connect()
    with pytest.raises(ValueError, match="session that has ended"):
        old.numpy()
    assert add_works(device)


def test_reset_method_leaves_a_new_session(device: Device) -> None:
    lib = device.system_lib()
    device.reset()
    with pytest.raises(ValueError, match="session that has ended"):
        lib["add"]
    assert add_works(device)


def test_reset_gives_all_memory_back(device: Device) -> None:
    free = device.info().arena_largest_free
    kept = [device.empty((100,), np.int8) for _ in range(3)]
    assert device.info().arena_largest_free < free
    device.reset()
    assert device.info().arena_largest_free == free
    assert all(array.shape == (100,) for array in kept)


@pytest.mark.once
def test_ten_resets_in_a_row(device: Device) -> None:
    for _ in range(10):
        device.reset()
    assert add_works(device)


# More than a board's receive ring holds.
FLOOD = bytes(20_000)


@pytest.mark.parametrize(
    ("options", "before"),
    [
        ({"number": 1 << 27}, b""),
        ({"number": 1 << 27}, FLOOD),
        ({"number": 1, "repeat": 2, "cooldown_interval_ms": 1 << 27, "repeats_to_cooldown": 1}, b""),
    ],
    ids=["a long batch", "a long batch and a full ring", "a cool-down"],
)
def test_a_new_session_ends_a_measurement_that_nobody_waits_for(
    running_device: RunningDevice, options: dict[str, int], before: bytes
) -> None:
    """The measurement would take days: the next client does not wait for its end, after any bytes sent
    `before`."""
    device = connect(running_device)
    if "abandon" not in device.info().options:
        pytest.skip("built without MINRPC_ABANDON")
    evaluator = device.system_lib().time_evaluator("spin", timeout_s=0.1, **options)
    with pytest.raises(DeadlineError):
        evaluator(1000)
    if before:
        write_before(running_device.transport, before, Deadline("flood", 30, running_device.clock))
    device.connect()
    assert device.system_lib()["inc"](41) == 42
