# SPDX-License-Identifier: Apache-2.0
"""Packed functions and the modules that hold them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, Literal, NoReturn, overload

import numpy as np

from minrpc.client import counting
from minrpc.client.array import RemoteArray
from minrpc.client.counting import Measurer
from minrpc.client.handle import Ends, RemoteHandle
from minrpc.client.metering import Meter, MeteredMeasurer, check_meter
from minrpc.client.rpc import RpcClient
from minrpc.client.time_evaluator import EvaluatorOptions, TimeEvaluator
from minrpc.errors import DialectError, FunctionNotFoundError
from minrpc.host.time_limits import require_seconds
from minrpc.names import kind_of, text_name
from minrpc.wire.dtypes import DataType
from minrpc.wire.replies import Result, ReturnedArray
from minrpc.wire.requests import free_handle
from minrpc.wire.values import (
    Argument,
    Bool,
    DLDevice,
    Function,
    Handle,
    Module,
    TypeCode,
    UInt,
)

SYSTEM_LIB = "runtime.SystemLib"
MODULE_GET_FUNCTION = "tvm.rpc.server.ModuleGetFunction"

_PLAIN = frozenset({int, float, bytes, type(None), UInt, Handle, DataType, DLDevice})
_PLAIN_RESULTS = _PLAIN - {UInt} | {str}


# Repeats by default, enough to estimate their spread.
_MEASURED_REPEATS = 10


class RemoteFunction(RemoteHandle):
    """A packed function on the device.

    It takes numbers, text, bytes, None and objects of the same device, and returns the same kinds. A bool is
    sent as an int.
    """

    def __init__(
        self,
        rpc: RpcClient,
        name: str,
        handle: int,
        *,
        timeout_s: float | None = None,
        own: bool = True,
        module: RemoteModule | None = None,
        of: Ends | None = None,
        timed: bool = False,
    ) -> None:
        """own: the handle is freed by itself; else it is freed with its module.
        module: kept alive by this function. of: as in `RemoteHandle`. timed: as in `RpcClient.call`.
        """
        super().__init__(rpc, free_handle(handle, TypeCode.FUNCTION) if own else None, of=of)
        self.name = name
        self.handle = handle
        self._stage = f"call {name}"
        self._timeout_s = timeout_s
        self._module = module
        self._timed = timed
        # It frees the handle when it is no longer referenced, so a view of it must keep a reference.
        self._original: RemoteFunction | None = None

    def __call__(self, *args: object) -> Any:  # noqa: ANN401 - the function's result
        """Call it.

        Raises TypeError and ValueError for arguments that can't be sent (nothing is sent then), RemoteError
        with the device's text when the function fails, and SessionTerminatedError, LinkError or DeadlineError
        when no answer comes.
        """
        rpc = self._rpc
        with rpc.lock:
            if not (rpc.idle and self.usable_on(rpc)):
                self._ready()
            sent: list[Any] = [
                value if value.__class__ in _PLAIN else _argument(rpc, value) for value in args
            ]
            result = rpc.call(self.handle, sent, self._stage, self._timeout_s, timed=self._timed)
        return result if result.__class__ in _PLAIN_RESULTS else wrap(rpc, self.name, result)

    def call_with(self, sent: Sequence[Argument]) -> Any:  # noqa: ANN401 - the function's result
        """Call it with arguments in their form for the wire; the caller guarantees that handles are alive."""
        rpc = self._rpc
        with rpc.lock:
            if not (rpc.idle and self.usable_on(rpc)):
                self._ready()
            result = rpc.call(self.handle, sent, self._stage, self._timeout_s, timed=self._timed)
        return result if result.__class__ in _PLAIN_RESULTS else wrap(rpc, self.name, result)

    def with_timeout(self, seconds: float) -> RemoteFunction:
        """The same function with its own limit for each call, in seconds as `Deadline` charges them.

        lib["train"].with_timeout(600)(data)
        """
        require_seconds("a limit", seconds)
        view = copy(self)
        view._timeout_s = seconds
        view._original = self
        return view

    @property
    def argument(self) -> Function:
        """Itself as an argument."""
        return Function(self.handle)

    def __repr__(self) -> str:
        return f"RemoteFunction({self.name!r})"


class RemoteModule(RemoteHandle):
    """A module on the device: `module["add"]` is its function of that name."""

    def __init__(self, rpc: RpcClient, name: str, handle: int | None) -> None:
        # The device frees a module's functions with the module, so their handles are freed before.
        self._made: Ends = {}
        if handle is None:
            super().__init__(rpc, None)
        else:
            super().__init__(rpc, free_handle(handle, TypeCode.MODULE), made=self._made)
        self.name = name
        self._handle = handle
        self._functions: dict[str, RemoteFunction] = {}
        self.code: Mapping[str, int] = {}
        """Addresses of the C functions that its packed functions call, where they are known."""

    @property
    def handle(self) -> int:
        """The device's handle of the module."""
        assert self._handle is not None
        return self._handle

    def __getitem__(self, name: str) -> RemoteFunction:
        """Its function `name`, looked up once. Raises FunctionNotFoundError."""
        function = self._functions.get(text_name(name, "function"))
        if function is None or not function.usable_on(self._rpc):
            function = self._functions[name] = self.get_function(name)
        return function

    def get_function(self, name: str, *, own: bool = True) -> RemoteFunction:
        """Its function `name`, looked up again; `own` as in `RemoteFunction`. Raises
        FunctionNotFoundError."""
        text_name(name, "function")
        with self._rpc.lock:
            rpc = self._ready()
            look_up = rpc.global_function(MODULE_GET_FUNCTION)
            if not look_up:
                raise DialectError(
                    f"the device has no {MODULE_GET_FUNCTION}: nothing in a module can be named"
                )
            # The last argument is query_imports: an int for all, though the newest clients send a bool.
            function = rpc.call(look_up, (Module(self.handle), name, 0), f"look up {name}")
            if not isinstance(function, Function) or not function.handle:
                raise FunctionNotFoundError(f"{self.name} has no function {name!r}", stage=f"look up {name}")
            return RemoteFunction(rpc, name, function.handle, own=own, of=self._made)

    def time_evaluator(self, name: str, *, timeout_s: float | None = None, **options: int) -> TimeEvaluator:
        """An evaluator that times `name` on the device: call it with the function's own arguments.

        options: number, repeat, min_repeat_ms, ...: see `EvaluatorOptions`. Each repeat gives a result, in
            seconds per call.
        timeout_s: limit for a measurement; by default the call's own limit plus the time that the options ask
            for.

        Raises ValueError for options that make no sense, RemoteError when the device refuses them.
        """
        text_name(name, "function")
        if timeout_s is not None:
            require_seconds("timeout_s", timeout_s)
        asked = EvaluatorOptions.of(options)
        with self._rpc.lock:
            rpc = self._ready()
            timed = self._timed(name, asked.create(rpc, Module(self.handle), name), asked, timeout_s)
        return TimeEvaluator(timed, name, asked)

    @overload
    def measure(
        self,
        name: str,
        *,
        timeout_s: float | None = ...,
        counters: Sequence[str] | Literal["all"] = ...,
        memory: bool = ...,
        interrupts_masked: bool = ...,
        meter: None = ...,
        address: int | None = ...,
        **options: int,
    ) -> Measurer: ...

    @overload
    def measure(
        self,
        name: str,
        *,
        timeout_s: float | None = ...,
        counters: Sequence[str] | Literal["all"] = ...,
        memory: bool = ...,
        interrupts_masked: bool = ...,
        meter: Meter,
        address: int | None = ...,
        **options: int,
    ) -> MeteredMeasurer: ...

    def measure(
        self,
        name: str,
        *,
        timeout_s: float | None = None,
        counters: Sequence[str] | Literal["all"] = (),
        memory: bool = False,
        interrupts_masked: bool = False,
        meter: Meter | None = None,
        address: int | None = None,
        **options: int,
    ) -> Measurer | MeteredMeasurer:
        """A measurer that times `name` in the device's ticks: call it with the function's own arguments.

        Takes the options of `time_evaluator`, with 10 repeats by default, and gives a `Measurement`: the
        counts of each repeat, and the overhead of measuring, which a session's first call measures.

        counters: further counters over the same calls, by name, or "all": see `Measurement.counters`.
            The emulator's counters need a device that was started with `counters=True`.
        memory: measures the stack, workspace and heap that a call needs, in an untimed call before each
            repeat: see `Measurement.memory`. If only QEMU can measure the stack, it is the counter
            `stack_bytes`.
        interrupts_masked: masks interrupts (on posix, signals) while a batch is timed. A function that waits
            for an interrupt never ends, and the device misses events during a long batch. The function is
            measured with interrupts first, and an error is raised if the clock lost time by masking.
        meter: of power or energy: its readings join the counters. Each repeat is then a request of its own.
        address: of the C function behind the packed function, for `Measurement.inclusive`; by default of the
            packed function itself.

        Raises ValueError for options that make no sense, DialectError when the device is not this project's,
        ConfigurationError for an unknown counter, with the known ones, and for firmware that can't mask
        interrupts.
        """
        text_name(name, "function")
        if timeout_s is not None:
            require_seconds("timeout_s", timeout_s)
        asked = EvaluatorOptions.of({"repeat": _MEASURED_REPEATS, **options})
        if meter is not None:
            check_meter(meter, asked, memory=memory, masked=interrupts_masked)
        module = Module(self.handle)
        with self._rpc.lock:
            rpc = self._ready()
            counted = counting.Counted.chosen(rpc, counters, memory=memory)
            masked = counting.masked(rpc) if interrupts_masked else ()

            def plain(of: EvaluatorOptions, names: Sequence[str] = ()) -> RemoteFunction:
                handle = counting.create_evaluator(rpc, module, name, of, names)
                return self._timed(name, handle, of, timeout_s)

            def measurer(of: EvaluatorOptions) -> Measurer:
                def evaluator(names: Sequence[str]) -> RemoteFunction:
                    return plain(of, (*names, *masked))

                unmasked = plain(of) if masked else None
                return Measurer(evaluator, name, of, parse, counted, empty_stack, overhead, unmasked, address)

            address = self.code_address(name) if address is None else address
            parse = partial(counting.measurement, rpc, module, name)
            empty_stack = partial(counting.empty_stack, rpc, module)
            overhead = partial(counting.counter_overhead, rpc, module, counted)
            if meter is None:
                return measurer(asked)
            for native in (False, True):
                counting.overhead(rpc, module, native)  # Checked before the first window.
            return MeteredMeasurer(measurer, name, asked, meter)

    def code_address(self, name: str) -> int | None:
        """The address of the C function that the packed function `name` calls; None if it is not known."""
        return self.code.get(name)

    def _timed(
        self, name: str, handle: int, options: EvaluatorOptions, timeout_s: float | None
    ) -> RemoteFunction:
        """The evaluator behind `handle`, with a time limit that allows for its options."""
        limit = options.timeout_s(self._rpc.call_timeout_s) if timeout_s is None else timeout_s
        return RemoteFunction(
            self._rpc, f"{name} (timed)", handle, timeout_s=limit, module=self, of=self._made, timed=True
        )

    @property
    def argument(self) -> Module:
        """Itself as an argument."""
        return Module(self.handle)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class SystemLibrary(RemoteModule):
    """The functions that the firmware was linked with. Never freed: some devices would lose it for good."""

    def __init__(self, rpc: RpcClient) -> None:
        super().__init__(rpc, "the system library", None)

    @property
    def handle(self) -> int:
        """The device's handle of it, requested on first use. Raises DialectError when the device has none."""
        if self._handle is None:
            self._handle = self._find()
        return self._handle

    def get_function(self, name: str, *, own: bool = True) -> RemoteFunction:
        """Its function `name`, looked up again. Raises FunctionNotFoundError."""
        with self._rpc.lock:
            rpc = self._ready()
            handle = rpc.library_function(_text(text_name(name, "function")))
            if handle:
                return RemoteFunction(rpc, name, handle, own=own)
            return super().get_function(name, own=own)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"the system library has no attribute {name!r}: its functions are items, system_lib()[{name!r}]"
        )

    def _find(self) -> int:
        getter = self._rpc.global_function(SYSTEM_LIB)
        library = self._rpc.call(getter, (), "get the system library") if getter else None
        if not isinstance(library, Module):
            raise DialectError(f"the device has no system library: {SYSTEM_LIB} gave {library!r}")
        return library.handle


def _argument(rpc: RpcClient, value: object) -> Argument:
    """`value` as an argument. Raises TypeError for an unsupported type, ValueError for a dead handle."""
    if isinstance(value, _REMOTE):
        if not value.usable_on(rpc):
            value.check(rpc)
        return value.argument
    return _converted(value)


def _text(value: str) -> str:
    """The text itself. Raises ValueError for a NUL character, where the device would end the text."""
    if "\0" in value:
        raise ValueError(f"a text ends at its NUL character: {value!r}; give bytes")
    return value


_REMOTE = (RemoteArray, RemoteFunction, RemoteModule)
_CONVERSIONS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Argument]], ...] = (
    ((bool, np.bool_, int, np.integer), int),
    ((float, np.floating), float),
    (str, _text),
    ((bytes, bytearray, memoryview), bytes),
)


def _converted(value: object) -> Argument:
    for classes, convert in _CONVERSIONS:
        if isinstance(value, classes):
            return convert(value)
    if isinstance(value, np.ndarray | Sequence):
        raise TypeError(f"{kind_of(value)} is not on the device: copy it there with device.array()")
    raise TypeError(f"{kind_of(value)} can't be sent as an argument")


def wrap(rpc: RpcClient, name: str, result: Result) -> object:
    """A function's result for the caller: handles become objects that free themselves."""
    match result:
        case Function(handle):
            return RemoteFunction(rpc, f"result of {name}", handle)
        case Module(handle):
            return RemoteModule(rpc, f"result of {name}", handle)
        case ReturnedArray(tensor, handle):
            return RemoteArray(rpc, tensor, free_handle(handle, TypeCode.NDARRAY))
        case UInt(value) | Bool(value):
            return value
    return result
