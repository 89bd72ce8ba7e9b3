# SPDX-License-Identifier: Apache-2.0
"""Sizes in the layout of the JSON that Zephyr's scripts/footprint/size_report writes, for its tools."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from minrpc.sizes.pieces import Memory, Piece

TARGETS: Final[dict[str, Memory]] = {"rom": "flash", "ram": "ram"}
"""Zephyr's names of the reports."""


def size_report(pieces: Iterable[Piece], memory: Memory) -> dict[str, Any]:
    """A tree by path of source and symbol, and its sum."""
    root = _Node("Root", "root")
    for piece in pieces:
        if piece.memory == memory:
            root.add(_path(piece), piece)
    return {"symbols": root.to_json(), "total_size": root.size}


def _path(piece: Piece) -> list[str]:
    """A file's path in its checkout, as parts, then the symbol."""
    if piece.file.startswith("("):
        return [piece.file] if piece.symbol == piece.file else [piece.file, piece.symbol]
    name = piece.file.rsplit("/", 1)[-1]
    return [*(part for part in piece.component.split("/") if part), name, piece.symbol]


class _Node:
    def __init__(self, name: str, identifier: str) -> None:
        self.name, self.identifier = name, identifier
        self.size = 0
        self.children: dict[str, _Node] = {}
        self.piece: Piece | None = None

    def add(self, path: list[str], piece: Piece) -> None:
        self.size += piece.size
        if not path:
            self.piece = self.piece or piece
            return
        name, *rest = path
        identifier = name if self.identifier == "root" else f"{self.identifier}/{name}"
        self.children.setdefault(name, _Node(name, identifier)).add(rest, piece)

    def to_json(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"name": self.name, "size": self.size, "identifier": self.identifier}
        if self.piece is not None:
            entry |= {"address": self.piece.address, "section": self.piece.section}
        if self.children:
            largest = sorted(self.children.values(), key=lambda child: (-child.size, child.name))
            entry["children"] = [child.to_json() for child in largest]
        return entry
