# SPDX-License-Identifier: Apache-2.0
"""Memory that a plugin in QEMU shares with this process."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from minrpc.counters.plugin_build import plugin_for


class PluginMemory:
    """A plugin for one run of QEMU, and its memory. Also a context manager, which frees the memory."""

    def __init__(self, name: str, source: Path) -> None:
        """name: of the memory, for lists of the system's. source: the plugin's C."""
        self._source = source
        self._fd = os.memfd_create(name)
        try:
            self._map()
        except BaseException:
            self.close()
            raise

    def _map(self) -> None:
        """Give the memory its size, map it, and write what the plugin reads when QEMU starts."""
        raise NotImplementedError

    def arguments(self, qemu: str) -> list[str]:
        """QEMU's arguments for the plugin. Raises as `plugin_for` does."""
        plugin = str(plugin_for(qemu, self._source)).replace(",", ",,")
        return ["-plugin", f"file={plugin},fd={self._fd}"]

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The descriptors that QEMU inherits."""
        return (self._fd,)

    def close(self) -> None:
        """Free the memory; QEMU keeps its own mapping."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
