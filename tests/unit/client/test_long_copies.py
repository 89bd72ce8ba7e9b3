# SPDX-License-Identifier: Apache-2.0
"""Copies that are longer than the device's receive buffer: in one message if the device supports it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from minrpc import Device
from minrpc.wire.framing import Deframer, Frame
from minrpc.wire.requests import CopyToRemote

from tests.unit.client.conftest import Bench
from tests.unit.client.device_model import OURS, TVM_0_18_0, DeviceModel, Traits
from tests.unit.client.model_transport import ModelTransport

TAKES_LONG_COPIES = replace(OURS, long_copies=True)
# Data of the largest one-dimensional CopyToRemote in a receive buffer of 8192 bytes.
FULL = 8192 - 3 - 8 - 4 - 40 - 8


def elements(size: int) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(size).integers(0, 256, size, np.uint8)


def uploads(bench: Bench) -> list[int]:
    """Bytes of data of each copy to the device."""
    return [len(request.data) for request in bench.model.requests if isinstance(request, CopyToRemote)]


@pytest.mark.parametrize(
    ("size", "whole", "checked"),
    [
        (FULL, [FULL], []),
        (FULL + 1, [FULL + 1], [FULL + 1]),
        (65536, [65536], [65536]),
        (65537, [65536, 1], [65536]),
        (200_000, [65536, 65536, 65536, 3392], [65536] * 3),
    ],
)
def test_only_what_the_buffer_does_not_hold_is_checked(
    make_bench: Callable[..., Bench], size: int, whole: list[int], checked: list[int]
) -> None:
    bench = make_bench(TAKES_LONG_COPIES)
    host = elements(size)
    array = bench.device.array(host)
    assert uploads(bench) == whole
    assert bench.model.checked == checked
    assert (array.numpy() == host).all()


@pytest.mark.parametrize("traits", [OURS, TVM_0_18_0])
def test_other_devices_never_see_one(make_bench: Callable[..., Bench], traits: Traits) -> None:
    bench = make_bench(traits)
    host = elements(20_000)
    assert (bench.device.array(host).numpy() == host).all()
    assert max(uploads(bench)) <= FULL
    assert bench.model.checked == []


def test_a_numbered_copy_fits_the_buffer_to_the_last_byte() -> None:
    model = DeviceModel(TAKES_LONG_COPIES)
    transport = ModelTransport(model)
    host = elements(100_000)
    with Device(transport, transport.owner, resend=True) as device:
        assert (device.array(host).numpy() == host).all()
    reader = Deframer()
    frames = [event for data in transport.written for event in reader.feed(data)]
    assert max(len(frame.payload) for frame in frames if isinstance(frame, Frame)) == 8192
    assert model.checked == []


def test_a_long_answer_comes_in_pieces_that_are_never_too_long_to_take(bench: Bench) -> None:
    bench.model.traits = replace(OURS, memory=1 << 23)
    host = elements((1 << 21) + 5)
    assert (bench.device.array(host).numpy() == host).all()
