# SPDX-License-Identifier: Apache-2.0
"""A library of C functions in a running device, called with Python's values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from inspect import Parameter as SignatureParameter, Signature
from typing import Any, Final, Self
from weakref import WeakMethod, ref

import numpy as np

from minrpc.client.array import RemoteArray
from minrpc.client.conversation import Conversation, raised_in_answer
from minrpc.client.counting import Measurer, argument_texts
from minrpc.client.function import RemoteFunction, RemoteModule
from minrpc.client.metering import MeteredMeasurer
from minrpc.client.rpc import RpcClient
from minrpc.client.session import Session
from minrpc.client.time_evaluator import TimeEvaluator
from minrpc.errors import STACK_RAN_OUT, EmulatorExitedError, SessionTerminatedError
from minrpc.library.arguments import CallPlan, plan_call, require_callable
from minrpc.library.call_memory import CallMemory
from minrpc.library.code_guard import CodeGuard
from minrpc.library.fake_functions import CallingLibrary, FakeFunction, Fakes
from minrpc.library.frame import GUARD, WIDE_GUARD
from minrpc.library.kept_pointers import KeptPointers
from minrpc.library.namespaces import Types, Variables
from minrpc.library.placed import Placed
from minrpc.library.pointer_types import Callback, InMemory, require_fits
from minrpc.library.quick import quick_call
from minrpc.library.repeated import repeated_calls
from minrpc.library.scalars import Address, describe
from minrpc.library.structs import Place, load_value
from minrpc.library.thunks import COPY
from minrpc.library.toolset import ProgramFacts
from minrpc.names import did_you_mean, in_files, listed, text_name
from minrpc.program import Symbols
from minrpc.program.c_types import (
    CType,
    Declarations,
    FunctionDeclaration,
    FunctionType,
    Pointer,
    is_const,
    size_of,
    strip,
)
from minrpc.timing import MeasuredCode, Measurement

_RED_ZONE: Final = 128
"""Bytes below the stack pointer that a function on x86-64 may use; GCC's figures omit them."""


class CFunction:
    """A C function on the device. Call it with numpy arrays, arrays of the device, structs, numbers.

    prototype: its declaration in C. address: its value as a C function pointer.

    It keeps its library's module and memory, and not the library, which keeps its functions: so both are
    freed with their last reference, and no garbage collection is needed.
    """

    def __init__(
        self,
        function: FunctionDeclaration,
        packed_name: str,
        symbols: Symbols,
        facts: ProgramFacts,
        module: RemoteModule,
        memory: CallMemory,
        stack_bound: int | None,
        callback: Callback | None,
        code: CodeGuard | None,
        thunk: int | None,
    ) -> None:
        """packed_name: its thunk's name in `module`. memory: for its arguments. stack_bound: largest stack
        use, in bytes; None if unknown. callback, code: as in `CLibrary`. thunk: its
        thunk's address; None if it is not known."""
        self.function = function
        self._library: Callable[[], CLibrary | None] = lambda: None
        self.name = function.name
        self._packed_name = packed_name
        self._symbols = symbols
        self._pointer_size = facts.pointer_size
        self._module = module
        self._memory = memory
        self._stack_bound = stack_bound
        self._callback = callback
        self._code = code
        self._thunk = thunk
        self._packed: RemoteFunction | None = None
        self._by_address = quick_call(function) or (lambda *_: None)
        self._copied = False
        self._repeated = repeated_calls(function)
        self.__name__ = self.__qualname__ = function.name
        self.__doc__ = self.prototype + (
            f"\n\nCan't be called: {function.unsupported}" if function.unsupported else ""
        )
        self.__signature__ = _signature(function)

    @property
    def library(self) -> CLibrary:
        """Its library. Raises ValueError if nothing references that any more."""
        library = self._library()
        if library is None:
            raise ValueError(f"the library of {self.name} is gone: keep what `load` has returned")
        return library

    @property
    def prototype(self) -> str:
        """Its declaration in C."""
        return self.function.prototype

    @property
    def address(self) -> int:
        """Its address on the device. Raises ValueError when its library is no longer loaded."""
        self._module.check(self._module.rpc)
        return self._symbols.addresses[self.function.symbol]

    @property
    def pointee(self) -> FunctionType:
        """Its type, for parameters that are pointers to functions."""
        return self.function.type

    @property
    def size(self) -> int:
        """Bytes of its machine code."""
        return self._symbols.sizes.get(self.function.symbol, 0)

    def __call__(self, *args: object, guards: bool = True, **named: object) -> Any:  # noqa: ANN401 - a C function's result
        """Call the function.

        Arrays and structs are sent by value. Arguments that the function may write are updated in place;
        arguments given as `out()` are returned.

        guards: check that the function wrote no bytes before or after its arguments, nor in const arguments,
            nor in its library's code and constants if an emulator or a process lets this program read them.
            Over a link this takes one more message for large arguments that are only read.

        Raises TypeError and ValueError, before anything is sent, for arguments that do not fit; GuardError
        when the function wrote outside its arguments; the errors of `RemoteFunction` when it crashes or
        hangs.
        """
        if named:
            raise TypeError(
                f"{self.name}: parameters are given by position, as in C, not by name as {', '.join(named)}: "
                f"{self.prototype}"
            )
        rpc = self._module.rpc
        try:
            result = self._called(args, rpc, guards)
        except (SessionTerminatedError, EmulatorExitedError) as error:
            if self._stack_bound is not None and STACK_RAN_OUT in error.message:
                error.details += (f"{self.name} needs {self._stack_bound:,} bytes by the compiler's count",)
            raise
        except BaseException as error:
            error.__traceback__ = raised_in_answer(error) or error.__traceback__
            raise
        if guards and self._code is not None and not self._code.is_whole():
            self._code.require(self.name)
        return result

    def _called(self, args: Sequence[object], rpc: RpcClient, guards: bool) -> Any:  # noqa: ANN401
        if rpc.conversation is not None:
            return self._called_inside(args, rpc.conversation.deepest, guards)
        if self._memory.check is not None:
            self._require_alive(args, rpc)
            plan = self._plan(args, _guard(rpc) if guards else 0)
            return self._memory.run_checked(self.packed, plan, self._memory.check)
        # The arguments are most often of the last call's kind, which is tried first.
        sent = None if self._copied else self._by_address(args, rpc)
        if sent is None and guards and self._repeated is not None:
            sizes = self._repeated.sizes(args)
            if sizes is not None:
                guard = _guard(rpc)
                planned = partial(self._plan, args, guard)
                layout = self._repeated.layout(sizes, guard, planned)
                if layout is not None:
                    self._copied = True
                    return self._memory.run_again(self.packed, layout, args, planned)
        if self._copied:
            self._copied = False
            sent = self._by_address(args, rpc)
        if sent is not None:
            return self.packed.call_with(sent)
        self._require_alive(args, rpc)
        plan = self._plan(args, _guard(rpc) if guards else 0)
        return self._memory.run(self.packed, plan)

    @staticmethod
    def _require_alive(args: Sequence[object], rpc: RpcClient) -> None:
        """Raise ValueError for an array or a function of a session that has ended."""
        for argument in args:
            if isinstance(argument, RemoteArray):
                argument.check(rpc)
            elif isinstance(argument, CFunction):
                argument._module.check(rpc)

    def _called_inside(self, args: Sequence[object], waiting: Conversation, guards: bool) -> Any:  # noqa: ANN401
        """Call it on the stack of a function that waits for Python."""
        if self._thunk is None:
            raise waiting.refusal()
        self._module.check(self._module.rpc)
        plan = self._plan(args, GUARD if guards else 0)
        return self._memory.run_inside(waiting, self._thunk, plan)

    def _plan(self, args: Sequence[object], guard: int) -> CallPlan:
        return plan_call(self.function, args, self._pointer_size, guard=guard, callback=self._callback)

    @property
    def packed(self) -> RemoteFunction:
        """Its thunk: a packed function, as TVM's clients call it."""
        module = self._module
        if self._packed is None:
            self._packed = module.get_function(self._packed_name, own=False)
        if module.freed:
            module.check(module.rpc)
        return self._packed

    def with_timeout(self, seconds: float) -> CFunction:
        """The same function with its own time limit for each call, in seconds during which the device runs.

        lib.train.with_timeout(600)(data)
        """
        view = copy(self)
        view._packed = self.packed.with_timeout(seconds)
        return view

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<{self.prototype}>"


class CLibrary:
    """C functions, variables and types of a device; `CFunctions` has the functions as attributes.

    `types` has constructors of its structs and its enums, `variables` its variables.

    module: the packed functions that call them.
    """

    def __init__(
        self,
        session: Session,
        name: str,
        functions: Mapping[str, FunctionDeclaration],
        declarations: Declarations,
        symbols: Symbols,
        facts: ProgramFacts,
        module: RemoteModule,
        callback: Callback | None = None,
        code: CodeGuard | None = None,
        fakes: Mapping[str, FakeFunction] | None = None,
    ) -> None:
        """callback: makes C functions that call Python functions; None if the firmware can't ask Python.

        code: checks after each call that the library's code was not written; None if nothing can check it.
        fakes: Python functions by the C function's name.
        """
        self.session = session
        self.name = name
        self.declarations = declarations
        self.symbols = symbols
        self.facts = facts
        self.module = module
        self._fakes = fakes or {}
        self._session = session
        self._placed: list[Placed] = []
        # Nothing that a function keeps refers to its library: see `CFunction`.
        reader = WeakMethod(self._reader)
        self._kept = KeptPointers.of(
            facts.pointer_size,
            lambda address, size: called_if_alive(reader, address, size),
            declarations.variables.values(),
            symbols.addresses,
        )
        self._memory = CallMemory(session, self._kept)
        self._declared = functions
        self.callback = callback
        self.calling = CallingLibrary(
            partial(called_if_alive, WeakMethod(self._function_at)),
            callback and partial(called_if_alive, WeakMethod(callback)),
            partial(called_if_alive, WeakMethod(self._memory.note)),
        )
        for fake in self._fakes.values():
            fake.library = self.calling
        self._code = code
        self._functions: dict[str, CFunction] = {}

    def require_there(self) -> None:
        """Raise ValueError if it is no longer loaded, or its session has ended."""
        self.module.check(self.module.rpc)

    @property
    def types(self) -> Types:
        """Constructors of its structs, and its enums, by tag or typedef name."""
        return Types(self.name, self.declarations.types)

    @property
    def variables(self) -> Variables:
        """Its variables of file scope."""
        return Variables(self, self.declarations.variables)

    @property
    def fakes(self) -> Fakes:
        """The Python functions that answer its C functions."""
        return Fakes(self.name, self._fakes)

    def packed_name(self, name: str) -> str:
        """The name in `module` of the packed function that calls `name`."""
        return name

    @property
    def functions(self) -> Mapping[str, CFunction]:
        """All functions by name."""
        return {name: self[name] for name in self._declared}

    def __getitem__(self, name: str) -> CFunction:
        """The function `name`. Raises KeyError."""
        function = self._functions.get(name) if isinstance(name, str) else None
        return function or self._made(name)

    def _made(self, name: str) -> CFunction:
        """The function, at its first use."""
        if text_name(name, "function") not in self._declared:
            raise KeyError(self._missing(name))
        function = self._functions[name] = CFunction(
            self._declared[name],
            self.packed_name(name),
            self.symbols,
            self.facts,
            self.module,
            self._memory,
            self.stack_bound(name),
            self.callback,
            self._code,
            self.thunk_address(name),
        )
        function._library = ref(self)
        return function

    def _function_at(self, address: int) -> CFunction | None:
        """Its function at an address of the device."""
        addresses = self.symbols.addresses
        names = (name for name, item in self._declared.items() if addresses.get(item.symbol) == address)
        name = next(names, None)
        return None if name is None else self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def _missing(self, name: str) -> str:
        near = did_you_mean(name, self._declared)
        hint = f"{near}?" if near else f"it has {listed(sorted(self._declared), 12)}"
        if name in self.declarations.variables:
            hint = f"it is a variable: minrpc.variables(lib).{name}"
        elif name in self.declarations.types:
            hint = f"it is a type: minrpc.types(lib).{name}"
        elif name in self.declarations.statics:
            several = in_files(name, self._declared)
            hint = (
                "it is static: statics=True makes those of C files callable, loading a header makes its own"
            )
            if several:
                hint = f'several static functions fit: lib["{several[0]}"], or {listed(several[1:], 4)}'
        elif name in self.symbols.addresses:
            return f"{self.name} has no types of {name!r}, maybe an alias: call the function itself"
        return f"{self.name} has no function {name!r} with external linkage; {hint}"

    def thunk_address(self, name: str) -> int | None:
        """The address of a function's thunk; None if it is not known."""
        return None

    def thunk_frame(self, name: str) -> int:
        """Stack use of a function's thunk, in bytes; 0 if it is not known."""
        return 0

    @property
    def check_frame(self) -> int:
        """Stack use of the check of a call's arguments, in bytes; 0 if it is not known."""
        return 0

    @property
    def own_sizes(self) -> Mapping[str, int]:
        """Bytes of machine code of each function, by name."""
        return {name: function.size for name, function in self.functions.items() if function.size}

    def stack_bound(self, name: str) -> int | None:
        """Largest stack use of a function and all its callees, in bytes; None if unknown."""
        return None

    def time_evaluator(self, name: str, **options: Any) -> Callable[..., Any]:  # noqa: ANN401 - see RemoteModule
        """Times a function as `RemoteModule.time_evaluator` does.

        The evaluator takes the C function's arguments. Arrays are sent once, before the first call, and are
        not read back.
        """
        self._require(name)
        return self._timed(name, self.module.time_evaluator(self.packed_name(name), **options))

    def measure(self, name: str, **options: Any) -> Callable[..., Any]:  # noqa: ANN401 - see RemoteModule
        """Measures a function in whole cycles as `RemoteModule.measure` does, with the C function's
        arguments."""
        self._require(name)
        address = self.code_address(name)
        return self._timed(name, self.module.measure(self.packed_name(name), address=address, **options))

    def code_address(self, name: str) -> int | None:
        """The address of the function `name` on the device; None if no symbol has it."""
        return self.symbols.addresses.get(self[name].function.symbol)

    def _require(self, name: str) -> None:
        """Raise AttributeError if the library has no such function, TypeError if it can't be called."""
        if text_name(name, "function") not in self._declared:
            raise AttributeError(self._missing(name))
        require_callable(self._declared[name])

    def _timed(self, name: str, timer: TimeEvaluator | Measurer | MeteredMeasurer) -> Callable[..., Any]:
        function = self[name].function

        def timed(*args: object) -> Any:  # noqa: ANN401 - TimingResult or Measurement
            plan = plan_call(function, args, self.facts.pointer_size, guard=0)
            try:
                timing = self._memory.time(timer, plan)
                return self._described(name, timing, args) if isinstance(timing, Measurement) else timing
            except (SessionTerminatedError, EmulatorExitedError) as error:
                step = f"guards are off while {name} is timed: `minrpc call` finds writes past an array"
                error.next_step = f"{step}; {error.next_step}"
                raise

        return timed

    def _described(self, name: str, measured: Measurement, args: Sequence[object]) -> Measurement:
        """With what is known of the function, and its own stack, without its thunk's."""
        frame = self.thunk_frame(name)
        measured = measured.with_stack(lambda depth: max(0, depth - frame))
        bound = self.stack_bound(name)
        if bound is not None:
            measured = self._with_bound(measured, bound)
        return replace(
            measured, name=name, arguments=argument_texts(args), code=MeasuredCode(self[name].size)
        )

    def _with_bound(self, measured: Measurement, bound: int) -> Measurement:
        """With the compiler's bound of the function's stack.

        The check of the arguments hides a function with less stack: its figure is then at most the bound.
        """
        hidden = self.check_frame + self.facts.pointer_size
        measured = measured.with_stack(lambda depth: min(depth, bound) if depth <= hidden else depth)
        if measured.memory is None or measured.memory.stack is None:
            return measured
        below = _RED_ZONE if self.facts.machine == "EM_X86_64" else 0
        return replace(measured, memory=replace(measured.memory, bound=bound + below))

    def read(self, address: int, size: int | None = None) -> Any:  # noqa: ANN401 - a memoryview, or a value
        """Bytes at any address of the device: of a variable, of malloc's memory, of a register.

        size: in bytes. Without a size, an `Address` that has a type gives its value: a number, a numpy array,
            a struct.

        Aligned words are read by word accesses, which registers need. An invalid address crashes the device,
        as in C.
        """
        if size is None:
            pointee = _pointee_of(address)
            place = Place(self, self._address(address, size_of(pointee)), is_const(pointee))
            return load_value(pointee, self._read(address, size_of(pointee)), place, self._memory.pointer)
        if not isinstance(size, int | np.integer) or isinstance(size, bool):
            raise TypeError(f"a size is a number of bytes, not {describe(size)}")
        if size < 0:
            raise ValueError(f"a size is not negative: {size}")
        return self._read(self._address(address, size), int(size)) if size else memoryview(b"")

    def write(self, address: int, data: bytes) -> None:
        """Overwrite bytes of the device's memory; aligned words are written by word accesses."""
        try:
            content = bytes(memoryview(data))
        except TypeError:
            raise TypeError(
                f"{self.name}: write takes bytes or an array, not {describe(data)}; "
                "variables(lib).NAME = value sets a variable"
            ) from None
        if content:
            self._write(self._address(address, len(content)), content)

    def place(self, value: object) -> Placed:
        """An object of the device that stays until it is freed, or until the library's end.

        value: a struct of `types`, a numpy array, bytes, text, or a list of structs; the objects that a
            struct points to are placed with it.

        Raises TypeError and ValueError for other values, DeviceMemoryError.
        """
        placed = Placed(
            self._memory,
            value,
            self.facts.pointer_size,
            self._session.aligned,
            self.callback,
            partial(called_if_alive, WeakMethod(self._forget)),
        )
        self._placed.append(placed)
        for ctype, address in ((placed.pointee, placed.address), *placed.structs):
            self._kept.add("a placed object", ctype, address)
        return placed

    def _forget(self, placed: Placed) -> None:
        self._placed.remove(placed)
        for address in (placed.address, *(address for _, address in placed.structs)):
            self._kept.remove(address)

    def allow_kept_pointers(self) -> None:
        """Accept pointers to a call's arguments that stay in variables when the call is over."""
        self._memory.kept = None

    def _reader(self, address: int, size: int) -> Callable[[], bytes | memoryview | None]:
        """A function that reads the bytes at an address, over the link if nothing else can."""
        owner = self._session.owner
        if owner.peek(address, size) is None:
            return partial(called_if_alive, WeakMethod(self._read), address, size)
        return owner.reader(address, size)

    def _read(self, address: int, size: int) -> memoryview:
        return self._memory.peek(self._copier, address, size)

    def _write(self, address: int, data: bytes) -> None:
        self._memory.poke(self._copier, address, data)

    def _address(self, address: int, size: int) -> int:
        """The address of `size` bytes of the device. Raises TypeError and ValueError for a value that is not
        an address."""
        if isinstance(address, InMemory):
            address = address.address
        number = int(Address(address))
        if isinstance(address, Address) and address.lent is not None:
            address.lent.require(self.name, None)
        require_fits(self.name, self.facts.pointer_size, number, size)
        return number

    def _copier(self) -> RemoteFunction:
        """The function that copies bytes between any addresses of the device."""
        return self.module.get_function(COPY)

    def unload(self) -> None:
        """Free its memory for arguments on the device, and its placed objects. A second call does nothing."""
        for placed in self._placed.copy():
            placed.free()
        self._memory.free()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.unload()

    def __str__(self) -> str:
        return "\n".join([repr(self)] + [f"  {function.prototype}" for function in self.functions.values()])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {listed(list(self._declared), 12)}>"


def _guard(rpc: RpcClient) -> int:
    """Size of the guards of a call, in bytes."""
    return WIDE_GUARD if rpc.facts.direct.usable else GUARD


def called_if_alive(method: WeakMethod[Callable[..., Any]], *args: object) -> Any:  # noqa: ANN401 - the method's result
    """The result of a method; None if its object is gone."""
    bound = method()
    return None if bound is None else bound(*args)


def _pointee_of(address: int) -> CType:
    """The type of the object at an address. Raises TypeError for an address without a type."""
    pointer = strip(address.ctype) if isinstance(address, Address) else None
    if not isinstance(pointer, Pointer) or not size_of(pointer.target):
        raise TypeError(
            f"the type of the object at {address!r} is not known: give a size, read(address, size)"
        )
    return pointer.target


def _signature(function: FunctionDeclaration) -> Signature:
    names: dict[str, None] = {}
    for index, parameter in enumerate(function.type.parameters):
        name = (
            parameter.name if parameter.name.isidentifier() and parameter.name not in names else f"p{index}"
        )
        names[name] = None
    kind = SignatureParameter.POSITIONAL_ONLY
    try:
        return Signature([SignatureParameter(name, kind) for name in names])
    except ValueError:  # A parameter's name is a keyword of Python.
        return Signature([SignatureParameter(f"p{index}", kind) for index in range(len(names))])
