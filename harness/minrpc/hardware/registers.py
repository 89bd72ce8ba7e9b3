# SPDX-License-Identifier: Apache-2.0
"""A peripheral in Python: registers that answer, registers that remember, and the list of accesses."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, SupportsIndex

from minrpc.errors import RegisterError
from minrpc.hardware.accesses import Access, Expected, Field, decoded
from minrpc.hardware.effects import Effects
from minrpc.names import did_you_mean, listed, text_name
from minrpc.program.c_types import ArrayType, CType, RecordType, flat_fields, size_of, strip

_SHOWN: Final = 3
_PLAIN: Final = Effects()
_OWN: Final = frozenset({"effects", "memory", "name", "offset", "size"})
"""A register's own attributes: a field of such a name is an item only."""


def _number(value: SupportsIndex, bits: int, name: str) -> int:
    """The value as a number of Python's. Raises RegisterError for one that a register does not have."""
    number = operator.index(value) if hasattr(value, "__index__") else -1
    if not 0 <= number < 1 << bits:
        raise RegisterError(
            f"{name} a number of {bits} bits, not {value!r}",
            next_step=f"give a number from 0 to 0x{(1 << bits) - 1:x}",
        )
    return number


class HandlerOnDevice(Protocol):
    """Protocol: a function in C that takes no arguments."""

    @property
    def name(self) -> str:
        """Its name in C."""
        ...

    @property
    def address(self) -> int:
        """Its address on the device."""
        ...


class InterruptSource(Protocol):
    """Protocol: raises an interrupt behind an access."""

    def interrupt(self, handler: HandlerOnDevice) -> None:
        """handler: the interrupt's function."""
        ...


class Register:
    """A register. Without a function it is memory, with the effects that its description has.

    offset, size: in bytes. memory: of the peripheral, which registers at one address share. Its fields, if
    they are known, are attributes, and items for odd names: `usart.SR.TXE` is a number, and can be set.
    Fields with the names of its own attributes are items only.
    """

    __slots__ = ("_read", "_write", "_written", "effects", "memory", "name", "offset", "size")

    def __init__(
        self, name: str, offset: int, size: int, memory: bytearray, effects: Effects = _PLAIN
    ) -> None:
        self.name = name
        self.offset = offset
        self.size = size
        self.memory = memory
        self._read: Callable[[], int] | None = None
        self._write: Callable[[int], object] | None = None
        self._written = False
        self.effects = effects  # The last: by its fields, other names may not be set.

    @property
    def value(self) -> int:
        """The content, which C reads and writes."""
        return int.from_bytes(self.memory[self.offset : self.offset + self.size], "little")

    @value.setter
    def value(self, value: SupportsIndex) -> None:
        self._keep(_number(value, 8 * self.size, f"{self.name} has"))

    def _keep(self, number: int) -> None:
        self.memory[self.offset : self.offset + self.size] = number.to_bytes(self.size, "little")

    @property
    def reads(self) -> Callable[[], int] | None:
        """The function that answers reads. It is set to a function, or to the values of the coming reads; a
        read after the last value is an error."""
        return self._read

    @reads.setter
    def reads(self, answer: Callable[[], int] | Iterable[int] | None) -> None:
        if answer is None or callable(answer):
            self._read = answer
        else:
            self._read = self._sequence(iter(answer))

    def on_write(self, function: Callable[[int], object] | None) -> None:
        """Call `function` with each value that C writes."""
        if function is not None and not callable(function):
            raise TypeError(f"{self.name}: on_write takes a function, not {function!r}")
        self._write = function

    def read(self, value: int | None = None) -> Expected:
        """An expected read of this value, for `Registers.expect`."""
        return Expected("read", self.name, value, self.decoded(value or 0))

    def write(self, value: int | None = None) -> Expected:
        """An expected write of this value, for `Registers.expect`."""
        return Expected("write", self.name, value, self.decoded(value or 0))

    def decoded(self, value: int) -> str:
        """The fields of a value that aren't 0, as text."""
        return decoded(self.effects.fields.values(), value)

    def refusal(self, kind: str) -> str:
        """The reason why C may not access it so; "" if it may. kind: "read" or "write"."""
        if not (self.effects.readable if kind == "read" else self.effects.writable):
            return f"is {'write' if kind == 'read' else 'read'}-only"
        return "can be written once" if kind == "write" and self.effects.once and self._written else ""

    def answers(self, kind: str) -> bool:
        """True if a function answers accesses of this kind."""
        return (self._read if kind == "read" else self._write) is not None

    def load(self, shift: int, size: int) -> int:
        """C reads `size` bytes from bit `shift` on."""
        if self._read is not None:
            self._keep(_number(self._read(), 8 * self.size, f"a read of {self.name} gives"))
        mask = ((1 << 8 * size) - 1) << shift
        before = self.value
        self._keep((before & ~mask) | self.effects.after_read(before) & mask)
        return (before & ~self.effects.hidden & mask) >> shift

    def store(self, shift: int, size: int, value: int) -> None:
        """C writes `size` bytes from bit `shift` on."""
        self._written = True
        mask = ((1 << 8 * size) - 1) << shift
        before = self.value
        self._keep((before & ~mask) | self.effects.written(before, value << shift) & mask)
        if self._write is not None:
            self._write(value << shift)

    def _sequence(self, values: Iterator[int]) -> Callable[[], int]:
        def following() -> int:
            try:
                return next(values)
            except StopIteration:
                raise RegisterError(
                    f"{self.name} is read again: its list of values has ended",
                    next_step="give more values, itertools.repeat(...), or a function",
                ) from None

        return following

    def _field(self, name: str) -> Field:
        declared = self.effects.fields.get(text_name(name, "field"))
        if declared is None:
            near = did_you_mean(name, self.effects.fields)
            hint = f"{near}?" if near else f"it has {listed(self.effects.fields, 12)}"
            raise AttributeError(f"{self.name} has no field {name!r}; {hint}")
        return declared

    def __getitem__(self, name: str) -> int:
        """The value of the field `name`. Raises AttributeError."""
        return self._field(name).of(self.value)

    def __setitem__(self, name: str, value: SupportsIndex) -> None:
        field = self._field(name)
        number = _number(value, field.width, f"{self.name}.{name} has")
        self.value = self.value & ~field.mask | number << field.shift

    def __getattr__(self, name: str) -> int:
        if name.startswith("_") or name in _OWN:
            raise AttributeError(name)
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:  # noqa: ANN401 - any attribute
        if name in _OWN and name in getattr(self, "effects", _PLAIN).fields:
            raise AttributeError(f"{self.name}.{name} is the register's own; its field is [{name!r}]")
        if hasattr(Register, name):
            super().__setattr__(name, value)
        else:
            self[name] = value

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.effects.fields]

    def __repr__(self) -> str:
        return f"<register {self.name} at +0x{self.offset:x}: 0x{self.value:x}>"


class Registers:
    """The registers of a peripheral: each is an attribute, and an item for an odd name.

    accesses: all accesses of C, in order. content: of all registers, as bytes. trap: the device's trap that
        asks for the accesses.
    """

    trap: InterruptSource | None = None

    def __init__(self, name: str, base: int, registers: Mapping[str, Register], size: int) -> None:
        self.name = name
        self.base = base
        self.size = size
        self.accesses: list[Access] = []
        self._places: dict[int, list[Register]] = {}
        for item in registers.values():
            for at in range(item.size):
                self._places.setdefault(item.offset + at, []).append(item)
        self.content = next((item.memory for item in registers.values()), bytearray(size))
        self._registers = dict(registers)

    def __getitem__(self, name: str) -> Register:
        """The register `name`. Raises AttributeError."""
        register = self._registers.get(text_name(name, "register"))
        if register is None:
            near = did_you_mean(name, self._registers)
            hint = f"{near}?" if near else f"it has {listed(list(self._registers), 12)}"
            raise AttributeError(f"{self.name} has no register {name!r}; {hint}")
        return register

    def __getattr__(self, name: str) -> Register:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:  # noqa: ANN401 - any attribute
        others = vars(self).get("_registers", {})
        if name in others or (others and name not in vars(self) and not hasattr(type(self), name)):
            raise AttributeError(f"{self.name}.{self[name].name} is a register; its content is {name}.value")
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._registers)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._registers]

    def on_write(self, name: str, function: Callable[[int], object] | None) -> None:
        """Call `function` with each value that C writes to the register `name`."""
        self[name].on_write(function)

    def on_read(self, name: str, function: Callable[[], int] | None) -> None:
        """Answer each read of the register `name` by `function()`."""
        self[name].reads = function

    def use(self, model: object) -> None:
        """Take the methods `read_NAME(self)` and `write_NAME(self, value)` of a model of the peripheral.

        Raises AttributeError for a method that names no register.
        """
        for method in dir(model):
            kind, _, name = method.partition("_")
            if kind == "read":
                self[name].reads = getattr(model, method)
            elif kind == "write":
                self[name].on_write(getattr(model, method))

    def interrupt(self, handler: HandlerOnDevice) -> None:
        """Raise an interrupt behind the access that is being answered; `handler` is its function in C.

        Raises RegisterError outside a function that answers an access. A handler that has left interrupts off
        (PRIMASK, BASEPRI) is a RegisterError at the end of the block.
        """
        if self.trap is None:
            raise RegisterError(f"{self.name} is not open: no code of C can be interrupted")
        self.trap.interrupt(handler)

    def expect(self, expected: Sequence[Expected]) -> None:
        """Raise AssertionError unless C made exactly these accesses, in this order.

        usart.expect([usart.SR.read(0x80), usart.DR.write(65)])

        The error shows the first difference, with its line of C.
        """
        for at, (want, got) in enumerate(zip(expected, self.accesses, strict=False)):
            if not want.fits(got):
                raise AssertionError(self._difference(at, f"expected {want}, C did {got}"))
        count = len(self.accesses)
        if count < len(expected):
            raise AssertionError(self._difference(count, f"expected {expected[count]}, C did nothing more"))
        if count > len(expected):
            extra = self.accesses[len(expected)]
            raise AssertionError(self._difference(len(expected), f"expected no more access, C did {extra}"))

    def overlaps(self, address: int, size: int) -> bool:
        """True if some of these bytes are its own."""
        return address < self.base + self.size and self.base < address + size

    def _difference(self, at: int, text: str) -> str:
        before = [f"\n  before: {access}" for access in self.accesses[max(0, at - _SHOWN) : at]]
        return f"{self.name}: access {at + 1}: {text}{''.join(before)}"

    def load(self, address: int, size: int, line: str) -> int:
        """C reads; several registers at once are several accesses.

        Raises RegisterError for an address without a register.
        """
        register, shift = self._at("read", address, size, line)
        if size > register.size:
            low = self.load(address, register.size, line)
            return low | self.load(address + register.size, size - register.size, line) << 8 * register.size
        value = register.load(shift, size)
        fields = register.decoded(value << shift)
        self.accesses.append(Access("read", register.name, value, address, size, line, fields))
        return value

    def store(self, address: int, size: int, value: int, line: str) -> None:
        """C writes. Raises RegisterError for an address without a register."""
        register, shift = self._at("write", address, size, line)
        if size > register.size:
            self.store(address, register.size, value & ((1 << 8 * register.size) - 1), line)
            rest = size - register.size
            self.store(address + register.size, rest, value >> 8 * register.size, line)
            return
        fields = register.decoded(value << shift)
        self.accesses.append(Access("write", register.name, value, address, size, line, fields))
        register.store(shift, size, value)

    def _at(self, kind: str, address: int, size: int, line: str) -> tuple[Register, int]:
        offset = address - self.base
        inside = [
            item
            for item in self._places.get(offset, ())
            if offset == item.offset or offset + size <= item.offset + item.size
        ]
        allowed = [item for item in inside if not item.refusal(kind)]
        if not allowed:
            text = f"C {kind}s {size} bytes at 0x{address:x}, {line or 'in an unknown line'}: {self.name}"
            if inside:
                raise RegisterError(f"{text}.{inside[0].name} {inside[0].refusal(kind)}")
            raise RegisterError(
                f"{text} has no register there",
                next_step=f"its registers: {listed(list(self._registers), 12)}",
            )
        # Registers at one address: the one with a function, then the one of this width.
        nearest = min(
            allowed, key=lambda at: (not at.answers(kind), at.size != size, at.offset != offset, -at.size)
        )
        return nearest, 8 * (offset - nearest.offset)

    def __repr__(self) -> str:
        return f"<registers {self.name} at 0x{self.base:x}: {len(self.accesses)} accesses>"


def registers_of(ctype: CType) -> dict[str, Register]:
    """The registers of a struct by name: members of members as "CH[0].CR". Reserved members are left out.

    A struct of bit-fields is a register with these fields. A number beside such structs in a union has the
    fields of all. Bit-fields beside other members are a register "bits_0x4", by the offset in their struct.
    """
    memory = bytearray(size_of(ctype))
    parts = [part for part in _parts(ctype, "", 0) if not is_reserved(part.name)]
    fields: dict[tuple[int, int], dict[str, Field]] = {}
    for part in parts:
        fields.setdefault((part.offset, part.size), {}).update(part.fields)
    return {
        name: Register(name, offset, size, memory, Effects(own or fields[offset, size]))
        for name, offset, size, own in parts
    }


def is_reserved(name: str) -> bool:
    """True for the name of a gap between registers or fields."""
    return "reserved" in name.lower()


class _Part(NamedTuple):
    """A place of a register. offset, size: in bytes."""

    name: str
    offset: int
    size: int
    fields: dict[str, Field]


def _parts(ctype: CType, name: str, offset: int) -> Iterator[_Part]:
    match strip(ctype):
        case RecordType() as record:
            units: dict[tuple[int, int], dict[str, Field]] = {}
            members = list(flat_fields(record))
            for item in members:
                inner = f"{name}.{item.name}" if name else item.name
                if item.bits is None:
                    yield from _parts(item.type, inner, offset + item.offset)
                elif item.name and not is_reserved(item.name):
                    size = size_of(item.type)
                    at, shift = divmod(item.first_bit, 8 * size)
                    units.setdefault((at * size, size), {})[item.name] = Field(item.name, shift, item.bits)
            whole = name and len(units) == 1 and all(item.bits is not None for item in members)
            for (at, size), fields in units.items():
                own = f"bits_0x{at:x}"
                yield _Part(name if whole else f"{name}.{own}" if name else own, offset + at, size, fields)
        case ArrayType(element, int(count)):
            for at in range(count):
                yield from _parts(element, f"{name}[{at}]", offset + at * size_of(element))
        case _:
            yield _Part(name, offset, size_of(ctype), {})
