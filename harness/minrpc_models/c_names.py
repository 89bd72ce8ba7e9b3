# SPDX-License-Identifier: Apache-2.0
"""Valid C and C++ names for a model's inputs and outputs, next to the names of any header."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

_KEYWORDS: Final = """
    alignas alignof auto bool break case char const constexpr continue default do double else enum
    extern false float for goto if inline int long nullptr register restrict return short signed
    sizeof static static_assert struct switch thread_local true typedef typeof typeof_unqual union
    unsigned void volatile while and and_eq asm atomic_cancel atomic_commit atomic_noexcept bitand
    bitor catch char16_t char32_t char8_t class co_await co_return co_yield compl concept const_cast
    consteval constinit contract_assert decltype delete dynamic_cast explicit export friend mutable
    namespace new noexcept not not_eq operator or or_eq private protected public reflexpr
    reinterpret_cast requires static_cast synchronized template this throw try typeid typename using
    virtual wchar_t xor xor_eq
"""
# Macros without arguments, from the standard's headers and from non-conforming compilers.
_MACROS: Final = """
    BUFSIZ CLOCKS_PER_SEC EOF EXIT_FAILURE EXIT_SUCCESS FILENAME_MAX HUGE_VAL I INFINITY L_tmpnam
    MATH_ERREXCEPT MATH_ERRNO NAN NDEBUG NULL RAND_MAX TIME_UTC TMP_MAX TVMGEN_WEIGHTS TVM_DLL arm
    assert complex errno far huge i386 imaginary interrupt linux near noreturn pascal stderr stdin
    stdout unix vector pixel
"""
_TAKEN: Final = frozenset((_KEYWORDS + _MACROS).split())
_LIMITS: Final = re.compile(
    r"[A-Z][A-Z0-9]*_([A-Z0-9]+_)*(MAX|MIN|WIDTH|BIT|DIG|EPSILON)|(FE|FP|SIG)[A-Z_]+|E[A-Z0-9_]+|"
    r"M_[A-Z0-9_]+|(SEEK|LC|FLT|DBL|LDBL)_[A-Z_]+|(PRI|SCN)[a-zA-Z0-9]+"
)
# Reserved for the language and its library: __anything, _Anything.
_RESERVED: Final = re.compile(r"_[A-Z_]")


def identifier(name: str) -> str:
    """`name` with "_" for each character that is no letter or digit; needs a prefix before it."""
    cleaned = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"_{cleaned}" if not cleaned or cleaned[0].isdigit() else cleaned


def field_names(names: Iterable[str]) -> list[str]:
    """Names of a struct's members, one for each name: no keyword, no macro, all different."""
    fields: list[str] = []
    for name in names:
        fields.append(different(_free(identifier(name)), fields))
    return fields


def _free(name: str) -> str:
    if _RESERVED.match(name):
        name = f"tensor{name}"
    taken = name in _TAKEN or _LIMITS.fullmatch(name)
    return f"{name}_" if taken else name


def different(name: str, taken: Iterable[str]) -> str:
    """`name`, with a number appended if it is taken."""
    others = set(taken)
    number = 1
    numbered = name
    while numbered in others:
        number += 1
        numbered = f"{name}_{number}"
    return numbered


def renamed(kind: str, fields: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """The model's names of those members of its struct `kind` that are renamed in C, by "KIND.FIELD"."""
    return {f"{kind}.{field}": name for field, name in zip(fields, names, strict=True) if field != name}
