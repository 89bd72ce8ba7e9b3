# SPDX-License-Identifier: Apache-2.0
"""Broken limits as lines: in a job of GitHub's as its annotations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TextIO

from minrpc.publish.limits import Broken
from minrpc.targets.limits import Limit

# What GitHub's commands may not have in their text.
_ESCAPES: Final = {"%": "%25", "\r": "%0D", "\n": "%0A"}


def tell_limits(
    broken: Sequence[Broken], idle: Sequence[Limit], unchecked: Sequence[Limit], stream: TextIO
) -> None:
    """One line each: "::error ..." where GitHub runs us, which it then shows beside the change.

    idle: limits that nothing was held against, told in one line.
    unchecked: those of growth that have no base, likewise.
    """
    if idle:
        print(f"minrpc: nothing was measured for {', '.join(limit.key for limit in idle)}", file=stream)
    if unchecked:
        names = ", ".join(limit.key for limit in unchecked)
        print(f"minrpc: not checked, as there is no base to compare with: {names}", file=stream)
    inside = os.environ.get("GITHUB_ACTIONS") == "true"
    for limit in broken:
        text = str(limit)
        if inside:
            for letter, code in _ESCAPES.items():
                text = text.replace(letter, code)
            print(f"::error title={limit.limit.key}::{text}", file=stream)
        else:
            print(f"minrpc: over the limit: {text}", file=stream)
