# SPDX-License-Identifier: Apache-2.0
"""Hooks and fixtures of all tests: the selection of tests, and the directories where C is built."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path
from typing import Final

import pytest
from minrpc import Target
from minrpc.firmware.cache import cache_home
from minrpc.library import Sources, Toolset
from minrpc.tuning import compilers
from minrpc.tuning.compilers import Built, built
from packaging.requirements import Requirement

pytest_plugins = ["pytester", "tests.limit_marker", "tests.costs"]

_PASSED: Final = "tests/passed"
# Distributions that some tests need and that no extra has.
_NO_EXTRA: Final = {"torch"}
# Source trees of other projects that some tests need: the environment variable that names the directory.
_TREES: Final = {"cmsis-nn": "CMSIS_NN"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="slow tests, too: see DESIGN.md, Tests")
    parser.addoption(
        "--not-passed-in",
        type=Path,
        metavar="DIRECTORY",
        help="leaves out tests that have passed in the last run of another checkout of the same commit",
    )
    parser.addoption(
        "--load", action="store_true", help="runs all rounds of the load tests in tests/device, not a part"
    )
    parser.addoption(
        "--hostile-s",
        type=float,
        default=0.2,
        metavar="SECONDS",
        help="CPU time of the server's hostile clients, in seconds (default %(default)s)",
    )
    parser.addoption("--hostile-seed", type=int, default=42, metavar="N", help="seed of these clients")


def pytest_configure(config: pytest.Config) -> None:
    # A shell's background jobs ignore SIGINT, and each process that a test interrupts would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for line in (
        "extra(name): skipped unless all packages of this extra of minrpc-harness are installed, or, for"
        " cmsis-nn, unless CMSIS_NN names its source tree",
        "slow: left out without --all, unless its file is named on the command line",
        "limit(seconds): the test's time, of time that it could use; otherwise a limit of all tests",
        "once: as slow, on all default platforms but the first",
    ):
        config.addinivalue_line("markers", line)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects slow tests of files that the command line does not name, and tests that have passed
    elsewhere."""
    if elsewhere := config.getoption("--not-passed-in"):
        passed = set(json.loads((elsewhere / ".pytest_cache/v" / _PASSED).read_text()))
        _deselect(config, items, {item for item in items if item.nodeid in passed})
    if config.getoption("--all"):
        return
    named = [Path(config.invocation_params.dir, argument.partition("::")[0]) for argument in config.args]
    named_platforms = config.getoption("--minrpc-platform", None)
    platforms = [] if named_platforms else [*dict.fromkeys(filter(None, map(_platform, items)))]
    left_out = {
        item
        for item in items
        if item.path not in named
        and (
            item.get_closest_marker("slow")
            or (item.get_closest_marker("once") and _platform(item) in platforms[1:])
        )
    }
    _deselect(config, items, left_out)


def _deselect(config: pytest.Config, items: list[pytest.Item], left_out: set[pytest.Item]) -> None:
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Keeps the names of passed tests, for --not-passed-in."""
    cache = getattr(config, "cache", None)
    if cache is not None:
        failed = {report.nodeid for report in terminalreporter.getreports("error")}
        passed = {report.nodeid for report in terminalreporter.getreports("passed")}
        cache.set(_PASSED, sorted(passed - failed))


def _platform(item: pytest.Item) -> str:
    """The name of the test's platform; "" for a test without a device."""
    callspec = getattr(item, "callspec", None)
    values = callspec.params.values() if callspec is not None else ()
    return next((value.name for value in values if isinstance(value, Target)), "")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips a test whose extra is not installed. A skip here, before any fixture, makes all tests of an extra
    one line of the summary."""
    for mark in item.iter_markers("extra"):
        (extra,) = mark.args
        if extra in _TREES:
            if not os.environ.get(_TREES[extra]):
                pytest.skip(f"no source tree of {extra}: {_TREES[extra]}=DIR names it")
            continue
        if missing := _missing_packages(extra):
            what = extra if extra in _NO_EXTRA else f"-e '.[{extra}]'"
            pytest.skip(f"not installed: {missing} (pip install {what})")


@cache
def _missing_packages(extra: str) -> str:
    """The packages of an extra that are not installed, with commas."""
    wanted = [
        requirement.name
        for requirement in map(Requirement, requires("minrpc-harness") or [])
        if requirement.marker is not None
        and not requirement.marker.evaluate({"extra": ""})
        and requirement.marker.evaluate({"extra": extra})
    ]
    if extra in _NO_EXTRA:
        wanted = [extra]
    assert wanted, f"minrpc-harness has no extra {extra!r}"
    return ", ".join(name for name in wanted if not _is_installed(name))


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


class _CompilerHere:
    """Acts as minrpc.tuning's compiler process, in a thread of this process."""

    def build(self, sources: Sources, toolset: Toolset, base: int | None, timeout_s: float) -> Built:
        return built(sources, toolset, base)

    def end(self) -> str:
        return ""


@pytest.fixture(scope="module")
def compiler_here(request: pytest.FixtureRequest) -> Iterator[None]:
    """Candidates are compiled in this process; with --all, in separate processes.

    Each such process is a Python that imports the package; tests/unit/tuning/test_compilers.py has them.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not request.config.getoption("--all"):
            patch.setattr(compilers, "_Compiler", _CompilerHere)
        yield


@pytest.fixture
def users_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of pytest inside the test uses the user's cache of firmware, so that nothing is built twice.

    It must come before `pytester`, which gives the test another home.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_home().parent))


@pytest.fixture(scope="session")
def native_build(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Gives build directories by name. pytest's cache keeps them: a second run builds changed files only."""
    cache = getattr(request.config, "cache", None)
    return tmp_path_factory.mktemp if cache is None else cache.mkdir
