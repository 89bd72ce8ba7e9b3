# SPDX-License-Identifier: Apache-2.0
"""The readers in C and in Python report the same events for any bytes: frames, noise, and both damaged."""

from __future__ import annotations

import random
import struct
import subprocess
from pathlib import Path

from minrpc.wire.framing import CrcMismatch, Deframer, Frame, InvalidEscape, ShortPacket, encode_frame

STREAMS = 3000
NAMES = {Frame: "frame", CrcMismatch: "crc", ShortPacket: "short", InvalidEscape: "escape"}
# Bytes with a meaning to a reader, and similar ones.
TELLING = [0xFF, 0xFE, 0xFD, 0x00, 0x01, 0x03, 0x10]


def some_bytes(generator: random.Random, most: int) -> bytes:
    """Bytes of which half have a meaning."""
    count = generator.randrange(most)
    return bytes(
        generator.choice(TELLING) if generator.random() < 0.5 else generator.randrange(256)
        for _ in range(count)
    )


def damaged(generator: random.Random, data: bytes) -> bytes:
    """The bytes after up to four faults."""
    stream = bytearray(data)
    for _ in range(generator.randrange(5)):
        at = generator.randrange(len(stream) + 1)
        accident = generator.randrange(4)
        if accident == 0:
            stream[at:at] = some_bytes(generator, 4)
        elif accident == 1:
            del stream[at : at + generator.randrange(1, 6)]
        elif accident == 2:
            stream[at : at + 1] = bytes([generator.choice(TELLING)])
        elif at < len(stream):
            stream[at] ^= 1 << generator.randrange(8)
    return bytes(stream)


def a_stream(generator: random.Random) -> bytes:
    """Frames and noise, some of it damaged."""
    parts = [
        encode_frame(some_bytes(generator, 40), first=generator.random() < 0.5)
        if generator.random() < 0.8
        else some_bytes(generator, 12)
        for _ in range(generator.randrange(1, 6))
    ]
    return damaged(generator, b"".join(parts))


def told_by_python(stream: bytes) -> str:
    """The events in the format of tell_frames."""
    events = Deframer(max_payload=2**32).feed(stream)
    return "".join(
        f" {NAMES[type(event)]}:{event.payload.hex()}"
        for event in events
        if isinstance(event, Frame | CrcMismatch | ShortPacket | InvalidEscape)
    )


def test_both_readers_tell_the_same(programs: Path) -> None:
    generator = random.Random(20)
    streams = [a_stream(generator) for _ in range(STREAMS)]
    given = b"".join(struct.pack("<I", len(stream)) + stream for stream in streams)
    told = subprocess.run([programs / "tell_frames"], input=given, capture_output=True, check=True)
    lines = told.stdout.decode("ascii").split("\n")[:-1]
    assert len(lines) == STREAMS
    for stream, line in zip(streams, lines, strict=True):
        assert line == told_by_python(stream), stream.hex(" ")
    assert sum(" frame:" in line for line in lines) > STREAMS // 2
    for name in NAMES.values():
        assert any(f" {name}:" in line for line in lines)
