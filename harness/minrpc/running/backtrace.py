# SPDX-License-Identifier: Apache-2.0
"""The callers when a device crashed or hung: the return addresses on its stack that fit.

A word of the stack is a return address if it points behind a call. Finished calls leave such words as well:
a word counts only if its call enters the function whose caller is wanted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from minrpc.counters.image import Image
from minrpc.program.program import CodeRange
from minrpc.running.crash_instructions import LONGEST_CALL, CallInstruction, call_before

_VENEER: Final = "_veneer"
# The compiler's library jumps here for a divisor of 0, and leaves no return address; the function faults.
DIVIDES_BY_ZERO: Final = re.compile(r"(?:__wrap_)?__aeabi_[il]div0")
_DIVIDES: Final = re.compile(r"__aeabi_u?[il]div(?:mod)?")
# The runtime and its port, which call the user's functions: by their directories; without debug information,
# by their functions' prefix.
_RUNTIME_DIRECTORIES: Final = ("/zephyr-app/runtime/", "/zephyr-app/ports/")
_RUNTIME_PREFIX: Final = "minrpc_"


class ReturnAddress(NamedTuple):
    """address: in the calling function, behind the call."""

    address: int
    call: CallInstruction


class Backtrace(NamedTuple):
    """function: the function at `address`; None if lost. callers: the innermost first."""

    function: CodeRange | None
    address: int | None
    callers: tuple[int, ...] = ()
    own_code: bool = False
    """True if the function is the runtime's, outside any call."""
    by_pointer: bool = False
    """True if the innermost call goes through a pointer."""


def trace(image: Image, pc: int | None, words: Iterable[int]) -> Backtrace:
    """The backtrace from the program counter, the link register and the stack. pc: None if it is lost."""
    returns = list(_returns(image, words))
    function = image.function_at(_even(image, pc)) if pc is not None else None
    if pc is not None and function is not None:
        chain = _chain(image, function, returns)
        return _trace(image, function, _even(image, pc), chain)
    chains = [chain for chain in _chains(image, returns) if not _is_runtime(image, chain[0].address - 1)]
    # A word left by a finished call seldom leads to loaded code.
    chains.sort(key=lambda chain: image.program_at(chain[0].address) is image.program)
    if not chains:
        return Backtrace(None, None if pc is None else _even(image, pc))
    target = chains[0][0].call.target
    return _trace(image, None if target is None else image.function_at(_even(image, target)), None, chains[0])


def _chains(image: Image, returns: Sequence[ReturnAddress]) -> Iterator[list[ReturnAddress]]:
    """For each return address, the return addresses of its callers, if they lead to the runtime."""
    for index, call in enumerate(returns):
        caller = _caller(image, call)
        chain = [call, *_chain(image, caller, returns[index + 1 :])] if caller else []
        if chain and _is_runtime(image, chain[-1].address - 1):
            yield chain


def _trace(
    image: Image, function: CodeRange | None, address: int | None, chain: Sequence[ReturnAddress]
) -> Backtrace:
    users = []
    for call in chain:
        if _is_runtime(image, call.address - 1):
            break
        users.append(call.address)
    own_code = address is not None and _is_runtime(image, address)
    by_pointer = bool(chain) and chain[0].call.target is None
    return Backtrace(function, address, tuple(users), own_code, by_pointer)


def _returns(image: Image, words: Iterable[int]) -> Iterable[ReturnAddress]:
    for word in words:
        at = _even(image, word)
        call = call_before(image.machine, word, image.bytes_at(at - LONGEST_CALL, LONGEST_CALL))
        if call is not None and image.function_at(at - 1) is not None:
            yield ReturnAddress(at, call)


def _chain(image: Image, function: CodeRange, returns: Sequence[ReturnAddress]) -> list[ReturnAddress]:
    """The calls that lead to `function`. A call through a pointer may lead to any."""
    chain: list[ReturnAddress] = []
    while (index := _next_of(image, function, returns)) is not None:
        if not chain or chain[-1] != returns[index]:  # A recursion counts once.
            chain.append(returns[index])
        if _is_runtime(image, chain[-1].address - 1):
            break
        caller = _caller(image, returns[index])
        assert caller is not None
        function, returns = caller, returns[index + 1 :]
    return chain


def _next_of(image: Image, function: CodeRange, returns: Sequence[ReturnAddress]) -> int | None:
    direct = (index for index, call in enumerate(returns) if _enters(image, call.call, function))
    through_pointer = (index for index, call in enumerate(returns) if call.call.target is None)
    return next(direct, next(through_pointer, None))


def _enters(image: Image, call: CallInstruction, function: CodeRange) -> bool:
    if call.target is None:
        return False
    entered = image.function_at(_even(image, call.target))
    return entered is not None and (
        entered == function
        or (_VENEER in entered.name and function.name in entered.name)
        or bool(DIVIDES_BY_ZERO.match(function.name) and _DIVIDES.search(entered.name))
    )


def _caller(image: Image, return_address: ReturnAddress) -> CodeRange | None:
    return image.function_at(return_address.address - 1)


def _is_runtime(image: Image, address: int) -> bool:
    function, line = image.function_at(address), image.program_at(address).line_at(address)
    if line is not None:
        return any(directory in line.file for directory in _RUNTIME_DIRECTORIES)
    return function is not None and function.name.startswith(_RUNTIME_PREFIX)


def _even(image: Image, address: int) -> int:
    """The address without the Thumb bit."""
    return address & ~1 if image.machine == "EM_ARM" else address
