# SPDX-License-Identifier: Apache-2.0
"""Byte links to a device.

A transport moves bytes and knows nothing of frames. `base` declares its methods. `fd` has transports over a
file descriptor (terminal, pseudo-terminal, Unix socket), `serial_port` and `remote_port` have transports to
boards, `urls` opens each of them by its URL, `memory` has a pair for tests.
"""

from minrpc.transport.base import MAX_READ, ParentsLink, Transport
from minrpc.transport.fd import FdTransport, SocketTransport, open_terminal, set_raw
from minrpc.transport.in_process import MemoryTransport, memory_pair
from minrpc.transport.lossy import Faults, LossyTransport
from minrpc.transport.ports import find_port
from minrpc.transport.remote_port import RemotePort
from minrpc.transport.serial_port import SerialTransport, processes_with_open
from minrpc.transport.urls import BoardLink, has_rate, is_serial, is_tcp, open_url, port_of

__all__ = [
    "MAX_READ",
    "BoardLink",
    "Faults",
    "FdTransport",
    "LossyTransport",
    "MemoryTransport",
    "ParentsLink",
    "RemotePort",
    "SerialTransport",
    "SocketTransport",
    "Transport",
    "find_port",
    "has_rate",
    "is_serial",
    "is_tcp",
    "memory_pair",
    "open_terminal",
    "open_url",
    "port_of",
    "processes_with_open",
    "set_raw",
]
