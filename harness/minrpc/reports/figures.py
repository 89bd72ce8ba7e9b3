# SPDX-License-Identifier: Apache-2.0
"""Pictures in files, by matplotlib, which is an extra: `pip install 'minrpc-harness[plot]'`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from minrpc.errors import ConfigurationError
from minrpc.host.files import check_writable, unwritable

FORMATS: Final = (".pdf", ".png", ".svg")


def check_target(target: Path) -> None:
    """Raise ConfigurationError if no picture can be drawn there; call it before the measuring."""
    if target.suffix not in FORMATS:
        raise ConfigurationError(
            f"{target}: a plot is one of {', '.join(FORMATS)}", next_step="name such a file"
        )
    if not target.absolute().parent.is_dir():
        raise ConfigurationError(
            f"{target}: there is no such directory", next_step="make it, or name another file"
        )
    check_writable(target)
    _figure_class()


def new_figure(width: float, height: float) -> Any:  # noqa: ANN401 - a class of a package that may be missing
    """An empty figure, sizes in inches. Save it with `save_figure`; it has no window and no global state."""
    return _figure_class()(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, target: Path) -> None:  # noqa: ANN401
    """Save a figure of `new_figure`. Raises ConfigurationError."""
    try:
        figure.savefig(target)
    except OSError as error:
        raise unwritable(target, error) from error


def _figure_class() -> Any:  # noqa: ANN401
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigurationError(
            "plots need matplotlib, which is not installed",
            next_step="run `pip install 'minrpc-harness[plot]'`, or leave --plot out",
        ) from error
    return Figure
