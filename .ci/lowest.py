# SPDX-License-Identifier: Apache-2.0
"""The lowest versions that a pyproject.toml declares, as a file of constraints for pip: `NAME==VERSION`."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path


def lowest(text: str) -> list[str]:
    """A line for each dependency that has a lowest version, of the package and of its extras."""
    project = tomllib.loads(text)["project"]
    extras = project.get("optional-dependencies", {}).values()
    found = [*project["dependencies"], *(one for extra in extras for one in extra)]
    bounds = (re.match(r"([\w.-]+)(?:\[[^]]*\])?>=([\w.]+)", one) for one in found)
    return sorted({f"{bound[1]}=={bound[2]}" for bound in bounds if bound})


if __name__ == "__main__":
    print("\n".join(lowest(Path(sys.argv[1]).read_text(encoding="utf-8"))))
