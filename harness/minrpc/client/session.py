# SPDX-License-Identifier: Apache-2.0
"""A session with a device: arrays, packed functions, times, console, over any transport."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Self

import numpy.typing as npt

from minrpc.client import filling, memory
from minrpc.client.array import RemoteArray, host_elements, tensor_of
from minrpc.client.device_counters import heap_use
from minrpc.client.function import RemoteFunction, SystemLibrary
from minrpc.client.info import DeviceInfo
from minrpc.client.link import SessionLink
from minrpc.client.owner import Owner
from minrpc.client.resend import ResendCounters
from minrpc.client.rpc import RpcClient
from minrpc.client.stats import DeviceStats
from minrpc.errors import (
    ConfigurationError,
    DialectError,
    FunctionNotFoundError,
    LinkClosedError,
    RemoteError,
    SessionTerminatedError,
)
from minrpc.host.deadline import Deadline
from minrpc.host.time_limits import CALL_TIMEOUT_S, SESSION_TIMEOUT_S, require_seconds
from minrpc.names import text_name
from minrpc.timing import DeviceClock
from minrpc.transport import Transport
from minrpc.wire.dtypes import DTypeLike, to_dtype, to_numpy
from minrpc.wire.framing import FramingCounters
from minrpc.wire.requests import free_data
from minrpc.wire.values import DLTensor

if TYPE_CHECKING:  # pexpect is loaded on the first use of `console`.
    from minrpc.client.expect import Console

RESET_SERVER = "tvm.testing.reset_server"


class Session:
    """A MinRPC server at the other end of `transport`: this project's or TVM's own.

    owner: knowledge of the device beside its link; a `RunningDevice` when it was started from here.
    total: a deadline for all waits together.
    session_timeout_s, call_timeout_s: limits in seconds, as `Deadline` charges them.
    resend: on this project's devices, send lost messages again; each request still runs once.
    direct: copy arrays through memory that `owner` shares with the device, where there is any.
    keep_link: leave `transport` open at the end, for its lender.
    from_boot: the device was started for this session, so that `console` begins at its boot.
    on_close: called last by `close`, to stop processes that were started for this device.

    The session starts with the first request, or with `connect`. When it breaks, the request that noticed
    raises, and the next request starts a new session; arrays and functions of the broken session
    raise when used. Threads may share a device: one request runs at a time.
    """

    def __init__(
        self,
        transport: Transport,
        owner: Owner | None = None,
        *,
        total: Deadline | None = None,
        session_timeout_s: float = SESSION_TIMEOUT_S,
        call_timeout_s: float = CALL_TIMEOUT_S,
        resend: bool = False,
        direct: bool = True,
        keep_link: bool = False,
        from_boot: bool = False,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._link = SessionLink(transport, owner, total=total, keep_open=keep_link)
        self._on_close = on_close
        self._console: Console | None = None
        tail = self.owner.console_tail
        self._console_start = 0 if from_boot or tail is None else tail.position
        self._library: SystemLibrary | None = None
        self._closed = False
        self.rpc = RpcClient(
            self._link,
            session_timeout_s=session_timeout_s,
            call_timeout_s=call_timeout_s,
            resend=resend,
            direct=direct,
        )

    @property
    def link(self) -> Transport:
        """The transport that carries the bytes."""
        return self._link.transport

    @property
    def resend(self) -> bool:
        """True if lost messages are to be sent again, on devices that can do that."""
        return self.rpc.resend

    @property
    def direct(self) -> bool:
        """True if arrays are copied through memory shared with the device, not over the link; can be set."""
        return self.rpc.direct

    @direct.setter
    def direct(self, enabled: bool) -> None:
        self.rpc.direct = enabled

    @property
    def name(self) -> str:
        """The link's name."""
        return self._link.name

    @property
    def console_text(self) -> str | None:
        """The end of the device's output and logs; None when there is no console and nothing came."""
        return self._link.console_text()

    @property
    def console(self) -> Console:
        """The device's output, as a pexpect object: `device.console.expect("ready")`.

        It begins at the boot of a device that `open_device` started, else when this object was made, without
        the output of earlier sessions. A device without a console sends its text over the link.
        """
        if self._console is None:
            from minrpc.client.expect import Console

            tail = self.owner.console_tail
            hear = self._hear if tail is None else self._look
            self._console = Console(self.name, tail, self._console_start, self._link.console, hear)
        return self._console

    def _hear(self, wait_s: float) -> None:
        """Take what has come over the link, waiting up to `wait_s` seconds for its first byte.

        Others can use the device meanwhile: a call in another thread takes its text, too.
        """
        link, lock = self._link, self.rpc.lock
        waits = link.wait(wait_s)
        if lock.acquire(timeout=wait_s) if wait_s else lock.acquire(blocking=False):
            try:
                link.listen(0.0 if waits else wait_s)
            finally:
                lock.release()

    def _look(self, wait_s: float) -> None:
        """Does the same as `_hear`, unless a call around this one waits for its answer."""
        if self._link.usable:
            with suppress(LinkClosedError):  # The console's own end tells the same.
                self._hear(wait_s)

    @property
    def link_counters(self) -> FramingCounters:
        """Frames and damage that this side has seen; `info` has the device's own counts."""
        return self._link.counters

    @property
    def owner(self) -> Owner:
        """The object that started the device or attached to it, such as a `RunningDevice`."""
        return self._link.owner

    @property
    def in_session(self) -> bool:
        """True if a session runs and all its requests were answered."""
        return self._link.usable

    @property
    def sessions(self) -> int:
        """The number of sessions started, including the present session; objects of earlier sessions are
        invalid."""
        return self._link.generation

    @property
    def call_timeout_s(self) -> float:
        """The limit for each call from now on, seconds as `Deadline` charges them.

        Setting it raises ValueError for other than a finite number above 0.
        """
        return self.rpc.call_timeout_s

    @call_timeout_s.setter
    def call_timeout_s(self, seconds: float) -> None:
        require_seconds("call_timeout_s", seconds)
        self.rpc.call_timeout_s = seconds

    @property
    def resend_counters(self) -> ResendCounters:
        """Counts of numbered requests since the link was opened; all 0 if the device has none."""
        return self._link.resend_counters

    def connect(self) -> None:
        """Start a session unless one runs. Raises NothingHeardError or SessionError when that fails."""
        self.rpc.ready()

    def array(self, data: npt.ArrayLike, dtype: DTypeLike | None = None) -> RemoteArray:
        """A copy of `data` on the device.

        dtype: the type of the elements there; the type of `data` when left out. A type of several lanes takes
            them from the last dimension.

        Raises TypeError and ValueError for data that can't be sent, OverflowError for a number out of the
        range of `dtype`, DeviceMemoryError when there is no room.
        """
        wire = None if dtype is None else to_dtype(dtype)
        elements = host_elements(data, wire)
        wire = wire or to_dtype(elements.dtype)
        lanes = to_numpy(wire)[1]
        if lanes and elements.shape[-1:] != lanes:
            raise ValueError(
                f"elements of {wire} have a last dimension of {lanes[0]}, not {elements.shape[-1:]}"
            )
        shape = elements.shape[:-1] if lanes else elements.shape
        with self.rpc.lock:
            array = self._allocate(tensor_of(shape, wire))
            array.upload(elements)
        return array

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike = "float32") -> RemoteArray:
        """An array whose elements are not set. Raises as `array` does."""
        return self._allocate(tensor_of(shape, dtype))

    def random(
        self, shape: int | tuple[int, ...], dtype: DTypeLike = "float32", seed: int = 0
    ) -> RemoteArray:
        """An array of random elements, made on the device: equal to `minrpc.random_values` in each bit.

        Raises TypeError for a type without random values, and as `array` does.
        """
        filling.require_fillable(to_dtype(dtype))
        array = self.empty(shape, dtype)
        filling.fill_randomly(array, seed)
        return array

    def full(self, shape: int | tuple[int, ...], value: object, dtype: DTypeLike = "float32") -> RemoteArray:
        """An array whose elements are all `value`, set on the device.

        Raises TypeError and OverflowError for a value that the type can't hold, and as `array` does.
        """
        array = self.empty(shape, dtype)
        filling.fill(array, value)
        return array

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike = "float32") -> RemoteArray:
        """An array of zeros, set on the device. Raises as `array` does."""
        return self.full(shape, 0, dtype)

    def checksum(self, array: RemoteArray) -> int:
        """CRC-32 of the array's bytes, computed on the device: `zlib.crc32` of `array.numpy().tobytes()`."""
        return filling.checksum(array)

    def assert_equal(self, array: RemoteArray, expected: npt.ArrayLike) -> None:
        """Raise AssertionError, with numpy's report, unless the array's elements are `expected`.

        They are compared by a checksum on the device, and copied from it only if it differs.

        Raises TypeError for another dtype and ValueError for another shape.
        """
        filling.assert_equal(array, expected, near=self.rpc.facts.direct.usable)

    def aligned(self, size: int, alignment: int) -> RemoteArray:
        """An array of bytes that are not set, whose address is a multiple of `alignment`, a power of two.

        Raises as `array` does, and ValueError for another alignment.
        """
        if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
            raise ValueError(f"an alignment is a power of two, not {alignment!r}")
        array = self.empty((size,), "uint8")  # It finds out the dialect, and is aligned to 64 bytes.
        if array.address % alignment:
            array.free()
            array = self._allocate(tensor_of((size,), "uint8"), alignment)
        return array

    def _allocate(self, tensor: DLTensor, alignment: int | None = None) -> RemoteArray:
        with self.rpc.lock:
            self.rpc.ready()
            data = memory.allocate(self.rpc, tensor, alignment)
            return RemoteArray(self.rpc, tensor._replace(data=data), free_data(data, tensor.device))

    def system_lib(self) -> SystemLibrary:
        """The functions that the firmware was linked with."""
        with self.rpc.lock:
            self.rpc.ready()
            if self._library is None or not self._library.usable_on(self.rpc):
                self._library = SystemLibrary(self.rpc)
            return self._library

    def move_to(self, transport: Transport, owner: Owner, on_close: Callable[[], None]) -> None:
        """Go on as the client of another device, whose owner keeps its link.

        on_close: replaces the function that `close` calls last; the earlier function is called now.
        """
        with self.rpc.lock:
            link = SessionLink(transport, owner, total=self._link.total, keep_open=True)
            before, self._on_close = self._on_close, on_close
            self._console, self._console_start = None, 0
            self._library = None
            self._link = link
            try:
                self.rpc.move_to(link)
            finally:
                if before is not None:
                    before()

    def stats(self, *, reset_peaks: bool = False) -> DeviceStats:
        """The device's memory, uptime and link counts.

        reset_peaks: restarts the peaks after this answer; needs firmware with MINRPC_COUNTERS.
        Raises ConfigurationError if the firmware can't.
        """
        with self.rpc.lock:
            self.rpc.ready()
            info = self.rpc.device_info()
            heap = heap_use(self.rpc, reset=reset_peaks)
        if reset_peaks and heap is None:
            raise ConfigurationError(
                "this firmware can't reset its peaks", next_step="build it with -DMINRPC_COUNTERS=ON"
            )
        return DeviceStats.of(info, heap)

    def get_function(self, name: str) -> RemoteFunction:
        """The global function `name`. Raises FunctionNotFoundError."""
        text_name(name, "function")
        with self.rpc.lock:
            self.rpc.ready()
            handle = self.rpc.find_global(name)
            if not handle:
                raise FunctionNotFoundError(
                    f"the device has no global function {name!r}", stage=f"look up {name}"
                )
            return RemoteFunction(self.rpc, name, handle)

    def info(self, timeout_s: float | None = None) -> DeviceInfo:
        """The device's description of itself; `timeout_s` replaces the limit of calls.

        Raises DialectError when the device does not run this project's runtime, ValueError for a limit that
        is no time.
        """
        if timeout_s is not None:
            require_seconds("timeout_s", timeout_s)
        with self.rpc.lock:
            self.rpc.ready()
            return self.rpc.device_info(timeout_s)

    def clock(self) -> DeviceClock | None:
        """The device's clock, whose cycles are counted; None if its rate is unknown."""
        with self.rpc.lock:
            self.rpc.ready()
            return self.owner.timebase.clock(self.info().timer_hz) if self.rpc.ours else None

    def reset(self) -> None:
        """Restart the device and start a new session; a link that the restart closes is opened again.

        A device that can't restart itself is reset from outside, an emulator as well.

        Raises FunctionNotFoundError, RemoteError when it has no way to restart, and as `connect` does.
        """
        with self.rpc.lock:
            try:
                self.get_function(RESET_SERVER)()
            except (SessionTerminatedError, LinkClosedError):
                pass
            except (FunctionNotFoundError, RemoteError):
                if not (self.owner.can_reset and self.owner.start_again()):
                    raise
            else:
                raise DialectError(f"{RESET_SERVER} returned, so the device has not restarted")
            self._connect_after_restart()

    def _connect_after_restart(self) -> None:
        deadline = Deadline("restart", self.rpc.session_timeout_s, self.owner.clock, self._link.total)
        while True:
            try:
                self.rpc.restart()
                return
            except LinkClosedError as error:
                # A forwarded port opens before the device listens, and closes again.
                link = None if error.by_us or deadline.expired() else self.owner.link_after_restart(deadline)
                if link is None:
                    raise
                self._link.go_on(link)

    def close(self) -> None:
        """End the session and release the link. A second call does nothing."""
        self._closed = True
        try:
            self.rpc.close()
        finally:
            on_close, self._on_close = self._on_close, None
            if on_close is not None:
                on_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"
