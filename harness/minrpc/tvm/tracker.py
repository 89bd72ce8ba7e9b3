# SPDX-License-Identifier: Apache-2.0
"""Registers a device with `tvm.rpc.tracker`, so that `request(key)` and TVM's tuner find it.

Both sides open with i32 0x2f271. Then the device sends requests and the tracker answers: i32 n, n bytes of
JSON. A registration holds for one client, which sends its random match key; then the device registers again.
"""

from __future__ import annotations

import json
import secrets
import socket
from dataclasses import dataclass, field
from enum import IntEnum
from hmac import compare_digest
from struct import Struct
from typing import Final, Self

from minrpc.errors import ConfigurationError, LinkClosedError

MAGIC: Final = 0x2F271
PERIOD_S: Final = 2.0
"""Period of asking the tracker if a client has taken the key, in seconds; TVM's own server has the same."""

# A client that has not come three periods after it got the key is given up.
_UNUSED_PERIODS: Final = 3
_ANSWER_S: Final = 10.0
_MAX_ANSWER: Final = 1 << 24
_I32: Final = Struct("<i")


class Code(IntEnum):
    """Codes of requests to a tracker, and of its usual answer."""

    SUCCESS = 0
    PUT = 3
    UPDATE_INFO = 5
    GET_PENDING_MATCHKEYS = 7


@dataclass
class Tracker:
    """A device's place in the tracker at `host`:`port`, under `key`.

    served_port: the port where clients reach the device.
    served_host: the host name for clients; None for the address that the tracker sees.
    """

    host: str
    port: int
    key: str
    served_port: int
    served_host: str | None = None
    match_key: str = field(default="", init=False)
    _socket: socket.socket | None = field(default=None, init=False)
    _unused: int = field(default=0, init=False)

    def __enter__(self) -> Self:
        """Register, as `connect` does."""
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def connected(self) -> bool:
        """True if the tracker answered the last request."""
        return self._socket is not None

    def connect(self) -> None:
        """Register. Raises ConfigurationError if no tracker answers, LinkClosedError if it disconnects."""
        where = f"{self.host}:{self.port}"
        try:
            self._socket = socket.create_connection((self.host, self.port), timeout=_ANSWER_S)
            self._socket.sendall(_I32.pack(MAGIC))
            if self._receive(_I32.size) != _I32.pack(MAGIC):
                raise ConfigurationError(f"{where} is no tracker of TVM's")
            info = {
                "key": f"server:{self.key.partition(':')[0]}",
                "addr": [self.served_host, self.served_port],
            }
            self._ask([Code.UPDATE_INFO, info])
            self.register()
        except OSError as error:
            self.close()
            raise ConfigurationError(
                f"no tracker at {where}: {error.strerror or error}",
                next_step="start a tracker: python -m tvm.exec.rpc_tracker --host 127.0.0.1 --port 9190",
            ) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Disconnect from the tracker, which then forgets the device."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def register(self) -> None:
        """Offer the device to the next client. Raises LinkClosedError if the tracker has gone."""
        self.match_key = f"{self.key}:{secrets.token_hex(8)}"
        self._unused = 0
        self._ask([Code.PUT, self.key, [self.served_port, self.match_key], self.served_host])

    def look(self) -> None:
        """Register again if a client took the key and stays away. Call it every `PERIOD_S` without a client.

        Raises LinkClosedError if the tracker has gone.
        """
        pending = self._ask([Code.GET_PENDING_MATCHKEYS])
        waits = isinstance(pending, list) and self.match_key in pending
        self._unused = 0 if waits else self._unused + 1
        if self._unused > _UNUSED_PERIODS:
            self.register()

    def accepts(self, hello: str) -> bool:
        """True, once, if the tracker sent the client with this handshake."""
        given = hello.split(" ")[0].encode()
        sent = bool(self.match_key) and compare_digest(given, f"client:{self.match_key}".encode())
        if sent:
            self.match_key = ""
        return sent

    def _ask(self, question: list[object]) -> object:
        assert self._socket is not None
        data = json.dumps(question).encode()
        try:
            self._socket.sendall(_I32.pack(len(data)) + data)
            (size,) = _I32.unpack(self._receive(_I32.size))
            if not 0 <= size <= _MAX_ANSWER:
                raise LinkClosedError(f"the tracker announces an answer of {size} bytes")
            answer: object = json.loads(self._receive(size))
            return answer
        except (OSError, ValueError) as error:
            raise LinkClosedError(f"the tracker at {self.host}:{self.port} has gone: {error}") from error

    def _receive(self, size: int) -> bytes:
        assert self._socket is not None
        parts = b""
        while len(parts) < size:
            data = self._socket.recv(size - len(parts))
            if not data:
                raise LinkClosedError(f"the tracker at {self.host}:{self.port} has closed the connection")
            parts += data
        return parts


def tracker_at(where: str, key: str, served_port: int) -> Tracker:
    """A tracker from "HOST:PORT". Raises ConfigurationError for another form."""
    host, colon, port = where.rpartition(":")
    if not colon or not host or not port.isdecimal():
        raise ConfigurationError(
            f"--tracker {where}: HOST:PORT was expected", next_step="e.g. 127.0.0.1:9190"
        )
    return Tracker(host.strip("[]"), int(port), key, served_port)
