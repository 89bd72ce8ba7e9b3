# SPDX-License-Identifier: Apache-2.0
"""Byte links to a device.

A transport moves bytes and knows nothing of frames. `base` says what one can do; `fd` holds the ones over a
file descriptor (terminal, pseudo-terminal, Unix socket), `serial_port` the one for boards, `memory` the pair
for tests.
"""

from minrpc.transport.base import MAX_READ, Transport
from minrpc.transport.fd import FdTransport, SocketTransport, open_terminal, set_raw
from minrpc.transport.memory import MemoryTransport, memory_pair
from minrpc.transport.ports import find_port
from minrpc.transport.serial_port import SerialTransport, processes_with_open

__all__ = [
    "MAX_READ",
    "FdTransport",
    "MemoryTransport",
    "SerialTransport",
    "SocketTransport",
    "Transport",
    "find_port",
    "memory_pair",
    "open_terminal",
    "processes_with_open",
    "set_raw",
]
