# SPDX-License-Identifier: Apache-2.0
"""Python functions that C calls: fakes of functions that the firmware lacks, and callbacks."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import index as whole
from typing import Any, Final, Literal, NamedTuple, NoReturn, Self, TypeAlias

import numpy as np

from minrpc.client.conversation import ALL, Conversation
from minrpc.errors import DialectError
from minrpc.library.further_arguments import Further, further, takes_format
from minrpc.library.pointer_types import Callback, require_fits
from minrpc.library.scalars import Address, is_float, is_number, number_of_word, to_float, to_int, wrong
from minrpc.library.structs import (
    Place,
    ReadValues,
    Storage,
    load_from,
    load_value,
    object_address,
    replace_bytes,
    set_addresses,
    store_value,
)
from minrpc.library.stubs import in_memory
from minrpc.names import listed, near_or_all, text_name
from minrpc.program.c_types import (
    VOID,
    ArrayType,
    CType,
    FunctionDeclaration,
    FunctionType,
    Pointer,
    RecordType,
    Scalar,
    Void,
    flat_fields,
    is_const,
    numpy_dtype,
    size_of,
    strip,
)

_WORD: Final = struct.Struct("<q")
_FLOAT: Final = struct.Struct("<d")
# Text is read in pieces that do not cross a multiple of this, and so never beyond the end of memory.
_TEXT_PIECE: Final = 32
_TEXT_MOST: Final = 1 << 16
_NO_LENGTH: Final = "a pointer has no length: give the end, pointer[:n]"
_ON_DEVICE: Final = "give None, an Address, a variable or function of a library, or an array"
_PARAMETER: Final = re.compile(r"(?P<name>[A-Za-z_]\w*)(?P<array>\[(?P<length>\w*)\])?")

FakeAnswer: TypeAlias = Callable[..., object] | Literal["zero"]


@dataclass(frozen=True)
class Fake:
    """A Python function, and the names and lengths of the C function's parameters: see `fake`."""

    answer: FakeAnswer
    parameters: str


def fake(answer: FakeAnswer, parameters: str) -> Fake:
    """A fake that gets arrays for pointers.

    parameters: the C function's parameters by name, in their order. "data[n]" is an array with as many
        elements as the parameter n says, "regs[4]" an array of 4, "text[]" a string that ends with a zero
        byte.

    A const array of bytes is given as `bytes`, any other array as a numpy array, which is written back if C
    may write there, and an array of structs as a list of them.

    fakes={"hal_write": minrpc.fake(recorder, "fd, data[n], n")}
    """
    if not isinstance(parameters, str):
        raise TypeError(f"the names of the parameters are a text, not {parameters!r}")
    return Fake(answer, parameters)


class PointerArgument(Address):
    """A pointer that C passed to a Python function. Its memory can be reached while that function runs:
    `p[0]`, `p[:4]`, `p[1] = 7`, `p[:2] = [1, 2]`, `p.text()`."""

    _pointers: _Pointers
    _NEXT = "it is a pointer, pointer[0] is the value there"

    @property
    def _conversation(self) -> Conversation:
        return self._pointers.conversation

    @property
    def _element(self) -> CType:
        pointer = strip(self.ctype)
        assert isinstance(pointer, Pointer)
        target = pointer.target
        return Scalar("unsigned char", 1, "uint", False) if isinstance(strip(target), Void) else target

    def __getitem__(self, index: int | slice) -> Any:  # noqa: ANN401 - number, struct, numpy array, list
        """An element, or the elements of a slice with an end. Raises ValueError when the call is over."""
        at, count = _span(index)
        address, size = self._place(at, count)
        data = self._conversation.read(address, size)
        place = Place(self._conversation, address, is_const(self._element), self._pointers.callback)
        if isinstance(index, slice):
            values = _array(Storage(data, place, self._pointers), ArrayType(self._element, count), 0)
            return (
                _Slice.of(values, partial(self.__setitem__, index))
                if count and isinstance(values, np.ndarray)
                else values
            )
        return load_value(self._element, data, place, self._pointers)

    def __setitem__(self, index: int | slice, value: Any) -> None:  # noqa: ANN401 - as for __getitem__
        """Overwrite an element or several. Raises TypeError and ValueError for values that do not fit."""
        where = f"{self._conversation.name}: {self!r}"
        if is_const(self._element):
            raise TypeError(f"{where} is only read: it points to const")
        at, count = _span(index)
        values = list(value) if isinstance(index, slice) else [value]
        if len(values) != count:
            raise ValueError(f"{where}: {count} elements are written, {len(values)} are given")
        data = b"".join(store_value(self._element, where, item, self._pointers.callback) for item in values)
        self._conversation.write(self._place(at, count)[0], data)

    def __iter__(self) -> NoReturn:
        """Raises TypeError."""
        raise TypeError(_NO_LENGTH)

    def text(self) -> str:
        """The text up to a zero byte. Raises ValueError if there is none in 65,536 bytes."""
        return _text(self._conversation, self).decode("utf-8", "surrogateescape")

    def _place(self, index: int, count: int) -> tuple[int, int]:
        """Address and size of `count` elements from the index on, in bytes."""
        size = size_of(self._element)
        if not size:
            raise TypeError(f"{self._conversation.name}: {self!r} points to a type of unknown size")
        address = self + index * size
        require_fits(self._conversation.name, size_of(self.ctype) or 0, address, count * size)
        return address, count * size


class _Slice(ReadValues):
    """Elements behind a pointer: setting them sets them on the device, too. A part of them is read-only."""

    _set: Callable[[np.ndarray[Any, Any]], None] | None = None

    @classmethod
    def of(cls, values: np.ndarray[Any, Any], write: Callable[[np.ndarray[Any, Any]], None]) -> Self:
        """write: sets all elements on the device."""
        made = values.view(cls)
        made.flags.writeable = False
        made._set = write
        return made

    def __setitem__(self, key: Any, value: Any) -> None:  # noqa: ANN401 - as numpy has it
        """Raises as setting the slice of the pointer does."""
        if self._set is None:
            self._require_writeable()
        made = self.view(np.ndarray).copy()
        made[key] = value
        self._replace(made)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """The function's result, which is also set on the device in place."""
        out = kwargs.get("out", ())
        if self._set is None or len(out) != 1 or out[0] is not self:
            return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)
        made = self.view(np.ndarray).copy()
        super().__array_ufunc__(ufunc, method, *inputs, **{**kwargs, "out": (made,)})
        self._replace(made)
        return self

    def _replace(self, made: np.ndarray[Any, Any]) -> None:
        assert self._set is not None
        self._set(made)
        assert isinstance(self.base, np.ndarray)
        self.base[:] = made


class StructPointer(PointerArgument):
    """A pointer to a struct: `p.length` is `p[0].length`, also when it is set.

    A name that a pointer has itself, such as `text`, is the pointer's.
    """

    @property
    def _members(self) -> set[str]:
        record = strip(self._element)
        assert isinstance(record, RecordType)
        return {member.name for member in flat_fields(record)}

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - a member's value
        if name.startswith("__") or name in _OWN or name not in self._members:
            return super().__getattribute__(name)
        return getattr(self[0], name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self[0], name, value)


_OWN: Final = frozenset(
    {
        name
        for kind in (StructPointer, PointerArgument, Address)
        for name in (*vars(kind), *kind.__annotations__)
    }
)


def _span(index: int | slice) -> tuple[int, int]:
    """The first element, and the number of elements."""
    if not isinstance(index, slice):
        return whole(index), 1
    if index.stop is None or index.step not in (None, 1):
        raise ValueError(_NO_LENGTH)
    start = whole(index.start or 0)
    return start, max(0, whole(index.stop) - start)


def _text(conversation: Conversation, address: int, limit: int | None = None) -> bytes:
    """The text up to a zero byte, or of `limit` bytes. Raises ValueError for a text without an end."""
    text = b""
    while len(text) < _TEXT_MOST:
        if limit is not None and len(text) >= limit:
            return text[:limit]
        at = address + len(text)
        piece = conversation.read(at, _TEXT_PIECE - at % _TEXT_PIECE)
        end = piece.find(0)
        if end >= 0:
            return (text + piece[:end])[:limit]
        text += piece
    raise ValueError(f"{conversation.name}: no zero byte ends the text at 0x{address:x}")


class CallingLibrary(NamedTuple):
    """The library whose code calls functions in Python.

    function_at: the function of the library at an address, which can be called; None if unknown.
    callback: makes functions in C for functions in Python; None if the firmware can't ask Python.
    note: notes a pointer that may lie in the arguments of a call of the library.
    """

    function_at: Callable[[int], object | None]
    callback: Callback | None
    note: Callable[[Address], None]


class _Pointers:
    """Makes values of pointers that C passed: their memory can be reached during the conversation."""

    def __init__(self, conversation: Conversation, library: CallingLibrary) -> None:
        self.conversation = conversation
        self.callback = library.callback
        self._library = library

    def __call__(self, address: int, ctype: CType) -> object:
        """A pointer, or the function that it points to."""
        pointer = strip(ctype)
        if isinstance(pointer, Pointer) and isinstance(strip(pointer.target), FunctionType):
            function = self._library.function_at(address)
            if function is not None:
                return function
        return self.to_memory(address, ctype)

    def to_memory(self, address: int, ctype: CType) -> PointerArgument:
        """A pointer to an object."""
        pointer = strip(ctype)
        target = strip(pointer.target) if isinstance(pointer, Pointer) else None
        of_struct = isinstance(target, RecordType) and target.complete
        made = (StructPointer if of_struct else PointerArgument)(address, ctype)
        made.__dict__["_pointers"] = self
        self._library.note(made)
        return made


def _array(storage: Storage, array: ArrayType, at: int) -> Any:  # noqa: ANN401 - numpy array, or a list of structs
    """The elements of an array at an offset of the storage, which share its bytes."""
    if isinstance(strip(array.element), RecordType):
        return load_from(storage, array, at)
    return np.frombuffer(storage.data, numpy_dtype(array.element), array.count or 0, at)


class FakeFunction:
    """A Python function that C calls. Its answer can be replaced between calls.

    calls: the arguments of each call since the last `reset`, as Python got them.
    library: the library that calls it; set by the library.
    """

    def __init__(self, declared: FunctionDeclaration, answer: FakeAnswer, parameters: str = "") -> None:
        """Raises TypeError for an answer that can't be called, ValueError for wrong `parameters`."""
        self.name = declared.name
        self.prototype = declared.prototype
        self.calls: list[tuple[object, ...]] = []
        self._count = 0
        self.type = declared.type
        self._noreturn = declared.noreturn
        self._reads_further = declared.type.variadic and takes_format(declared)
        self._refused = declared.type.variadic and bool(declared.type.parameters) and not parameters
        self._lengths = _lengths(declared, parameters)
        self.library = _NO_LIBRARY
        self.answer = answer

    @property
    def answer(self) -> FakeAnswer:
        """The function in Python, or "zero"; can be set."""
        return self._answer

    @answer.setter
    def answer(self, answer: FakeAnswer) -> None:
        if answer != "zero" and not callable(answer):
            raise TypeError(
                f'the fake of {self.name} is a function or "zero", not {answer!r}: lambda *_: {answer!r}'
            )
        if answer != "zero" and self._refused and not self._reads_further:
            raise TypeError(
                f'{self.prototype}: only C knows the types of its further arguments: give "zero", or '
                "minrpc.fake(function, NAMES) with the names of the others, which it then gets"
            )
        self._answer = answer

    def reset(self) -> None:
        """Forget the calls."""
        self.calls.clear()
        self._count = 0

    def respond(self, conversation: Conversation, words: memoryview) -> int:
        """Call the function; see `FunctionOnHost`."""
        numbers = [number for (number,) in _WORD.iter_unpack(words)]
        due = len(self.type.parameters) + in_memory(self.type.result)
        if len(numbers) <= due:
            raise DialectError(f"{self.name} was called with {len(numbers) - 1} of {due} arguments")
        del numbers[due:]
        pointers = _Pointers(conversation, self.library)
        arguments = _Arguments(pointers, self.type.parameters, numbers, self._lengths)
        if self._reads_further and self._answer != "zero":
            arguments.read_further()
        self.calls.append(tuple(arguments.given))
        self._count += 1
        if self._answer == "zero":
            self._require_return()
            if in_memory(self.type.result):
                conversation.write(numbers[-1], bytes(size_of(self.type.result)))
            return 0
        try:
            value = self._answer(*arguments.given)
        except StopIteration:
            raise AssertionError(
                f"{self.name} is called again, call {self._count}: its results have ended"
            ) from None
        self._require_return()
        arguments.send()
        conversation.held = None
        return self._result(conversation, value, numbers)

    def _require_return(self) -> None:
        """Raise AssertionError if C has no code behind the call."""
        if self._noreturn:
            raise AssertionError(
                f"{self.name} is declared as _Noreturn, so C has no code behind its call: "
                "its answer must raise an exception, which ends the call from Python"
            )

    def asked_at(self, words: memoryview) -> int:
        """See `FunctionOnHost`. The return address is behind the arguments."""
        (behind,) = _WORD.unpack(words[-_WORD.size :])
        return int(behind) - 1

    def _result(self, conversation: Conversation, value: object, numbers: Sequence[int]) -> int:
        ctype = self.type.result
        where = f"the result of {self.name}"
        stripped = strip(ctype)
        if isinstance(stripped, Void):
            return 0
        if isinstance(stripped, Pointer):
            address = object_address(where, ctype, stripped, value, self.library.callback)
            if address is None:
                raise wrong(where, ctype, value, _ON_DEVICE)
            return address
        if in_memory(ctype):
            conversation.write(numbers[-1], store_value(ctype, where, value, self.library.callback))
            return 0
        if is_float(ctype):
            return int.from_bytes(_FLOAT.pack(to_float(where, ctype, value)), "little")
        return to_int(where, ctype, value) & ((1 << 64) - 1)

    def __repr__(self) -> str:
        return f"<fake {self.prototype}, {self._count} calls>"


class CallbackFunction(FakeFunction):
    """A Python function that was given to C: its calls are not kept."""

    def respond(self, conversation: Conversation, words: memoryview) -> int:
        """Call the function; see `FunctionOnHost`."""
        try:
            return super().respond(conversation, words)
        finally:
            self.calls.clear()


def _nothing(_address: int) -> None:
    """None: no library is known."""


_NO_LIBRARY: Final = CallingLibrary(_nothing, None, _nothing)


class _Span(NamedTuple):
    """A struct or an array behind a pointer, which Python gets as a value."""

    address: int
    type: CType


class _Arguments:
    """The arguments of one call. given: as Python gets them."""

    def __init__(
        self,
        pointers: _Pointers,
        parameters: Sequence[Any],
        numbers: Sequence[int],
        lengths: Sequence[int | str | None],
    ) -> None:
        self._pointers = pointers
        self._conversation = pointers.conversation
        self._numbers = numbers
        self._types = [parameter.type for parameter in parameters]
        self.given = [
            self._value(parameter.type, number, length)
            for parameter, number, length in zip(parameters, numbers, lengths, strict=False)
        ]
        self._spans = [value for value in self.given if isinstance(value, _Span)]
        # Copies of the device's memory: values that have bytes in common share one.
        self._copies: list[tuple[int, bytearray, Storage]] = []
        for begin, end in _joined((span.address, span.address + size_of(span.type)) for span in self._spans):
            data = self._conversation.read(begin, end - begin)
            storage = Storage(data, None, pointers)
            storage.origin = Place(self._conversation, begin, False)
            self._copies.append((begin, bytearray(data), storage))
        self._conversation.held = self if self._copies else None
        self.given = [self._copied(value) if isinstance(value, _Span) else value for value in self.given]

    def _value(self, ctype: CType, number: int, length: int | str | None) -> object:
        stripped = strip(ctype)
        if isinstance(stripped, Pointer):
            return self._pointer(ctype, stripped, number & ((1 << 8 * stripped.size) - 1), length)
        if in_memory(ctype):
            data = self._conversation.read(number, size_of(ctype))
            return load_value(ctype, data, pointed=self._pointers)
        if is_float(ctype):
            return _FLOAT.unpack(_WORD.pack(number))[0]
        return number_of_word(ctype, number)

    def _pointer(self, ctype: CType, pointer: Pointer, address: int, length: int | str | None) -> object:
        """The argument, or the span of memory that it stands for."""
        if not address:
            return None
        made = self._pointers(address, ctype)
        if not isinstance(made, PointerArgument):
            return made
        if length == "":
            return made.text()
        record = strip(pointer.target)
        if length is None:
            is_struct = isinstance(record, RecordType) and record.complete and record.size
            return _Span(address, pointer.target) if is_struct else made
        count = length if isinstance(length, int) else self._numbers[int(length)]
        if count < 0:
            raise ValueError(f"{self._conversation.name}: C gave {count} as the length of an array")
        made._place(0, count)
        return _Span(address, ArrayType(made._element, count))

    def _copied(self, span: _Span) -> Any:  # noqa: ANN401 - a struct, bytes, a numpy array, a list of structs
        begin, _, storage = max(copy for copy in self._copies if copy[0] <= span.address)
        if not isinstance(span.type, ArrayType):
            return load_from(storage, span.type, span.address - begin)
        value = _array(storage, span.type, span.address - begin)
        if is_const(span.type) and isinstance(value, np.ndarray):
            value.flags.writeable = False
            return value.tobytes() if value.itemsize == 1 and value.dtype.kind in "iu" else value
        return value

    def send(self, address: int = 0, size: int = ALL, /) -> None:
        """Write the elements of arrays and the bytes of structs that Python changed; see `HeldCopies`."""
        name, callback = self._conversation.name, self._pointers.callback
        for begin, data, storage in self._copies:
            if not (begin < address + size and address < begin + len(data)):
                continue
            written, constant = np.zeros((2, len(data) + 2), np.int8)  # With an edge on each side.
            for place, ctype in self._spans:
                at, length = place - begin, size_of(ctype)
                if not 0 <= at < len(data):
                    continue
                into = constant if is_const(ctype) else written
                unit = 1
                if into is written:
                    set_addresses(storage, ctype, at, name, callback)
                    if isinstance(ctype, ArrayType) and not isinstance(strip(ctype.element), RecordType):
                        unit = size_of(ctype.element)
                before, after = (np.frombuffer(each, np.uint8, length, at) for each in (data, storage.data))
                changed = (before != after).reshape(-1, unit).any(axis=1)
                into[1 + at : 1 + at + length] |= np.repeat(changed, unit)
            if (constant > written).any():
                raise TypeError(
                    f"{name}: Python changed a struct that C passed as const: C would not see that"
                )
            edges = np.flatnonzero(np.diff(written)).tolist()
            for first, end in zip(edges[::2], edges[1::2], strict=True):
                self._conversation.write(begin + first, bytes(storage.data[first:end]))

    def changed(self, address: int, data: bytes) -> None:
        """See `HeldCopies`."""
        for begin, before, storage in self._copies:
            first, end = max(begin, address), min(begin + len(before), address + len(data))
            if first < end:
                part = data[first - address : end - address]
                before[first - begin : end - begin] = part
                replace_bytes(storage, first - begin, part)

    def take_again(self) -> None:
        """See `HeldCopies`."""
        for begin, before, _ in self._copies:
            self.changed(begin, self._conversation.read(begin, len(before)))

    def read_further(self) -> None:
        """Add the arguments that a format, the last named parameter, reads."""
        form = self.given[-1]
        text = form.text() if isinstance(form, PointerArgument) else form
        if not isinstance(text, str):
            return
        pointer = strip(self._types[-1])
        for item in further(text, size_of(pointer)):
            self.given.append(self._further(item, pointer))

    def _further(self, item: Further, pointer: CType) -> object:
        word = self._conversation.next_argument(item.passed)
        if item.passed in "fF":
            return _FLOAT.unpack(word)[0]
        if item.passed != "p":
            return int.from_bytes(word[: item.size], "little", signed=item.signed)
        address = int.from_bytes(word[: size_of(pointer)], "little")
        if not address:
            return None
        if not item.text:
            return self._pointers.to_memory(address, Pointer(VOID, size_of(pointer)))
        limit = self.given[-1] if item.limit == -1 else item.limit
        most = limit if isinstance(limit, int) and limit >= 0 else None
        return _text(self._conversation, address, most).decode("utf-8", "surrogateescape")


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans, begin and end, sorted; those that touch or overlap as one."""
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            begin, before = joined.pop()
            end = max(before, end)
        joined.append((begin, end))
    return joined


def _lengths(declared: FunctionDeclaration, text: str) -> list[int | str | None]:
    """The length of each parameter's array: a number, the index of another parameter as text, "" for text up
    to a zero byte; None for no array."""
    count = len(declared.type.parameters)
    if not text:
        return [None] * count
    matches = [_PARAMETER.fullmatch(word.strip()) for word in text.split(",")]
    if len(matches) != count or None in matches:
        raise ValueError(
            f"{text!r} does not describe the {count} parameters of {declared.prototype}: "
            '"fd, data[n], n" has three, with an array'
        )
    names = [match["name"] for match in matches if match]
    return [_length(declared, names, match) for match in matches if match]


def _length(declared: FunctionDeclaration, names: Sequence[str], match: re.Match[str]) -> int | str | None:
    at = names.index(match["name"])
    length = match["length"]
    if not match["array"]:
        return None
    if not isinstance(strip(declared.type.parameters[at].type), Pointer):
        raise ValueError(f"{match[0]}: this parameter of {declared.prototype} is no pointer")
    if length == "" or length.isdecimal():
        return int(length) if length else ""
    if length not in names or not is_number(declared.type.parameters[names.index(length)].type):
        raise ValueError(f"{match[0]}: {length} is neither a number nor a number parameter of {names}")
    return str(names.index(length))


class Fakes:
    """The fakes of a library, each an attribute: `fakes(lib).hal_write.calls`."""

    def __init__(self, library: str, functions: Mapping[str, FakeFunction]) -> None:
        vars(self).update(_minrpc_library=library, _minrpc_functions=functions)

    _minrpc_library: str
    _minrpc_functions: Mapping[str, FakeFunction]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name!r} can't be set: fakes(lib).{name}.answer = ... sets its function")

    def __getitem__(self, name: str) -> FakeFunction:
        """The fake of the C function `name`. Raises AttributeError."""
        function = self._minrpc_functions.get(text_name(name, "fake"))
        if function is None:
            near = listed(near_or_all(name, self._minrpc_functions), 8)
            raise AttributeError(f"{self._minrpc_library} has no fake {name!r}; it has {near or 'none'}")
        return function

    def __getattr__(self, name: str) -> FakeFunction:
        if name.startswith("__") and name not in self._minrpc_functions:
            raise AttributeError(name)
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._minrpc_functions)

    def __len__(self) -> int:
        return len(self._minrpc_functions)

    def __dir__(self) -> list[str]:
        return list(self._minrpc_functions)

    def __repr__(self) -> str:
        return f"<fakes of {self._minrpc_library}: {', '.join(self._minrpc_functions)}>"
