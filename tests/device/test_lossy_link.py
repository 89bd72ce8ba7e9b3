# SPDX-License-Identifier: Apache-2.0
"""A link that damages one byte in a thousand: each answer is right or missing, and no request runs twice.

A normal run tries one seed for each kind of fault, `--load` twenty.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from minrpc import DeadlineError, Device, LinkError, RemoteError, RunningDevice, SessionError
from minrpc.transport import Faults

from tests.device.conftest import Amount, MakeLossy

RATE = 0.001
FAULTS = {
    **{kind: Faults(**{kind: RATE}) for kind in ("drop", "flip", "duplicate", "cut", "delay")},
    "all": Faults.spread(RATE),
}


def data(size: int, seed: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


def some_calls(device: Device, seed: int) -> int:
    """The number of calls and copies that failed; the others are right."""
    failed = 0
    for number in range(10):
        try:
            if number % 5 == 0:
                sent = data(300, seed + number)
                assert device.array(sent).numpy().tolist() == sent.tolist()
            assert device.system_lib()["inc"](number) == number + 1
        except (DeadlineError, LinkError, SessionError):
            failed += 1
    return failed


@pytest.mark.once
@pytest.mark.parametrize("kind", FAULTS)
def test_right_or_an_error_within_the_deadline(
    running_device: RunningDevice, lossy: MakeLossy, works: Callable[[], bool], amount: Amount, kind: str
) -> None:
    # A board's limit is wall time, which a busy host may use up by itself.
    timeout_s = 0.1 if running_device.process else 2.0
    faults = 0
    for seed in range(amount(1, 20)):
        device, transport = lossy(FAULTS[kind], seed, resend=False, timeout_s=timeout_s)
        assert some_calls(device, seed) < 10
        faults += sum(transport.counts.values())
        device.close()
        assert works()
    assert faults > 0


@pytest.mark.once
@pytest.mark.parametrize("kind", FAULTS)
def test_numbered_requests_run_exactly_once(
    lossy: MakeLossy, works: Callable[[], bool], amount: Amount, kind: str
) -> None:
    faults = 0
    for seed in range(amount(1, 20)):
        device, transport = lossy(FAULTS[kind], seed, resend=True, timeout_s=60.0)
        count = device.system_lib()["testing.count"]
        first = count()
        for number in range(1, 13):
            assert count() == first + number
        sent = data(3000, seed)
        assert device.array(sent).numpy().tobytes() == sent.tobytes()
        assert count() == first + 13
        assert device.sessions == 1
        faults += sum(transport.counts.values())
        device.close()
    assert faults > 0
    assert works()


@pytest.mark.once
def test_numbered_answers_of_every_kind_come_whole(lossy: MakeLossy) -> None:
    """Values, nothing, text of an exception, bytes of the device's info and of an evaluator, arrays."""
    device, _ = lossy(Faults(flip=0.003), 5, resend=True, timeout_s=60.0)
    lib = device.system_lib()
    a, c = device.array(np.array([0.0, 1.0], np.float32)), device.empty((2,), "float32")
    for _ in range(10):
        assert lib["exp"](a, c) is None
        np.testing.assert_allclose(c.numpy(), [1.0, math.e], rtol=1e-6)
        with pytest.raises(RemoteError, match="exp: expected 2 arguments, got 1"):
            lib["exp"](a)
        assert device.info().version >= 1
        assert len(lib.time_evaluator("exp", number=2, repeat=3)(a, c).results) == 3
    device.close()


@pytest.mark.once
def test_on_a_clean_link_nothing_is_sent_again(lossy: MakeLossy) -> None:
    """Pieces grow until they fill the device's receive buffer, and no further."""
    device, _ = lossy(Faults(), 0, resend=True, timeout_s=60.0)
    sent = data(2 * device.info().max_packet, 1)
    for _ in range(2):
        assert device.array(sent).numpy().tobytes() == sent.tobytes()
    assert device.rpc.link.piece >= device.info().max_packet
    assert device.resend_counters.sent_again == 0
    device.close()


@pytest.mark.parametrize("resend", [False, True])
def test_no_more_is_sent_than_the_device_holds(lossy: MakeLossy, resend: bool) -> None:
    device, _ = lossy(Faults(), 0, resend=resend, timeout_s=60.0)
    inc, info = device.system_lib()["inc"], device.info()
    with pytest.raises(
        ValueError, match=f"a request of .* bytes, the device takes {info.max_packet // 1000}"
    ):
        inc(b"x" * info.max_packet)
    with pytest.raises(RemoteError, match="argument 0: expected int, got bytes"):
        inc(b"x" * (device.rpc.max_packet() - 256))
    assert device.info().oversize_frames == info.oversize_frames
    device.close()
