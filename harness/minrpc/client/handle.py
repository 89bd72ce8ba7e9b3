# SPDX-License-Identifier: Apache-2.0
"""What every object on a device has in common: a session that it belongs to, and an end."""

from __future__ import annotations

import weakref
from typing import Self, TypeAlias

from minrpc.client.rpc import RpcClient
from minrpc.wire.requests import Syscall

Ends: TypeAlias = "dict[int, weakref.finalize[..., RemoteHandle]]"
"""What gives handles back, by the handle's id. Not weak references to the handles: when the garbage collector
ends a handle together with what it was made of, it clears all of those first, and its order is any."""


class RemoteHandle:
    """Something of the running session of `rpc`, given back by the request `free`; None when nothing need be.

    It is given back by `free()`, at the end of a `with` block, or when nobody references it: the request is
    queued then and sent before the next one.
    """

    def __init__(
        self, rpc: RpcClient, free: Syscall | None, *, made: Ends | None = None, of: Ends | None = None
    ) -> None:
        """made: what was made of it, which is given back before it. of: the same of what it was made of."""
        self._rpc = rpc
        self._generation = rpc.generation
        self._finalizer = weakref.finalize(self, _give_back, rpc, self._generation, free, made, of, id(self))
        self._finalizer.atexit = False
        if of is not None:
            of[id(self)] = self._finalizer
        rpc.live.add(self)

    def free(self) -> None:
        """Give it back, at the latest before the next request. A second call does nothing."""
        self._finalizer()

    @property
    def rpc(self) -> RpcClient:
        """The client that it belongs to."""
        return self._rpc

    @property
    def freed(self) -> bool:
        """Whether it was given back."""
        return not self._finalizer.alive

    def usable_on(self, rpc: RpcClient) -> bool:
        """Whether it can be used in a request of `rpc` now."""
        return rpc is self._rpc and self._generation == rpc.link.generation and self._finalizer.alive

    def check(self, rpc: RpcClient) -> None:
        """Raise ValueError, with the reason, when it can't be used in a request of `rpc`."""
        if rpc is not self._rpc:
            raise ValueError(f"{self!r} is on {self._rpc.link.name}, not on {rpc.link.name}")
        if self.freed:
            raise ValueError(f"{self!r} has been freed")
        if self._generation != rpc.generation:
            raise ValueError(f"{self!r} is of a session that has ended, and went with it: make a new one")

    def _ready(self) -> RpcClient:
        """The client, with the session that this belongs to."""
        self.check(self._rpc)
        self._rpc.ready()
        self.check(self._rpc)
        return self._rpc

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()


def _give_back(
    rpc: RpcClient, generation: int, request: Syscall | None, made: Ends | None, of: Ends | None, key: int
) -> None:
    for end in list(made.values()) if made else ():
        end()
    rpc.release(generation, request)
    if of is not None:
        del of[key]
