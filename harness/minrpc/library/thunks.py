# SPDX-License-Identifier: Apache-2.0
"""C source that makes functions callable by TVM's packed-function ABI.

Each function gets a thunk, compiled by the function's own compiler with the function's flags: so the compiler
applies the calling convention, and this module need not know it. Numbers are passed as int64 or double,
pointers as a handle or as a tensor. Other values (structs, complex numbers) lie in memory, and a pointer to
them is passed. A result of that kind is written to the address in an additional last argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, count, repeat
from typing import Final

from minrpc.program.c_types import (
    UNKNOWN,
    AlignmentLimits,
    ArrayType,
    CType,
    Enumeration,
    Field,
    FunctionDeclaration,
    Pointer,
    RecordType,
    Scalar,
    Void,
    declaration,
    rounded,
    size_of,
    strip,
    typedef_alignment,
)

REGISTRY: Final = "minrpc_registry"
"""The symbol of the table {names, functions} (TVMFuncRegistry) in the source from `thunk_source`."""

START: Final = "minrpc.start"
"""The packed function that zeroes .bss and runs constructors; present only if needed."""

COPY: Final = "minrpc.copy"
"""The packed function (to, from, size) that copies bytes between any addresses; present if requested."""

LINKED: Final = "minrpc_linked_functions"
"""The symbol of the table of a firmware's linked-in libraries."""

# Renames this file's own functions, so that they differ from the user's functions.
_LOCAL: Final = "".join(
    f"#define {name} minrpc_{name}\n"
    for name in ("copied", "refused", "fits", "pointer", "enter", "leave", "fill_room", "start", "copy")
)

_PRELUDE: Final = """\
typedef union { long long i; double f; void *p; } value;
typedef int packed(value *a, int *c, int n, value *r, int *rc, void *resource);

/* Without it, as in some applications, the client gets the number alone. */
__attribute__((weak)) extern void TVMAPISetLastError(const char *);

static char *copied(char *to, const char *from, char *end)
{
	while (to != end && *from != 0) {
		*to++ = *from++;
	}
	return to;
}

/* A separate function, so that a call with right arguments needs no stack for the text. */
static __attribute__((noinline)) int refused(const char *name, const char *form)
{
	char text[128], *end = text + sizeof(text) - 1, *at;

	at = copied(text, name, end);
	at = copied(at, ": wrong arguments; expected, as i(nt), f(loat), p(ointer): \\"", end);
	at = copied(at, form, end);
	at = copied(at, "\\"", end);
	*at = 0;
	if (TVMAPISetLastError) {
		TVMAPISetLastError(text);
	}
	return 0;
}

/*
 * True if the arguments match the letters of `form` in number and kind: i, f, p. Never inlined nor
 * specialised, while `pointer` and the thread pointer's functions always are inlined: so a thunk's code
 * does not depend on the other thunks.
 */
#ifdef __clang__
#define minrpc_apart __attribute__((noinline))
#else
#define minrpc_apart __attribute__((noipa))
#endif
static minrpc_apart int fits(const char *name, const char *form, const int *codes, int count)
{
	int i = 0;

	for (; i < count && form[i] != 0; i++) {
		int code = codes[i];

		int is_int = code == 0 || code == 1 || code == 15;
		int is_pointer = code == 3 || code == 4 || code == 7 || code == 11;

		if (!(form[i] == 'i' ? is_int : form[i] == 'f' ? code == 2 : is_pointer)) {
			break;
		}
	}
	return (i == count && form[i] == 0) || refused(name, form);
}

static inline __attribute__((always_inline)) void *pointer(const value *a, int code)
{
	return code == 4 ? (void *)0 : code == 7 ? *(void **)a->p : a->p;
}
"""

# Code from Arm's compiler calls this function to get the thread pointer. The function may change no other
# register.
_ARM_THREAD_POINTER: Final = """
#ifdef __arm__
__attribute__((naked, used, section(".text.__aeabi_read_tp"))) void *__aeabi_read_tp(void)
{
	__asm__("ldr r0, =minrpc_thread_pointer\\n\\tbx lr\\n\\t.ltorg");
}
#endif
"""

# On RISC-V the thread pointer is a register, which belongs to the firmware between calls.
_OWN_THREAD_POINTER: Final = """
static inline __attribute__((always_inline)) void *enter(void)
{
	void *before;

	__asm__ volatile("mv %0, tp\\n\\tlla tp, minrpc_thread_pointer" : "=r"(before) : : "memory");
	return before;
}

static inline __attribute__((always_inline)) void leave(void *before)
{
	__asm__ volatile("mv tp, %0" : : "r"(before) : "memory");
}
"""
_NO_THREAD_POINTER: Final = """
#undef enter
#undef leave
#define enter() 0
#define leave(before) (void)(before)
"""

# The image has the variables' first values, zeros as well.
_THREAD_ROOM: Final = """
extern char minrpc_thread_locals[];

static inline __attribute__((always_inline)) void fill_room(value *a)
{
	volatile char *own;

	__asm__ volatile("mv %0, tp" : "=r"(own));
	for (long long i = 0; i < a[1].i; i++) {
		own[a[0].i + i] = minrpc_thread_locals[i];
	}
}
"""
_NO_THREAD_ROOM: Final = "\n#undef fill_room\n#define fill_room(a) (void)(a)\n"

_START_SOURCE: Final = """\
extern char minrpc_bss[], minrpc_bss_end[];
extern void (*minrpc_constructors[])(void);
extern void (*minrpc_constructors_end[])(void);

static int start(value *a, int *c, int n, value *r, int *rc, void *resource)
{
	void *before = enter();

	(void)c, (void)n, (void)r, (void)resource;
	for (volatile char *at = minrpc_bss; at != minrpc_bss_end; at++) {
		*at = 0;
	}
	fill_room(a);
	for (void (**next)(void) = minrpc_constructors; next != minrpc_constructors_end; next++) {
		(*next)();
	}
	leave(before);
	*rc = 4;
	return 0;
}

/* Destructors run at the end of a program, and loaded code has no such end. */
__attribute__((weak, visibility("hidden"))) void *__dso_handle;
__attribute__((weak)) int __cxa_atexit(void (*f)(void *), void *a, void *d)
{
	(void)f, (void)a, (void)d;
	return 0;
}
__attribute__((weak)) int __aeabi_atexit(void *a, void (*f)(void *), void *d)
{
	(void)f, (void)a, (void)d;
	return 0;
}
"""

_COPY_SOURCE: Final = """\
static int copy(value *a, int *c, int n, value *r, int *rc, void *resource)
{
	volatile char *to, *from;
@KEPT@
	(void)r, (void)resource;
	if (!fits("minrpc.copy", "ppi", c, n)) {
		return -1;
	}
	to = pointer(&a[0], c[0]);
	from = pointer(&a[1], c[1]);
	if ((((__UINTPTR_TYPE__)to | (__UINTPTR_TYPE__)from | (__UINTPTR_TYPE__)a[2].i) & 3) == 0) {
		/* Registers are read and written by words. */
		volatile unsigned int *words = (volatile unsigned int *)to;
		volatile unsigned int *source = (volatile unsigned int *)from;

		for (long long left = a[2].i; left > 0; left -= 4) {
			*words++ = *source++;
		}
		*rc = 4;
		return 0;
	}
	if (a[2].i == 2 && (((__UINTPTR_TYPE__)to | (__UINTPTR_TYPE__)from) & 1) == 0) {
		*(volatile unsigned short *)to = *(volatile unsigned short *)from;
		*rc = 4;
		return 0;
	}
	for (long long left = a[2].i; left > 0; left--) {
		*to++ = *from++;
	}
	*rc = 4;
	return 0;
}
"""

# The names of a registry begin with their number.
_COUNT_SIZE: Final = 2
_NO_LIMIT: Final = 1 << 20
_LONG: Final = "unsigned long long"
_INTEGERS: Final = {1: "char", 2: "short", 4: "int", 8: "long long", 16: "__int128"}


class LayoutError(TypeError):
    """A struct's layout in the debug information can't be declared in C."""


def callable_functions(
    functions: Iterable[FunctionDeclaration], limits: AlignmentLimits
) -> list[FunctionDeclaration]:
    """The functions; those that can't have a thunk have the reason.

    limits: the target compiler's alignment limits for members of structs.
    """
    return [_checked(function, limits) for function in functions]


def _checked(function: FunctionDeclaration, limits: AlignmentLimits) -> FunctionDeclaration:
    if function.unsupported:
        return function
    names, where = TypeNames(limits), "its result"
    try:
        names.spell(function.type.result)
        for parameter in function.type.parameters:
            where = parameter.name or "a parameter"
            names.parameter(parameter.type)
    except LayoutError as error:
        return replace(function, unsupported=f"{where}: {error}")
    return function


def thunk_source(
    functions: Sequence[FunctionDeclaration],
    limits: AlignmentLimits,
    *,
    start: bool = False,
    copy: bool = False,
    kept: Iterable[str] = (),
    registry: str = REGISTRY,
    own_block: bool = False,
    thread_pointer: bool = False,
    thread_room: bool = False,
) -> str:
    """A C file with a thunk for each function and the registry with their names. Needs no header.

    start, copy: True to add the function `START`, `COPY`. kept: symbols that are linked with `COPY`, even if
        unused. registry: the symbol of the registry.
    own_block: True for loaded code whose thread-local variables are not behind the firmware's thread pointer.
    thread_pointer: True if each thunk sets RISC-V's thread pointer to these variables, and back.
    thread_room: True if they are in the room of the firmware's threads: `START` takes its first byte's offset
        from the thread pointer, and its size.
    """
    names = TypeNames(limits)
    begins = accumulate((len(function.name.encode()) + 1 for function in functions), initial=_COUNT_SIZE)
    packed = [function.name if registry == LINKED else "" for function in functions]
    titles = list(map(thunk_name, count(), packed))
    symbols = [linked_thunk(name) if name else "" for name in packed]
    bodies = list(map(_thunk, count(), functions, repeat(names), begins, titles, symbols))
    listed = [(function.name, title) for function, title in zip(functions, titles, strict=True)]
    if own_block:
        bodies.append(_ARM_THREAD_POINTER)
    if start:
        bodies += [_THREAD_ROOM if thread_room else _NO_THREAD_ROOM, _START_SOURCE]
        listed.append((START, "start"))
    if copy:
        # Relocations that change no bytes.
        lines = "".join(f'\n\t__asm__ volatile(".reloc ., BFD_RELOC_NONE, {variable}");' for variable in kept)
        bodies.append(_COPY_SOURCE.replace("@KEPT@", lines))
        listed.append((COPY, "copy"))
    entry = _OWN_THREAD_POINTER if thread_pointer else _NO_THREAD_POINTER
    return "\n".join(
        [
            *(_LOCAL, _PRELUDE, entry, _names_source(listed), *names.definitions, *bodies),
            _table_source(listed, registry),
        ]
    )


def registry_source(listed: Sequence[tuple[str, str]], registry: str = REGISTRY) -> str:
    """C that defines `registry`. listed: pairs of a packed function's name, and its C name in that file.

    The file must declare the type `packed` first.
    """
    return _names_source(listed) + _table_source(listed, registry)


def _names_source(listed: Sequence[tuple[str, str]]) -> str:
    text = "".join(f'\n\t"{name}\\000"' for name, _ in listed)
    count = len(listed)
    return f'static const char minrpc_names[] = "\\{count & 255:03o}\\{count >> 8:03o}"{text};\n'


def _table_source(listed: Sequence[tuple[str, str]], registry: str) -> str:
    table = ", ".join(function for _, function in listed) or "0"
    return (
        f"static packed *const minrpc_functions[] = {{{table}}};\n"
        "__attribute__((used)) const struct { const char *names; packed *const *functions; } "
        f"{registry} = {{minrpc_names, minrpc_functions}};\n"
    )


def thunk_name(index: int | str, packed: str = "") -> str:
    """The C name of the thunk of the function at `index`; behind it, of a linked-in library, that of the
    packed function."""
    return f"minrpc_t{index}" + ("_" + re.sub(r"\W", "_", packed) if packed else "")


def linked_thunk(packed: str) -> str:
    """The symbol of the thunk that is the packed function `packed` of a linked-in library."""
    return f"minrpc_t.{packed}"


def _thunk(
    index: int, function: FunctionDeclaration, names: TypeNames, begin: int, title: str, symbol: str
) -> str:
    """begin: of the function's name in the registry's names. title: the thunk's C name; symbol: the linker's,
    "" for the same."""
    types = [names.parameter(parameter.type) for parameter in function.type.parameters]
    result = function.type.result
    arguments = [
        _argument(at, parameter.type, types[at]) for at, parameter in enumerate(function.type.parameters)
    ]
    call = f"f{index}({', '.join(arguments)})"
    form = "".join(letter(parameter.type) for parameter in function.type.parameters)
    kind = "v" if isinstance(strip(result), Void) else letter(result)
    parameters = "(value *a, int *c, int n, value *r, int *rc, void *resource)"
    label = f'static int {title}{parameters} __asm__("{symbol}");\n' if symbol else ""
    if kind == "i":
        body = f"r->i = (long long){call};\n\t*rc = 0;"
    elif kind == "f":
        body = f"r->f = {call};\n\t*rc = 2;"
    elif kind == "v":
        body = f"{call};\n\t*rc = 4;"
    elif isinstance(strip(result), Pointer):
        body = f"r->i = (long long)(__UINTPTR_TYPE__){call};\n\t*rc = 0;"
    else:
        at = len(arguments)
        body = f"*({names.spell(result)} *)pointer(&a[{at}], c[{at}]) = {call};\n\t*rc = 4;"
        form += "p"
    return (
        f"\nextern {names.spell(result)} f{index}({', '.join(types) or 'void'}) "
        f'__asm__("{function.symbol}");\n'
        f"{label}static int {title}{parameters}\n{{\n"
        "\tvoid *before;\n\n\t(void)a, (void)r, (void)resource;\n"
        f'\tif (!fits(minrpc_names + {begin}, "{form}", c, n)) {{\n\t\treturn -1;\n\t}}\n'
        f"\tbefore = enter();\n\t{body}\n\tleave(before);\n\treturn 0;\n}}\n"
    )


def letter(ctype: CType) -> str:
    """The way a value is passed: "i" as int64, "f" as double, "p" by an address."""
    stripped = strip(ctype)
    if isinstance(stripped, Enumeration):
        return "i"
    if isinstance(stripped, Scalar) and stripped.size <= 8:
        return {"float": "f", "complex": "p", "other": "p"}.get(stripped.kind, "i")
    return "p"


def _argument(at: int, ctype: CType, spelled: str) -> str:
    passed = letter(ctype)
    if passed == "i":
        return f"({spelled})a[{at}].i"
    if passed == "f":
        return f"({spelled})a[{at}].f"
    if isinstance(strip(ctype), Pointer):
        return f"pointer(&a[{at}], c[{at}])"
    return f"*({spelled} *)pointer(&a[{at}], c[{at}])"


class TypeNames:
    """Names of types in the thunks' file: all pointers are `void *`, structs have generated names."""

    def __init__(self, limits: AlignmentLimits) -> None:
        self.definitions: list[str] = []
        self._limits = limits
        self._records: dict[int, str] = {}
        self._layouts: dict[int, tuple[RecordType, Sequence[int], int]] = {}

    def spell(self, ctype: CType) -> str:
        """The type's name. Raises LayoutError for a struct that can't be declared in C."""
        stripped = strip(ctype)
        match stripped:
            case Void():
                return "void"
            case Pointer():
                return "void *"
            case Enumeration(_, size, signed):
                return _integer(size, signed)
            case Scalar() as scalar:
                return _scalar(scalar)
            case RecordType() as record:
                return self._record(record)
            case ArrayType(element, count, True):
                size = size_of(element) * (count or 0)
                return f"__typeof__({self.spell(element)} __attribute__((vector_size({size}))))"
        raise LayoutError(f"{declaration(ctype)} can't be passed by value")

    def parameter(self, ctype: CType) -> str:
        """The name of a parameter's type: a struct's typedef counts on RISC-V's stack. Raises LayoutError."""
        spelled, alignment = self.spell(ctype), typedef_alignment(ctype)
        if not alignment or not isinstance(strip(ctype), RecordType):
            return spelled
        name = f"t{len(self.definitions)}"
        self.definitions.append(f"typedef {spelled} {name} __attribute__((aligned({alignment})));\n")
        return name

    def _record(self, record: RecordType) -> str:
        known = self._records.get(id(record))
        if known is not None:
            return known
        if not record.complete:
            raise LayoutError(f"{declaration(record)} is incomplete")
        if not record.trivial:
            raise LayoutError(
                f"{declaration(record)} has a constructor or destructor: it is not passed as C does"
            )
        alignments, whole = self._layout(record)
        lines = list(self._members(record, alignments, whole))
        unit = self._unit(record, alignments, whole)
        if unit == _LONG and not any(line.startswith(f"{unit} :") for line in lines):
            lines.insert(0, f"{unit} : {int(record.kind == 'union')} __attribute__((packed))")
        members = "".join(f"\t{line};\n" for line in lines)
        name = f"{record.kind} s{len(self._records)}"
        self._records[id(record)] = name
        attribute = f"__attribute__((aligned({whole}))) " if whole > max([1, *alignments]) else ""
        pack = self._pack(record, whole)
        self.definitions.append(
            f"#pragma pack(push, {pack})\n" * bool(pack)
            + f"{name} {{\n{members}}} {attribute};\n"
            + "#pragma pack(pop)\n" * bool(pack)
            + f'_Static_assert(sizeof({name}) == {record.size}, "{record.tag or "anonymous"}");\n'
            + "".join(
                f'_Static_assert(__builtin_offsetof({name}, m{index}) == {field.offset}, "{field.name}");\n'
                for index, field in enumerate(record.fields)
                if field.bits is None
            )
        )
        return name

    def _members(self, record: RecordType, alignments: Sequence[int], whole: int) -> Iterable[str]:
        """The members, each at its bit, with bits without a name where the compiler would leave no gap."""
        bit, unit, pack = 0, self._unit(record, alignments, whole), self._pack(record, whole)
        gaps, exact = record.kind == "struct", record.passed and unit == _LONG
        for index, (field, due) in enumerate(zip(record.fields, alignments, strict=True)):
            own = self._alignment(_bare(field.type))
            attribute = f"packed, aligned({due})" if due < own else f"aligned({due})" if due > own else ""
            if field.bits is not None:
                due, attribute = 1, "packed"
                if own <= whole and _crosses(field, bit) and rounded(bit, 8 * own) == field.begin:
                    # The compiler's own gap, which is no bits without a name: on x86-64 calls differ by them.
                    due, attribute = 8 * own, f"packed, aligned({own})"
                if field.is_number and (own <= whole or pack):
                    attribute = ""
            begin = rounded(bit, 8 * due if field.bits is None else due)
            if gaps and (exact or begin != field.begin):
                yield from _gap(bit, field.begin, unit)
            bit = max(bit, field.begin + field.width)
            width = "" if field.bits is None else f" : {field.bits}"
            yield (
                self._member(field.type, f"m{index}")
                + width
                + f" __attribute__(({attribute}))" * bool(attribute)
            )
        if gaps and (exact or rounded(bit, 8 * whole) != 8 * record.size):
            yield from _gap(bit, 8 * record.size, unit)

    def _pack(self, record: RecordType, whole: int) -> int:
        """The alignment of a pragma pack, if the struct has numbers below their own alignment in its bits."""
        numbers = (self._alignment(field.type) for field in record.fields if field.is_number)
        return whole if not record.alignment and max(numbers, default=0) > whole else 0

    def _unit(self, record: RecordType, alignments: Sequence[int], whole: int) -> str:
        """The type of bits without a name: of 64 bits if nothing else aligns the struct, or the argument, to
        8 bytes."""
        explained = max(
            [1, *alignments, *(self._alignment(f.type) for f in record.fields if f.bits is not None)]
        )
        hidden = record.passed == 8 if record.passed else record.limit and not record.alignment and whole == 8
        return _LONG if hidden and explained < 8 else "unsigned int"

    def _member(self, ctype: CType, name: str) -> str:
        stripped = strip(ctype)
        if isinstance(stripped, ArrayType) and not stripped.vector:
            count = stripped.count
            return self._member(stripped.element, f"{name}[{'' if count is None else count}]")
        return f"{self.spell(ctype)} {name}"

    def _layout(self, record: RecordType) -> tuple[Sequence[int], int]:
        """The alignments of the members, a bit-field's as 1, and of the whole. Raises LayoutError."""
        if id(record) not in self._layouts:
            self._layouts[id(record)] = (record, *self._laid_out(record))
        return self._layouts[id(record)][1:]

    def _laid_out(self, record: RecordType) -> tuple[Sequence[int], int]:
        for packed in [False] if record.limit else [False, True]:
            limit = record.limit and (record.alignment or record.limit)
            limit = limit or (1 if packed else _NO_LIMIT)
            natural = [self._due(record, field, limit) for field in record.fields]
            known = record.alignment or (record.limit if record.limit < UNKNOWN else 0)
            least = max([1, *natural])
            # The size tells the alignment of a union without a name whose bit-fields may be packed.
            wholes = [known] if known else [least << more for more in range(5 if record.limit else 1)]
            alignments = [
                1 if f.bits is not None else due for f, due in zip(record.fields, natural, strict=True)
            ]
            for whole in wholes:
                if whole >= max([1, *alignments]) and _fits(record, alignments, whole):
                    return alignments, whole
        raise LayoutError(f"the layout of {declaration(record)} is not the compiler's own")

    def _due(self, record: RecordType, field: Field, limit: int) -> int:
        """The alignment of a member, if none has more than the limit but those whose alignment is known."""
        if field.alignment:
            return field.alignment
        due = self._alignment(field.type)
        if field.bits is not None:
            return 1 if due > limit or record.size % due or _crosses(field, field.first_bit) else due
        if record.limit and record.alignment:
            limit = min([limit, *self._packed(record)])
        if record.passed == 4:
            limit = min(limit, 4)
        while record.limit and (due > limit or field.offset % due or record.size % due):
            due //= 2
        return min(due, limit)

    def _packed(self, record: RecordType) -> Iterable[int]:
        """The alignments of members, if lower than their types' own: those without a name are packed, too."""
        for field in record.fields:
            if field.bits is None and 0 < field.alignment < self._alignment(_bare(field.type)):
                yield field.alignment

    def _alignment(self, ctype: CType) -> int:
        if alignment := typedef_alignment(ctype):
            return alignment
        ctype = strip(ctype)
        match ctype:
            case RecordType() as record:
                return self._layout(record)[1]
            case ArrayType(element, _, False):
                return self._alignment(element)
            case Scalar(_, size, "complex"):
                return min(size // 2, self._limits.word)
            case ArrayType(_, _, True):
                return min(size_of(ctype), self._limits.vector)
        size = size_of(ctype)
        if size > 8:  # long double, __int128
            return 4 if size == 12 else 16
        return min(size, self._limits.word) or 1


def _bare(ctype: CType) -> CType:
    """The type as its spelling has it: without alignments of typedefs."""
    stripped = strip(ctype)
    return replace(stripped, element=_bare(stripped.element)) if isinstance(stripped, ArrayType) else stripped


def _crosses(field: Field, first: int) -> bool:
    """True if a bit-field from this bit on would lie in two objects of its type."""
    unit = 8 * size_of(field.type)
    return field.bits is not None and first // unit != (first + field.bits - 1) // unit


def _gap(begin: int, end: int, unit: str) -> Iterable[str]:
    """Bits without a name, of a type."""
    for bit in range(begin, end, 32):
        yield f"{unit} : {min(end - bit, 32)} __attribute__((packed))"


def _fits(record: RecordType, alignments: Sequence[int], whole: int) -> bool:
    """True if each member can be at its offset with its alignment; bits without a name may be before it."""
    at = 0
    for field, due in zip(record.fields, alignments, strict=True):
        aligned = field.bits is not None or field.begin % (8 * due) == 0
        if not aligned or (record.kind == "struct" and field.begin < at):
            return False
        at = max(at, field.begin + field.width)
    least = rounded(at, 8 * whole)
    return record.size % whole == 0 and (
        least == 8 * record.size or (record.kind == "struct" and at <= 8 * record.size)
    )


def _integer(size: int, signed: bool) -> str:
    return f"{'signed' if signed else 'unsigned'} {_INTEGERS[size]}"


def _scalar(scalar: Scalar) -> str:
    name, size = scalar.name, scalar.size
    match scalar.kind:
        case "bool":
            return "_Bool" if size == 1 else _integer(size, False)
        case "int" | "uint" | "char" if size in _INTEGERS:
            return _integer(size, scalar.kind == "int" or (scalar.kind == "char" and scalar.signed))
        case "float":
            return {4: "float", 8: "double"}.get(size, name)
        case "complex":
            if size in (8, 16):
                return "_Complex float" if size == 8 else "_Complex double"
    if name in ("__fp16", "_Float16", "__bf16"):
        return name
    raise LayoutError(f"{name} can't be passed: Python has no number like it")
