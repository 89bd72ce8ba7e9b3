# SPDX-License-Identifier: Apache-2.0
"""Files that a client uploads and loads as modules: `remote.upload("m.o")`, `remote.load_module("m.o")`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from subprocess import SubprocessError
from typing import Final

from minrpc.errors import HarnessError, RemoteError
from minrpc.firmware.cache import cache_home, own_objects
from minrpc.library.loading import forget
from minrpc.library.tvm_modules import TvmLibrary, load_module
from minrpc.pipeline import Device
from minrpc.tvm.client_limits import DEFAULT, Limits
from minrpc.wire.replies import Result
from minrpc.wire.values import Argument, Module

_SERVER: Final = "tvm.rpc.server."
_LONGEST_NAME: Final = 60  # A file system allows 255 bytes, and a character has up to four.


class Files:
    """The files of one client, in this process's memory, and the modules made of them."""

    def __init__(self, device: Device, limits: Limits = DEFAULT) -> None:
        self._device = device
        self._limits = limits
        self._files: dict[str, bytes] = {}
        self._modules: dict[int, TvmLibrary] = {}
        self._compiled = ExitStack()
        self._uploads = 0

    def close(self) -> str:
        """Remove the client's files, and all that was compiled of them; returns a line about its uploads."""
        self._compiled.close()
        kept, size = len(self._files), sum(map(len, self._files.values()))
        self._files.clear()
        forget()
        return f"{self._uploads} uploads; {kept} files of {size} bytes removed" if self._uploads else ""

    @property
    def functions(self) -> Mapping[str, Callable[[Sequence[Argument]], Result]]:
        """The functions that a client calls, by name."""
        return {
            f"{_SERVER}upload": self._upload,
            f"{_SERVER}download": self._uploaded,
            f"{_SERVER}load_module": self._load,
            f"{_SERVER}remove": self._remove,
        }

    def release(self, handle: int) -> bool:
        """Unload the module of this handle; False if the handle is no module from these files."""
        library = self._modules.pop(handle, None)
        if library is not None:
            library.unload()
        return library is not None

    def _upload(self, args: Sequence[Argument]) -> None:
        name, data = _name(args), args[1] if len(args) == 2 else None
        if not isinstance(data, bytes):
            raise ValueError("upload takes a name and bytes")
        others = [len(content) for other, content in self._files.items() if other != name]
        if len(others) >= self._limits.files:
            raise ValueError(f"a session may have {self._limits.files} files: remove one")
        if sum(others) + len(data) > self._limits.session_bytes:
            raise ValueError(f"a session's files may have {self._limits.session_bytes} bytes: remove one")
        self._files[name] = data
        self._uploads += 1

    def _remove(self, args: Sequence[Argument]) -> None:
        """Removes a file. The empty name means the whole directory: TVM's tuner removes it at the end."""
        if list(args) == [""]:
            self._files.clear()
        else:
            self._files.pop(_name(args), None)

    def _load(self, args: Sequence[Argument]) -> Module:
        content = self._uploaded(args)
        try:
            if not self._modules:
                self._compiled.close()
                self._compiled.enter_context(own_objects())
            library = load_module(self._device, _name(args), content, unpacked=self._limits.unpacked)
        except RemoteError:
            raise
        except HarnessError as error:
            if not self._device.in_session:
                raise
            raise ValueError(str(error)) from error
        except (OSError, SubprocessError) as error:
            raise ValueError(f"{_name(args)} can't be compiled here: {error}") from error
        handle: int = library.module.handle
        self._modules[handle] = library
        return Module(handle)

    def _uploaded(self, args: Sequence[Argument]) -> bytes:
        name = _name(args)
        if name not in self._files:
            raise ValueError(f"there is no file {name}: upload it first")
        return self._files[name]


def _name(args: Sequence[Argument]) -> str:
    """A file's name; a path is refused, so that a client can't name files of this machine."""
    name = args[0] if args else None
    if not isinstance(name, str) or Path(name).name != name or name in ("", ".", ".."):
        raise ValueError(f"a file is named without a directory, not {name!r}")
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise ValueError(f"{name[:_LONGEST_NAME]!r} is no name of a file")
    return name


def without_places(text: str) -> str:
    """The text without this server's directories: a client's files have names only."""
    return re.sub(rf"{re.escape(str(cache_home()))}/(?:[^/\s]+/)*", "", text)
