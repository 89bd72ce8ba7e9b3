# SPDX-License-Identifier: Apache-2.0
"""Structs and unions with the C layout as Python values, and the values of variables.

Errors name the place by `where`, such as "point.x", the expected type, and the given value.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from reprlib import recursive_repr
from typing import Any, NamedTuple, NoReturn, Protocol, TypeAlias, TypeGuard, cast

import numpy as np

from minrpc.client.conversation import Conversation
from minrpc.library.pointer_types import Callback, check_address, device_address
from minrpc.library.scalars import (
    Address,
    Shown,
    describe,
    int_value,
    number_bytes,
    number_from,
    to_int,
    wrong,
)
from minrpc.names import listed, near_or_all
from minrpc.program.c_types import (
    ArrayType,
    CType,
    Field,
    FunctionType,
    Pointer,
    RecordType,
    Scalar,
    Void,
    declaration,
    flat_fields,
    is_const,
    numpy_dtype,
    same_type,
    size_of,
    strip,
    value_range,
)


class Within(NamedTuple):
    """The target of a pointer into an array or a struct: byte `offset` of `owner`."""

    owner: object
    offset: int


class DeviceMemory(Protocol):
    """Protocol: memory of the device, of a library or of a function that waits for Python."""

    name: str

    def read(self, address: int, size: int, /) -> bytes | memoryview:
        """Bytes of the device's memory."""

    def write(self, address: int, data: bytes, /) -> None:
        """Overwrite bytes of the device's memory."""


class Place(NamedTuple):
    """The origin of bytes that were read from the device. is_const: True if C may not write there. callback:
    makes functions in C for functions in Python that are assigned to pointers there."""

    memory: DeviceMemory
    address: int
    is_const: bool
    callback: Callback | None = None


class Storage:
    """Bytes of a struct, and its pointers' targets on the host, by the pointer's offset.

    given: the pointers' types, of which a union has several at an offset.
    came_back: pointers that the device has set. Their targets may have another type than the member's,
        such as a larger struct whose first member has that type.
    place: for a value that was read from the device: members that are set are written there, too.
    origin: for a value that C passed to a function in Python: where it lies, as long as that function runs.
    pointed: makes the value of a pointer from its address and type.
    assigned: number of structs that were assigned to parts of it. replaced: the last such number of a part.
    """

    __slots__ = (
        "assigned", "came_back", "data", "given", "origin", "place", "pointed", "references", "replaced",
    )  # fmt: skip

    def __init__(
        self,
        content: int | bytes | memoryview,
        place: Place | None = None,
        pointed: Callable[[int, CType], object] = Address,
    ) -> None:
        """content: the bytes, or their number if they are zero."""
        self.data = bytearray(content)
        self.references: dict[int, object] = {}
        self.given: dict[int, Pointer] = {}
        self.came_back: set[int] = set()
        self.place = place
        self.origin = place
        self.pointed = pointed
        self.assigned = 0
        self.replaced: dict[tuple[int, int], int] = {}


class ReadValues(np.ndarray[Any, np.dtype[Any]]):
    """Elements of an array as they were read from the device: they can't be set there one by one."""

    def __setitem__(self, key: Any, value: Any) -> None:  # noqa: ANN401 - as numpy has it
        self._require_writeable()
        super().__setitem__(key, value)

    def fill(self, value: Any) -> None:  # noqa: ANN401 - as numpy has it
        self._require_writeable()  # numpy 1.24 does not ask.
        super().fill(value)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """The function's result for numpy's own arrays."""
        if "out" in kwargs:
            for written in kwargs["out"]:
                if isinstance(written, ReadValues):
                    written._require_writeable()
            kwargs["out"] = tuple(map(_plain, kwargs["out"]))
        return getattr(ufunc, method)(*map(_plain, inputs), **kwargs)

    def __repr__(self) -> str:
        return repr(_plain(self))

    def _require_writeable(self) -> None:
        if not self.flags.writeable:
            raise ValueError(
                "an array that was read from the device, or whose union holds a pointer, is read-only: "
                "change a copy, and set the whole array (x = owner.name.copy(); x[2] = 9; owner.name = x)"
            )


def _plain(value: object) -> object:
    return value.view(np.ndarray) if isinstance(value, ReadValues) else value


class Elements(list[Any]):
    """Structs or pointers of an array in C. Setting one sets it there; their number is fixed."""

    __slots__ = ("_set",)

    def __init__(
        self, values: Iterable[Any], set_some: Callable[[Mapping[int, object]], Iterable[Any]]
    ) -> None:
        """set_some: sets elements by their indices, and gives their new values."""
        super().__init__(values)
        self._set = set_some

    def __setitem__(self, key: Any, value: Any) -> None:  # noqa: ANN401 - an index or a slice
        places = range(len(self))[key]
        if isinstance(places, int):
            places, value = range(places, places + 1), [value]
        values = list(value)
        if len(values) != len(places):
            raise ValueError(f"expected {len(places)} elements, got {len(values)}")
        for place, one in zip(places, self._set(dict(zip(places, values, strict=True))), strict=True):
            super().__setitem__(place, one)

    def __reduce__(self) -> tuple[type[list[Any]], tuple[list[Any]]]:
        """A copy is a list."""
        return list, (list(self),)

    def _fixed(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(f"an array of C has {len(self)} elements: set them, or the whole array")

    append = extend = insert = pop = remove = clear = sort = reverse = _fixed
    __delitem__ = __iadd__ = __imul__ = _fixed


class StructValue(Shown):
    """A struct or union with the C layout: members are attributes.

    Numbers and enums are values; arrays of numbers are numpy arrays that write through; structs inside are
    structs. A pointer is None, an `Address`, or the object that was assigned to it (a numpy or device array,
    a struct, a function, bytes): a call sends the object, and reads it back.

    A struct that was read from the device shows the members as they were then. Setting a member also writes
    it on the device; its arrays are read-only, and are set as a whole.
    """

    __slots__ = ("_minrpc_inside", "_minrpc_since")

    _minrpc_inside: _Inside
    _minrpc_since: int

    def __init__(
        self, record: RecordType, storage: Storage | None = None, offset: int = 0, typename: str = ""
    ) -> None:
        inside = _Inside(record, storage or Storage(record.size), offset, typename or record.shown)
        object.__setattr__(self, "_minrpc_inside", inside)
        object.__setattr__(self, "_minrpc_since", inside.storage.assigned)

    def __copy__(self) -> StructValue:
        """Copies the members; pointers keep the same targets."""
        return _copied(self, lambda reference: reference, {})

    def __deepcopy__(self, memo: dict[int, Any]) -> StructValue:
        """Copies the members and the pointers' targets."""
        known = memo.get(id(self))
        return known or _copied(self, lambda reference: copy.deepcopy(reference, memo), memo)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a C member's value
        if name == "_minrpc_inside":
            raise AttributeError(name)
        storage, offset = storage_of(self)
        return _load(storage, _member(self, name), offset)

    def __setattr__(self, name: str, value: object) -> None:
        member, where = _member(self, name), f"{self._minrpc_inside.typename}.{name}"
        if isinstance(array := strip(member.type), ArrayType) and array.count is None:
            _set_count(self, where, array, member, value)
            member = _member(self, name)
        storage, offset = storage_of(self)
        _assign(storage, offset, [(member, where, value)])

    def __dir__(self) -> Iterable[str]:
        return [field.name for field in flat_fields(record_of(self))]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StructValue):
            return NotImplemented
        return _are_equal(self, other, set())

    __hash__ = None  # type: ignore[assignment]

    @recursive_repr()
    def __repr__(self) -> str:
        record, storage, offset, typename = self._minrpc_inside
        fields = [field for field in flat_fields(record) if field.name]
        unknown = fields[-1] if has_unknown_tail(self) else None
        shown = (
            f"{field.name}={'…' if field is unknown else _shown(storage, field, offset)}" for field in fields
        )
        return f"{typename}({', '.join(shown)})"


_At: TypeAlias = tuple[Storage, int]


def _are_alike(ctype: CType, one: _At, two: _At, seen: set[tuple[int, int]]) -> bool:
    """True if both values have the same members; bytes between members have no meaning (C17, 6.2.6.1p6).

    seen: pairs of pointers' targets that are being compared: structs may point to each other.
    """

    def both(ctype: CType, offset: int) -> bool:
        return _are_alike(ctype, (one[0], one[1] + offset), (two[0], two[1] + offset), seen)

    stripped = strip(ctype)
    if isinstance(stripped, RecordType) and stripped.kind == "struct":
        return all(
            both(field.type, field.offset)
            if field.bits is None
            else _bits(one[0], field, one[1]) == _bits(two[0], field, two[1])
            for field in stripped.fields
        )
    if isinstance(stripped, ArrayType) and isinstance(
        strip(stripped.element), RecordType | Pointer | ArrayType
    ):
        each = size_of(stripped.element)
        return all(both(stripped.element, index * each) for index in range(stripped.count or 0))
    if isinstance(stripped, Pointer):
        missing = object()
        first, second = (storage.references.get(at, missing) for storage, at in (one, two))
        if first is not missing or second is not missing:
            return _are_equal(first, second, seen)
    first_bytes, second_bytes = (storage.data[at : at + size_of(stripped)] for storage, at in (one, two))
    return first_bytes == second_bytes


def _are_equal(one: object, two: object, seen: set[tuple[int, int]]) -> bool:
    """True if two structs, or two pointers' targets on the host, are one object or hold the same values."""
    if one is two or (id(one), id(two)) in seen:
        return True
    seen.add((id(one), id(two)))
    match one, two:
        case StructValue(), StructValue():
            record = record_of(one)
            alike = is_of(two, record) and record_of(two).size == record.size
            return alike and _are_alike(record, storage_of(one), storage_of(two), seen)
        case np.ndarray(), np.ndarray():
            return one.dtype == two.dtype and np.array_equal(one, two)
        case Within(), Within():
            return one.offset == two.offset and _are_equal(one.owner, two.owner, seen)
        case list() | tuple(), list() | tuple():
            return len(one) == len(two) and all(_are_equal(a, b, seen) for a, b in zip(one, two, strict=True))
    return type(one) is type(two) and bool(one == two)


class _Inside(NamedTuple):
    """A struct's type, and the storage of its bytes with their offset in it. No member has such a name."""

    record: RecordType
    storage: Storage
    offset: int
    typename: str


def _member(value: StructValue, name: str) -> Field:
    record, _, _, typename = value._minrpc_inside
    for field in flat_fields(record):
        if field.name == name:
            return field
    if name.startswith("__") and name.endswith("__"):  # Python asks for these.
        raise AttributeError(name)
    near = near_or_all(name, [field.name for field in flat_fields(record)])
    raise AttributeError(f"{typename} has no member {name!r}; it has {listed(near, 8)}")


def _set_count(value: StructValue, where: str, array: ArrayType, member: Field, given: object) -> None:
    """Give a struct room for the elements of its flexible array; a text has a final NUL."""
    record, storage, offset, typename = value._minrpc_inside
    if has_unknown_tail(value):
        raise ValueError(f"{where}: {_UNKNOWN}")
    if offset or len(storage.data) != record.size or not record.is_flexible:
        raise ValueError(f"{where}: a struct within another has no room for a flexible array")
    if not isinstance(given, np.ndarray | list | tuple | str | bytes):
        raise wrong(where, member.type, given)
    count = len(given.encode()) + 1 if isinstance(given, str) else len(given) + isinstance(given, bytes)
    whole = record.with_tail(count)
    try:
        storage.data += bytes(whole.size - record.size)
    except BufferError:
        raise ValueError(f"{where}: an array of this struct is in use; give all elements at first") from None
    object.__setattr__(value, "_minrpc_inside", _Inside(whole, storage, offset, typename))


_UNKNOWN = "the number of elements of a flexible array is not known: read or write them by their address"


def _copied(
    value: StructValue, reference_of: Callable[[object], object], memo: dict[int, Any]
) -> StructValue:
    """A copy with storage of its own. reference_of: gives the copy's target of a pointer. memo: gets it."""
    record, storage, begin, typename = value._minrpc_inside
    if has_unknown_tail(value):
        raise ValueError(f"{typename}: {_UNKNOWN}")
    made = memo[id(value)] = StructValue(record, Storage(bytes_of(value)), 0, typename)
    own = storage_of(made)[0]
    end = begin + len(own.data)
    for at, reference in storage.references.items():
        if begin <= at < end:
            own.references[at - begin] = reference_of(reference)
            own.given[at - begin] = storage.given[at]
    own.came_back |= {at - begin for at in storage.came_back if begin <= at < end}
    return made


def record_of(value: StructValue) -> RecordType:
    """Its type."""
    return value._minrpc_inside.record


def is_of(value: object, ctype: CType) -> TypeGuard[StructValue]:
    """True for a struct of this type."""
    return isinstance(value, StructValue) and (record_of(value) is ctype or _same(record_of(value), ctype))


_same = lru_cache(maxsize=1024)(same_type)


def bytes_of(value: StructValue) -> bytes:
    """Its bytes, with pointers' last values and the elements of a flexible array at the end."""
    record, storage, offset, _ = value._minrpc_inside
    return bytes(storage.data[offset : offset + record.size])


def has_unknown_tail(value: StructValue) -> bool:
    """True for a struct of the device whose flexible array has an unknown number of elements."""
    record, storage, _, _ = value._minrpc_inside
    return record.is_flexible and (storage.place is not None or storage.pointed is not Address)


def storage_of(value: StructValue) -> tuple[Storage, int]:
    """The storage of its bytes, and their offset in it."""
    return value._minrpc_inside.storage, value._minrpc_inside.offset


def passed_address(value: StructValue) -> int | None:
    """The address of a struct to which C has passed a pointer, while the function that got it runs."""
    storage, begin = storage_of(value)
    if storage.origin is None or not isinstance(storage.origin.memory, Conversation):
        return None
    return storage.origin.address + begin if storage.origin.memory.is_there else None


def object_address(
    where: str, ctype: CType, pointer: Pointer, value: object, callback: Callback | None
) -> int | None:
    """Gives what `device_address` gives, and the address of a struct that C has passed. Raises as it does."""
    address = passed_address(value) if isinstance(value, StructValue) else None
    if address is None:
        return device_address(where, ctype, pointer, value, callback)
    require_struct(where, ctype, pointer, value)
    return address


def require_struct(where: str, ctype: CType, pointer: Pointer, value: object) -> None:
    """Raise TypeError for a struct of another type than the pointer's target."""
    target = strip(pointer.target)
    if not isinstance(target, Void) and not is_of(value, target):
        raise wrong(where, ctype, value)


def memory_of(value: object) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bytes of an object of the host, as an array that shares its memory.

    value: a struct, a C-contiguous numpy array, bytes or a bytearray.
    """
    if isinstance(value, np.ndarray):
        return np.asarray(value).reshape(-1).view(np.uint8)
    if isinstance(value, StructValue):
        storage, offset = storage_of(value)
        return np.frombuffer(storage.data, np.uint8, len(bytes_of(value)), offset)
    return np.frombuffer(cast(bytes, value), np.uint8)


def address_of(memory: np.ndarray[Any, np.dtype[np.uint8]]) -> int:
    """Its address in this process."""
    return int(memory.__array_interface__["data"][0])


def take_back(value: object, data: bytes | memoryview, sent: bytearray) -> None:
    """Write the bytes that C changed into an object of the host. data: its bytes. sent: those before."""
    memory = memory_of(value)
    if memory.size != len(data):
        raise ValueError(f"{describe(value)} had {len(data)} bytes when the call began")
    if memory.tobytes() == sent:  # The same result in less time: Python has left it meanwhile.
        memory.data[:] = data
    else:
        new = np.frombuffer(data, np.uint8)
        np.copyto(memory, new, where=new != np.frombuffer(sent, np.uint8))


def make_struct(
    ctype: CType, typename: str, values: Mapping[str, object], ordered: Sequence[object] = ()
) -> StructValue:
    """A struct from `ordered`, the values of its first members, and `values` by name; all others are zero.

    Raises TypeError for an incomplete struct or another type, and for unknown members.
    """
    record = strip(ctype)
    if not isinstance(record, RecordType):
        raise TypeError(f"{typename} is no struct: it is {declaration(record)}")
    if not record.complete:
        raise TypeError(f"{typename} is incomplete: its members are not known in the compiled files")
    made = StructValue(record, typename=typename)
    members = [field for field in flat_fields(record) if field.name]
    names = [member.name for member in members]
    if len(ordered) > (1 if record.kind == "union" else len(names)):
        raise TypeError(f"{typename} has {len(names)} members, {', '.join(names)}; got {len(ordered)} values")
    given = dict(zip(names, ordered, strict=False))
    for name in given:
        if name in values:
            raise TypeError(
                f"{typename}: {name} is given twice, as the value {given[name]!r} and by its name"
            )
    given |= values
    for name, value in given.items():
        try:
            setattr(made, name, value)
        except AttributeError as error:
            raise TypeError(str(error)) from None
    _refuse_both_of_a_union(typename, [member for member in members if member.name in given])
    return made


def _refuse_both_of_a_union(typename: str, given: Sequence[Field]) -> None:
    whole = sorted((field for field in given if field.bits is None), key=lambda field: field.offset)
    for member, following in pairwise(whole):
        if following.offset < member.offset + (size_of(member.type) or 0):
            raise TypeError(
                f"{typename}: {member.name} and {following.name} are members of a union; give one of them"
            )


def _is_element(value: np.void, record: RecordType) -> bool:
    try:
        return value.dtype == numpy_dtype(record)
    except TypeError:  # A member has no type of numpy's.
        return False


def as_struct(record: RecordType, typename: str, value: object) -> object:
    """A struct from members by name (a dict, an element of numpy's structured array) or in order (a tuple);
    returns any other value unchanged."""
    if isinstance(value, np.void) and _is_element(value, record):  # Also with its bits and unions.
        return StructValue(record, Storage(value.tobytes()))
    if isinstance(value, np.void) and value.dtype.names:
        value = {name: value[name] for name in value.dtype.names}
    if isinstance(value, dict):
        return make_struct(record, typename, value)
    return make_struct(record, typename, {}, value) if isinstance(value, tuple) else value


def _shown(storage: Storage, member: Field, base: int) -> str:
    try:
        return _short(_load(storage, member, base))
    except TypeError:  # Python has no such number: a long double.
        return "…"


def _short(value: object) -> str:
    if isinstance(value, np.ndarray):
        return describe(value) if value.size > 4 else np.array2string(value, separator=", ")
    return repr(value)


def pointer_offsets(ctype: CType, at: int = 0) -> Iterator[tuple[int, Pointer]]:
    """Offsets of the pointers in a value, also in structs and arrays inside it."""
    match strip(ctype):
        case Pointer() as pointer:
            yield at, pointer
        case RecordType() as record:
            for field in record.fields:
                if field.bits is None:
                    yield from pointer_offsets(field.type, at + field.offset)
        case ArrayType(element, count):
            if next(pointer_offsets(element), None) is not None:
                for index in range(count or 0):
                    yield from pointer_offsets(element, at + index * size_of(element))


def path_at(ctype: CType, at: int) -> str:
    """The member at this offset, as in C: ".rx.buffer[2]"."""
    match strip(ctype):
        case RecordType() as record:
            for field in record.fields:
                if field.bits is None and field.offset <= at < field.offset + size_of(field.type):
                    name = f".{field.name}" if field.name else ""
                    return name + path_at(field.type, at - field.offset)
        case ArrayType(element, _):
            size = size_of(element)
            return f"[{at // size}]{path_at(element, at % size)}"
    return ""


def _load(storage: Storage, member: Field, base: int) -> Any:  # noqa: ANN401 - a C member's value
    at = base + member.offset
    if member.bits is not None:
        return _load_bits(storage, member, base)
    stripped = strip(member.type)
    match stripped:
        case Pointer():
            if at in storage.references:
                return shown_target(storage.references[at], stripped)
            value = int.from_bytes(storage.data[at : at + stripped.size], "little")
            return storage.pointed(value, member.type) if value else None
        case RecordType() as record:
            return StructValue(record, storage, at)
        case ArrayType(_, None) if storage.place is not None or storage.pointed is not Address:
            raise ValueError(f"{member.name}: {_UNKNOWN}")
        case ArrayType(element, count):
            return _load_array(storage, element, count or 0, at)
        case Void() | FunctionType():
            raise TypeError(f"a member can't be {declaration(member.type)}")
    return number_from(member.type, storage.data[at : at + size_of(stripped)])


def shown_target(value: object, pointer: Pointer) -> object:
    """The target of a pointer as a user sees it: also an array's rest, or a struct within another one."""
    if not isinstance(value, Within):
        return value
    owner, target = value.owner, strip(pointer.target)
    if isinstance(owner, np.ndarray):
        index, inside = divmod(value.offset, owner.itemsize)
        return value if inside else owner.reshape(-1)[index:]
    if isinstance(owner, StructValue) and isinstance(target, RecordType):
        storage, begin = storage_of(owner)
        if target.complete and value.offset + target.size <= record_of(owner).size:
            return StructValue(target, storage, begin + value.offset)
    return value


def _load_array(storage: Storage, element: CType, count: int, at: int) -> Any:  # noqa: ANN401 - numpy or structs
    inner = strip(element)
    shape = [count]
    while isinstance(inner, ArrayType):
        shape.append(inner.count or 0)
        inner = strip(inner.element)
    if isinstance(inner, RecordType | Pointer):
        members = [Field("", element, at + index * size_of(element)) for index in range(count)]

        def set_some(given: Mapping[int, object]) -> list[Any]:
            _assign(storage, 0, [(members[index], f"element {index}", one) for index, one in given.items()])
            return [_load(storage, members[index], 0) for index in given]

        return Elements([_load(storage, member, 0) for member in members], set_some)
    flat = np.frombuffer(storage.data, numpy_dtype(inner), int(np.prod(shape)), at)
    if storage.place is not None or _pointers_in(storage, at, flat.nbytes):
        flat = flat.view(ReadValues)
        flat.flags.writeable = False
    return flat.reshape(shape)


def _bits(storage: Storage, member: Field, base: int) -> int:
    """The bits of a bit field, as an unsigned number."""
    assert member.bits is not None
    first, bits = base * 8 + member.first_bit, member.bits
    data = storage.data[first // 8 : (first + bits + 7) // 8]
    return int.from_bytes(data, "little") >> (first % 8) & ((1 << bits) - 1)


def _load_bits(storage: Storage, member: Field, base: int) -> int:
    assert member.bits is not None
    _require_known_bits(member, member.name)
    value, bits = _bits(storage, member, base), member.bits
    limits = value_range(member.type)
    if limits is not None and limits[0] < 0 and value >> (bits - 1):
        value -= 1 << bits
    return int_value(member.type, value)


def _store(storage: Storage, member: Field, base: int, where: str, value: object) -> None:
    at = base + member.offset
    if member.bits is not None:
        _store_bits(storage, member, base, where, value)
        return
    stripped = strip(member.type)
    if isinstance(stripped, Pointer):
        _store_pointer(storage, at, stripped, member.type, where, value)
        return
    if isinstance(stripped, RecordType):
        _store_record(storage, stripped, at, where, value)
        return
    if isinstance(stripped, ArrayType):
        _store_array(storage, stripped, at, where, member.type, value)
        return
    _put(storage, at, number_bytes(where, member.type, value))


def replace_bytes(storage: Storage, at: int, data: bytes) -> None:
    """Put bytes that the device has into the storage: their pointers are the device's."""
    if storage.data[at : at + len(data)] != data:
        _put(storage, at, data)


def _put(storage: Storage, at: int, data: bytes | bytearray) -> None:
    """Set bytes. Pointers there, also in part, as in a union, are no longer what was assigned to them."""
    for offset in _pointers_in(storage, at, len(data)):
        del storage.references[offset]
        storage.came_back.discard(offset)
    storage.data[at : at + len(data)] = data


def _pointers_in(storage: Storage, at: int, size: int) -> list[int]:
    """The offsets of pointers with a target of the host that have bytes in this range."""
    given = storage.given
    return [first for first in storage.references if first < at + size and at < first + given[first].size]


def _put_value(storage: Storage, at: int, made: Storage, begin: int, size: int) -> None:
    """Set bytes to those of another storage from `begin` on, with the targets of their pointers."""
    _put(storage, at, made.data[begin : begin + size])
    for offset, reference in made.references.items():
        inside = at + offset - begin
        if at <= inside < at + size:
            storage.references[inside] = reference
            storage.given[inside] = made.given[offset]
            if offset in made.came_back:
                storage.came_back.add(inside)


def _assign(storage: Storage, base: int, given: Sequence[tuple[Field, str, object]]) -> None:
    """Set members of a struct, also on the device that it was read from. All values are taken before any is
    set: they may be parts of the struct, and after an error the struct is unchanged."""
    place = storage.place
    if place is None and len(given) == 1 and not isinstance(strip(given[0][0].type), ArrayType | RecordType):
        member, where, value = given[0]
        _store(storage, member, base, where, value)
        return
    for at, made in [_made(storage, base, *one) for one in given]:
        if place is not None:
            place.memory.write(place.address + at, bytes(made.data))
        _put_value(storage, at, made, 0, len(made.data))
        if made.assigned:
            storage.assigned += 1
            storage.replaced[at, at + len(made.data)] = storage.assigned


def _made(storage: Storage, base: int, member: Field, where: str, value: object) -> tuple[int, Storage]:
    """The offset of a member in the storage, and its new bytes; bits beside a bit field are read again."""
    place = storage.place
    if place is not None and (place.is_const or is_const(member.type)):
        raise TypeError(f"{where} is const: it can't be written")
    at = base + member.offset
    if place is None or member.bits is None:  # On the host bits are set at once.
        made = Storage(size_of(member.type))
        _store(made, Field("", member.type, 0), 0, where, value)
        if place is not None:
            set_addresses(made, member.type, 0, where, place.callback)
            made.references.clear()
        return at, made
    at, size = _container(storage, place.address, base, member)
    made = Storage(place.memory.read(place.address + at, size))
    _store_bits(made, replace(member, first_bit=8 * (base - at) + member.first_bit), 0, where, value)
    return at, made


def _container(storage: Storage, address: int, base: int, member: Field) -> tuple[int, int]:
    """Offset and size of the bytes by which a bit field is read and written: its type's, as by C with
    -fstrict-volatile-bitfields, since a register may only be accessed as a whole; else those that it
    touches."""
    assert member.bits is not None
    first = 8 * base + member.first_bit
    size = size_of(member.type)
    at = (address + first // 8) // size * size - address
    if at >= 0 and at + size <= len(storage.data) and first + member.bits <= 8 * (at + size):
        return at, size
    return first // 8, (first % 8 + member.bits + 7) // 8


def _store_pointer(
    storage: Storage, at: int, pointer: Pointer, ctype: CType, where: str, value: object
) -> None:
    if isinstance(value, Address):
        check_address(where, ctype, pointer, value)
    elif isinstance(value, int | float | np.generic) and not (
        type(value) is int and isinstance(strip(pointer.target), Void)
    ):
        raise wrong(where, ctype, value, "give minrpc.Address(...), or an object")
    # An address into another call's memory is looked at in each call that is given the struct.
    is_number = isinstance(value, int) and getattr(value, "lent", None) is None
    number = int(value) if isinstance(value, int) and is_number else 0
    if not 0 <= number < 1 << (8 * pointer.size):
        raise ValueError(f"{where}: 0x{number:x} is no address of {8 * pointer.size} bits")
    _put(storage, at, number.to_bytes(pointer.size, "little"))
    if value is not None and not is_number:
        storage.references[at] = value
        storage.given[at] = pointer


def _store_record(storage: Storage, record: RecordType, at: int, where: str, value: object) -> None:
    given, value = value, as_struct(record, where, value)
    if not is_of(value, record):
        like = isinstance(value, StructValue) and record_of(value).names == record.names
        raise wrong(
            where, record, value, "it has other members, or another number of elements" if like else ""
        )
    if record_of(value).size > record.size or has_unknown_tail(value):
        raise wrong(where, record, value, "there is no room for the elements of its flexible array")
    _require_own_bytes(where, value)
    storage.assigned += value is given
    _put_value(storage, at, *storage_of(value), record_of(value).size)


def _require_own_bytes(where: str, value: StructValue) -> None:
    """Raise ValueError for a part of a struct that another one was assigned to since the part was read: in
    `a[0], a[1] = a[1], a[0]` the second value is no longer the former a[0]."""
    storage, begin = storage_of(value)
    end = begin + record_of(value).size
    if storage.assigned == value._minrpc_since or end - begin == len(storage.data):
        return
    spans = [span for span, number in storage.replaced.items() if number > value._minrpc_since]
    if any(first <= begin and end <= last for first, last in spans):
        raise ValueError(
            f"{where}: another struct was assigned to the given one since it was read: "
            "give a copy, copy.copy(...), or set elements at once, a[:2] = a[1], a[0]"
        )


def _store_array(
    storage: Storage, array: ArrayType, at: int, where: str, ctype: CType, value: object
) -> None:
    count = array.count or 0
    inner = strip(array.element)
    if isinstance(inner, Scalar) and inner.kind == "char" and isinstance(value, str | bytes):
        if isinstance(value, str) and "\0" in value:
            raise ValueError(f"{where}: {value!r} has a NUL character, where a text of C ends: give bytes")
        data = value.encode() if isinstance(value, str) else value
        if len(data) > count:
            raise ValueError(f"{where}: {len(data)} bytes do not fit {declaration(ctype)}")
        _put(storage, at, data.ljust(count, b"\0"))
        return
    if not isinstance(value, np.ndarray | list | tuple) or (isinstance(value, np.ndarray) and not value.ndim):
        raise wrong(where, ctype, value)
    if len(value) != count:
        hint = "" if count else "; as a flexible array, C declares it without the 0"
        raise ValueError(f"{where}: expected {declaration(ctype)}, got {len(value)} elements{hint}")
    size = size_of(array.element)
    for index, element in enumerate(value):
        _store(storage, Field("", array.element, at + index * size), 0, f"{where}[{index}]", element)


def _require_known_bits(member: Field, where: str) -> None:
    """Raise TypeError for a bit field of another byte order, whose bits lie elsewhere."""
    if isinstance(scalar := strip(member.type), Scalar) and scalar.kind == "other":
        raise TypeError(f"{where}: a bit field of {declaration(member.type)} can't be read or set")


def _store_bits(storage: Storage, member: Field, base: int, where: str, value: object) -> None:
    assert member.bits is not None
    _require_known_bits(member, where)
    bits = member.bits
    number = to_int(where, member.type, value)
    limits = value_range(member.type)
    signed = limits is not None and limits[0] < 0
    least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if not least <= number <= most:
        raise ValueError(f"{where}: a bit field of {bits} bits holds {least} to {most}, got {number}")
    first = base * 8 + member.first_bit
    begin, end = first // 8, (first + bits + 7) // 8
    whole = int.from_bytes(storage.data[begin:end], "little")
    mask = ((1 << bits) - 1) << (first % 8)
    whole = (whole & ~mask) | ((number << (first % 8)) & mask)
    _put(storage, begin, whole.to_bytes(end - begin, "little"))


def load_value(
    ctype: CType,
    data: bytes | memoryview,
    place: Place | None = None,
    pointed: Callable[[int, CType], object] = Address,
) -> Any:  # noqa: ANN401 - number, numpy array, struct
    """A variable's value from its bytes. Arrays are read-only, since a write would not reach the device.

    place: the place of the bytes, to which members of a struct are written; None for a struct of the host.
    pointed: as in `Storage`.
    """
    value = load_from(Storage(data, place, pointed), ctype, 0)
    if isinstance(value, np.ndarray):
        value = value.view(ReadValues)
        value.flags.writeable = False
    return value


def load_from(storage: Storage, ctype: CType, at: int) -> Any:  # noqa: ANN401 - number, numpy array, struct
    """The value at an offset of the storage. Arrays and structs share its bytes."""
    return _load(storage, Field("", ctype, at), 0)


def store_value(ctype: CType, where: str, value: object, callback: Callback | None = None) -> bytes:
    """The bytes of a variable's new value; pointers must be addresses, objects of the device, functions in
    Python if there is a callback, or None. Raises TypeError, ValueError."""
    storage = Storage(size_of(ctype))
    _store(storage, Field("", ctype, 0), 0, where, value)
    set_addresses(storage, ctype, 0, where, callback)
    return bytes(storage.data)


def set_addresses(storage: Storage, ctype: CType, at: int, where: str, callback: Callback | None) -> None:
    """Put the addresses of objects that were assigned to pointers into the bytes of the value at an offset.

    Raises TypeError, ValueError; see `store_value`.
    """
    for offset, reference in storage.references.items():
        declared = dict(pointer_offsets(ctype, at)).get(offset)
        pointer = declared and storage.given.get(offset, declared)
        if pointer is None:
            continue
        address = object_address(where, pointer, pointer, reference, callback)
        if address is None:
            raise wrong(
                where, pointer, reference, "the object that a variable points to must be on the device"
            )
        storage.data[offset : offset + pointer.size] = address.to_bytes(pointer.size, "little")
