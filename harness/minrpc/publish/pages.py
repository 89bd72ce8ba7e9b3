# SPDX-License-Identifier: Apache-2.0
"""A run as a file: a page, or its data, by the file's ending."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from minrpc.errors import ConfigurationError
from minrpc.host.files import check_writable, write_output
from minrpc.publish.html_page import html_page
from minrpc.publish.markdown_page import markdown_page
from minrpc.publish.run_record import RunRecord


def html(run: RunRecord, base: RunRecord | None = None) -> str:
    """The page as HTML, with the present time in its last line."""
    return html_page(run, datetime.now(UTC).isoformat(" ", timespec="seconds"), base)


_WRITERS: Final[Mapping[str, Callable[[RunRecord, RunRecord | None], str]]] = {
    ".html": html,
    ".md": markdown_page,
    ".json": lambda run, base: run.to_json(),
}


def check_page(file: Path) -> None:
    """Raise ConfigurationError if the page can't be written."""
    if file.suffix not in _WRITERS:
        raise ConfigurationError(f"{file}: a report is one of {', '.join(_WRITERS)}")
    check_writable(file)


def write_page(file: str | Path, run: RunRecord, base: RunRecord | None = None) -> None:
    """Write the run's page, .html or .md, or its data, .json. base: an earlier run to compare with.

    Raises ConfigurationError for other endings, and if the file can't be written.
    """
    path = Path(file)
    check_page(path)
    write_output(path, _WRITERS[path.suffix](run, base))
