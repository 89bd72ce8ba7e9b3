# SPDX-License-Identifier: Apache-2.0
"""Calls whose accesses to memory are judged, for a device that was opened with `check="memory"`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from minrpc.client.array import RemoteArray
from minrpc.client.rpc import RpcClient
from minrpc.client.session import Session
from minrpc.errors import AccessError, HarnessError, RemoteError
from minrpc.library.arguments import CallPlan
from minrpc.replay import Extent, Found, MemoryCheck


def check_of(session: Session) -> MemoryCheck | None:
    """The check of the session's device; None if its calls are not judged."""
    check = session.owner.access_check
    return check if isinstance(check, MemoryCheck) else None


def checked(
    check: MemoryCheck,
    rpc: RpcClient,
    plan: CallPlan,
    base: int,
    room: RemoteArray | None,
    run: Callable[[], Any],
) -> Any:  # noqa: ANN401 - a C function's result
    """Run the call, and judge its accesses.

    base: the frame's address on the device, in `room`.

    Raises AccessError for an access that is not allowed, also if the call's own guards found damage.
    """
    extents = [*_arguments(plan, base), *_arrays(rpc, room)]
    code = rpc.facts.loaded
    check.begin((rpc, rpc.generation))
    try:
        result = run()
    except HarnessError as error:
        finding = check.end(extents, code)
        if finding is None:
            raise
        if isinstance(error, RemoteError):
            raise _error(plan.function.name, finding, error.message) from error
        error.details += (f"{plan.function.name} {finding.text}", *finding.details)
        raise
    finding = check.end(extents, code)
    if finding is not None:
        raise _error(plan.function.name, finding)
    return result


def _error(function: str, finding: Found, *further: str) -> AccessError:
    return AccessError(
        f"{function} {finding.text}",
        stage=f"call {function}",
        details=(*finding.details, *further),
    )


def _arguments(plan: CallPlan, base: int) -> Iterator[Extent]:
    for block in plan.frame.blocks:
        begin = base + block.offset
        yield Extent(begin, begin + block.size, block.name, not block.constant or block.returned)


def _arrays(rpc: RpcClient, room: RemoteArray | None) -> Iterator[Extent]:
    """The arrays of the device, without the memory for arguments."""
    for array in list(rpc.live):
        if isinstance(array, RemoteArray) and array is not room and array.usable_on(rpc):
            shape = ",".join(map(str, array.shape))
            name = f"an array of the device ({array.dtype}[{shape}])"
            yield Extent(array.address, array.address + array.nbytes, name)
