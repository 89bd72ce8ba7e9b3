# SPDX-License-Identifier: Apache-2.0
"""`--json FILE` of the commands: writes a document, replacing the file; "-" is standard output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, Final, TextIO

from minrpc.errors import HarnessError
from minrpc.host.files import check_writable, write_output
from minrpc.reports.document import document, to_text

STDOUT: Final = Path("-")


def add_json_option(
    add: Callable[..., object], help_text: str = "write the result to this file, too"
) -> None:
    """Declare the option by `add`, which has the parameters of `argparse.ArgumentParser.add_argument`."""
    add(
        "--json",
        type=Path,
        metavar="FILE",
        help=f"{help_text}; - for standard output, with all other text on standard error",
    )


@contextmanager
def json_output(arguments: argparse.Namespace) -> Iterator[None]:
    """Context of a command: text goes to standard error if the document goes to standard output.

    A failure becomes a document, too. Raises ConfigurationError at once for a file that can't be written.
    """
    path: Path | None = getattr(arguments, "json", None)
    arguments.json_stdout = sys.stdout
    if path is None:
        yield
        return
    if path != STDOUT:
        check_writable(path)
    try:
        if path == STDOUT:
            with redirect_stdout(sys.stderr):
                yield
        else:
            yield
    except HarnessError as error:
        if not getattr(arguments, "json_keeps", False):
            write_json(arguments, {}, failure=error)
        raise


def write_json(
    arguments: argparse.Namespace,
    content: Mapping[str, Any],
    *,
    passed: bool = True,
    failure: HarnessError | None = None,
) -> None:
    """Write the command's document to the file of `--json`, if given. Raises ConfigurationError."""
    path: Path | None = arguments.json
    if path is None:
        return
    left_out = getattr(arguments, "left_out", None)
    if left_out is not None:
        content = {**content, "left_out": left_out}
    text = to_text(document(arguments.command, content, passed=passed, failure=failure))
    if path == STDOUT:
        out: TextIO = arguments.json_stdout
        out.write(text)
        return
    write_output(path, text)
