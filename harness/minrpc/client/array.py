# SPDX-License-Identifier: Apache-2.0
"""Arrays in the device's memory."""

from __future__ import annotations

from math import prod
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from minrpc.client import memory
from minrpc.client.handle import Ends, RemoteHandle
from minrpc.client.rpc import RpcClient
from minrpc.wire.dtypes import DataType, DTypeLike, to_dtype, to_numpy
from minrpc.wire.requests import Syscall
from minrpc.wire.values import Argument, DLTensor, Handle, PackedTensor


class RemoteArray(RemoteHandle):
    """A dense array on a device, made by `Device.array` and `Device.empty`.

    shape: elements in each dimension; an element of several lanes counts once.
    dtype: the type of an element, as the wire carries it.
    nbytes: its size on the device, in bytes.
    pointer: its address as an argument; check `usable_on` before sending it.
    """

    def __init__(
        self, rpc: RpcClient, tensor: DLTensor, free: Syscall | None, *, of: RemoteArray | None = None
    ) -> None:
        """free: the request that frees it; None for a view. of: the array whose memory a view has."""
        self.shape = tensor.shape
        self.dtype = tensor.dtype
        self.nbytes = tensor.nbytes
        self._tensor = tensor
        self._of = of
        self._views: Ends = {}
        super().__init__(rpc, free, made=self._views, of=of._views if of is not None else None)
        # The array as an argument of a call, encoded once: an array never moves.
        self.argument = PackedTensor(tensor.pack(rpc.dialect))
        self.pointer = Handle(tensor.data + tensor.byte_offset)

    @property
    def address(self) -> int:
        """The address of its first element on the device. Raises ValueError when the array is gone."""
        self.check(self._rpc)
        return self._tensor.data + self._tensor.byte_offset

    @property
    def tensor(self) -> DLTensor:
        """The array's descriptor for the wire: address, shape, type."""
        return self._tensor

    def numpy(self) -> npt.NDArray[Any]:
        """A copy of the elements: shape `shape`, followed by the lanes if there are several."""
        host, lanes = to_numpy(self.dtype)
        result = np.empty(self.shape + lanes, host)
        with self._rpc.lock:
            rpc = self._ready(memory=True)
            if self.nbytes:
                data = memory.download(rpc, self._tensor, self.nbytes)
                _bytes_of(result)[:] = np.frombuffer(data, np.uint8)
        return result

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """The elements for numpy's own functions, a copy. Raises ValueError if copy is False."""
        if copy is False:
            raise ValueError(f"{self!r} is in the device's memory: numpy gets a copy")
        return np.asarray(self.numpy(), dtype)

    def view(self, dtype: DTypeLike, shape: int | tuple[int, ...] | None = None) -> RemoteArray:
        """The same memory as elements of another type.

        shape: by default the last dimension takes more or fewer elements, as in numpy's view.

        The view keeps this array alive, and is invalid when this array is freed. Raises ValueError for a
        shape of another size, and if this array is gone.
        """
        self.check(self._rpc)
        held = to_dtype(dtype)
        if shape is None:
            *front, last = self.shape or (1,)
            shape = (*front, last * self.dtype.itemsize // held.itemsize)
        made = tensor_of(shape, dtype)
        if made.nbytes != self.nbytes:
            raise ValueError(f"{self!r} has {self.nbytes} bytes, {made.shape} of {held} {made.nbytes}")
        place = self._tensor
        return RemoteArray(
            self._rpc, made._replace(data=place.data, byte_offset=place.byte_offset), None, of=self
        )

    def copy_from(self, source: npt.ArrayLike | RemoteArray) -> None:
        """Overwrite all elements: from the host, or from another array of the same device.

        Raises TypeError for another dtype and ValueError for another shape: nothing is converted.
        """
        if isinstance(source, RemoteArray):
            self._copy_from_remote(source)
            return
        self.upload(self.require_like(source))

    def require_like(self, source: npt.ArrayLike) -> npt.NDArray[Any]:
        """`source` as elements of this array.

        Raises TypeError for another dtype and ValueError for another shape.
        """
        elements = host_elements(source, None)
        host, lanes = to_numpy(self.dtype)
        if elements.dtype != host:
            raise TypeError(f"elements of {elements.dtype.name} can't be copied to an array of {self.dtype}")
        if elements.shape != self.shape + lanes:
            raise ValueError(
                f"elements of shape {elements.shape} can't be copied to shape {self.shape + lanes}"
            )
        return elements

    def run_on_device(self, name: str, *args: Argument) -> Any:  # noqa: ANN401 - the function's result
        """Calls the device's global function `name` with this array and `args`: its result, or True for None.

        Returns False if the device has no such function. An array without elements needs no call.
        """
        with self._rpc.lock:
            rpc = self._ready()
            handle = rpc.global_function(name)
            if not handle:
                return False
            result = rpc.call(handle, (self.argument, *args), f"call {name}") if self.nbytes else 0
            return True if result is None else result

    def upload(self, elements: npt.NDArray[Any]) -> None:
        """Overwrite all elements with the elements of a dense array that is known to fit."""
        with self._rpc.lock:
            rpc = self._ready(memory=True)
            if self.nbytes:
                memory.upload(rpc, self._tensor, _bytes_of(elements).data)

    def _copy_from_remote(self, source: RemoteArray) -> None:
        if (source.dtype, source.shape) != (self.dtype, self.shape):
            raise ValueError(f"{source!r} can't be copied to {self!r}")
        with self._rpc.lock:
            rpc = self._ready()
            source.check(rpc)
            if self.nbytes:
                memory.copy_among(rpc, source._tensor, self._tensor, self.nbytes)

    def __repr__(self) -> str:
        return f"RemoteArray(shape={self.shape}, dtype={self.dtype})"


def host_elements(data: npt.ArrayLike, dtype: DataType | None) -> npt.NDArray[Any]:
    """`data` as a dense little-endian numpy array, of the type that holds `dtype` when that is given.

    Types that numpy lacks (bfloat16) must be given as raw bits. A float may be rounded to a narrower type.

    Raises TypeError for a masked array and for what can't be converted, ValueError for a float that is no
    integer, OverflowError for a value out of the range of an integer's type.
    """
    if is_masked(data):
        raise TypeError("a masked array has no element where it is masked: pass .filled(...) or .data")
    elements = np.asarray(data)
    if dtype is None:
        return np.asarray(elements, elements.dtype.newbyteorder("<"), order="C")
    host = to_numpy(dtype)[0]
    if elements.dtype != host and not _is_native(dtype, host):
        raise TypeError(f"{dtype} is held as {host.name} on the host; {elements.dtype.name} was given")
    if elements.dtype != host:
        _require_convertible(elements, host, dtype)
    return np.asarray(elements, host, order="C")


def _require_convertible(elements: npt.NDArray[Any], host: np.dtype[Any], dtype: DataType) -> None:
    """Raise an error if a conversion to `host`, which holds `dtype`, would do more than round."""
    kind = "f" if elements.dtype.name == "bfloat16" else elements.dtype.kind
    if kind == "O" and all(isinstance(value, int) for value in elements.flat):
        kind = "i"  # An integer beyond 64 bits is an object in numpy.
    if kind not in "biuf":
        raise TypeError(f"elements of {elements.dtype.name} can't be converted to {dtype}")
    if host.kind in "iu" and kind == "f" and (broken := elements[np.trunc(elements) != elements]).size:
        raise ValueError(f"{broken[0]} is no integer, which {dtype} is")
    require_range(elements, host, dtype)


def require_range(elements: npt.NDArray[Any], host: np.dtype[Any], dtype: DataType) -> None:
    """Raise OverflowError for an element out of the range of an integer's type `host`, which holds `dtype`.

    Numpy wraps integers of an array, and before 2.0 Python's as well.
    """
    if host.kind in "iu" and elements.size:
        limits = np.iinfo(host)
        # As Python's numbers, which are compared exactly.
        for value in np.asarray([elements.min(), elements.max()], elements.dtype).tolist():
            if not limits.min <= value <= limits.max:
                raise OverflowError(f"{value} is out of {dtype}'s range, {limits.min} to {limits.max}")


def _is_native(dtype: DataType, host: np.dtype[Any]) -> bool:
    """True if numpy's type is the same as the wire's."""
    try:
        return to_dtype(host)[:2] == dtype[:2]
    except TypeError:
        return False


def _bytes_of(elements: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    return elements.reshape(-1).view(np.uint8)


def is_masked(value: object) -> bool:
    """True for a masked array of numpy's, told without numpy.ma, which need not be imported."""
    return isinstance(value, np.ndarray) and hasattr(value, "filled")


def sizes_of(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    """The shape's sizes as Python's integers. Raises TypeError for an invalid shape."""
    try:
        if isinstance(shape, int | np.integer):
            return (index(shape),)
        return tuple(index(size) for size in shape)
    except TypeError as error:
        raise TypeError(f"a shape is an integer or several, not {shape!r}") from error


def tensor_of(shape: int | tuple[int, ...], dtype: DTypeLike) -> DLTensor:
    """A tensor without memory yet.

    Raises ValueError for a negative size, TypeError for an invalid type or shape.
    """
    sizes = sizes_of(shape)
    if any(size < 0 for size in sizes):
        raise ValueError(f"a shape has no negative sizes: {sizes}")
    tensor = DLTensor(0, to_dtype(dtype), sizes)
    if prod(sizes) * tensor.dtype.itemsize >= 1 << 63:
        raise ValueError(f"an array of shape {sizes} has more bytes than any device")
    return tensor
