# SPDX-License-Identifier: Apache-2.0
"""The application's functions, on the device of twister or `--platform`."""

import numpy as np
import pytest


def test_dot_is_numpys(device):
    generator = np.random.default_rng(1)
    samples, taps = (generator.integers(-100, 100, 64, np.int16) for _ in range(2))
    dot = device.system_lib()["dot"]
    assert dot(device.array(samples), device.array(taps)) == int(samples.astype(int) @ taps)


@pytest.mark.parametrize(("value", "clamped"), [(-200, -100), (7, 7), (200, 100)])
def test_clamp(device, value, clamped):
    assert device.system_lib()["clamp"](value, -100, 100) == clamped


def test_a_wrong_argument_is_told(device):
    rows = device.array(np.zeros(4, np.int16)), device.array(np.zeros(5, np.int16))
    with pytest.raises(Exception, match="two int16 rows of one length"):
        device.system_lib()["dot"](*rows)


def test_dot_takes_time_for_each_tap(device, running_device, record_property):
    times = []
    for size in (256, 512):
        rows = [device.array(np.ones(size, np.int16)) for _ in range(2)]
        measured = device.system_lib().measure("dot", number=100, repeat=5)(*rows)
        record_property(f"dot of {size}, cycles", measured.typical_ticks)
        times.append(measured.typical_ticks)
    if running_device.timing != "wall":  # A time by a busy host's clock is no fault of the device.
        assert times[0] > 0
    if running_device.timing == "exact":  # The time follows from counted instructions.
        assert 1.8 < times[1] / times[0] < 2.2


def test_the_application_goes_on_with_its_own_work(device, running_device):
    device.system_lib()["clamp"](1, 0, 2)
    console = running_device.console_text
    if not console:
        pytest.skip("this device's console is not ours to read")
    assert "own_application: up 0 s" in console
