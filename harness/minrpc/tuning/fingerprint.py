# SPDX-License-Identifier: Apache-2.0
"""Hashes of everything except the candidate that a result depends on, to reject other kernels' results."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from minrpc.firmware import Firmware
from minrpc.library.toolset import Toolset, run_tool, toolset_of
from minrpc.tuning.kernel import Check, Kernel

_INCLUDE: Final = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*[\"<]([^\">]+)[\">]", re.MULTILINE)
_DIGITS: Final = 16


def identity(kernel: Kernel, firmware: Firmware) -> Mapping[str, str]:
    """Hashes in hexadecimal, by the hashed part: source with its headers, arguments, check, compiler with its
    flags, firmware."""
    toolset = toolset_of(firmware)
    tolerance = f"{kernel.rtol} {kernel.atol} {kernel.check_every}"
    batches = f"{kernel.number} {kernel.repeat} {kernel.counters} {kernel.objective}"
    return {
        "source": _hash([kernel.function.encode(), *_texts(kernel.source, kernel.include)]),
        "arguments": _hash([batches.encode(), *map(_argument, kernel.arguments)]),
        "check": _hash([tolerance.encode(), *_check(kernel.check)]),
        "compiler": _hash(_compiler(toolset)),
        "firmware": _hash([firmware.elf.read_bytes()]),
    }


def _hash(parts: Iterable[bytes]) -> str:
    made = hashlib.sha256()
    for part in parts:
        made.update(len(part).to_bytes(8, "little") + part)
    return made.hexdigest()[:_DIGITS]


def _texts(source: Path, include: Sequence[Path]) -> Iterator[bytes]:
    """The source, and each file that is included, also indirectly, from its directory or `include`."""
    waiting, seen = [source.absolute()], set()
    while waiting:
        path = waiting.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        text = path.read_bytes()
        yield text
        names = [name.decode("utf-8", "replace") for name in _INCLUDE.findall(text)]
        places = [path.parent, *(directory.absolute() for directory in include)]
        waiting += [place / name for name in names for place in places]


def _argument(value: object) -> bytes:
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str} {value.shape} ".encode() + np.ascontiguousarray(value).tobytes()
    return repr(value).encode()


def _check(check: Check | None) -> Iterator[bytes]:
    """The function's name and its file; without a file, its code."""
    code: Any = getattr(check, "__code__", None)
    yield getattr(check, "__qualname__", repr(type(check))).encode()
    if code is None:
        return
    path = Path(code.co_filename)
    yield path.read_bytes() if path.is_file() else code.co_code + repr(code.co_consts).encode()


def _compiler(toolset: Toolset) -> Iterator[bytes]:
    yield run_tool([toolset.compiler, "--version"]).encode()
    yield from (flag.encode() for flag in toolset.code_flags)
