# SPDX-License-Identifier: Apache-2.0
"""The device's memory: allocations, and copies cut to the device's packet size."""

from __future__ import annotations

from collections.abc import Iterator

from minrpc.client.rpc import RpcClient
from minrpc.errors import DeviceMemoryError, DialectError, RemoteError
from minrpc.wire.replies import CopyAck
from minrpc.wire.requests import (
    CopyFromRemote,
    CopyToRemote,
    RpcCode,
    Syscall,
    alloc_data,
    alloc_data_with_scope,
    copy_overhead,
    encode_request,
)
from minrpc.wire.values import Argument, Dialect, DLTensor, Handle, Value

# Bytes of data per packet if the device takes copies of any length: large enough that round trips and headers
# hardly count, small enough that damage shows soon. The second limit is for answers of this project's
# devices.
_LONG_COPY = 64 * 1024
_LONG_ANSWER = 1024 * 1024

# The slowest link, 9600 baud: the time limit of a copy allows for it.
_BYTES_PER_S = 960.0

# The server's sizes are of 32 bits.
_LIMIT = 1 << 32

_NOT_RECOGNIZED = "not recognized"


def allocate(rpc: RpcClient, tensor: DLTensor, alignment: int | None = None) -> int:
    """Memory for `tensor`: its address on the device. The first allocation finds out the dialect.

    alignment: of the address, in bytes, once the dialect is known; None for the device's own.

    Raises DeviceMemoryError with the device's text.
    """
    stage = f"allocate {tensor.nbytes} bytes"
    try:
        if alignment is None:
            address = _allocate(rpc, tensor, stage)
        else:
            address = rpc.syscall(alloc_data(tensor.nbytes, tensor.dtype, alignment, tensor.device), stage)
    except RemoteError as error:
        # TVM's devices repeat the text of an earlier error here, so the message names the request.
        details = () if rpc.ours else (f"{tensor.nbytes} bytes were asked for",)
        if rpc.ours and tensor.nbytes >= _LIMIT:
            raise DeviceMemoryError(
                f"{tensor.nbytes:,} bytes were asked for: an array takes less than 4 GiB",
                stage=stage,
                console_tail=error.console_tail,
                next_step="make a smaller array",
            ) from error
        failure = DeviceMemoryError(error.text, stage=stage, console_tail=error.console_tail, details=details)
        raise failure from error
    if not isinstance(address, Handle) or not address.value:
        raise DeviceMemoryError(f"the device has no {tensor.nbytes} bytes left", stage=stage)
    rpc.facts.direct.allocated(address.value, tensor.nbytes)
    return address.value


def _allocate(rpc: RpcClient, tensor: DLTensor, stage: str) -> Value:
    if rpc.facts.dialect is not Dialect.V0_7_0:
        try:
            address = rpc.syscall(alloc_data_with_scope(tensor), stage)
        except RemoteError as error:
            if rpc.facts.dialect is not None or _NOT_RECOGNIZED not in error.text:
                raise
        else:
            rpc.facts.dialect = Dialect.V0_8_0
            return address
    rpc.facts.dialect = Dialect.V0_7_0
    return rpc.syscall(alloc_data(tensor.nbytes, tensor.dtype, device=tensor.device), stage)


def upload(rpc: RpcClient, tensor: DLTensor, data: memoryview) -> None:
    """Copy `data` into the tensor's memory, from its byte offset on."""
    if rpc.conversation is not None:
        rpc.conversation.deepest.write(tensor.data + tensor.byte_offset, bytes(data))
        return
    with rpc.lock:
        if rpc.facts.direct.write(tensor, data, lambda at, size: _copied(rpc, at, size)):
            return
    block = _block(rpc, tensor)
    longest = _LONG_COPY if rpc.facts.long_copies and not rpc.link.numbered else block
    for offset, size in _pieces(rpc, len(data), longest):
        request = CopyToRemote(_at(tensor, offset), data[offset : offset + size])
        packet = encode_request(request, rpc.dialect)
        front = len(packet) - size if size > block else 0
        rpc.syscall_packet(packet, "copy to the device", _time_for(rpc, size), front)


def download(rpc: RpcClient, tensor: DLTensor, nbytes: int) -> bytes | memoryview:
    """The first `nbytes` of the tensor. Reads TVM's devices in pieces that fit their packets."""
    if rpc.conversation is not None:
        return rpc.conversation.deepest.read(tensor.data + tensor.byte_offset, nbytes)
    with rpc.lock:
        directly = rpc.facts.direct.read(tensor, nbytes)
    if directly is not None:
        return directly
    block = _LONG_ANSWER if rpc.ours else _block(rpc, tensor)
    parts = [_copied(rpc, _at(tensor, offset), size) for offset, size in _pieces(rpc, nbytes, block)]
    return parts[0] if len(parts) == 1 else b"".join(parts)


def copy_among(rpc: RpcClient, source: DLTensor, target: DLTensor, nbytes: int) -> None:
    """Copy between two tensors on the device."""
    stream = Handle(0)
    args: tuple[Argument, ...] = (source, target, stream)
    if rpc.dialect is Dialect.V0_7_0:
        places = (Handle(source.data), source.byte_offset, Handle(target.data), target.byte_offset)
        args = (*places, nbytes, source.device, target.device, source.dtype, stream)
    rpc.syscall(Syscall(RpcCode.COPY_AMONG_REMOTE, args), "copy on the device")


def _at(tensor: DLTensor, offset: int) -> DLTensor:
    return tensor._replace(byte_offset=tensor.byte_offset + offset) if offset else tensor


def _time_for(rpc: RpcClient, nbytes: int) -> float:
    return rpc.call_timeout_s + nbytes / _BYTES_PER_S


def _block(rpc: RpcClient, tensor: DLTensor) -> int:
    """Largest number of data bytes in a packet."""
    room = rpc.max_packet()
    block = room - copy_overhead(len(tensor.shape), rpc.dialect)
    if block < 1:
        raise DialectError(f"the device takes packets of {room} bytes: too small for a copy")
    return block


def _copied(rpc: RpcClient, tensor: DLTensor, nbytes: int) -> memoryview:
    stage = "copy from the device"
    packet = encode_request(CopyFromRemote(tensor, nbytes), rpc.dialect)
    reply = rpc.exchange(packet, stage, _time_for(rpc, nbytes))
    if not isinstance(reply, CopyAck) or len(reply.data) != nbytes:
        raise DialectError(f"{nbytes} bytes were asked for, another answer came", stage=stage)
    return reply.data


def _pieces(rpc: RpcClient, nbytes: int, block: int) -> Iterator[tuple[int, int]]:
    """Offset and size of each piece, at most `block`; smaller while the link damages long messages."""
    offset = 0
    while offset < nbytes:
        size = min(block, nbytes - offset, rpc.link.piece)
        yield offset, size
        offset += size
