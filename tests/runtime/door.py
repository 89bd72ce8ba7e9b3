# SPDX-License-Identifier: Apache-2.0
"""A program in C under sanitizers, used from Python.

Its functions are called by name, its variables are read and written with their C types, and functions of the
test stand behind its pointers to functions."""

from __future__ import annotations

import struct
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from minrpc.program.c_types import (
    ArrayType,
    CType,
    Declarations,
    Enumeration,
    RecordType,
    Scalar,
    flat_fields,
    size_of,
    strip,
)
from minrpc.program.debug_info import declarations_of, object_units
from minrpc.program.elf import Elf

_COMMAND = struct.Struct("<QQQ")
_WORDS = 8
_CALLBACKS = 8
_BACK = struct.Struct("<7Q")

Callback = Callable[..., int | bool | None]


class Place:
    """A variable: its members are attributes, its elements items; numbers are read and written.

    address: of its first byte. It stands for its address in calls.
    """

    address: int

    def __init__(self, door: Door, address: int, ctype: CType) -> None:
        self.__dict__.update(address=address, _door=door, _type=strip(ctype))

    def __index__(self) -> int:
        return self.address

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a number or a Place
        return self._door.get(*self._member(name))

    def __setattr__(self, name: str, value: float | Place) -> None:
        self._door.set(*self._member(name), value)

    def __getitem__(self, index: int) -> Any:  # noqa: ANN401 - a number or a Place
        return self._door.get(*self._element(index))

    def __setitem__(self, index: int, value: float | Place) -> None:
        self._door.set(*self._element(index), value)

    def content(self) -> bytes:
        """All of its bytes."""
        content: bytes = self._door.read(self.address, size_of(self._type))
        return content

    def _member(self, name: str) -> tuple[int, CType]:
        if not isinstance(self._type, RecordType):
            raise AttributeError(name)
        for field in flat_fields(self._type):
            if field.name == name:
                return self.address + field.offset, field.type
        raise AttributeError(f"{self._type} has no member {name}")

    def _element(self, index: int) -> tuple[int, CType]:
        assert isinstance(self._type, ArrayType)
        return self.address + index * size_of(self._type.element), self._type.element


class Door:
    """A running program, started again after it has died."""

    def __init__(self, program: Path, bits: int) -> None:
        self.bits = bits
        self._program = program
        self._types, self._symbols = _read(program)
        self._callbacks: list[Callback] = []
        self._start()

    def _start(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `stop`
        self._process = subprocess.Popen(
            [self._program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
        )

    def ready(self) -> None:
        """A test begins: the program runs, and has no callbacks."""
        self._callbacks = []
        if self._process.poll() is not None:
            self.stop()
            self._start()

    def stop(self) -> None:
        """Ends the program."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def address(self, name: str) -> int:
        """The address of a function or a variable."""
        return self._symbols[name]

    def constant(self, name: str) -> int:
        """The value of a constant of an enum."""
        for ctype in self._types.types.values():
            if isinstance(enum := strip(ctype), Enumeration) and name in (constants := dict(enum.constants)):
                return constants[name]
        raise KeyError(name)

    def at(self, address: int | str, ctype: str) -> Place:
        """A variable of that type, a struct's tag or a typedef, at an address or by its name."""
        place = self.address(address) if isinstance(address, str) else address
        return Place(self, place, self._types.types[ctype])

    def new(self, ctype: str) -> Place:
        """A variable of that type in memory of its own: zeros."""
        return self.at(self.memory(size_of(self._types.types[ctype])), ctype)

    def memory(self, data: int | bytes) -> int:
        """Memory of exactly this size in bytes, or with this content."""
        size = data if isinstance(data, int) else len(data)
        address = self.call("door_memory", size, result="P")
        if isinstance(data, bytes):
            self.write(address, data)
        return int(address)

    def aligned(self, size: int) -> int:
        """Memory of at least this size, at a multiple of 64 bytes."""
        address = self.memory(size + 64)
        return address + -address % 64

    def callback(self, function: Callback) -> int:
        """The address of a C function that calls `function` with six machine words."""
        assert len(self._callbacks) < _CALLBACKS, "door.c has no more of them"
        self._callbacks.append(function)
        word = self.bits // 8
        entry = self.address("door_backs") + word * (len(self._callbacks) - 1)
        return int.from_bytes(self.read(entry, word), "little")

    def call(self, function: str | int, *words: int | Place, result: str = "i") -> Any:  # noqa: ANN401 - by `result`
        """The result of a function.

        words: its arguments, a machine word each. result: its type as a format of `struct`."""
        address = self.address(function) if isinstance(function, str) else function
        given = [word.__index__() & (1 << 64) - 1 for word in words]
        self._send(b"c", address, 0, struct.pack(f"<{_WORDS}Q", *given, *[0] * (_WORDS - len(given))))
        layout = {"P": "Q" if self.bits == 64 else "I"}.get(result, result)
        return struct.unpack_from(f"<{layout}", self._reply(8))[0]

    def wide(self, number: int) -> list[int]:
        """The machine words of an argument of 64 bits."""
        return [number] if self.bits == 64 else [number & 0xFFFFFFFF, number >> 32]

    def read(self, address: int, size: int) -> bytes:
        """Bytes of the program's memory."""
        self._send(b"r", address, size)
        return self._reply(size)

    def text(self, address: int) -> str:
        """The text at an address, up to its NUL."""
        end = address
        while self.read(end, 1) != b"\0":
            end += 1
        return self.read(address, end - address).decode()

    def write(self, address: int, data: bytes) -> None:
        """Changes the program's memory."""
        self._send(b"w", address, len(data), data)

    def get(self, address: int, ctype: CType) -> Any:  # noqa: ANN401 - a number or a Place
        """The number at an address, or the record or array there."""
        plain = strip(ctype)
        if isinstance(plain, RecordType | ArrayType):
            return Place(self, address, plain)
        layout = _layout(plain)
        return struct.unpack(layout, self.read(address, size_of(plain)))[0]

    def set(self, address: int, ctype: CType, value: float | Place) -> None:
        """Writes a number; a record's place is copied."""
        plain = strip(ctype)
        if isinstance(plain, RecordType):
            assert isinstance(value, Place)
            self.write(address, value.content())
            return
        self.write(address, struct.pack(_layout(plain), int(value) if isinstance(value, Place) else value))

    def _send(self, kind: bytes, address: int, size: int, data: bytes = b"") -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(_COMMAND.pack(kind[0], address, size) + data)
        except BrokenPipeError:
            self._report()

    def _reply(self, size: int) -> bytes:
        """The reply of `size` bytes, after the callbacks in between."""
        while self._take(1) == b"b":
            number, *words = _BACK.unpack(self._take(_BACK.size))
            try:
                result = self._callbacks[number](*words)
            except BaseException:
                self._process.kill()  # It would wait for the result.
                raise
            self._send(b"t", int(result or 0) & (1 << 64) - 1, 0)
        return self._take(size)

    def _take(self, size: int) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.flush()
        except BrokenPipeError:
            self._report()
        data = self._process.stdout.read(size)
        if len(data) != size:
            self._report()
        return data

    def _report(self) -> None:
        status = self._process.wait()
        self._errors.seek(0)
        report = self._errors.read().decode(errors="replace")
        raise AssertionError(f"the program has died, {status}:\n{report}")


@cache
def _read(program: Path) -> tuple[Declarations, dict[str, int]]:
    """The types that door.c knows, and the addresses of all symbols."""
    elf = Elf(program.read_bytes(), program.name)
    unit = next(
        unit
        for unit in object_units(elf)
        if unit.get_top_DIE().attributes["DW_AT_name"].value.endswith(b"support/door.c")
    )
    return declarations_of(unit), {symbol.name: symbol.value for symbol in elf.symbols if symbol.placed}


def _layout(ctype: CType) -> str:
    """A number's format of `struct`."""
    letter = {1: "b", 2: "h", 4: "i", 8: "q"}[size_of(ctype)]
    match ctype:
        case Scalar(_, size, "float"):
            return "<f" if size == 4 else "<d"
        case Scalar(_, _, "bool"):
            return "<?"
        case Scalar(_, _, _, True) | Enumeration(_, _, True):
            return f"<{letter}"
    return f"<{letter.upper()}"
