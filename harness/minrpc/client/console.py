# SPDX-License-Identifier: Apache-2.0
"""The text that a device sends over the RPC link: session logs, and output between frames."""

from __future__ import annotations

import logging

from minrpc.errors import visible

device_log = logging.getLogger("minrpc.device")


class ConsoleTail:
    """The last `limit` characters of a device's text, for failures.

    Session logs also go to the `minrpc.device` logger.
    """

    def __init__(self, limit: int = 16384) -> None:
        self._limit = limit
        self._text = ""
        self._total = 0

    @property
    def text(self) -> str:
        """The kept text, in order of arrival."""
        return self._text

    def since(self, position: int) -> tuple[str, int]:
        """The kept text after `position`, and the position behind it; the first is 0."""
        new = self._total - position
        return (self._text[-new:] if new else ""), self._total

    def log(self, line: str) -> None:
        """Takes a session log."""
        device_log.info("%s", visible(line))
        newline = "" if not self._text or self._text.endswith("\n") else "\n"
        self._append(f"{newline}{line}\n")

    def noise(self, data: bytes) -> None:
        """Takes bytes between frames: text such as a boot banner, or the rest of a damaged frame."""
        self._append(data.decode("utf-8", "backslashreplace").replace("\r\n", "\n"))

    def _append(self, text: str) -> None:
        self._text = (self._text + text)[-self._limit :]
        self._total += len(text)
