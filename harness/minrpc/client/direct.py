# SPDX-License-Identifier: Apache-2.0
"""Copies without the link, through device memory that this process shares.

Only memory that this session allocated is accessed, and only while no request runs; other copies go over the
link, where the device checks them. The first copy proves that an address means the same bytes on both sides.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

from minrpc.client.owner import DirectMemory
from minrpc.wire.values import DLTensor

_TOKEN_BYTES: Final = 16


class Direct:
    """memory: the shared memory; None if there is none, and every copy goes over the link.

    live: bytes of each allocation of the session, by address.
    enabled: False sends every copy over the link, too.
    """

    def __init__(self, memory: DirectMemory | None, enabled: bool = True) -> None:
        self._memory = memory
        self.enabled = enabled
        self.live: dict[int, int] = {}

    @property
    def usable(self) -> bool:
        """True if copies may use the memory: it exists, and no test has shown that it is not the device's."""
        return self.enabled and self._memory is not None and self._memory.proved is not False

    def allocated(self, address: int, nbytes: int) -> None:
        """Notes that the session has allocated this memory."""
        if self._memory is not None and self._memory.has(address, nbytes):
            self.live[address] = nbytes

    def freed(self, address: int) -> None:
        """Notes that the session has freed the memory at `address`."""
        self.live.pop(address, None)

    def write(
        self,
        tensor: DLTensor,
        data: memoryview,
        read_over_link: Callable[[DLTensor, int], bytes | memoryview],
    ) -> bool:
        """Writes `data` into the tensor's memory, from its byte offset on; returns False if it can't.

        read_over_link: reads a tensor's bytes from the device; called once, to prove this memory.
        """
        memory = self._memory
        if memory is None or memory.proved is False or not self._reaches(tensor, len(data)):
            return False
        address = tensor.data + tensor.byte_offset
        if memory.proved is None:
            if len(data) < _TOKEN_BYTES:
                return False
            token = secrets.token_bytes(_TOKEN_BYTES)
            memory.write(address, token)
            memory.proved = bytes(read_over_link(tensor, _TOKEN_BYTES)) == token
            if not memory.proved:
                return False
        memory.write(address, data)
        return True

    def read(self, tensor: DLTensor, nbytes: int) -> bytes | None:
        """The tensor's bytes from its byte offset on; None if they can't be read this way."""
        offset = tensor.byte_offset
        memory = self.reached(tensor.data, offset + nbytes) if offset >= 0 else None
        return memory.read(tensor.data + offset, nbytes) if memory is not None else None

    def reached(self, address: int, nbytes: int) -> DirectMemory | None:
        """The shared memory, if it is proved and the session's allocation at `address` has `nbytes`."""
        memory = self._memory
        if memory is None or not memory.proved or not self.enabled or self.live.get(address, -1) < nbytes:
            return None
        return memory

    def _reaches(self, tensor: DLTensor, nbytes: int) -> bool:
        return self.enabled and 0 <= tensor.byte_offset <= self.live.get(tensor.data, -1) - nbytes
