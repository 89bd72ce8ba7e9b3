# SPDX-License-Identifier: Apache-2.0
"""Refuses options that another option, or its absence, makes useless: nothing given is ignored silently."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from minrpc.errors import ConfigurationError

CYCLE_OPTIONS: Final = ("core", "flash-wait-states", "flash-width")
"""The options that only estimated cycles depend on."""


def refuse(
    arguments: argparse.Namespace, names: Sequence[str], why: str, next_step: str = "leave it out"
) -> None:
    """Raise ConfigurationError if one of the options `names` differs from its default.

    names: as on the command line, without "--". why: such as "without --until".
    """
    fields = {name.replace("-", "_"): f"--{name}" for name in names}
    default = arguments.parser.get_default
    given = [option for field, option in fields.items() if getattr(arguments, field) != default(field)]
    if given:
        options = ", ".join(given)
        raise ConfigurationError(f"{options}: of no use {why}", next_step=next_step)
