# SPDX-License-Identifier: Apache-2.0
"""The targets of a command; the platforms that it leaves out are named when it ends, and in its JSON."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sized

from minrpc.errors import ConfigurationError
from minrpc.pipeline.requirements import lacking, lacking_to_build
from minrpc.pipeline.selection import Selection, select_runnable
from minrpc.targets import Target
from minrpc.targets.options import options_from


def selected(arguments: argparse.Namespace, *, starts: bool = True) -> Selection:
    """The targets that the options select; `minrpc.cli.main` names the rest. Raises as `select_runnable`.

    starts: False if firmware is only built, so that boards are selected, too.
    """
    options = options_from(vars(arguments))
    selection = select_runnable(options, lacking if starts else lacking_to_build)
    arguments.left_out = dict(selection.left_out)
    if getattr(arguments, "cmake_option", None):
        _require_builds(selection.targets)
    return selection


def require_one(targets: Sized, what: str) -> None:
    """Raise ConfigurationError for several targets. what: such as "--plot takes"."""
    if len(targets) > 1:
        raise ConfigurationError(f"{what} one platform", next_step="name one with --platform")


def _require_builds(targets: Iterable[Target]) -> None:
    for target in targets:
        if target.build_dir is not None or (target.attached and target.flash == "never"):
            message = f"--cmake-option is for a build, and nothing is built for {target.name}"
            raise ConfigurationError(message, next_step="leave it out, or add --flash auto for a board")
