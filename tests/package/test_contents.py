# SPDX-License-Identifier: Apache-2.0
"""Contents of the sdist and of the wheel made from it: all sources that an installed package builds from."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Sources of the firmware of any port, which an installed package needs.
FIRMWARE = ("zephyr-app", "boards", "zephyr", "CMakeLists.txt", "Kconfig", "prj.conf")
COPIES = "minrpc/firmware/sources"


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with sdist and wheel, as `python -m build` makes them: the wheel from the sdist."""
    if not (ROOT / ".git").exists():
        pytest.skip("only a checkout of git says which files belong to it")
    target = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return target


def tracked(*paths: str) -> set[str]:
    """The files of the checkout below `paths`, relative to it. Skips the test where git is not installed."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed: it says which files belong to the checkout")
    listed = subprocess.check_output(
        ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", *paths]
    )
    return {name for name in listed.decode().splitlines() if (ROOT / name).is_file()}


@pytest.mark.extra("dev")
def test_the_sdist_is_the_checkout(dist: Path) -> None:
    (file,) = dist.glob("*.tar.gz")
    with tarfile.open(file) as sdist:
        members = {member.name.partition("/")[2]: member for member in sdist.getmembers()}
    assert tracked() - set(members) == set()
    assert [name for name, member in members.items() if member.issym() or member.islnk()] == []


@pytest.mark.extra("dev")
def test_the_wheel_builds_all_firmware(dist: Path) -> None:
    (file,) = dist.glob("*.whl")
    names = set(zipfile.ZipFile(file).namelist())
    firmware = tracked(*FIRMWARE)
    assert "boards/qemu_x86.overlay" in firmware
    assert {f"{COPIES}/{name}" for name in firmware} - names == set()
    package = {name.removeprefix("harness/") for name in tracked("harness/minrpc", "harness/minrpc_models")}
    assert package - names == set()
    assert "minrpc/py.typed" in names


def test_there_is_no_link_in_the_checkout() -> None:
    assert [name for name in tracked() if (ROOT / name).is_symlink()] == []
