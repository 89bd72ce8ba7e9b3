# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin: the devices that tests share, and the plugin's reports.

pytest rewrites every module of a plugin's distribution for messages of failed assertions. This package's
modules have none that a user sees, so they are found before pytest looks for them.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


class _AsWritten:
    """Finds this package's modules as Python itself does, with their bytecode."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return PathFinder.find_spec(name, path, target) if name.startswith("minrpc.") else None


sys.meta_path.insert(0, _AsWritten())
