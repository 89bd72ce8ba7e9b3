# SPDX-License-Identifier: Apache-2.0
"""A USB host for tests/ports/usb/controller.c: `python host.py EMULATOR ARGUMENT...`.

The emulator's standard input and output are the bus. The host enumerates the device after each attachment, as
a PC does, and then is the serial port of its CDC ACM: bytes of the standard input go to the device, bytes of
the device to the standard output.
"""

from __future__ import annotations

import os
import select
import struct
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Final

PACKET: Final = 64
_DEVICE, _CONFIGURATION, _ENDPOINT = 1, 2, 5
_BULK: Final = 2
_GET_DESCRIPTOR, _SET_ADDRESS, _SET_CONFIGURATION = 6, 5, 9
_SET_LINE_CODING, _SET_CONTROL_LINE_STATE = 0x20, 0x22
_TO_HOST: Final = 0x80
_OF_INTERFACE: Final = 0x21
_DTR_AND_RTS: Final = 3
# A restarted device can find the rest of an earlier message on its wire, of up to 255 bytes by its head.
_SYNC: Final = bytes(3 + 255)


class StallError(Exception):
    """The device refused a request."""


class Attached(Exception):  # noqa: N818
    """The device began anew."""


@dataclass
class Host:
    """One device on a bus, whose ends are descriptors.

    port: the IN endpoint whose packets go to the standard output.
    ready: OUT endpoints that take a packet.
    """

    read_fd: int
    write_fd: int
    port: int = 0
    ready: set[int] = field(default_factory=set)
    buffer: bytes = b""

    def send(self, kind: str, address: int, data: bytes = b"") -> None:
        """Send a message."""
        os.write(self.write_fd, bytes((ord(kind), address, len(data))) + data)

    def receive(self) -> tuple[str, int, bytes]:
        """The next message; an IN packet gets its ACK. Raises Attached, or EOFError at the emulator's end."""
        while len(self.buffer) < 3 or len(self.buffer) < 3 + self.buffer[2]:
            data = os.read(self.read_fd, 4096)
            if not data:
                raise EOFError
            self.buffer += data
        end = 3 + self.buffer[2]
        message, self.buffer = self.buffer[:end], self.buffer[end:]
        kind, address, data = chr(message[0]), message[1], message[3:]
        match kind:
            case "+":
                self.ready.clear()
                raise Attached
            case "R":
                self.ready.add(address)
            case "I":
                self.send("A", address)
                if address == self.port:
                    os.write(1, data)
        return kind, address, data

    def control(
        self, kind: int, request: int, value: int, index: int, data: bytes = b"", room: int = 0
    ) -> bytes:
        """A control transfer: `data` to the device, or up to `room` bytes from it. Raises StallError."""
        self.send("S", 0, struct.pack("<BBHHH", kind, request, value, index, room or len(data)))
        if room:
            answer = self._in()
            while len(answer) < room and len(answer) % PACKET == 0:
                answer += self._in()
            self.send("O", 0)
            return answer
        if data:
            self.send("O", 0, data)
        return self._in()

    def _in(self) -> bytes:
        """The next IN packet of a control transfer."""
        while True:
            kind, address, data = self.receive()
            if kind == "I" and address == _TO_HOST:
                return data
            if kind == "X":
                raise StallError

    def enumerated(self) -> int:
        """Configure the device and open its port. Returns the port's OUT endpoint."""
        os.write(self.write_fd, _SYNC)
        self.send("B", 0)
        device = self.control(_TO_HOST, _GET_DESCRIPTOR, _DEVICE << 8, 0, room=18)
        assert device[1] == _DEVICE, device
        self.control(0, _SET_ADDRESS, 1, 0)
        head = self.control(_TO_HOST, _GET_DESCRIPTOR, _CONFIGURATION << 8, 0, room=9)
        (size,) = struct.unpack_from("<H", head, 2)
        whole = self.control(_TO_HOST, _GET_DESCRIPTOR, _CONFIGURATION << 8, 0, room=size)
        bulk = [item[2] for item in descriptors(whole) if item[1] == _ENDPOINT and item[3] & 3 == _BULK]
        [self.port] = [address for address in bulk if address & _TO_HOST]
        [to_device] = [address for address in bulk if not address & _TO_HOST]
        self.control(0, _SET_CONFIGURATION, whole[5], 0)
        self.control(_OF_INTERFACE, _SET_LINE_CODING, 0, 0, struct.pack("<IBBB", 115_200, 0, 0, 8))
        self.control(_OF_INTERFACE, _SET_CONTROL_LINE_STATE, _DTR_AND_RTS, 0)
        return to_device

    def carry(self, to_device: int) -> None:
        """Be the serial port until the standard input ends."""
        while True:
            while self.buffer:
                self.receive()
            inputs = [self.read_fd, *([0] if to_device in self.ready else [])]
            readable, _, _ = select.select(inputs, [], [])
            if self.read_fd in readable:
                self.receive()
            elif data := os.read(0, PACKET):
                self.ready.discard(to_device)
                self.send("O", to_device, data)
            else:
                raise EOFError


def descriptors(data: bytes) -> list[bytes]:
    """The descriptors that lie one behind the other."""
    found = []
    while data:
        found.append(data[: data[0]])
        data = data[data[0] :]
    return found


def main() -> None:
    with subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as emulator:
        assert emulator.stdin is not None
        assert emulator.stdout is not None
        host = Host(emulator.stdout.fileno(), emulator.stdin.fileno())
        attached = False
        try:
            while True:
                try:
                    if attached:
                        host.carry(host.enumerated())
                    host.receive()
                except Attached:
                    attached = True
        except EOFError:
            emulator.kill()


if __name__ == "__main__":
    main()
