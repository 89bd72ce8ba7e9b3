# SPDX-License-Identifier: Apache-2.0
"""Members of a tar archive from an untrusted sender, within a limit of unpacked bytes."""

from __future__ import annotations

import bz2
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from typing import Any, Final

from minrpc.errors import ModuleError

UNPACKED: Final = 256 << 20
"""Default limit of an archive's unpacked size, in bytes."""

# Each member costs memory, also without content.
_MEMBERS: Final = 1000
_DECODER_BYTES: Final = 256 << 20

_DECOMPRESSORS: Final[dict[bytes, Callable[[], Any]]] = {
    b"\x1f\x8b": partial(zlib.decompressobj, 16 + zlib.MAX_WBITS),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ": partial(lzma.LZMADecompressor, memlimit=_DECODER_BYTES),
}


def members(name: str, content: bytes, limit: int = UNPACKED) -> Iterator[tuple[str, bytes]]:
    """The archive's files, as name and bytes. limit: of all files together, in bytes; a hole counts as zeros.

    Raises ModuleError for a damaged archive, and for one beyond the limit, which is not unpacked further.
    """
    try:
        plain = _decompressed(content, limit)
        if len(plain) <= limit:
            yield from _files(name, plain, limit)
            return
    except ModuleError:
        raise
    except Exception as error:  # Readers of archives raise nearly any exception for hostile bytes.
        raise ModuleError(f"{name} is no archive: {error or type(error).__name__}") from error
    raise _too_large(name, limit)


def _files(name: str, plain: bytes, limit: int) -> Iterator[tuple[str, bytes]]:
    left = limit
    with tarfile.open(fileobj=BytesIO(plain), mode="r:") as archive:
        for number, member in enumerate(archive):
            if number >= _MEMBERS:
                raise ModuleError(f"{name} has more than {_MEMBERS} members")
            if member.isreg():
                left -= member.size
                if left < 0:
                    raise _too_large(name, limit)
                stream = archive.extractfile(member)
                assert stream is not None
                yield member.name, stream.read()


def _too_large(name: str, limit: int) -> ModuleError:
    return ModuleError(f"{name} unpacks to more than {limit} bytes", next_step="send the files one by one")


def _decompressed(content: bytes, limit: int) -> bytes:
    """The bytes of a tar; at most one more than `limit`."""
    for magic, decompressor in _DECOMPRESSORS.items():
        if content.startswith(magic):
            stream = decompressor()
            plain: bytes = stream.decompress(content, limit + 1)
            if not stream.eof and len(plain) <= limit:
                raise EOFError("it is cut off")
            return plain
    return content
