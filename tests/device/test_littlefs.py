# SPDX-License-Identifier: Apache-2.0
"""littlefs, unchanged, on a device: its state stays on the device, its flash is in Python.

The witness is littlefs on this machine, by its published client for Python: it reads the device's files and
writes files for the device.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from minrpc import Address, CFunctions, Device, HarnessError, Placed, place, read, types, write
from minrpc.firmware.cache import locked

from tests.native import run_or_skip

# Packages are downloaded, from the network.
pytestmark = pytest.mark.slow

RUN_S: Final = 60
PACKAGE: Final = "littlefs-python"
BLOCK, COUNT, CACHE = 512, 32, 64
CREATE, READ = 0x103, 0x1  # LFS_O_RDWR | LFS_O_CREAT, LFS_O_RDONLY
TEXT = bytes(range(256)) * 3


@pytest.fixture(scope="session")
def package(native_build: Callable[[str], Path]) -> Path:
    """A directory with the client, importable, and `littlefs`, the sources."""
    directory = native_build(f"littlefs-{sys.version_info.major}.{sys.version_info.minor}")
    with locked(directory / "lock"):
        if not (directory / "whole").exists():
            _fetch(directory)
            (directory / "whole").touch()
    return directory


def _fetch(directory: Path) -> None:
    pip = (sys.executable, "-m", "pip", "-q")
    run_or_skip(*pip, "install", "--no-deps", "--upgrade", "--target", str(directory), PACKAGE)
    run_or_skip(*pip, "download", "--no-deps", "--no-binary", ":all:", "-d", str(directory), PACKAGE)
    with tarfile.open(next(directory.glob("*.tar.gz"))) as sources:
        top = sources.getnames()[0].partition("/")[0]
        sources.extractall(directory, filter="data")
    shutil.rmtree(directory / "sources", ignore_errors=True)
    (directory / top).rename(directory / "sources")


class Client:
    """littlefs on this machine, in processes of its own."""

    def __init__(self, package: Path) -> None:
        self._package = package

    def files(self, flash: bytearray) -> dict[str, bytes]:
        """The files on a disk."""
        text = self._run(flash, "print(repr({n: fs.open(n, 'rb').read() for n in fs.listdir('/')}))")
        return dict(ast.literal_eval(text.decode()))

    def put(self, flash: bytearray, name: str, data: bytes) -> None:
        """Writes a file to a disk."""
        out = "sys.stdout.buffer.write(fs.context.buffer)"
        flash[:] = self._run(flash, f"with fs.open({name!r}, 'wb') as file: file.write({data!r})\n{out}")

    def _run(self, flash: bytearray, work: str) -> bytes:
        begin = (
            f"import sys; sys.path.insert(0, {str(self._package)!r}); import littlefs\n"
            f"fs = littlefs.LittleFS(block_size={BLOCK}, block_count={COUNT}, mount=False)\n"
            "fs.context.buffer = bytearray(sys.stdin.buffer.read()); fs.mount()\n"
        )
        ran = subprocess.run(
            [sys.executable, "-c", begin + work], input=flash, capture_output=True, timeout=RUN_S, check=False
        )
        assert ran.returncode == 0, ran.stderr.decode()
        return ran.stdout


@pytest.fixture
def client(package: Path) -> Client:
    return Client(package)


class Disk:
    """littlefs of a device, with its flash in Python. power: writes until the power fails; None: never."""

    def __init__(self, device: Device, sources: Path, flash: bytearray) -> None:
        quiet = [f"-DLFS_NO_{word}" for word in ("MALLOC", "DEBUG", "WARN", "ERROR")]
        files = [sources / "lfs.c", sources / "lfs_util.c"]
        self.lib: CFunctions = device.load(files, flags=["-I", str(sources), *quiet])
        self.flash = flash
        self.power: int | None = None
        named = types(self.lib)
        buffers = [place(self.lib, bytearray(size)) for size in (CACHE, CACHE, 16, CACHE)]
        self.config: Placed = place(
            self.lib,
            named.lfs_config(
                read=self._read, prog=self._prog, erase=self._erase, sync=lambda _: 0,
                read_size=16, prog_size=16, block_size=BLOCK, block_count=COUNT, block_cycles=500,
                cache_size=CACHE, lookahead_size=16,
                read_buffer=buffers[0], prog_buffer=buffers[1], lookahead_buffer=buffers[2],
            ),
        )  # fmt: skip
        self.state = place(self.lib, named.lfs())
        self.file = place(self.lib, named.lfs_file())
        self.buffer = place(self.lib, named.lfs_file_config(buffer=buffers[3]))

    def _read(self, _: Any, block: int, offset: int, buffer: Any, size: int) -> int:  # noqa: ANN401
        write(self.lib, buffer, bytes(self.flash[block * BLOCK + offset :][:size]))
        return 0

    def _prog(self, _: Any, block: int, offset: int, buffer: Any, size: int) -> int:  # noqa: ANN401
        if self.power is not None:
            self.power -= 1
            if self.power < 0:
                raise TimeoutError("the power fails")
        at = block * BLOCK + offset
        self.flash[at : at + size] = read(self.lib, buffer, size)
        return 0

    def _erase(self, _: Any, block: int) -> int:  # noqa: ANN401
        self.flash[block * BLOCK : (block + 1) * BLOCK] = b"\xff" * BLOCK
        return 0

    def mount(self) -> None:
        assert self.lib.lfs_mount(self.state, self.config) == 0

    def put(self, name: str, data: bytes) -> None:
        self._open(name, CREATE)
        assert self.lib.lfs_file_write(self.state, self.file, data, len(data)) == len(data)
        assert self.lib.lfs_file_close(self.state, self.file) == 0

    def get(self, name: str) -> bytes:
        self._open(name, READ)
        data = bytearray(self.lib.lfs_file_size(self.state, self.file))
        assert self.lib.lfs_file_read(self.state, self.file, data, len(data)) == len(data)
        assert self.lib.lfs_file_close(self.state, self.file) == 0
        return bytes(data)

    def _open(self, name: str, flags: int) -> None:
        assert self.lib.lfs_file_opencfg(self.state, self.file, name, flags, self.buffer) == 0


@pytest.fixture
def disk(device: Device, package: Path) -> Disk:
    """A formatted and mounted file system."""
    disk = Disk(device, package / "sources" / "littlefs", bytearray(b"\xff" * BLOCK * COUNT))
    assert disk.lib.lfs_format(disk.state, disk.config) == 0
    disk.mount()
    return disk


def test_each_side_reads_what_the_other_wrote(disk: Disk, client: Client) -> None:
    disk.put("from the device", TEXT)
    disk.put("empty", b"")
    assert client.files(disk.flash) == {"from the device": TEXT, "empty": b""}
    client.put(disk.flash, "from the client", TEXT[::-1])
    disk.mount()  # The device's state is of before.
    assert disk.get("from the client") == TEXT[::-1]
    assert disk.get("from the device") == TEXT
    assert disk.get("empty") == b""


def test_after_a_power_failure_a_file_is_old_or_new(disk: Disk, client: Client) -> None:
    """The flash's function raises at each write in turn: the call ends, the session and the state go on."""
    old, new = TEXT[:200], TEXT[300:550]
    disk.put("kept", old)
    seen: list[bytes] = []
    while not seen or seen[-1] == old:
        disk.power = len(seen)
        with suppress(TimeoutError):
            disk.put("kept", new)
        disk.power = None
        disk.mount()
        seen.append(disk.get("kept"))
        assert client.files(disk.flash) == {"kept": seen[-1]}
    assert seen[-1] == new
    assert len(seen) > 5


def test_the_flash_outlives_a_crash_of_the_device(disk: Disk, device: Device, package: Path) -> None:
    disk.put("before", TEXT)
    with pytest.raises(HarnessError, match=r"assertion failed: lfs_mlist_isopen.*, in lfs_file_close, at"):
        disk.lib.lfs_file_close(disk.state, Address(0x50000000))
    again = Disk(device, package / "sources" / "littlefs", disk.flash)
    again.mount()
    assert again.get("before") == TEXT
