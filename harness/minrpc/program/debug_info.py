# SPDX-License-Identifier: Apache-2.0
"""Functions, variables and types of a program, from the debug information that its compiler wrote."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple

from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import DIE, AttributeValue
from elftools.dwarf.dwarf_expr import DWARFExprParser
from elftools.elf.elffile import ELFFile

from minrpc.program.c_types import (
    VOID,
    ArrayType,
    CType,
    Declarations,
    Enumeration,
    Field,
    FunctionDeclaration,
    FunctionType,
    Kind,
    Origin,
    Parameter,
    Pointer,
    Qualified,
    RecordType,
    Scalar,
    Typedef,
    Variable,
    declaration,
    size_of,
    strip,
)
from minrpc.program.elf import Elf
from minrpc.program.merging import UNTYPED, add_function, merged
from minrpc.program.reader_errors import reads
from minrpc.program.walking import children, origins

# DW_ATE_*
_ENCODINGS: Final[dict[int, tuple[Kind, bool]]] = {
    0x02: ("bool", False),
    0x03: ("complex", True),
    0x04: ("float", True),
    0x05: ("int", True),
    0x06: ("char", True),
    0x07: ("uint", False),
    0x08: ("char", False),
    0x10: ("uint", False),
}
# A function that the compiler has split into a hot and a cold part has address ranges.
_CODE: Final = {"DW_AT_low_pc", "DW_AT_ranges"}
_QUALIFIERS: Final = {
    "DW_TAG_const_type": "const",
    "DW_TAG_volatile_type": "volatile",
    "DW_TAG_restrict_type": "restrict",
    "DW_TAG_atomic_type": "_Atomic",
}
_RECORDS: Final = {
    "DW_TAG_structure_type": "struct",
    "DW_TAG_class_type": "struct",
    "DW_TAG_union_type": "union",
}
_TYPE: Final = re.compile(r"DW_TAG_(\w+_type|typedef)")
_UNNAMED: Final = "12_GLOBAL__N_1"
_BIG_ENDIAN: Final = "big-endian "
_NAMED: Final = {*_RECORDS, "DW_TAG_enumeration_type", "DW_TAG_typedef"}
_POINTERS: Final = {
    "DW_TAG_pointer_type": False,
    "DW_TAG_reference_type": True,
    "DW_TAG_rvalue_reference_type": True,
}
# Sizes of those for which Python has numbers, in bytes.
_SIZES: Final[dict[Kind, tuple[int, ...]]] = {"float": (2, 4, 8), "complex": (8, 16)}
_BIG: Final = 1  # DW_END_big, as of GCC's scalar_storage_order.
_PASSED_BY_REFERENCE: Final = 4  # DW_CC_pass_by_reference
# DW_LANG codes: assembler, whose functions have no prototypes, and C.
_ASSEMBLER: Final = 0x8001  # DW_LANG_Mips_Assembler, also of others
# GCC's names for functions that it calls itself, as of -fsanitize; their symbol is the true name.
_OF_COMPILER: Final = "__builtin_"
_C_LANGUAGES: Final = frozenset({0x01, 0x02, 0x0C, 0x1D, 0x2C})


@reads
def read_declarations(elf: Elf) -> Declarations:
    """Declarations with external linkage of an ELF file, relocatable or linked, and its types.

    Empty without debug information.
    """
    return merged([_Unit(unit, elf).declarations() for unit in object_units(elf)])


def object_units(elf: Elf) -> Iterator[CompileUnit]:
    """The compilation units of an ELF file, with references filled in; none without debug information."""
    assert elf.little_endian, "targets are little-endian"
    file = ELFFile(BytesIO(elf.relocated()))
    if not file.has_dwarf_info():
        return iter(())
    units: Iterator[CompileUnit] = file.get_dwarf_info(relocate_dwarf_sections=False).iter_CUs()
    return units


def declarations_of(unit: CompileUnit) -> Declarations:
    """The declarations of one compilation unit, without its program's symbols: for functions and types."""
    return merged([_Unit(unit).declarations()])


class StackVariable(NamedTuple):
    """A variable of a function's frame: `size` bytes at `offset` from the caller's stack pointer.

    begin, end: addresses of the code of its block.
    """

    begin: int
    end: int
    offset: int
    size: int
    name: str


@reads
def stack_variables(program: Elf) -> list[StackVariable]:
    """All variables of a linked program that have one place in their function's frame."""
    file = ELFFile(BytesIO(program.content))
    if not file.has_dwarf_info():
        return []
    units = file.get_dwarf_info(relocate_dwarf_sections=False).iter_CUs()
    return [variable for unit in units for variable in _Unit(unit).stack_variables()]


def _is_big_endian(ctype: CType) -> bool:
    """True for a number of the other byte order, and for an array of them."""
    scalar = strip(ctype)
    while isinstance(scalar, ArrayType):
        scalar = strip(scalar.element)
    return isinstance(scalar, Scalar) and scalar.name.startswith(_BIG_ENDIAN)


def _big_endian(ctype: CType) -> CType:
    """The type of a member beside big-endian ones: GCC marks the order of base types only, not of enums."""
    enumeration = strip(ctype)
    if isinstance(enumeration, ArrayType):
        return replace(enumeration, element=_big_endian(enumeration.element))
    if not isinstance(enumeration, Enumeration):
        return ctype
    return Scalar(f"{_BIG_ENDIAN}{declaration(enumeration)}", enumeration.size, "other", enumeration.signed)


class _Unit:
    """One compilation unit. Each type is created once, so that recursive records end."""

    def __init__(self, unit: CompileUnit, elf: Elf | None = None) -> None:
        self._unit, self._elf = unit, elf
        self._top = unit.get_top_DIE()
        self._pointer_size: int = unit["address_size"]
        self._expressions = DWARFExprParser(unit.structs)
        self._types: dict[int, CType] = {}
        self._namespaces: dict[int, str] = {}
        attributes = self._top.attributes
        self.file = Path(_text(attributes.get("DW_AT_comp_dir")), _text(attributes.get("DW_AT_name")))
        language = self._top.attributes.get("DW_AT_language")
        self._is_assembler = language is not None and language.value == _ASSEMBLER
        self._is_c = language is not None and language.value in _C_LANGUAGES
        flags = _text(attributes.get("DW_AT_producer")).split()
        few = "-g1" in flags or "-ggdb1" in flags
        self._has_no_types = few and not any(_TYPE.fullmatch(str(child.tag)) for child in children(self._top))

    def declarations(self) -> Declarations:
        """All of them."""
        functions: dict[str, FunctionDeclaration] = {}
        for function in self.functions():
            add_function(functions, function)
        return Declarations(
            functions,
            statics={function.name: function for function in reversed(list(self.statics()))},
            declared={function.symbol: function for function in reversed(list(self.declared()))},
            every_variable=[Origin(item.name, self.file, item) for item in self.variables()],
            every_type=[Origin(name, self.file, ctype) for name, ctype in self.named_types()],
        )

    def functions(self) -> Iterator[FunctionDeclaration]:
        """Functions with code in this unit and a linker name, in the order of the source."""
        for die in sorted(self._scopes(self._top), key=_line):
            if die.tag != "DW_TAG_subprogram" or not _CODE & die.attributes.keys():
                continue
            name = _text(_find(die, "DW_AT_name"))
            if not name or _find(die, "DW_AT_external") is None:
                continue
            yield self._function(die, name)

    def statics(self) -> Iterator[FunctionDeclaration]:
        """Functions with internal linkage; those without code have lost it to their callers."""
        for die in self._scopes(self._top):
            if die.tag != "DW_TAG_subprogram" or not (_CODE | {"DW_AT_inline"}) & die.attributes.keys():
                continue
            name = _text(_find(die, "DW_AT_name"))
            if name and _find(die, "DW_AT_external") is None:
                yield self._function(die, name)

    def _function(self, die: DIE, name: str) -> FunctionDeclaration:
        symbol = _text(_find(die, "DW_AT_linkage_name")) or name
        if name.startswith(_OF_COMPILER):
            name = symbol
        prototype = self._function_type(die)
        noreturn = _find(die, "DW_AT_noreturn") is not None
        return FunctionDeclaration(name, symbol, prototype, self._unsupported(die, prototype), noreturn)

    def declared(self) -> Iterator[FunctionDeclaration]:
        """Functions that are defined elsewhere, with a prototype."""
        for die in self._scopes(self._top):
            if die.tag != "DW_TAG_subprogram" or "DW_AT_declaration" not in die.attributes:
                continue
            name = _text(die.attributes.get("DW_AT_name"))
            if name and "DW_AT_external" in die.attributes:
                yield self._function(die, name)

    def variables(self) -> Iterator[Variable]:
        """Variables of file scope with an address. GCC tells no address of a constant in a namespace."""
        for die in self._scopes(self._top):
            if die.tag != "DW_TAG_variable":
                continue
            placed = self._is_static(die)
            if not placed and "DW_AT_const_value" not in die.attributes:
                continue
            name = _text(_find(die, "DW_AT_name"))
            if name:
                external = _find(die, "DW_AT_external") is not None
                symbol = _text(_find(die, "DW_AT_linkage_name"))
                if not symbol:
                    symbol = name if self._is_c else self._cxx_symbol(die, name, external=external)
                    external &= symbol == name
                if placed or self._has_static(symbol):
                    symbol = symbol if external else self._in_file(symbol)
                    yield Variable(name, symbol, self._type_at(_origin_with(die, "DW_AT_type")), external)

    def _cxx_symbol(self, die: DIE, name: str, *, external: bool) -> str:
        """The linker's name of a variable of C++ whose linkage name GCC leaves out: one with internal linkage
        (Itanium C++ ABI, 5.1), also in a namespace, where GCC takes it for external, or a global one.

        In an unnamed namespace GCC writes the "L" of internal linkage for a static variable, GCC 16 for each;
        a static variable of an `extern "C"` block has the name of C in GCC 16. The ELF file's symbols decide.
        """
        declared = _origin_with(die, "DW_AT_name") or die
        spaces = self._namespaces.get(declared.offset, "").split("::")[:-1]
        if external and not spaces:
            return name
        own = f"{len(name)}{name}"
        path = "".join(f"{len(space)}{space}" if space else _UNNAMED for space in spaces)
        possible = [f"_ZN{path}L{own}E", f"_ZN{path}{own}E"] if spaces else [f"_ZL{own}", name]
        return next(filter(self._has_static, possible), possible[0])

    def _in_file(self, symbol: str) -> str:
        """A symbol with internal linkage as `Elf.statics` has it: "a.c:count"."""
        return f"{self.file.name}:{symbol}"

    def _has_static(self, symbol: str) -> bool:
        """True if the ELF file has the symbol, with internal linkage, for a variable of this unit."""
        return self._elf is not None and self._in_file(symbol) in self._elf.statics

    def stack_variables(self) -> Iterator[StackVariable]:
        """Variables with one place in their function's frame."""
        for die in self._scopes(self._top):
            if die.tag == "DW_TAG_subprogram" and "DW_AT_low_pc" in die.attributes:
                base = die.attributes.get("DW_AT_frame_base")
                if base is not None and self._operations(base.value) == [("DW_OP_call_frame_cfa", [])]:
                    yield from self._in_block(die, *_code_of(die))

    def _in_block(self, block: DIE, begin: int, end: int) -> Iterator[StackVariable]:
        for die in children(block):
            if die.tag in ("DW_TAG_lexical_block", "DW_TAG_inlined_subroutine"):
                has_range = "DW_AT_low_pc" in die.attributes
                yield from self._in_block(die, *(_code_of(die) if has_range else (begin, end)))
            location = die.attributes.get("DW_AT_location")
            named = die.tag in ("DW_TAG_variable", "DW_TAG_formal_parameter")
            if not named or location is None or location.form != "DW_FORM_exprloc":
                continue
            match self._operations(location.value):
                case [("DW_OP_fbreg", [int(offset)])]:
                    size = size_of(self._type_at(_origin_with(die, "DW_AT_type")))
                    if size:
                        yield StackVariable(begin, end, offset, size, _text(_find(die, "DW_AT_name")))

    def _operations(self, expression: list[int]) -> list[tuple[str, list[int]]]:
        return [(step.op_name, step.args) for step in self._expressions.parse_expr(expression)]

    def named_types(self) -> Iterator[tuple[str, CType]]:
        """Tags and typedefs with their types. A tag is "struct list" if `list` is another struct or enum; a
        type of C++ has its namespace if there are several of the name."""
        dies = [
            (_text(die.attributes["DW_AT_name"]), die)
            for die in self._scopes(self._top)
            if die.tag in _NAMED and "DW_AT_name" in die.attributes
        ]
        count = Counter((name, die.tag == "DW_TAG_typedef") for name, die in dies)
        tags: list[tuple[str, CType]] = []
        typedefs: dict[str, CType] = {}
        for name, die in dies:
            ctype, record = self._type(die), strip(self._type(die))
            if count[name, die.tag == "DW_TAG_typedef"] > 1:
                name = self._namespaces.get(die.offset, "") + name
            if die.tag != "DW_TAG_typedef":
                tags.append((name, ctype))
                continue
            typedefs[name] = ctype
            # Clang has the typedef of a typedef before the other.
            if isinstance(record, RecordType) and not (record.tag or record.alias) and _names(ctype, record):
                record.alias = name
        for name, ctype in tags:
            other = strip(typedefs.get(name, ctype))
            if isinstance(other, RecordType | Enumeration):
                yield name if other is ctype else declaration(ctype), ctype
            else:
                del typedefs[name]
                yield name, ctype
        yield from typedefs.items()

    def _scopes(self, die: DIE, namespace: str = "") -> Iterator[DIE]:
        for child in children(die):
            if child.tag == "DW_TAG_namespace":
                name = _text(child.attributes.get("DW_AT_name"))
                yield from self._scopes(child, f"{namespace}{name}::")
            else:
                self._namespaces[child.offset] = namespace
                yield child

    def _is_static(self, die: DIE) -> bool:
        """True if the variable has a fixed address."""
        location = die.attributes.get("DW_AT_location")
        if location is None or location.form != "DW_FORM_exprloc":
            return False
        steps = [step.op_name for step in self._expressions.parse_expr(location.value)]
        return steps in (["DW_OP_addr"], ["DW_OP_addrx"])  # Clang's are in a table.

    def _unsupported(self, die: DIE, prototype: FunctionType) -> str:
        if prototype.variadic:
            return "it is variadic: the way of passing its arguments depends on the call"
        if any(_is_va_list(parameter.type) for parameter in prototype.parameters):
            return "it takes a va_list, which only C can make: call it from a variadic function beside it"
        if self._is_assembler:
            return UNTYPED
        if self._has_no_types and not prototype.parameters:
            return "it was compiled with -g1, which leaves out the types: compile it with -g"
        if self._is_c and prototype.parameters and _find(die, "DW_AT_prototyped") is None:
            return "its definition has no prototype (parameters declared behind the parentheses)"
        return ""

    def _function_type(self, die: DIE) -> FunctionType:
        parameters = []
        variadic = False
        for child in children(die):
            if child.tag == "DW_TAG_formal_parameter":
                name = _text(_find(child, "DW_AT_name"))
                parameters.append(Parameter(name, self._type_at(_origin_with(child, "DW_AT_type"))))
            variadic |= child.tag == "DW_TAG_unspecified_parameters"
        return FunctionType(self._type_at(_origin_with(die, "DW_AT_type")), tuple(parameters), variadic)

    def _type_at(self, die: DIE | None) -> CType:
        """The type from DW_AT_type of `die`; void if the attribute is missing."""
        if die is None or "DW_AT_type" not in die.attributes:
            return VOID
        return self._type(die.get_DIE_from_attribute("DW_AT_type"))

    def _type(self, die: DIE) -> CType:
        known = self._types.get(die.offset)
        if known is not None:
            return known
        if die.tag in _RECORDS:
            return self._record(die)
        made = self._types[die.offset] = self._make(die)
        return made

    def _make(self, die: DIE) -> CType:
        name = _text(die.attributes.get("DW_AT_name"))
        if die.tag == "DW_TAG_base_type":
            kind, signed = _ENCODINGS.get(die.attributes["DW_AT_encoding"].value, ("other", True))
            size = die.attributes["DW_AT_byte_size"].value
            if _number(die, "DW_AT_endianity", 0) == _BIG:
                kind, name = "other", f"{_BIG_ENDIAN}{name}"
            if size not in _SIZES.get(kind, (size,)) or name == "__bf16" or "_BitInt" in name:
                kind = "other"
            return Scalar(name, size, kind, signed)
        if die.tag in _POINTERS:
            size = _number(die, "DW_AT_byte_size", self._pointer_size)
            return Pointer(self._type_at(die), size, _POINTERS[die.tag])
        if die.tag in _QUALIFIERS:
            return Qualified(self._type_at(die), _QUALIFIERS[die.tag])
        if die.tag == "DW_TAG_typedef":
            return Typedef(name, self._type_at(die), _number(die, "DW_AT_alignment", 0))
        if die.tag == "DW_TAG_enumeration_type":
            return self._enumeration(die, name)
        if die.tag == "DW_TAG_array_type":
            return self._array(die)
        if die.tag == "DW_TAG_subroutine_type":
            return self._function_type(die)
        return Scalar(
            name or str(die.tag).removeprefix("DW_TAG_"), _number(die, "DW_AT_byte_size", 0), "other"
        )

    def _record(self, die: DIE) -> RecordType:
        kind = "union" if die.tag == "DW_TAG_union_type" else "struct"
        record = RecordType(kind, _text(die.attributes.get("DW_AT_name")))  # type: ignore[arg-type]
        self._types[die.offset] = record  # Stored before its members, which may point to it.
        if "DW_AT_declaration" in die.attributes:
            return record
        record.size = _number(die, "DW_AT_byte_size", 0)
        record.alignment = _number(die, "DW_AT_alignment", 0)
        record.trivial = _number(die, "DW_AT_calling_convention", 0) != _PASSED_BY_REFERENCE
        members = [child for child in children(die) if child.tag in ("DW_TAG_member", "DW_TAG_inheritance")]
        record.fields = tuple(
            self._field(member) for member in members if "DW_AT_external" not in member.attributes
        )
        if any(_is_big_endian(field.type) for field in record.fields):
            record.fields = tuple(replace(field, type=_big_endian(field.type)) for field in record.fields)
        record.complete = True
        if _holds(record, record):
            raise ValueError(f"{record!r} contains itself")
        return record

    def _field(self, die: DIE) -> Field:
        name = _text(die.attributes.get("DW_AT_name"))
        ctype = self._type_at(die)
        offset = self._member_offset(die)
        if "DW_AT_bit_size" not in die.attributes:
            return Field(name, ctype, offset, alignment=_number(die, "DW_AT_alignment", 0))
        bits = die.attributes["DW_AT_bit_size"].value
        if "DW_AT_data_bit_offset" in die.attributes:
            first = die.attributes["DW_AT_data_bit_offset"].value
        else:  # DWARF 3 counts from the most significant bit of the storage unit.
            unit = _number(die, "DW_AT_byte_size", 4) * 8
            first = offset * 8 + unit - _number(die, "DW_AT_bit_offset", 0) - bits
        return Field(name, ctype, first // 8, bits, first)

    def _member_offset(self, die: DIE) -> int:
        location = die.attributes.get("DW_AT_data_member_location")
        if location is None:
            return 0
        if isinstance(location.value, int):
            return location.value
        steps = self._expressions.parse_expr(location.value)
        return int(steps[0].args[0]) if steps and steps[0].op_name == "DW_OP_plus_uconst" else 0

    def _enumeration(self, die: DIE, name: str) -> Enumeration:
        size = _number(die, "DW_AT_byte_size", 4)
        under = die.get_DIE_from_attribute("DW_AT_type") if "DW_AT_type" in die.attributes else None
        values = [
            (_text(child.attributes["DW_AT_name"]), int(child.attributes["DW_AT_const_value"].value))
            for child in children(die)
            if child.tag == "DW_TAG_enumerator"
        ]
        signed = any(value < 0 for _, value in values)
        if under is not None and "DW_AT_encoding" in under.attributes:
            signed = _ENCODINGS.get(under.attributes["DW_AT_encoding"].value, ("int", True))[1]
        wrap = 1 << (8 * size)
        if signed:  # A constant of the type's width may have been read as unsigned.
            values = [(constant, value - wrap if value >= wrap // 2 else value) for constant, value in values]
        return Enumeration(name, size, signed, tuple(values))

    def _array(self, die: DIE) -> CType:
        counts = [_count(child) for child in children(die) if child.tag == "DW_TAG_subrange_type"]
        made = self._type_at(die)
        vector = "DW_AT_GNU_vector" in die.attributes
        for count in reversed(counts):
            made = ArrayType(made, count, vector)
        return made


def _holds(record: RecordType, wanted: RecordType) -> bool:
    """True if a member of the record, or of its members, is a `wanted`, or an array of it."""
    for field in record.fields:
        inner = strip(field.type)
        while isinstance(inner, ArrayType):
            inner = strip(inner.element)
        if isinstance(inner, RecordType) and (inner is wanted or _holds(inner, wanted)):
            return True
    return False


def _is_va_list(ctype: CType) -> bool:
    """True for va_list or a pointer to it: a typedef, a struct, or an array of a struct, by the ABI."""
    while True:
        match ctype:
            case Typedef("va_list" | "__builtin_va_list" | "__gnuc_va_list"):
                return True
            case RecordType(_, tag):
                return tag in ("__va_list", "__va_list_tag")
            case Typedef(_, inner) | Qualified(inner) | Pointer(inner) | ArrayType(inner):
                ctype = inner
            case _:
                return False


def _count(die: DIE) -> int | None:
    count = die.attributes.get("DW_AT_count")
    if count is not None:
        return int(count.value) if _is_constant(count) else None
    bound = die.attributes.get("DW_AT_upper_bound")
    if bound is None or not _is_constant(bound):
        return None
    value = int(bound.value)
    # An empty array's last index is -1, which may be read as unsigned.
    return 0 if value in (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF) else value + 1


def _is_constant(attribute: AttributeValue) -> bool:
    """True for a number. An array that is sized by a parameter has a reference or an expression."""
    return isinstance(attribute.value, int) and not attribute.form.startswith("DW_FORM_ref")


def _number(die: DIE, name: str, default: int) -> int:
    attribute = die.attributes.get(name)
    return int(attribute.value) if attribute is not None and isinstance(attribute.value, int) else default


def _line(die: DIE) -> int:
    attribute = _find(die, "DW_AT_decl_line")
    return int(attribute.value) if attribute is not None else 0


def _code_of(die: DIE) -> tuple[int, int]:
    """Begin and end of the code of an entry with DW_AT_low_pc."""
    begin, high = die.attributes["DW_AT_low_pc"].value, die.attributes["DW_AT_high_pc"]
    return begin, high.value if high.form == "DW_FORM_addr" else begin + high.value


def _names(ctype: CType, record: RecordType) -> bool:
    """True if a typedef stands for the struct itself, not for another typedef."""
    inner = ctype.type if isinstance(ctype, Typedef) else ctype
    while isinstance(inner, Qualified):
        inner = inner.type
    return inner is record


def _text(attribute: Any) -> str:  # noqa: ANN401 - pyelftools has no types
    return attribute.value.decode("utf-8", "replace") if attribute is not None else ""


def _origin_with(die: DIE, name: str) -> DIE | None:
    return next((origin for origin in origins(die) if name in origin.attributes), None)


def _find(die: DIE, name: str) -> Any:  # noqa: ANN401 - pyelftools has no types
    origin = _origin_with(die, name)
    return origin.attributes[name] if origin is not None else None
