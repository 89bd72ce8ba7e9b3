# SPDX-License-Identifier: Apache-2.0
"""Reads the text of a hardware map. Importing PyYAML takes long: only commands with a map do it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from minrpc.errors import ConfigurationError


class MapLoader(yaml.SafeLoader):  # type: ignore[misc]  # PyYAML has no types.
    """Reads a map; an id such as 0011 is a text, not an octal number."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping, with ids as they are written."""
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        texts = {key.value: value.value for key, value in node.value if key.value in ("id", "probe_id")}
        return mapping | {key: text for key, text in texts.items() if mapping[key] is not None}


def read_map(path: Path) -> tuple[str, list[dict[str, Any]]]:
    """The text with its own line ends, and the entries. Raises ConfigurationError, which names the entry."""
    try:
        text = path.read_bytes().decode()
        document = yaml.load(text, MapLoader)
    except OSError as error:
        raise ConfigurationError(f"the hardware map {path} can't be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the hardware map {path} is no YAML: {error}") from error
    if not text.strip():
        step = "a shell empties FILE of `> FILE` first: write another one, and rename it"
        raise ConfigurationError(f"the hardware map {path} is empty", next_step=step)
    if not isinstance(document, list):
        step = "`minrpc board scan` or `twister --generate-hardware-map` writes such a list"
        raise ConfigurationError(f"the hardware map {path} is no list of boards", next_step=step)
    for number, entry in enumerate(document, 1):
        if not isinstance(entry, dict):
            raise ConfigurationError(f"{path}: entry {number} is no table of a board's facts")
    return text, document
