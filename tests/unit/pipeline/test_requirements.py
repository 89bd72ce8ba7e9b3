# SPDX-License-Identifier: Apache-2.0
"""Missing requirements of a platform, found with programs that only print their version."""

import sys
from pathlib import Path

import pytest
from minrpc import PLATFORMS, lacking
from minrpc.pipeline import requirements
from minrpc.pipeline.requirements import missing_packages, program


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The only directory with programs."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))
    return directory


def add(directory: Path, name: str, says: str) -> None:
    """Write a program that prints `says`, with any arguments."""
    script = directory / name
    script.write_text(f"#!/bin/sh\necho '{says}'\n")
    script.chmod(0o755)


def test_a_program_with_its_version(programs: Path) -> None:
    add(programs, "cmake", "cmake version 3.25.1")
    found = program("cmake")
    assert (found.found, found.missing) == ("cmake version 3.25.1", False)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(("name", "package"), [("cmake", "cmake"), ("ninja", "ninja-build")])
def test_a_program_that_is_missing_names_its_package(name: str, package: str) -> None:
    found = program(name)
    assert found.missing
    assert (found.problem, found.command) == ("not installed", f"sudo apt-get install {package}")


@pytest.mark.parametrize("name", ["cmake", "ninja", "qemu-system-arm"])
def test_a_program_that_does_not_run_is_missing(name: str, programs: Path) -> None:
    """A program without one of its shared libraries prints an error, no version."""
    (programs / name).write_text("#!/bin/sh\necho 'error while loading shared libraries' >&2\nexit 127\n")
    (programs / name).chmod(0o755)
    found = program(name)
    assert found.missing
    assert "does not run" in found.problem
    assert "exit status 127" in found.problem
    assert found.command.startswith("install it again")


def test_a_machine_with_everything_lacks_nothing(programs: Path) -> None:
    for name in ("gcc", "cmake", "ninja"):
        add(programs, name, f"{name} 13.2.0")
    assert lacking(PLATFORMS["posix"]) == []
    assert [requirement.found for requirement in requirements(PLATFORMS["posix"])] == [
        "gcc 13.2.0",
        "cmake 13.2.0",
        "ninja 13.2.0",
    ]


def test_a_compiler_without_its_library(programs: Path) -> None:
    """GCC prints the given name of a file that it does not find."""
    for name in ("cmake", "ninja"):
        add(programs, name, f"{name} 3")
    add(programs, "arm-none-eabi-gcc", "picolibc.specs")
    add(programs, "qemu-system-arm", "QEMU emulator version 8.2.2")
    (lacks,) = lacking(PLATFORMS["bare_mps2_an385"])
    assert (lacks.name, lacks.command) == ("picolibc", "sudo apt-get install picolibc-arm-none-eabi")


@pytest.mark.usefixtures("programs")
def test_the_packages_that_named_platforms_lack() -> None:
    arm, riscv = (
        missing_packages(["bare_mps2_an385"]),
        missing_packages(["bare_rv32", "bare_rv64", "nothing"]),
    )
    assert {"gcc-arm-none-eabi", "picolibc-arm-none-eabi", "qemu-system-arm"} <= set(arm)
    assert {"gcc-riscv64-unknown-elf", "picolibc-riscv64-unknown-elf", "qemu-system-misc"} <= set(riscv)
    assert len(set(riscv)) == len(riscv)
    assert missing_packages([]) == []


def test_a_qemu_that_is_too_old(programs: Path) -> None:
    add(programs, "qemu-system-arm", "QEMU emulator version 2.11.1")
    lacks = {item.name: item.problem for item in lacking(PLATFORMS["bare_mps2_an385"])}
    assert "version 2.11 is older than" in lacks["qemu-system-arm"]


def test_a_cmake_that_is_too_old(programs: Path) -> None:
    add(programs, "cmake", "cmake version 3.16.3")
    (lacks,) = [item for item in lacking(PLATFORMS["posix"]) if item.name == "cmake"]
    assert lacks.problem == "version 3.16 is older than 3.20"
    assert lacks.command.endswith("-m pip install 'cmake>=3.20'")


def zephyr_tree(base: Path, python: str, cmake: str) -> Path:
    """Write the files of a Zephyr 4.5.0 that tell its version, and the tools that its build takes."""
    (base / "cmake" / "modules").mkdir(parents=True)
    (base / "VERSION").write_text("VERSION_MAJOR = 4\nVERSION_MINOR = 5\nPATCHLEVEL = 0\n")
    (base / "cmake/modules/python.cmake").write_text(f"set(PYTHON_MINIMUM_REQUIRED {python})\n")
    text = f"# the real minimum\ncmake_minimum_required(VERSION {cmake})\n"
    (base / "cmake/modules/zephyr_default.cmake").write_text(text)
    return base


def test_a_zephyr_that_needs_newer_tools_says_so_before_a_build(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = f"3.{sys.version_info.minor + 1}"
    base = zephyr_tree(tmp_path / "zephyr", newer, "3.28.0")
    monkeypatch.setenv("ZEPHYR_BASE", str(base))
    add(programs, "cmake", "cmake version 3.25.1")
    lacks = {item.name: item for item in lacking(PLATFORMS["qemu_x86"])}
    assert lacks["Zephyr"].problem.startswith(
        f"Zephyr 4.5.0 in {base} needs Python {newer} or newer, and this"
    )
    assert (
        lacks["Zephyr"].command
        == f"install MinRPC with Python {newer}, or set ZEPHYR_BASE to an older Zephyr"
    )
    assert lacks["cmake"].problem == "version 3.25 is older than 3.28, which Zephyr 4.5.0 needs"
    assert lacks["cmake"].command.endswith("-m pip install 'cmake>=3.28'")


@pytest.mark.parametrize("cmake", ["3.28.0", "4.3.4"])
def test_a_zephyr_with_the_tools_that_it_needs(
    cmake: str, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZEPHYR_BASE", str(zephyr_tree(tmp_path / "zephyr", "3.11", "3.28.0")))
    add(programs, "cmake", f"cmake version {cmake}")
    found = {item.name: item.found for item in requirements(PLATFORMS["qemu_x86"])}
    assert found["Zephyr"].startswith("4.5.0 in ")
    assert found["cmake"] == f"cmake version {cmake}"
