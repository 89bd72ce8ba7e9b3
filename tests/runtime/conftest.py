# SPDX-License-Identifier: Apache-2.0
"""The runtime built for this machine, under sanitizers."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.native import build, compiles, need_tools
from tests.runtime.door import Door
from tests.runtime.host import Host


@pytest.fixture(
    scope="session", params=[64, pytest.param(32, marks=pytest.mark.slow)], ids=["64bit", "32bit"]
)
def width(request: pytest.FixtureRequest) -> int:
    """The width of addresses."""
    return int(request.param)


@pytest.fixture(scope="session")
def programs(width: int, native_build: Callable[[str], Path]) -> Path:
    """The directory of the test programs, built for that width."""
    need_tools("cmake", "ninja", "cc")
    if not compiles("cc", "-fsanitize=address,undefined", *(["-m32"] if width == 32 else [])):
        pytest.skip(f"cc makes no sanitized {width}-bit programs: apt-get install gcc-multilib")
    return build(Path(__file__).parent, native_build(f"runtime{width}"), f"-DBITS={width}")


@pytest.fixture(scope="session")
def session_door(programs: Path, width: int) -> Iterator[Door]:
    """The program that all tests use."""
    door = Door(programs / "door", width)
    yield door
    door.stop()


@pytest.fixture
def door(session_door: Door) -> Door:
    """The program, ready for a test."""
    session_door.ready()
    return session_door


@pytest.fixture
def host(door: Door) -> Iterator[Host]:
    """A device in a session; after the test its arena is intact."""
    host = Host(door)
    yield host
    host.stop()
