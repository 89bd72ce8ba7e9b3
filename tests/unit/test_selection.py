# SPDX-License-Identifier: Apache-2.0
"""The selection of tests (tests/conftest.py), by running pytest on a few."""

from __future__ import annotations

import pytest

TESTS = """
import pytest
from minrpc import Target
from minrpc.targets import load_platforms

TARGETS = [Target(load_platforms()[name]) for name in ("posix", "qemu_x86")]

@pytest.fixture
def damaged():
    yield
    raise RuntimeError

def test_fast():
    pass

def test_ends(damaged):
    pass

@pytest.mark.slow
def test_slow():
    assert 0

@pytest.mark.once
@pytest.mark.parametrize("where", TARGETS, ids=["1", "2"])
def test_once(where):
    pass
"""


def run(pytester: pytest.Pytester, *options: str) -> list[str]:
    """The tests that run."""
    result = pytester.runpytest("-v", *options)
    ran = {line.split()[0] for line in result.outlines if line.endswith("%]")}
    deselected = result.parseoutcomes().get("deselected", 0)
    assert len(ran) + deselected == 6
    return sorted(ran)


@pytest.fixture
def some(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest('pytest_plugins = ["tests.conftest"]')
    pytester.makepyfile(test_a=TESTS, test_b="def test_slow(): pass")
    return pytester


A = [f"test_a.py::test_{name}" for name in ("ends", "fast", "once[1]", "once[2]", "slow")]
B = "test_b.py::test_slow"


def test_slow_tests_and_further_platforms_wait_for_all_or_their_files_name(some: pytest.Pytester) -> None:
    assert run(some) == [*A[:3], B]
    assert run(some, "--minrpc-platform", "posix,qemu_x86") == [*A[:4], B]
    assert run(some, "--all") == [*A, B]
    assert run(some, "test_a.py", ".") == [*A, B]


def test_tests_that_passed_elsewhere_are_left_out(some: pytest.Pytester) -> None:
    """Neither a test that failed, nor one whose fixture failed, has passed."""
    run(some, "--all")
    assert run(some, "--all", "--not-passed-in", str(some.path)) == [A[0], A[4]]
