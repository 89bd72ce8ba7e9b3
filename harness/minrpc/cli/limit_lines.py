# SPDX-License-Identifier: Apache-2.0
"""Prints broken limits, a line each: as annotations in a GitHub job."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TextIO

from minrpc.publish.limit_check import Broken
from minrpc.targets.limits import Limit

# Characters to escape in the text of GitHub's workflow commands.
_ESCAPES: Final = {"%": "%25", "\r": "%0D", "\n": "%0A"}


def tell_limits(
    broken: Sequence[Broken], idle: Sequence[Limit], unchecked: Sequence[Limit], stream: TextIO
) -> None:
    """Prints a line for each broken limit: in a GitHub job an annotation, "::error ...", beside the change.

    idle: limits that apply to no measurement; named in one line.
    unchecked: growth limits without a base to compare with; named in one line.
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
