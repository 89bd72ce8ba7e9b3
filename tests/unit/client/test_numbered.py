# SPDX-License-Identifier: Apache-2.0
"""Numbered requests between client and device: agreed on, or never seen; and over a link that loses bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest
from minrpc import DeadlineError, Device, HarnessError, SessionTerminatedError
from minrpc.transport import Faults, LossyTransport
from minrpc.wire.framing import Deframer, Frame
from minrpc.wire.requests import CallFunc
from minrpc.wire.session_layer import HEADER, MessageType

from tests.unit.client.conftest import Bench
from tests.unit.client.device_model import (
    OURS,
    TVM_0_7_0,
    TVM_0_8_0,
    TVM_0_11_0,
    TVM_0_18_0,
    DeviceModel,
    Traits,
)
from tests.unit.client.model_transport import ModelTransport

TVMS_MESSAGES = {
    MessageType.START_INIT,
    MessageType.START_REPLY,
    MessageType.TERMINATE,
    MessageType.LOG,
    MessageType.NORMAL,
}
KINDS = ("drop", "flip", "duplicate", "cut", "delay")


def types_in(wire: Iterable[bytes]) -> set[int]:
    """The types of all messages in the bytes."""
    reader = Deframer()
    events = [event for data in wire for event in reader.feed(data)]
    return {HEADER.unpack_from(event.payload)[1] for event in events if isinstance(event, Frame)}


def use(device: Device) -> None:
    """Use all kinds of requests."""
    array = device.array(np.arange(3000, dtype=np.int16))
    assert array.numpy().tolist() == list(range(3000))
    assert device.system_lib()["inc"](1) == 2
    with pytest.raises(HarnessError):
        device.system_lib()["fail"]()


@pytest.mark.parametrize("traits", [TVM_0_7_0, TVM_0_8_0, TVM_0_11_0, TVM_0_18_0])
def test_tvms_devices_see_tvms_messages_only(traits: Traits) -> None:
    transport = ModelTransport(DeviceModel(traits))
    with Device(transport, transport.owner, resend=True) as device:
        use(device)
        assert types_in(transport.written) <= TVMS_MESSAGES


def test_without_the_option_ours_sees_tvms_messages_only(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(OURS)
    use(bench.device)
    assert types_in(bench.transport.written) <= TVMS_MESSAGES


def test_with_it_only_the_question_is_not_numbered() -> None:
    transport = ModelTransport(DeviceModel())
    with Device(transport, transport.owner, resend=True) as device:
        use(device)
        types = [next(iter(types_in([wire]))) for wire in transport.written[1:]]
        assert types[0] == MessageType.NORMAL
        assert set(types[1:]) == {MessageType.NUMBERED}


def test_each_session_is_asked_anew() -> None:
    model = DeviceModel()
    transport = ModelTransport(model)
    with Device(transport, transport.owner, resend=True) as device:
        use(device)
        transport.say(model.boot())
        with pytest.raises(SessionTerminatedError):
            device.system_lib()["inc"](1)
        del model.globals["minrpc.resend"]  # Simulates a device with other firmware.
        use(device)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_each_call_runs_once_over_a_lossy_link(kind: str, seed: int) -> None:
    model = DeviceModel()
    transport = ModelTransport(model)
    lossy = LossyTransport(transport, Faults(**{kind: 0.001}), seed)
    with Device(lossy, transport.owner, resend=True) as device:
        inc = device.system_lib()["inc"]
        model.requests.clear()
        assert [inc(number) for number in range(60)] == list(range(1, 61))
        calls = [request.args[0] for request in model.requests if isinstance(request, CallFunc)]
        assert calls == list(range(60))
    assert lossy.counts[kind] > 0


def test_a_link_that_carries_nothing_is_given_up_at_the_deadline() -> None:
    transport = ModelTransport(DeviceModel())
    with Device(transport, transport.owner, resend=True, call_timeout_s=0.2) as device:
        inc = device.system_lib()["inc"]
        transport.spoil = lambda _: b""
        with pytest.raises(DeadlineError) as caught:
            inc(1)
        assert caught.value.stage == "call inc"
        transport.spoil = bytes
        assert device.system_lib()["inc"](1) == 2
