# SPDX-License-Identifier: Apache-2.0
"""Refuses options that another option, or its absence, makes useless: nothing given is ignored silently."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from minrpc.errors import ConfigurationError

CYCLE_OPTIONS: Final = ("core", "flash_wait_states", "flash_width")
"""The fields of the options that only estimated cycles depend on."""


def refuse(
    arguments: argparse.Namespace, names: Sequence[str], why: str, next_step: str = "leave it out"
) -> None:
    """Raise ConfigurationError if one of the options `names` differs from its default.

    names: the options' fields. why: such as "without --until".
    """
    default = arguments.parser.get_default
    given = [name for name in names if getattr(arguments, name) != default(name)]
    if given:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ConfigurationError(f"{options}: of no use {why}", next_step=next_step)
