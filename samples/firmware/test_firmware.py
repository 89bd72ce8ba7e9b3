# SPDX-License-Identifier: Apache-2.0
"""The firmware in src/, on each named platform, over a hardware layer in Python."""

from itertools import count
from unittest.mock import Mock

import minrpc
import numpy as np
import pytest


def test_ring(load):
    lib = load("src/ring.c")
    ring = minrpc.types(lib).ring()
    assert lib.ring_put(ring, np.arange(20, dtype=np.uint8), 20) == 16
    got = np.zeros(20, np.uint8)
    assert lib.ring_get(ring, got, 10) == 10
    assert got[:10].tolist() == list(range(10))
    assert lib.ring_put(ring, np.full(20, 7, np.uint8), 20) == 10


@pytest.mark.parametrize("flags", ["-O0", "-Os", "-O3"])
def test_pid(load, flags):
    lib = load("src/pid.c", flags=flags)
    pid = minrpc.types(lib).pid(kp=512, ki=16, kd=128)
    errors = [200, 150, 60, -10, -40, 0]
    sums, changes = np.cumsum(errors), np.diff(errors, prepend=0)
    expected = np.clip((512 * np.array(errors) + 16 * sums + 128 * changes) / 256, 0, 1000).astype(int)
    assert [lib.pid_step(pid, error) for error in errors] == expected.tolist()


def test_parser(load):
    lib = load("src/parser.c")
    kind = minrpc.types(lib).kind
    frames = []

    def seen(frame):
        frames.append((frame.kind, bytes(frame.data[: frame.size])))

    good = bytes([1, 2, 10, 20, 33, 2, 0, 2])
    assert lib.parse(b"\xff" + good + b"\x01\x01\x05\x00", 13, seen) == 5
    assert frames == [(kind.KIND_SET, bytes([10, 20])), (kind.KIND_GET, b"")]


def test_clamp(load):
    lib = load("src/pid.c", statics=True)  # a static function, called by itself
    assert [lib.clamp(x, -5, 5) for x in (-9, 2, 9)] == [-5, 2, 5]


def heater(load, temperature):
    clock, heat, write = count(0, 100), Mock(), Mock(return_value=6)
    fakes = {
        "hal_millis": lambda: next(clock),
        "hal_temperature": temperature,
        "hal_heat": heat,
        "hal_write": minrpc.fake(write, "port, data[n], n"),
    }
    lib = load("src/heater.c", "src/pid.c", fakes=fakes)
    return lib, minrpc.types(lib).pid(kp=256), heat, write


def test_heater(load):
    room = [180.0]

    def temperature(tenths):
        room[0] += 5
        tenths[0] = int(room[0])
        return 0

    lib, pid, heat, write = heater(load, temperature)
    assert lib.regulate(pid, 200, 500) == 4
    assert [call.args[0] for call in heat.mock_calls] == [15, 10, 5, 0]
    write.assert_not_called()


def test_a_silent_sensor(load):
    lib, pid, heat, write = heater(load, lambda tenths: 1)
    assert lib.regulate(pid, 200, 500) == -1
    heat.assert_called_once_with(0)
    write.assert_called_once_with(1, b"sensor", 6)


def test_time(load, device, record_timing):
    """The measurements are on the page of --minrpc-report, and the limits of minrpc.toml apply to them."""
    if device.owner.icount is None:
        pytest.skip("times are not exact here")
    lib = load("src/pid.c", flags="-O2")
    pid = minrpc.types(lib).pid(kp=256)
    record_timing("pid_step", minrpc.measure(lib, "pid_step", number=10)(pid, 5))
