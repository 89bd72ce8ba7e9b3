# SPDX-License-Identifier: Apache-2.0
"""The choice of a compiler, with simulated SDKs and compilers in a temporary directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from minrpc import ToolchainMissingError
from minrpc.firmware.toolchain import base_extensions, debian_toolchain, find_sdk, zephyr_toolchain


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, and a PATH with one directory, which is returned."""
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(bin_dir))
    for name in ("ZEPHYR_TOOLCHAIN_VARIANT", "ZEPHYR_SDK_INSTALL_DIR", "LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    return bin_dir


def make_compiler(bin_dir: Path, name: str, *, picolibc: bool = True, libgcc_class: int = 1) -> None:
    """Write a program that answers like GCC. libgcc_class: ELF's class, 1 for 32 bits, 2 for 64."""
    libgcc = bin_dir / f"{name}-libgcc.a"
    libgcc.write_bytes(b"!<arch>\nmember  \x7fELF" + bytes([libgcc_class]))
    specs = "/gcc/picolibc.specs" if picolibc else "picolibc.specs"
    script = f"""#!/bin/sh
case "$1" in
--version) echo "{name} 12.2" ;;
--print-file-name=picolibc.specs) echo {specs} ;;
*) echo {libgcc} ;;
esac
"""
    (bin_dir / name).write_text(script)
    (bin_dir / name).chmod(0o755)


def make_sdk(path: Path, version: str) -> Path:
    path.mkdir(parents=True)
    (path / "sdk_version").write_text(version + "\n")
    return path


def test_the_users_choice_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_sdk(tmp_path / "zephyr-sdk-0.17.0", "0.17.0")
    monkeypatch.setenv("ZEPHYR_TOOLCHAIN_VARIANT", "gnuarmemb")
    monkeypatch.setenv("GNUARMEMB_TOOLCHAIN_PATH", "/opt/arm")
    chosen = zephyr_toolchain("arm")
    assert chosen.environment == {}
    assert "gnuarmemb" in chosen.description
    assert "/opt/arm" in chosen.description


def test_the_sdk_before_debian(tmp_path: Path, bare_machine: Path) -> None:
    make_compiler(bare_machine, "arm-none-eabi-gcc")
    sdk = make_sdk(tmp_path / "zephyr-sdk-0.16.8", "0.16.8")
    assert zephyr_toolchain("arm").environment == {
        "ZEPHYR_TOOLCHAIN_VARIANT": "zephyr",
        "ZEPHYR_SDK_INSTALL_DIR": str(sdk),
    }


def test_the_newest_sdk(tmp_path: Path) -> None:
    make_sdk(tmp_path / "zephyr-sdk-0.9.5", "0.9.5")
    newest = make_sdk(tmp_path / ".local" / "zephyr-sdk-0.17.2", "0.17.2")
    registry = tmp_path / ".cmake" / "packages" / "Zephyr-sdk"
    registry.mkdir(parents=True)
    listed = make_sdk(tmp_path / "elsewhere", "0.16.1")
    (registry / "x").write_text(str(listed / "cmake"))
    assert find_sdk() == newest


def test_a_named_sdk_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ZEPHYR_SDK_INSTALL_DIR", str(tmp_path / "mine"))
    assert find_sdk() == tmp_path / "mine"


def test_native_programs_are_the_hosts_compilers(tmp_path: Path, bare_machine: Path) -> None:
    make_sdk(tmp_path / "zephyr-sdk-0.17.0", "0.17.0")
    make_compiler(bare_machine, "gcc")
    assert zephyr_toolchain("host").environment["ZEPHYR_TOOLCHAIN_VARIANT"] == "host"


@pytest.mark.parametrize("multilib", [True, False])
def test_a_package_that_removes_another_is_not_proposed(
    multilib: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bare_machine: Path
) -> None:
    monkeypatch.setattr("minrpc.firmware.toolchain._PACKAGES", tmp_path / "doc")
    if multilib:
        (tmp_path / "doc" / "gcc-multilib").mkdir(parents=True)
    with pytest.raises(ToolchainMissingError) as caught:
        debian_toolchain("arm64")
    assert ("apt-get" in caught.value.next_step) is not multilib


def test_debians_arm_compiler(bare_machine: Path) -> None:
    make_compiler(bare_machine, "arm-none-eabi-gcc")
    chosen = zephyr_toolchain("arm")
    assert chosen.description == "arm-none-eabi-gcc 12.2"
    assert chosen.environment == {
        "ZEPHYR_TOOLCHAIN_VARIANT": "gnuarmemb",
        "GNUARMEMB_TOOLCHAIN_PATH": str(bare_machine.parent),
        "LDFLAGS": "-Wl,-u,_stage2_boot",
    }


@pytest.mark.parametrize("arch", ["arm64", "riscv"])
def test_the_compiler_on_path_is_zephyrs(
    arch: str, bare_machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links of ccache's, and a link to the compiler, stand before it on PATH."""
    compiler = {"arm64": "aarch64-linux-gnu-gcc", "riscv": "riscv64-unknown-elf-gcc"}[arch]
    wrappers, links = tmp_path / "wrappers", tmp_path / "links"
    for directory in (wrappers, links):
        directory.mkdir()
    make_compiler(bare_machine, "ccache")
    make_compiler(bare_machine, compiler)
    (wrappers / compiler).symlink_to(bare_machine / "ccache")
    (links / compiler).symlink_to(bare_machine / compiler)
    monkeypatch.setenv("PATH", f"{wrappers}:{links}")
    prefix = str(bare_machine / compiler.removesuffix("gcc"))
    assert debian_toolchain(arch).environment == {
        "ZEPHYR_TOOLCHAIN_VARIANT": "cross-compile",
        "CROSS_COMPILE": prefix,
    }


@pytest.mark.parametrize(
    ("arch", "compiler", "step"),
    [
        ("riscv32", "riscv64-unknown-elf-gcc", "west sdk install"),
        ("x86", "x86_64-linux-gnu-gcc", "apt-get install gcc-multilib"),
    ],
)
def test_a_compiler_without_libgcc_for_32_bits_is_refused(
    bare_machine: Path, arch: str, compiler: str, step: str
) -> None:
    make_compiler(bare_machine, compiler, libgcc_class=2)
    with pytest.raises(ToolchainMissingError, match=f"{compiler} has no libgcc of 32 bits for -m") as caught:
        zephyr_toolchain(arch)
    assert step in caught.value.next_step
    make_compiler(bare_machine, compiler, libgcc_class=1)
    assert zephyr_toolchain(arch).description == f"{compiler} 12.2"


def test_libgcc_is_asked_for_by_letters_only() -> None:
    flags = ("-mabi=ilp32f", "-march=rv32imafc_zicsr_zifencei", "-mcmodel=medlow", "-imacros/x_z/y")
    assert base_extensions(flags) == ("-mabi=ilp32f", "-march=rv32imafc", "-mcmodel=medlow", "-imacros/x_z/y")
    assert base_extensions(["-march=armv8.1-m.main_x"]) == ("-march=armv8.1-m.main_x",)


def test_missing_compilers_name_the_command() -> None:
    with pytest.raises(ToolchainMissingError, match="arm-none-eabi-gcc is not installed") as caught:
        debian_toolchain("arm")
    assert "apt-get install gcc-arm-none-eabi picolibc-arm-none-eabi" in caught.value.next_step


def test_bare_metal_needs_picolibc_too(bare_machine: Path) -> None:
    make_compiler(bare_machine, "arm-none-eabi-gcc", picolibc=False)
    assert debian_toolchain("arm").description == "arm-none-eabi-gcc 12.2"
    with pytest.raises(ToolchainMissingError, match="picolibc is not installed"):
        debian_toolchain("arm", bare=True)


def test_an_unknown_processor() -> None:
    with pytest.raises(ToolchainMissingError, match="'tricore'") as caught:
        zephyr_toolchain("tricore")
    assert "Zephyr SDK" in caught.value.next_step
