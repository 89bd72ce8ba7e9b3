# SPDX-License-Identifier: Apache-2.0
"""Refuses options that another option, or its absence, makes useless: nothing given is ignored silently."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from minrpc.errors import ConfigurationError


def refuse(
    arguments: argparse.Namespace,
    declare: Callable[[argparse.ArgumentParser], None],
    names: Sequence[str],
    why: str,
    next_step: str = "leave it out",
) -> None:
    """Raise ConfigurationError if one of the options `names` differs from its default.

    declare: declares the command's options. names: the options' fields. why: such as "without --until".
    """
    plain = argparse.ArgumentParser()
    declare(plain)
    given = [name for name in names if getattr(arguments, name) != plain.get_default(name)]
    if given:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ConfigurationError(f"{options}: of no use {why}", next_step=next_step)
