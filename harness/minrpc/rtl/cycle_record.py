# SPDX-License-Identifier: Apache-2.0
"""Calls of a function on a core's RTL, cycle by cycle, in a file that the core's program shares."""

from __future__ import annotations

import mmap
import os
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from minrpc.errors import HarnessError

# The layout that recorder.hpp has, too.
_HEADER: Final = np.dtype([(name, "<u4") for name in ("function", "calls", "cycles", "capacity")])
_SAMPLE: Final = np.dtype([("pc", "<u4"), ("changed", "<u4")])
_SIZE: Final = 16 << 20
_CAPACITY: Final = (_SIZE - _HEADER.itemsize) // _SAMPLE.itemsize


class CallTrace(NamedTuple):
    """A call, a value for each cycle: the address in the pipeline, and the register bits that changed."""

    pc: npt.NDArray[np.uint32]
    changed: npt.NDArray[np.uint32]


class Recording:
    """Records calls of one function. `descriptor` is the file that the core's program inherits."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("minrpc-recording", os.MFD_CLOEXEC)
        os.ftruncate(self.descriptor, _SIZE)
        self._map = mmap.mmap(self.descriptor, _SIZE)

    def watch(self, function: int) -> None:
        """Records calls of the function at this address from now on; 0: none."""
        self._map[: _HEADER.itemsize] = np.array((function, 0, 0, _CAPACITY), _HEADER).tobytes()

    def last(self) -> CallTrace:
        """The last call that has returned. Raises HarnessError if there was none, or one that is too long."""
        header = np.frombuffer(self._map[: _HEADER.itemsize], _HEADER)[0]
        cycles = int(header["cycles"])
        if not header["calls"]:
            raise HarnessError("the function was not called", next_step="name a function that C calls")
        if cycles > _CAPACITY:
            message = f"the call took {cycles:,} cycles, and {_CAPACITY:,} are kept"
            raise HarnessError(message, next_step="give it less to do")
        end = _HEADER.itemsize + cycles * _SAMPLE.itemsize
        samples = np.frombuffer(self._map[_HEADER.itemsize : end], _SAMPLE)
        return CallTrace(samples["pc"], samples["changed"])

    def close(self) -> None:
        """Release the file. A second call does nothing."""
        if not self._map.closed:
            self._map.close()
            os.close(self.descriptor)
