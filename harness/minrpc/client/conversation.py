# SPDX-License-Identifier: Apache-2.0
"""A function on the device that waits for Python: its question, the memory behind it, the answer.

The question is the reply to a request, and the answer is the next request: both are numbered and sent again
like all others. A question of loaded code is the address of the function in C, and its arguments of 8 bytes
each. An answer is a list of commands, each of command, size, a number, and data up to a multiple of 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Final, Protocol

from minrpc.client.link import SessionLink
from minrpc.errors import ConfigurationError, DialectError, HarnessError
from minrpc.wire.replies import Question, RemoteException, decode_reply, is_question
from minrpc.wire.requests import Answer, encode_request
from minrpc.wire.values import Buffer, Dialect, MalformedError

_WORD: Final = Struct("<Q")
_COMMAND: Final = Struct("<IIQ")
_RETURN: Final = 1
_PEEK: Final = 2
_POKE: Final = 3

# Bytes that one question for memory reads: if C gave a wrong length, little is left on the link at the
# deadline.
_PIECE: Final = 1 << 16

# Seconds for an answer that ends the call after the call's own time is up.
_END_S: Final = 1.0


class FunctionOnHost(Protocol):
    """Protocol: a function in Python that answers calls of a C function."""

    @property
    def name(self) -> str:
        """Its name in C."""
        ...

    def respond(self, conversation: Conversation, words: memoryview) -> int:
        """The result as 8 bytes. words: the arguments, 8 bytes each."""
        ...


class Conversation:
    """One question of a running function, until its answer."""

    def __init__(
        self, link: SessionLink, body: Buffer, stage: str, functions: Mapping[int, FunctionOnHost]
    ) -> None:
        """body: the reply with the question. functions: by the address of the function in C."""
        self._link = link
        self._stage = stage
        self._generation = link.generation
        self._left_s = link.left_s
        self._over = False
        self._waiting = b""
        self.name = "a function of the device"
        question = self._question(body)
        if len(question.data) < _WORD.size or question.room < 3 * _COMMAND.size:
            raise DialectError(f"{stage}: a question of {len(question.data)} bytes names no function")
        self._room = question.room
        (address,) = _WORD.unpack_from(question.data)
        self._words = question.data[_WORD.size :]
        self._function = functions.get(address)
        self.name = self._function.name if self._function is not None else f"a function at 0x{address:x}"

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
        try:
            return b"".join(
                self._question(self._send(_COMMAND.pack(_PEEK, min(_PIECE, size - at), address + at))).data
                for at in range(0, size, _PIECE)
            )
        except HarnessError as error:
            error.details += (f"{size:,} bytes at 0x{address:x} were being read for {self.name}",)
            raise

    def write(self, address: int, data: bytes) -> None:
        """Overwrite bytes of the device's memory, now or with the answer. Raises as `read` does."""
        self._require_open(address, len(data))
        piece = (self._room - 2 * _COMMAND.size) & ~7
        for at in range(0, len(data), piece):
            part = data[at : at + piece]
            command = _COMMAND.pack(_POKE, len(part), address + at) + part.ljust(
                -(-len(part) // 8) * 8, b"\0"
            )
            if len(self._waiting) + len(command) + _COMMAND.size > self._room:
                self._question(self._send(b""))
            self._waiting += command

    def refusal(self) -> ConfigurationError:
        """The error for another request while the device waits."""
        return ConfigurationError(
            f"{self.name} runs in Python, and the device waits for it: it can't serve another request",
            stage=self._stage,
            next_step="read and write memory only: pointers, variables; call a function when it has returned",
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
        waiting, self._waiting = self._waiting, b""
        if self._link.generation != self._generation:
            raise DialectError(f"{self.name}: the session in which it was called has ended")
        packet = encode_request(Answer(waiting + commands), Dialect.V0_8_0)
        body = self._link.request(packet, self._stage, self._left_s)
        if is_question(body):
            self._left_s = self._link.left_s
        return body

    def _end(self) -> None:
        """Make the device end the function, because Python raised an exception."""
        if self._link.generation != self._generation or not self._link.usable:
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
