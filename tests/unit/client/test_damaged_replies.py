# SPDX-License-Identifier: Apache-2.0
"""Replies that arrive whole and are nonsense: each operation gives an answer or an error of the harness, and
without damage the next session works."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from random import Random

import numpy as np
import pytest
from hypothesis import given, strategies as st
from minrpc import Device, HarnessError

from tests.unit.client.conftest import Bench
from tests.unit.client.device_model import OURS, TVM_0_8_0, TVM_0_18_0, Traits

NUMBERS = (bytes(8), b"\xff" * 8, (1 << 63).to_bytes(8, "little"), bytes(4), b"\xff" * 4, b"\x01\0\0\0")


def damaged(reply: bytes, random: Random) -> bytes:
    """The reply with other bits, another number, more or fewer bytes, or another body."""
    at = random.randrange(len(reply) + 1)
    match random.randrange(5):
        case 0:
            bits = 1 << random.randrange(8 * len(reply))
            return (int.from_bytes(reply, "little") ^ bits).to_bytes(len(reply), "little")
        case 1:
            return reply[:at]
        case 2:
            return reply[:at] + random.randbytes(random.randint(1, 9)) + reply[at:]
        case 3:
            number = random.choice(NUMBERS)
            return reply[:at] + number + reply[at + len(number) :]
        case _:
            return reply[:8] + random.randbytes(max(len(reply) - 8, 0))


def operations(device: Device, random: Random) -> Iterator[Callable[[], object]]:
    lib = device.system_lib()
    array = device.array(np.arange(random.randint(1, 300), dtype=random.choice(["int8", "int32", "float64"])))
    for value in (1, "text", 1.5, b"abc", array):
        yield partial(lib["echo"], value)
    yield lambda: lib["fail"]()
    yield lambda: lib["add"](array, array, array)
    yield array.numpy
    yield device.info
    yield device.stats
    yield device.clock
    yield lambda: lib.measure("inc", number=3, repeat=2)(1)
    yield device.get_function("minrpc.device_info")
    yield lambda: device.checksum(array)
    yield lambda: device.full(10, 3, "int32")
    yield device.reset


@pytest.mark.parametrize(
    "traits", [OURS, Traits(long_copies=True), TVM_0_8_0, TVM_0_18_0], ids=["ours", "long", "0.8", "0.18"]
)
@given(
    seed=st.integers(0, 2**32 - 1),
    part=st.sampled_from([0.02, 0.1, 0.3]),
    chunk=st.sampled_from([1, 7, 65536]),
)
def test_nonsense_is_an_error_of_the_harness(traits: Traits, seed: int, part: float, chunk: int) -> None:
    bench, random = Bench(traits, chunk=chunk), Random(seed)
    answer, damaging = bench.model._answer, True

    def answer_damaged(packet: bytes) -> bytes | None:
        reply = answer(packet)
        return damaged(reply, random) if reply and damaging and random.random() < part else reply

    bench.model._answer = answer_damaged  # type: ignore[method-assign]
    with suppress(HarnessError):
        for operation in operations(bench.device, random):
            with suppress(HarnessError):
                operation()
    damaging = bench.model.dead = False
    with bench.connect(1.0) as another:
        assert another.system_lib()["inc"](1) == 2
