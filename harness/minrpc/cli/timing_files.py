# SPDX-License-Identifier: Apache-2.0
"""Files of measurements, as `minrpc time --json` writes them."""

from __future__ import annotations

from pathlib import Path

from minrpc.errors import ConfigurationError
from minrpc.host.files import change_whole, unwritable
from minrpc.timing import record
from minrpc.timing.record import TimingRecord, merged


def read_records(path: Path, *others: str, missing: list[TimingRecord] | None = None) -> list[TimingRecord]:
    """The file's measurements, or `missing` if the file is missing or empty. Raises ConfigurationError with
    the reason.

    others: further commands whose files have measurements and can be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
        return missing if missing is not None and not text.strip() else record.parse(text, *others)
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
        raise _not_ours(path, error) from error


def add_record(path: Path, new: TimingRecord) -> None:
    """Replace the earlier measurement of the same call; measurements that other processes write meanwhile are
    kept.

    Raises ConfigurationError with the reason.
    """

    def changed(text: str | None) -> str:
        return record.dump(merged(record.parse(text) if text and text.strip() else [], new))

    try:
        change_whole(path, changed)
    except OSError as error:
        raise unwritable(path, error) from error
    except ValueError as error:
        raise _not_ours(path, error) from error


def _not_ours(path: Path, error: ValueError) -> ConfigurationError:
    return ConfigurationError(
        f"{path} holds no timings: {error}", next_step="measure again, or name another file"
    )
