# SPDX-License-Identifier: Apache-2.0
"""Converts Python's arguments to arguments of a C function, and the function's results back to Python.

Nothing here talks to a device: a `CallPlan` lists the bytes to copy and the arguments of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from minrpc.library.frame import GUARD, Block, CallFrame
from minrpc.library.placing import Out, Placer, Sent
from minrpc.library.pointer_types import Callback
from minrpc.library.scalars import Address, is_float, is_number, number_from, number_of_word
from minrpc.library.structs import StructValue
from minrpc.program.c_types import (
    FunctionDeclaration,
    Pointer,
    RecordType,
    Void,
    declaration,
    strip,
)
from minrpc.wire.values import Argument, Handle


@dataclass
class CallPlan:
    """A call that is ready to be sent.

    frame: the arrays and structs to send, laid out. sent: the thunk's arguments; a block stands for its
        address.
    finish: converts the thunk's result to the caller's, after the frame has been copied back.
    """

    function: FunctionDeclaration
    frame: CallFrame
    sent: list[Sent]
    finish: Callable[[object], object]

    def arguments(self, base: int) -> list[Argument]:
        """The thunk's arguments, with the frame at address `base`."""
        return [
            Handle(base + argument.offset) if isinstance(argument, Block) else argument
            for argument in self.sent
        ]


def require_callable(function: FunctionDeclaration) -> None:
    """Raise TypeError, with the reason, for a function that can't be called."""
    if function.unsupported:
        raise TypeError(f"{function.name} can't be called: {function.unsupported}")


def plan_call(
    function: FunctionDeclaration,
    given: Sequence[object],
    pointer_size: int,
    *,
    guard: int = GUARD,
    callback: Callback | None = None,
) -> CallPlan:
    """The call of `function` with Python's arguments. guard: as for `CallFrame`. callback: as for `Placer`.

    Raises TypeError and ValueError, which name the function, the parameter, the expected type and the value.
    """
    require_callable(function)
    parameters = function.type.parameters
    if len(given) != len(parameters):
        raise TypeError(
            f"{function.name}: expected {len(parameters)} argument{'s' * (len(parameters) != 1)}, "
            f"got {len(given)}: {function.prototype}"
        )
    frame = CallFrame(pointer_size, guard=guard)
    placer = Placer(frame, function.name, callback)
    sent = [
        placer.argument(f"{function.name}: {parameter.name or f'argument {index}'}", parameter, value)
        for index, (parameter, value) in enumerate(zip(parameters, given, strict=True))
    ]
    result, returned = _result(placer, function, pointer_size)
    if returned is not None:
        sent.append(returned)
    frame.lay_out(function.name)
    outs = [value for value in given if isinstance(value, Out)]

    def finish(value: object) -> object:
        got = result(value)
        if not outs:
            return got
        arrays = tuple(out.array for out in outs)
        if isinstance(strip(function.type.result), Void):
            return arrays[0] if len(arrays) == 1 else arrays
        return (got, *arrays)

    return CallPlan(function, frame, sent, finish)


def _result(
    placer: Placer, function: FunctionDeclaration, pointer_size: int
) -> tuple[Callable[[object], object], Block | None]:
    """The converter of the thunk's result, and the block of a result that goes through memory."""
    ctype = function.type.result
    stripped = strip(ctype)
    if isinstance(stripped, Void):
        return lambda _: None, None
    if isinstance(stripped, Pointer):
        mask = (1 << 8 * pointer_size) - 1
        return lambda value: Address(value & mask, ctype) if value else None, None
    if is_float(ctype):
        return lambda value: value, None
    if is_number(ctype):
        return lambda value: number_of_word(ctype, value), None
    if isinstance(stripped, RecordType):
        made = StructValue(stripped, typename=declaration(ctype))
        block = placer.struct("the result", made, ctype, written=True)
        block.content = None
        return lambda _: made, block
    box: list[object] = []
    block = placer.value_out("the result", ctype, lambda data: box.append(number_from(ctype, bytes(data))))
    return lambda _: box[0], block
