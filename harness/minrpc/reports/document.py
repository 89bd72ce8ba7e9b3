# SPDX-License-Identifier: Apache-2.0
"""JSON of every command: an envelope around the command's own content; see docs/json.md."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

from minrpc.errors import BuildError, HarnessError

FORMAT: Final = "minrpc"
VERSION: Final = 3
"""Version of the envelope and its content: grows when a key changes its meaning or goes."""

CHECKSUM: Final = "checksum"
PACKAGE: Final = "minrpc-harness"
UNITS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "_s": "seconds",
        "_bytes": "bytes of 8 bits",
        "_ticks": "ticks of the device's clock",
        "_cycles": "cycles of a core, estimated",
        "_hz": "counts a second",
        "_ppm": "parts in a million",
        "_ratio": "1",
    }
)
"""The unit of a number by the end of its key. Other numbers are counts, or have a key for their unit."""


def package_version() -> str:
    """Version of this program; "unknown" where it is not installed."""
    from importlib import metadata  # Takes a third of the time that `minrpc --help` takes.

    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        return "unknown"


def document(
    command: str, content: Mapping[str, Any], *, passed: bool = True, failure: HarnessError | None = None
) -> dict[str, Any]:
    """The results of `command`, with the facts needed to read them.

    passed: whether the command ended with 0.
    failure: the reason why there is no result.
    """
    made = {
        "format": FORMAT,
        "version": VERSION,
        "command": command,
        "minrpc": package_version(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "units": dict(UNITS),
        "passed": passed and failure is None,
        "failure": failure_json(failure) if failure is not None else None,
        **content,
    }
    return sealed(made)


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content with a checksum of its other keys and their values, in their order."""
    rest = {key: value for key, value in content.items() if key != CHECKSUM}
    return {**rest, CHECKSUM: hashlib.sha256(json.dumps(rest).encode()).hexdigest()[:16]}


def failure_json(error: HarnessError) -> dict[str, Any]:
    """A failure: its class, the stage, the event, and the next step."""
    return {
        "class": type(error).__name__,
        "stage": error.stage,
        "message": error.message,
        "details": list(error.details),
        "waited_for": error.waited_for,
        "wall_s": error.wall_s,
        "cpu_s": error.cpu_s,
        "log": str(error.log_path) if isinstance(error, BuildError) and error.log_path else None,
        "next_step": error.next_step,
        "report": str(error),
    }


def to_text(content: Mapping[str, Any]) -> str:
    """The document as the text of a file; a byte of a name that is no UTF-8 is escaped as JSON does."""
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def parse(text: str, command: str, *others: str) -> dict[str, Any]:
    """The document that `minrpc COMMAND --json` wrote, or a command in `others`.

    Raises ValueError with the reason for any other text.
    """
    try:
        parsed = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error}") from error
    except RecursionError as error:
        raise ValueError("it is not JSON of this program: its lists are too deep") from error
    if not isinstance(parsed, dict) or parsed.get("format") != FORMAT:
        raise ValueError(f"`minrpc {command} --json` did not write it")
    if parsed.get("version") != VERSION:
        raise ValueError(f"it is of version {parsed.get('version')}, this program reads {VERSION}")
    if parsed.get("command") not in (command, *others):
        raise ValueError(f"`minrpc {parsed.get('command')} --json` wrote it, not `minrpc {command} --json`")
    if parsed.get(CHECKSUM, "") not in ("", sealed(parsed)[CHECKSUM]):
        step = f"take out the key {CHECKSUM} if it was edited on purpose"
        raise ValueError(f"its content is not the written content, by its checksum; {step}")
    return parsed
