# SPDX-License-Identifier: Apache-2.0
"""The runtime built for this machine, under sanitizers."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.native import build, compiles, need_tools


@pytest.fixture(
    scope="session", params=["64", pytest.param("32", marks=pytest.mark.slow)], ids=lambda bits: f"{bits}bit"
)
def programs(request: pytest.FixtureRequest, native_build: Callable[[str], Path]) -> Path:
    """The directory of the test programs, built for that width."""
    bits = request.param
    need_tools("cmake", "ninja", "cc")
    if not compiles("cc", "-fsanitize=address,undefined", *(["-m32"] if bits == "32" else [])):
        pytest.skip(f"cc makes no sanitized {bits}-bit programs: apt-get install gcc-multilib")
    return build(Path(__file__).parent, native_build(f"runtime{bits}"), f"-DBITS={bits}")
