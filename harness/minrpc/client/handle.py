# SPDX-License-Identifier: Apache-2.0
"""The base of all objects on a device: each belongs to a session, and is freed once."""

from __future__ import annotations

import weakref
from typing import Self, TypeAlias

from minrpc.client.rpc import RpcClient
from minrpc.errors import SessionEndedError
from minrpc.wire.requests import Syscall

Ends: TypeAlias = "dict[int, weakref.finalize[..., RemoteHandle]]"
"""Finalizers that free handles, by the handle's id. Weak references to the handles would not do: the garbage
collector clears them all before it ends a handle together with its parent, in any order."""


class RemoteHandle:
    """An object in the running session of `rpc`. `free` is the request that frees it; None if none is needed.

    `free()`, the end of a `with` block, or the loss of the last reference queues the request; it is sent
    before the next request.
    """

    def __init__(
        self, rpc: RpcClient, free: Syscall | None, *, made: Ends | None = None, of: Ends | None = None
    ) -> None:
        """made: the finalizers of its children, which are freed before it. of: `made` of its parent."""
        self._rpc = rpc
        self._generation = rpc.generation
        self._finalizer = weakref.finalize(self, _give_back, rpc, self._generation, free, made, of, id(self))
        self._finalizer.atexit = False
        if of is not None:
            of[id(self)] = self._finalizer
        rpc.live.add(self)

    def free(self) -> None:
        """Free the object, at the latest before the next request. A second call does nothing."""
        self._finalizer()

    @property
    def rpc(self) -> RpcClient:
        """The client that the object belongs to."""
        return self._rpc

    @property
    def freed(self) -> bool:
        """True if the object was freed."""
        return not self._finalizer.alive

    def usable_on(self, rpc: RpcClient) -> bool:
        """True if the object can be used in a request of `rpc` now."""
        return rpc is self._rpc and self._generation == rpc.link.generation and self._finalizer.alive

    def check(self, rpc: RpcClient) -> None:
        """Raise SessionEndedError or ValueError, with the reason, if the object can't be used in a request of
        `rpc`."""
        if rpc is not self._rpc:
            raise ValueError(f"{self!r} is on {self._rpc.link.name}, not on {rpc.link.name}")
        if self.freed:
            raise ValueError(f"{self!r} has been freed")
        if self._generation != rpc.generation:
            raise SessionEndedError(
                f"{self!r} belonged to a session that has ended", details=rpc.link.why_ended
            )

    def _ready(self, *, memory: bool = False) -> RpcClient:
        """The client, after checking that the object's session still runs.

        memory: True if only memory is read or written, which a function that waits for Python can do.
        """
        self.check(self._rpc)
        if memory:
            self._rpc.ready_for_memory()
        else:
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
