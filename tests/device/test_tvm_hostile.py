# SPDX-License-Identifier: Apache-2.0
"""Hostile clients of TVM's door: damaged archives, objects, names and frames, from a seed.

`--hostile-s 1200` runs 20 minutes of processor time, `--hostile-seed` other attacks.
"""

from __future__ import annotations

import bz2
import gc
import gzip
import io
import lzma
import os
import random
import subprocess
import tarfile
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from minrpc import Target
from minrpc.host import sandbox
from minrpc.tvm.client_limits import Limits
from minrpc.tvm.served import OwnedDevice, serving
from minrpc.wire import ffi
from minrpc.wire.dtypes import DataType
from minrpc.wire.requests import (
    CallFunc,
    CopyFromRemote,
    CopyToRemote,
    RpcCode,
    Syscall,
    encode_request,
    get_global_func,
)
from minrpc.wire.values import Dialect, DLTensor, Handle, MalformedError, Module

from tests.device.tvm_client import RefusedError, TvmClient

_SOURCE = b"""
struct kept { int a[4]; struct kept *next; };
static struct kept first = {{1, 2, 3, 4}, &first};
int __tvm_ffi_f(void *self, void *args, int count, void *result) { return first.next->a[count & 3] - 2; }
"""
_SERVER = "tvm.rpc.server."
_BYTES = DataType(0, 8)
# A module's constructor may run for ever.
_KEY = "client:hostile -timeout=5"


def damaged(data: bytes, rng: random.Random) -> bytes:
    """`data` with flipped bits, or bytes that are cut off, moved, repeated or extreme."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 40))):
        at = rng.randrange(len(made) or 1)
        match rng.randrange(5):
            case 0 if made:
                made[at % len(made)] ^= 1 << rng.randrange(8)
            case 1:
                del made[at : at + rng.choice((1, 8, 200, len(made)))]
            case 2:
                made[at : at + 8] = rng.choice((bytes(8), b"\xff" * 8, (1 << 40).to_bytes(8, "little")))
            case 3:
                made[at:at] = made[: rng.randrange(300)]
            case _:
                made[at : at + 4] = rng.randbytes(4)
    return bytes(made)


def module_object(directory: Path) -> bytes:
    """An object of the module for this machine, with debug information."""
    (directory / "m.c").write_bytes(_SOURCE)
    subprocess.run(["gcc", "-g", "-O1", "-c", "m.c"], cwd=directory, check=True)
    return (directory / "m.o").read_bytes()


def archive(content: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as opened:
        member = tarfile.TarInfo("m.o")
        member.size = len(content)
        opened.addfile(member, io.BytesIO(content))
    return made.getvalue()


class Hostile:
    """One attack at a time on the server at `port`; all come from `rng`."""

    def __init__(self, port: int, rng: random.Random, good: bytes) -> None:
        self._port = port
        self._rng = rng
        plain = archive(good)
        self._files = [("m.o", good), ("m.c", _SOURCE), ("m.tar", plain)]
        packers: tuple[Callable[[bytes], bytes], ...] = (gzip.compress, bz2.compress, lzma.compress)
        self._files += [("m.tar", pack(plain)) for pack in packers]
        tensor = DLTensor(0x1000, _BYTES, (4,))
        self._packets = [
            ffi.encode_request(get_global_func("ffi.SystemLib")),
            ffi.encode_request(CallFunc(1 << 62, ("name", b"bytes", 1, 2.5, None))),
            ffi.encode_request(Syscall(RpcCode.DEV_ALLOC_DATA_WITH_SCOPE, (tensor, None))),
            ffi.encode_request(Syscall(RpcCode.FREE_HANDLE, (Handle(1 << 62),))),
            encode_request(CopyToRemote(tensor, b"1234"), Dialect.V0_8_0),
            encode_request(CopyFromRemote(tensor, 4), Dialect.V0_8_0),
        ]

    def attack(self) -> None:
        with (
            suppress(RefusedError, OSError, MalformedError, UnicodeDecodeError),
            TvmClient(self._port, True, _KEY) as client,
        ):
            self._rng.choice((self._load, self._load, self._name, self._frames))(client)

    def _load(self, client: TvmClient) -> None:
        name, content = self._rng.choice(self._files)
        content = damaged(content, self._rng)
        if self._rng.random() < 0.2:  # The damage is in the object, and the archive is whole.
            name, content = "m.tar", gzip.compress(archive(content))
        client.call(client.function(f"{_SERVER}upload"), name, content)
        client.call(client.function(f"{_SERVER}load_module"), name)

    def _name(self, client: TvmClient) -> None:
        length = self._rng.choice((1, 5, 59, 60, 70))
        name = "".join(
            chr(self._rng.choice((0, 10, 47, 46, 0x1B, 0x202E, 0xE9, 0x1F600))) for _ in range(length)
        )
        for function in ("upload", "load_module", "download", "remove"):
            with suppress(RefusedError):
                client.call(client.function(f"{_SERVER}{function}"), name + ".c", _SOURCE)

    def _frames(self, client: TvmClient) -> None:
        for _ in range(4):
            packet = self._rng.choice(self._packets)
            body = packet[:8] + damaged(packet[8:], self._rng)
            head = packet[:8] if self._rng.random() < 0.1 else (len(body) - 8).to_bytes(8, "little")
            client.connection.sendall(head + body[8:])
            client.connection.settimeout(0.05)
            client.answer()


def resources() -> tuple[int, int]:
    """Open descriptors and threads of this process."""
    return len(os.listdir("/proc/self/fd")), threading.active_count()


def used_s() -> float:
    """Processor time of this process and its ended children, compilers and devices, in seconds."""
    return sum(os.times()[:4])


def resident() -> int:
    """Resident memory of this process, in bytes, without what waits for the garbage collector."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def port() -> Iterator[int]:
    with (
        sandbox.sandboxed(wanted=not sandbox.why_not()),
        OwnedDevice(Target.named("posix")) as source,
        serving(source, print, limits=Limits(unpacked=1 << 24)) as number,
    ):
        yield number


def test_no_client_ends_the_server(port: int, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A good client is served after each hostile one; descriptors, threads and memory stay as they are."""
    seed = request.config.getoption("--hostile-seed")
    hostile = Hostile(port, random.Random(seed), module_object(tmp_path))
    end = used_s() + request.config.getoption("--hostile-s")
    level, most, now, rounds = 0, (0, 0), (0, 0), 0
    while used_s() < end or rounds < 5:
        hostile.attack()
        with TvmClient(port, True) as good:
            assert good.call(good.library_function("inc"), rounds) == rounds + 1
            gc.collect()
            now = resources()  # One client is served: the hostile one has ended.
        rounds += 1
        if rounds == 5:
            level, most = resident(), now
    assert all(last <= before + 2 for last, before in zip(now, most, strict=True)), (now, most)
    assert resident() - level < 64 << 20
    print(f"seed {seed}: {rounds} hostile clients; memory {level >> 20} MiB, then {resident() >> 20} MiB")


def test_large_modules_leave_no_memory_behind(port: int) -> None:
    """While their client is there. The process's size depends on malloc's arenas, too."""
    levels = []
    tracemalloc.start()
    with TvmClient(port, True) as client:
        for size in range(20 << 20, (20 << 20) + 3):
            source = b"char big[%d] = {1};\n%s" % (size, _SOURCE.replace(b"- 2", b"- big[1]"))
            client.call(client.function(f"{_SERVER}upload"), "m.c", source)
            module = client.call(client.function(f"{_SERVER}load_module"), "m.c")
            assert isinstance(module, Module)
            client.free(module)
            gc.collect()
            levels.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert max(levels) - levels[0] < 10 << 20, levels
