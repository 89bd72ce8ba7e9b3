# SPDX-License-Identifier: Apache-2.0
"""A transport whose far end is a `DeviceModel` in the same thread."""

from __future__ import annotations

from collections.abc import Callable

from minrpc import DeadlineError, LinkClosedError
from minrpc.client import Unowned
from minrpc.host import ClockSample

from tests.unit.client.device_model import DeviceModel


class ModelClock:
    """A clock that advances only when a wait ends without an event, so that nothing depends on the host's
    load."""

    def __init__(self) -> None:
        self.s = 0.0

    def now(self) -> float:
        return self.s

    def wait(self, seconds: float) -> None:
        """Advance by at least a microsecond: a wait that is only a rounding error would not advance the
        clock."""
        self.s += max(seconds, 1e-6)

    def sample(self, max_age_s: float = 0.0) -> ClockSample:
        return ClockSample(self.s)


class ModelTransport:
    """A transport that answers each write at once; `written` has an entry for each write.

    owner: for the client, so that its deadlines use `clock`.
    chunk: largest number of bytes that a read returns.
    spoil: changes written bytes before the model gets them.
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
        """Make the far end send these bytes without a request."""
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
