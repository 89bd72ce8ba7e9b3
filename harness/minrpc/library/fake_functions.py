# SPDX-License-Identifier: Apache-2.0
"""Python functions that C calls: fakes of functions that the firmware lacks, and callbacks."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from minrpc.client.array import RemoteArray
from minrpc.client.conversation import Conversation
from minrpc.library.pointer_types import InMemory, array_address, check_address, check_pointee, require_fits
from minrpc.library.scalars import Address, int_value, is_float, is_number, to_float, to_int, wrong
from minrpc.library.structs import load_value, store_value
from minrpc.library.stubs import in_memory
from minrpc.names import listed, near_or_all
from minrpc.program.c_types import (
    CType,
    FunctionDeclaration,
    Pointer,
    RecordType,
    Scalar,
    Void,
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
    return Fake(answer, parameters)


class PointerArgument(Address):
    """A pointer that C passed to a Python function. Its memory can be reached while that function runs:
    `p[0]`, `p[:4]`, `p[1] = 7`, `p[:2] = [1, 2]`, `p.text()`."""

    _conversation: Conversation

    @property
    def _element(self) -> CType:
        pointer = strip(self.ctype)
        assert isinstance(pointer, Pointer)
        target = pointer.target
        return Scalar("unsigned char", 1, "uint", False) if isinstance(strip(target), Void) else target

    def __getitem__(self, index: int | slice) -> Any:  # noqa: ANN401 - number, struct, numpy array, list
        """An element, or the elements of a slice with an end. Raises ValueError when the call is over."""
        at, count = _span(index)
        data = self._conversation.read(*self._place(at, count))
        if isinstance(index, slice):
            return _array(self._element, data)
        return load_value(self._element, data)

    def __setitem__(self, index: int | slice, value: Any) -> None:  # noqa: ANN401 - as for __getitem__
        """Overwrite an element or several. Raises TypeError and ValueError for values that do not fit."""
        where = f"{self._conversation.name}: {self!r}"
        if is_const(self._element):
            raise TypeError(f"{where} is only read: it points to const")
        at, count = _span(index)
        values = list(value) if isinstance(index, slice) else [value]
        if len(values) != count:
            raise ValueError(f"{where}: {count} elements are written, {len(values)} are given")
        data = b"".join(store_value(self._element, where, item) for item in values)
        self._conversation.write(self._place(at, count)[0], data)

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


def _span(index: int | slice) -> tuple[int, int]:
    """The first element, and the number of elements."""
    if not isinstance(index, slice):
        return index, 1
    if index.stop is None or index.step not in (None, 1):
        raise ValueError("a pointer has no length: give the end, pointer[:n]")
    start = index.start or 0
    return start, max(0, index.stop - start)


def _text(conversation: Conversation, address: int) -> bytes:
    found = b""
    while len(found) < _TEXT_MOST:
        at = address + len(found)
        piece = conversation.read(at, _TEXT_PIECE - at % _TEXT_PIECE)
        end = piece.find(0)
        if end >= 0:
            return found + piece[:end]
        found += piece
    raise ValueError(f"{conversation.name}: no zero byte ends the text at 0x{address:x}")


def _array(element: CType, data: bytes) -> Any:  # noqa: ANN401 - numpy array, or a list of structs
    if isinstance(strip(element), RecordType):
        size = size_of(element)
        return [load_value(element, data[at : at + size]) for at in range(0, len(data), size)]
    return np.frombuffer(bytearray(data), numpy_dtype(element))


def _bytes_of(element: CType, where: str, value: Any) -> bytes:  # noqa: ANN401 - a value from `_array`
    if isinstance(value, np.ndarray):
        return value.tobytes()
    items = value if isinstance(value, list) else [value]
    return b"".join(store_value(element, where, item) for item in items)


class FakeFunction:
    """A Python function that C calls. Its answer can be replaced between calls.

    calls: the arguments of each call since the last `reset`, as Python got them.
    """

    def __init__(self, declared: FunctionDeclaration, answer: FakeAnswer, parameters: str = "") -> None:
        """Raises TypeError for an answer that can't be called, ValueError for wrong `parameters`."""
        self.name = declared.name
        self.prototype = declared.prototype
        self.calls: list[tuple[object, ...]] = []
        self._type = declared.type
        self._lengths = _lengths(declared, parameters)
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
        self._answer = answer

    def reset(self) -> None:
        """Forget the calls."""
        self.calls.clear()

    def respond(self, conversation: Conversation, words: memoryview) -> int:
        """Call the function; see `FunctionOnHost`."""
        numbers = [number for (number,) in _WORD.iter_unpack(words)]
        arguments = _Arguments(conversation, self._type.parameters, numbers, self._lengths)
        self.calls.append(tuple(arguments.given))
        if self._answer == "zero":
            if in_memory(self._type.result):
                conversation.write(numbers[-1], bytes(size_of(self._type.result)))
            return 0
        value = self._answer(*arguments.given)
        arguments.write_back()
        return self._result(conversation, value, numbers)

    def _result(self, conversation: Conversation, value: object, numbers: Sequence[int]) -> int:
        ctype = self._type.result
        where = f"the result of {self.name}"
        stripped = strip(ctype)
        if isinstance(stripped, Void):
            return 0
        if isinstance(stripped, Pointer):
            return _address(where, ctype, stripped, value)
        if in_memory(ctype):
            conversation.write(numbers[-1], store_value(ctype, where, value))
            return 0
        if is_float(ctype):
            return int.from_bytes(_FLOAT.pack(to_float(where, ctype, value)), "little")
        return to_int(where, ctype, value) & ((1 << 64) - 1)

    def __repr__(self) -> str:
        return f"<fake {self.prototype}, {len(self.calls)} calls>"


class _Arguments:
    """The arguments of one call. given: as Python gets them."""

    def __init__(
        self,
        conversation: Conversation,
        parameters: Sequence[Any],
        numbers: Sequence[int],
        lengths: Sequence[int | str | None],
    ) -> None:
        self._conversation = conversation
        self._numbers = numbers
        self._written: list[tuple[int, CType, Any, bytes]] = []
        self.given = [
            self._value(parameter.type, number, length)
            for parameter, number, length in zip(parameters, numbers, lengths, strict=False)
        ]

    def _value(self, ctype: CType, number: int, length: int | str | None) -> object:
        stripped = strip(ctype)
        if isinstance(stripped, Pointer):
            return self._pointer(ctype, stripped, number & ((1 << 8 * stripped.size) - 1), length)
        if in_memory(ctype):
            return load_value(ctype, self._conversation.read(number, size_of(ctype)))
        if is_float(ctype):
            return _FLOAT.unpack(_WORD.pack(number))[0]
        if isinstance(stripped, Scalar) and stripped.kind == "uint":
            number &= (1 << 8 * stripped.size) - 1
        return int_value(ctype, number)

    def _pointer(self, ctype: CType, pointer: Pointer, address: int, length: int | str | None) -> object:
        if not address:
            return None
        made = PointerArgument(address, ctype)
        made._conversation = self._conversation
        if length == "":
            return made.text()
        record = strip(pointer.target)
        if length is None:
            if not isinstance(record, RecordType) or not record.complete or not record.size:
                return made
            return self._kept(address, pointer.target, made[0])
        count = length if isinstance(length, int) else self._numbers[int(length)]
        if count < 0:
            raise ValueError(f"{self._conversation.name}: C gave {count} as the length of an array")
        value = made[:count]
        if not is_const(pointer.target):
            return self._kept(address, made._element, value)
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
            return value.tobytes() if value.itemsize == 1 and value.dtype.kind in "iu" else value
        return value

    def _kept(self, address: int, element: CType, value: Any) -> Any:  # noqa: ANN401 - a value from `_array`
        """The value, which goes back when it has changed, unless it is const."""
        if not is_const(element):
            before = _bytes_of(element, self._conversation.name, value)
            self._written.append((address, element, value, before))
        return value

    def write_back(self) -> None:
        for address, element, value, before in self._written:
            after = _bytes_of(element, self._conversation.name, value)
            if after != before:
                self._conversation.write(address, after)


def _address(where: str, ctype: CType, pointer: Pointer, value: object) -> int:
    if value is None:
        return 0
    if isinstance(value, RemoteArray):
        return array_address(where, ctype, pointer, value)
    if isinstance(value, InMemory):
        check_pointee(where, ctype, pointer, value)
        return value.address
    if isinstance(value, Address):
        check_address(where, ctype, pointer, value)
        return int(value)
    raise wrong(
        where, ctype, value, "give None, an Address, a variable or function of a library, or an array"
    )


def _lengths(declared: FunctionDeclaration, text: str) -> list[int | str | None]:
    """The length of each parameter's array: a number, the index of another parameter as text, "" for text up
    to a zero byte; None for no array."""
    count = len(declared.type.parameters)
    if not text:
        return [None] * count
    found = [_PARAMETER.fullmatch(word.strip()) for word in text.split(",")]
    if len(found) != count or None in found:
        raise ValueError(
            f"{text!r} does not describe the {count} parameters of {declared.prototype}: "
            '"fd, data[n], n" has three, with an array'
        )
    names = [match["name"] for match in found if match]
    return [_length(declared, names, match) for match in found if match]


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
        self._library = library
        self._functions = functions

    def __getitem__(self, name: str) -> FakeFunction:
        """The fake of the C function `name`. Raises AttributeError."""
        found = self._functions.get(name)
        if found is None:
            near = listed(near_or_all(name, self._functions), 8)
            raise AttributeError(f"{self._library} has no fake {name!r}; it has {near or 'none'}")
        return found

    def __getattr__(self, name: str) -> FakeFunction:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __dir__(self) -> list[str]:
        return list(self._functions)

    def __repr__(self) -> str:
        return f"<fakes of {self._library}: {', '.join(self._functions)}>"
