# SPDX-License-Identifier: Apache-2.0
"""This plugin together with other published plugins: Zephyr's for twister, and Espressif's
pytest-embedded."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from minrpc import MissingError
from minrpc.firmware import find_workspace, firmware_root
from minrpc.firmware.cache import locked

from tests.native import run_or_skip

# Environments are made, from the network.
pytestmark = pytest.mark.slow

RUN_S = 300
TESTS = """
def test_device(device):
    assert device.system_lib()["inc"](1) == 2

def test_without():
    pass
"""


@pytest.fixture(scope="session")
def environment(native_build: Callable[[str], Path]) -> Callable[..., Path]:
    """Makes virtual environments that have all of this environment, and further packages: their Python."""

    def make(name: str, *packages: str) -> Path:
        directory = native_build(f"plugins-{name}-{sys.version_info.major}.{sys.version_info.minor}")
        python, whole = directory / "bin" / "python", directory / "whole"
        with locked(directory.with_name(f"{directory.name}.lock")):
            if not whole.exists():
                shutil.rmtree(directory, ignore_errors=True)
                run_or_skip(sys.executable, "-m", "venv", str(directory))
                run_or_skip(str(python), "-m", "pip", "install", "-q", *packages)
                whole.touch()
        # This plugin is found through this environment's own directory, after the installed packages.
        here = sysconfig.get_path("purelib")
        there = directory / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
        (there / "ours.pth").write_text(f"import site; site.addsitedir({here!r})\n")
        return python

    return make


def run(python: Path, directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (directory / "test_it.py").write_text(TESTS)
    # labgrid's fixtures have names of pytest-embedded's, with or without this plugin.
    without = [word for name in ("cacheprovider", "xdist", "labgrid") for word in ("-p", f"no:{name}")]
    command = [str(python), "-m", "pytest", *without, "test_it.py", *options]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
        cwd=directory,
        env=os.environ | {"XDG_CONFIG_HOME": str(directory)},
    )


@pytest.fixture
def twister(environment: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    try:
        zephyr = find_workspace(firmware_root()).base
    except MissingError as error:
        pytest.skip(f"it comes with Zephyr: {error.message}")
    monkeypatch.setenv("ZEPHYR_BASE", str(zephyr))  # Without the option the plugin is not loaded.
    # A build writes beside its sources.
    source = tmp_path / "twister-source"
    shutil.copytree(zephyr / "scripts" / "pylib" / "pytest-twister-harness", source)
    return environment("twister", str(source))


@pytest.fixture
def embedded(environment: Callable[..., Path]) -> Path:
    return environment("embedded", "pytest-embedded", "pytest-embedded-serial")


def test_twisters_platform_stays_its_own(twister: Path, tmp_path: Path) -> None:
    """twister's `--platform` takes a name of Zephyr; this plugin's option has the long name, and a message
    names it."""
    ran = run(twister, tmp_path, "--platform", "qemu_x86/atom", "--minrpc-platform", "posix", "-v")
    assert "test_it.py::test_device[posix] PASSED" in ran.stdout, ran.stdout + ran.stderr
    assert "2 passed" in ran.stdout
    assert ran.returncode == 0
    ran = run(twister, tmp_path, "--platform", "qemu_x86/atom", "-k", "posix")
    assert "minrpc: --platform belongs to another plugin here; use --minrpc-platform" in ran.stdout
    assert "1 passed" in ran.stdout


def test_embeddeds_baud_stays_its_own(embedded: Path, tmp_path: Path) -> None:
    ran = run(embedded, tmp_path, "--baud", "115200", "--platform", "posix", "-v")
    assert "test_it.py::test_device[posix] PASSED" in ran.stdout, ran.stdout + ran.stderr
    assert ran.returncode == 0


@pytest.mark.parametrize("plugin", ["twister", "embedded"])
def test_help_names_all_options(plugin: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    ran = run(request.getfixturevalue(plugin), tmp_path, "--help")
    assert ran.returncode == 0, ran.stderr
    assert "--minrpc-platform" in ran.stdout
    assert "--minrpc-baud" in ran.stdout
