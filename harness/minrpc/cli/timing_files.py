# SPDX-License-Identifier: Apache-2.0
"""Files of measurements, as `minrpc time --json` writes them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from minrpc.errors import ConfigurationError
from minrpc.timing import record
from minrpc.timing.record import Record


def read_records(path: Path, missing: list[Record] | None = None) -> list[Record]:
    """What is in the file, or `missing` when there is none. Raises ConfigurationError with the reason."""
    try:
        return record.parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if missing is not None:
            return missing
        step = f"write it with `minrpc time FUNC --json {path}`"
        raise ConfigurationError(f"there is no file {path}", next_step=step) from error
    except OSError as error:
        raise ConfigurationError(
            f"{path} can't be read: {error.strerror}", next_step="name another"
        ) from error
    except ValueError as error:
        raise ConfigurationError(
            f"{path} holds no timings: {error}", next_step="name another file"
        ) from error


def write_records(path: Path, records: Iterable[Record]) -> None:
    """All of them in place of what is there. Raises ConfigurationError with the reason."""
    try:
        path.write_text(record.dump(records), encoding="utf-8")
    except OSError as error:
        raise _unwritable(path, error) from error


def check_writable(path: Path) -> None:
    """Raise ConfigurationError when results can't be kept there: better before the measuring than after."""
    read_records(path, missing=[])
    try:
        with path.open("a", encoding="utf-8"):
            pass
        if path.stat().st_size == 0:
            path.unlink()
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(f"{path} can't be written: {error.strerror}", next_step="name another file")
