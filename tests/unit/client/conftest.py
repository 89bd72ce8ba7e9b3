# SPDX-License-Identifier: Apache-2.0
"""Devices to test the client with."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from minrpc import Device

from tests.unit.client.device_model import OURS, DeviceModel, Traits
from tests.unit.client.model_transport import ModelTransport

# A model answers at once; waits for a missing answer use the model's own clock.
TIMEOUT_S = 1.0


class Bench:
    """A client's device, the model behind it, and the transport between them."""

    def __init__(self, traits: Traits = OURS, *, chunk: int = 65536, boot: bool = False) -> None:
        self.model = DeviceModel(traits)
        self.transport = ModelTransport(self.model, chunk=chunk, boot=boot)
        self.device = self.connect(TIMEOUT_S)

    def connect(self, session_timeout_s: float) -> Device:
        """A separate client."""
        transport = self.transport
        return Device(
            transport, transport.owner, session_timeout_s=session_timeout_s, call_timeout_s=TIMEOUT_S
        )


@pytest.fixture
def bench() -> Iterator[Bench]:
    """A bench with a model of this project's device."""
    made = Bench()
    yield made
    made.device.close()


@pytest.fixture
def make_bench() -> Iterator[Callable[..., Bench]]:
    """Makes benches, with the arguments of `Bench`, and closes them."""
    made: list[Bench] = []

    def make(traits: Traits = OURS, *, chunk: int = 65536, boot: bool = False) -> Bench:
        made.append(Bench(traits, chunk=chunk, boot=boot))
        return made[-1]

    yield make
    for each in made:
        each.device.close()
