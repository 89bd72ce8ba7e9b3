# SPDX-License-Identifier: Apache-2.0
"""A function on the device that waits for Python: its question, the memory behind it, the answer.

The question is the reply to a request, and the answer is the next request: both are numbered and sent again
like all others. A question of loaded code is the address of the function in C, and its arguments of 8 bytes
each. An answer is a list of commands, each of command, size, a number, and data up to a multiple of 8.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from struct import Struct
from types import TracebackType
from typing import Final, Protocol

from minrpc.client.link import SessionLink
from minrpc.errors import ConfigurationError, DialectError, HarnessError
from minrpc.wire.replies import Question, RemoteException, decode_reply, is_question
from minrpc.wire.requests import Answer, encode_request
from minrpc.wire.values import Argument, Buffer, Dialect, Handle, MalformedError, TypeCode

_WORD: Final = Struct("<Q")
_COMMAND: Final = Struct("<IIQ")
_RETURN: Final = 1
_PEEK: Final = 2
_POKE: Final = 3
_NEXT: Final = 4
_RESERVE: Final = 5
_CALL: Final = 6
_DONE: Final = Struct("<qiiq")
_ARGUMENT: Final = Struct("<qq")
_FLOAT_ARGUMENT: Final = Struct("<dq")

MOST_ARGUMENTS: Final = 16
"""Most arguments of a function that Python calls while a function waits for it."""

# Most functions that wait for Python at a time.
_DEEPEST: Final = 8

# Bytes that one question for memory reads: if C gave a wrong length, little is left on the link at the
# deadline.
_PIECE: Final = 1 << 16

# Seconds for an answer that ends the call after the call's own time is up.
_END_S: Final = 1.0

_PACKAGE: Final = f"{Path(__file__).parent.parent}/"


def raised_in_answer(error: BaseException) -> TracebackType | None:
    """The traceback of an error of a function in Python that C called, without this package's frames; None
    for another error."""
    places = []
    traceback, is_answer, is_ours = error.__traceback__, False, True
    while traceback is not None:
        code = traceback.tb_frame.f_code
        is_answer |= code is Conversation.answer.__code__
        is_ours = code.co_filename.startswith(_PACKAGE)
        places += [] if is_ours else [traceback]
        traceback = traceback.tb_next
    kept = None
    for place in reversed(places if is_answer and not is_ours else []):
        kept = TracebackType(kept, place.tb_frame, place.tb_lasti, place.tb_lineno)
    return kept


class FunctionOnHost(Protocol):
    """Protocol: a function in Python that answers calls of a C function."""

    @property
    def name(self) -> str:
        """Its name in C."""
        ...

    def respond(self, conversation: Conversation, words: memoryview) -> int:
        """The result as 8 bytes. words: the arguments, 8 bytes each."""
        ...

    def asked_at(self, words: memoryview) -> int:
        """The address of the instruction of C that asks."""
        ...


ALL: Final = 1 << 64
"""The size of all memory."""


class HeldCopies(Protocol):
    """Protocol: copies of the device's memory that the function in Python has as values, and may change."""

    def send(self, address: int = 0, size: int = ALL, /) -> None:
        """Write changed bytes of the copies that have bytes there in common."""

    def changed(self, address: int, data: bytes, /) -> None:
        """Take bytes that were written on the device."""

    def take_again(self) -> None:
        """Read what a function of the device may have written."""


class MemoryOnHost(Protocol):
    """Protocol: memory that only Python has, at addresses of the device."""

    def content(self, address: int, size: int, /) -> bytes | None:
        """Its present bytes; None for memory of the device."""
        ...

    def overwrite(self, address: int, data: bytes, /) -> bool:
        """Change its bytes. Returns False for memory of the device."""
        ...


class Conversation:
    """One question of a running function, until its answer.

    held: the copies that the function in Python has, which reads, writes and calls meanwhile respect.
    """

    def __init__(
        self,
        link: SessionLink,
        body: Buffer,
        stage: str,
        functions: Mapping[int, FunctionOnHost],
        outer: Conversation | None = None,
        on_host: MemoryOnHost | None = None,
    ) -> None:
        """body: the reply with the question. functions: by the address of the function in C. outer: with the
        function that waits and whose call by Python led to this one. on_host: is not asked of the device."""
        self._link = link
        self._stage = stage
        self._generation = link.generation
        self._left_s, self._whole_s = link.left_s, link.whole_s
        self._over = False
        self._outer = outer
        self._functions = functions
        self._on_host = on_host
        self._inner: Conversation | None = None
        self._ended_by = ""
        self._waiting = b""
        self.held: HeldCopies | None = None
        self.name = "a function of the device"
        question = self._question(body)
        size = len(question.data)
        if size < _WORD.size or size % _WORD.size or question.room < 3 * _COMMAND.size:
            raise DialectError(f"{stage}: a question of {size} bytes names no function")
        self._room = question.room
        (address,) = _WORD.unpack_from(question.data)
        self._words = question.data[_WORD.size :]
        self._function = functions.get(address)
        self.name = self._function.name if self._function is not None else f"a function at 0x{address:x}"

    @property
    def is_there(self) -> bool:
        """False when the function in Python has given its answer."""
        return not self._over

    @property
    def deepest(self) -> Conversation:
        """The conversation with the function that waits now."""
        return self if self._inner is None else self._inner.deepest

    @property
    def chain(self) -> tuple[str, ...]:
        """The names of the functions that wait, the first one first."""
        return (*(self._outer.chain if self._outer is not None else ()), self.name)

    def answer(self, *, timed: bool) -> Buffer:
        """Call the function in Python and send its result; the device's next reply.

        Raises the function's own errors, and ConfigurationError if `timed`.
        """
        try:
            if self._function is None:
                raise DialectError(f"{self.name} asks Python, which has no such function")
            if timed:
                raise self._untimed()
            value = self._function.respond(self, self._words)
        except BaseException:
            self._end()
            raise
        finally:
            self._over = True
        return self._send(_COMMAND.pack(_RETURN, 0, value))

    def read(self, address: int, size: int) -> bytes:
        """Bytes of the device's memory, at any address. Raises ValueError when the function has returned."""
        self._require_open(address, size)
        if self._inner is not None:
            return self.deepest.read(address, size)
        for held in self._copies():
            held.send(address, size)
        known = self._on_host.content(address, size) if self._on_host is not None else None
        if known is not None:
            return known
        try:
            content = b"".join(
                self._question(self._send(_COMMAND.pack(_PEEK, min(_PIECE, size - at), address + at))).data
                for at in range(0, size, _PIECE)
            )
        except HarnessError as error:
            error.details += (f"{size:,} bytes at 0x{address:x} were being read for {self.name}",)
            raise
        if len(content) != size:
            raise DialectError(f"{self.name}: {len(content)} of {size} bytes at 0x{address:x} came")
        return content

    def write(self, address: int, data: bytes) -> None:
        """Overwrite bytes of the device's memory, now or with the answer. Raises as `read` does."""
        self._require_open(address, len(data))
        if self._inner is not None:
            self.deepest.write(address, data)
            return
        for held in self._copies():
            held.changed(address, data)
        if self._on_host is not None and self._on_host.overwrite(address, data):
            return
        piece = (self._room - 2 * _COMMAND.size) & ~7
        for at in range(0, len(data), piece):
            part = data[at : at + piece]
            command = _COMMAND.pack(_POKE, len(part), address + at) + part.ljust(
                -(-len(part) // 8) * 8, b"\0"
            )
            if len(self._waiting) + len(command) + _COMMAND.size > self._room:
                self._question(self._send(b""))
            self._waiting += command

    def next_argument(self, letter: str) -> bytes:
        """8 bytes: the next argument behind the named ones, of the type that the letter names to the stub."""
        return bytes(self._question(self._send(_COMMAND.pack(_NEXT, 0, ord(letter)))).data)

    def reserve(self, size: int) -> int:
        """The address of `size` bytes of the device's stack, until the function returns."""
        data = self._question(self._send(_COMMAND.pack(_RESERVE, size, 0))).data
        return int(_WORD.unpack(data)[0])

    def call(self, name: str, thunk: int, arguments: Sequence[Argument]) -> object:
        """Call a packed function of the device at its address, on the stack of the function that waits.

        Raises ConfigurationError for too many arguments or functions that wait, and as a call does.
        """
        self._require_callable(name, len(arguments))
        for held in self._copies():
            held.send()
        data = b"".join(map(_argument, arguments))
        body = self._send(_COMMAND.pack(_CALL, len(data), thunk) + data)
        question = self._question(body)
        while question.data[: _WORD.size] != bytes(_WORD.size):
            body = self._answered(body)
            question = self._question(body)
        _, status, code, number = _DONE.unpack(question.data)
        for held in self._copies():
            held.take_again()
        if status:
            raise DialectError(f"{name} refused its arguments", stage=f"call {name}")
        if code == TypeCode.FLOAT:
            return float(_FLOAT_ARGUMENT.unpack(_ARGUMENT.pack(number, 0))[0])
        return None if code == TypeCode.NULL else number

    def _copies(self) -> Iterator[HeldCopies]:
        """The copies of all functions in Python that wait."""
        if self.held is not None:
            yield self.held
        if self._outer is not None:
            yield from self._outer._copies()

    def _answered(self, body: Buffer) -> Buffer:
        """The next reply, after a function that was called meanwhile got its answer."""
        self._inner = Conversation(self._link, body, self._stage, self._functions, self, self._on_host)
        try:
            return self._inner.answer(timed=False)
        except BaseException:
            self._ended_by = self._inner._ended_by or self._inner.name
            raise
        finally:
            self._left_s = self._inner._left_s
            self._inner = None

    def _require_callable(self, name: str, count: int) -> None:
        if count > MOST_ARGUMENTS:
            raise ConfigurationError(
                f"{name} has {count} arguments, and while {self.name} waits {MOST_ARGUMENTS} is the most",
                stage=f"call {name}",
                next_step="call it when the function has returned",
            )
        if len(self.chain) >= _DEEPEST:
            raise ConfigurationError(
                f"{name} would be too deep: {' -> '.join(self.chain)} wait for Python already",
                stage=f"call {name}",
                next_step=f"at most {_DEEPEST} functions wait at a time",
            )

    def refusal(self) -> ConfigurationError:
        """The error for another request while the device waits."""
        return ConfigurationError(
            f"{self.name} runs in Python, and the device waits for it: it can't serve another request",
            stage=self._stage,
            next_step="read and write memory, arrays, variables, and call C functions of loaded libraries",
        )

    def _untimed(self) -> ConfigurationError:
        timed = self._stage.removeprefix("call ").removesuffix(" (timed)")
        return ConfigurationError(
            f"{timed} is not timed: it calls {self.name}, and Python's time would count",
            stage=self._stage,
            next_step=f"load a C file with {self.name} beside it, and time that",
        )

    def _require_open(self, address: int, size: int) -> None:
        if self._over:
            raise ValueError(
                f"{self.name} has returned: its arguments' memory can be read and written only while it runs"
            )
        if not address and size:
            raise ValueError(f"{self.name}: the pointer is NULL")

    def _send(self, commands: bytes) -> Buffer:
        if self._ended_by:
            raise DialectError(
                f"{self.name}: the call has ended on the device, since {self._ended_by} raised an exception",
                stage=self._stage,
            )
        waiting, self._waiting = self._waiting, b""
        if self._link.generation != self._generation:
            raise DialectError(f"{self.name}: the session in which it was called has ended")
        packet = encode_request(Answer(waiting + commands), Dialect.V0_8_0)
        body = self._link.request(packet, self._stage, self._left_s, whole_s=self._whole_s, place=self._place)
        if is_question(body):
            self._left_s = self._link.left_s
        return body

    def _place(self) -> str:
        """The line of C that asked Python."""
        assert self._function is not None
        at = self._function.asked_at(self._words)
        return f"it asked Python for {self.name}, in {self._link.owner.place_of(at)}"

    def _end(self) -> None:
        """Make the device end the function, because Python raised an exception."""
        if self._ended_by or self._link.generation != self._generation or not self._link.usable:
            return
        packet = encode_request(Answer(b""), Dialect.V0_8_0)
        try:
            self._link.request(packet, self._stage, max(self._left_s, _END_S))
        except HarnessError as error:
            error.__suppress_context__ = True  # The session is lost, too, and the next call starts another.

    def _question(self, body: Buffer) -> Question:
        try:
            reply = decode_reply(body, Dialect.V0_8_0)
        except MalformedError as error:
            raise DialectError(f"{self._stage}: the question can't be read: {error}") from error
        if isinstance(reply, RemoteException):
            raise DialectError(f"{self.name}: {reply.text}", stage=self._stage)
        if not isinstance(reply, Question):
            raise DialectError(f"{self.name}: the device went on without an answer", stage=self._stage)
        return reply


def _argument(value: Argument) -> bytes:
    """An argument as a stub takes it: 8 bytes, and its type code."""
    if isinstance(value, Handle):
        return _ARGUMENT.pack(value.value, TypeCode.HANDLE)
    if isinstance(value, float):
        return _FLOAT_ARGUMENT.pack(value, TypeCode.FLOAT)
    assert isinstance(value, int), f"a C function's argument is a number or an address, not {value!r}"
    return _ARGUMENT.pack(value, TypeCode.INT)
