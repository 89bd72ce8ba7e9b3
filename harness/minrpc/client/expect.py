# SPDX-License-Identifier: Apache-2.0
"""A device's console as a pexpect object: `device.console.expect("ready")`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from pexpect import EOF, TIMEOUT
from pexpect.spawnbase import SpawnBase

from minrpc.client.console import ConsoleTail
from minrpc.errors import LinkClosedError
from minrpc.host.process import TextTail

_TIMEOUT_S: Final = 30
_FOR_EVER_S: Final = 1e9
# Between two looks at the link: at its console's text, and at text that another thread has read.
_LOOK_S: Final = 0.05


class Console(SpawnBase):  # type: ignore[misc]
    """The device's output, on its own console and as logs over the link. It takes no input.

    `expect`, `expect_exact`, `before`, `after`, `match` and the rest are pexpect's; times are plain seconds,
    30 unless `timeout` gives another number. Each call continues behind the last match.

    Raises pexpect's TIMEOUT when the text does not come, and EOF when the device has ended.
    """

    def __init__(
        self,
        name: str,
        beside: TextTail | None,
        start: int,
        over_link: ConsoleTail,
        hear: Callable[[float], object],
    ) -> None:
        """hear: takes what comes over the link, waiting up to so many seconds for its first byte."""
        super().__init__(timeout=_TIMEOUT_S, encoding="utf-8", codec_errors="backslashreplace")
        self.name = name
        self.delayafterread = None
        self._beside = beside
        self._position = start
        self._over_link = over_link
        self._link_position = 0
        self._hear = hear

    def read_nonblocking(self, size: int = 1, timeout: float | None = -1) -> str:
        """Waits for output and returns all of it. `size` is pexpect's and is ignored."""
        seconds = self.timeout if timeout == -1 else timeout
        text = self._arrived(None)
        try:
            text = text or self._arrived(_FOR_EVER_S if seconds is None else max(0.0, seconds))
        except LinkClosedError as error:
            self.flag_eof = True
            raise EOF(error.message) from error
        if text:
            self._log(text, "read")
            return text
        if self._beside is not None and self._beside.ended:
            self.flag_eof = True
            raise EOF(f"{self.name} has ended")
        raise TIMEOUT("Timeout exceeded.")

    def _arrived(self, wait_s: float | None) -> str:
        """The new text, waiting up to `wait_s` seconds for its start; None: only text already read."""
        end = time.monotonic() + (wait_s or 0.0)
        while True:
            left = max(0.0, end - time.monotonic())
            if wait_s is not None:
                self._hear(min(left, _LOOK_S) if self._beside is None else 0.0)
            text, self._link_position = self._over_link.since(self._link_position)
            if self._beside is not None:
                look_s = 0.0 if text else min(left, _LOOK_S)
                beside, self._position = self._beside.since(self._position, look_s)
                printed: str = self._decoder.decode(beside).replace("\r\n", "\n")
                text = printed + text
            # A part of a message, or of a character, is no text yet.
            if text or not left or (self._beside is not None and self._beside.ended):
                return text
