# SPDX-License-Identifier: Apache-2.0
"""What a client uploads, and loads as a module: `remote.upload("m.o")`, `remote.load_module("m.o")`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Self

from minrpc.client.device import Device
from minrpc.errors import HarnessError, RemoteError
from minrpc.firmware import Firmware
from minrpc.tvm.modules import TvmLibrary, load_tvm
from minrpc.wire.replies import Result
from minrpc.wire.values import Argument, Module

_SERVER: Final = "tvm.rpc.server."


class Files:
    """The files of one client, and the modules made of them; gone with the `with` block.

    firmware: what runs on the device; None for what was started from here.
    """

    def __init__(self, device: Device, firmware: Firmware | None = None) -> None:
        self._device = device
        self._firmware = firmware
        self._directory = TemporaryDirectory(prefix="minrpc-files-")
        self._modules: dict[int, TvmLibrary] = {}

    @property
    def functions(self) -> Mapping[str, Callable[[Sequence[Argument]], Result]]:
        """What a client calls, by name."""
        return {
            f"{_SERVER}upload": self._upload,
            f"{_SERVER}download": self._download,
            f"{_SERVER}load_module": self._load,
            f"{_SERVER}remove": self._remove,
        }

    def release(self, handle: int) -> bool:
        """Unload the module of this handle; whether it was one of these."""
        library = self._modules.pop(handle, None)
        if library is not None:
            library.unload()
        return library is not None

    def close(self) -> None:
        """Remove the files. The modules go with the device's session."""
        self._modules.clear()
        self._directory.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _path(self, args: Sequence[Argument]) -> Path:
        """A file of the client's. It may name no other of this machine."""
        name = args[0] if args else None
        if not isinstance(name, str) or Path(name).name != name or name in ("", ".", ".."):
            raise ValueError(f"a file is named without a directory, not {name!r}")
        return Path(self._directory.name, name)

    def _upload(self, args: Sequence[Argument]) -> None:
        path, data = self._path(args), args[1] if len(args) == 2 else None
        if not isinstance(data, bytes):
            raise ValueError("upload takes a name and bytes")
        path.write_bytes(data)

    def _download(self, args: Sequence[Argument]) -> bytes:
        return self._uploaded(args).read_bytes()

    def _remove(self, args: Sequence[Argument]) -> None:
        """The empty name is the directory: TVM's tuner leaves nothing behind by it."""
        everything = list(args) == [""]
        for path in list(Path(self._directory.name).iterdir()) if everything else [self._path(args)]:
            path.unlink(missing_ok=True)

    def _load(self, args: Sequence[Argument]) -> Module:
        path = self._uploaded(args)
        try:
            library = load_tvm(self._device, path, firmware=self._firmware)
        except RemoteError:
            raise
        except HarnessError as error:
            if not self._device.in_session:
                raise
            raise ValueError(str(error)) from error
        handle: int = library.module.handle
        self._modules[handle] = library
        return Module(handle)

    def _uploaded(self, args: Sequence[Argument]) -> Path:
        path = self._path(args)
        if not path.is_file():
            raise ValueError(f"there is no file {path.name}: upload it first")
        return path
