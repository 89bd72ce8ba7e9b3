# SPDX-License-Identifier: Apache-2.0
"""A transport whose far end is a `DeviceModel` in the same thread."""

from __future__ import annotations

from collections.abc import Callable

from minrpc import DeadlineError, LinkClosedError
from minrpc.client import Unowned
from minrpc.host import ClockSample

from tests.unit.client.device_model import DeviceModel


class ModelClock:
    """Time that passes only for who waits in vain: nothing here depends on how busy the host is."""

    def __init__(self) -> None:
        self.s = 0.0

    def now(self) -> float:
        return self.s

    def wait(self, seconds: float) -> None:
        """At least a microsecond: of a wait that only rounding left something would come to nothing."""
        self.s += max(seconds, 1e-6)

    def sample(self, max_age_s: float = 0.0) -> ClockSample:
        return ClockSample(self.s)


class ModelTransport:
    """Everything written is answered at once; `written` keeps it, one entry a write.

    owner: for the client, so that its deadlines go by `clock`.
    chunk: how many bytes a read returns at the most.
    spoil: changes written bytes on their way.
    """

    name = "model"

    def __init__(self, model: DeviceModel, *, chunk: int = 65536, boot: bool = False) -> None:
        self.model = model
        self.clock = ModelClock()
        self.owner = Unowned(clock=self.clock)
        self.written: list[bytes] = []
        self.closed = False
        self.spoil: Callable[[bytes], bytes] = bytes
        self.room: int | None = None
        self._chunk = chunk
        self._incoming = model.boot() if boot else b""

    def say(self, data: bytes) -> None:
        """Let the far end send this by itself."""
        self._incoming += data

    def write(self, data: bytes, timeout_s: float) -> None:
        if self.closed:
            raise LinkClosedError("the model is gone")
        if self.room is not None and len(data) > self.room:
            error = DeadlineError("the model takes no more")
            error.written, self.room = self.room, 0
            self.clock.wait(timeout_s)
            raise error
        self.written.append(data)
        self._incoming += self.model.receive(self.spoil(data))

    def read(self, timeout_s: float) -> bytes:
        data, self._incoming = self._incoming[: self._chunk], self._incoming[self._chunk :]
        if not data:
            if self.closed:
                raise LinkClosedError("the model is gone")
            self.clock.wait(timeout_s)
        return data

    def close(self) -> None:
        self.closed = True
