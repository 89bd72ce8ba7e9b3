# SPDX-License-Identifier: Apache-2.0
"""The plugin: the interface version, a single build, and the error without a compiler."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

import pytest
from minrpc import QemuCounters, QemuMissingError, ToolchainMissingError
from minrpc.counters import Image
from minrpc.counters.plugin_build import SOURCE, api_of, plugin_for, qemu_version, step_after_refusal
from minrpc.replay.trace import SOURCE as RECORDER

from tests.unit.counters.test_image import image

__all__ = ["image"]


def fake_qemu(directory: Path, text: str) -> str:
    program = directory / "qemu-system-arm"
    program.write_text(f"#!/bin/sh\necho '{text}'\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    ("version", "api"),
    [((4, 1), 1), ((7, 2), 1), ((8, 2), 1), ((9, 0), 2), ((10, 2), 2), ((11, 0), 7), ((12, 1), 7)],
)
def test_the_interface_goes_by_qemus_version(version: tuple[int, int], api: int) -> None:
    assert api_of(version) == api


def test_a_version_is_read(tmp_path: Path) -> None:
    text = "QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)"
    assert qemu_version(fake_qemu(tmp_path, text)) == (10, 0)


def test_a_program_that_is_no_qemu_is_named(tmp_path: Path) -> None:
    program = fake_qemu(tmp_path, "hello")
    with pytest.raises(QemuMissingError, match=f"{program} --version says 'hello'"):
        qemu_version(program)
    with pytest.raises(QemuMissingError, match="No such file"):
        qemu_version(f"{tmp_path}/none")


@pytest.mark.parametrize(
    "output",
    [
        "qemu-system-arm: Could not load plugin x.so: plugin requires API version 7, but this QEMU supports "
        "only a minimum version of 9",
        "qemu-system-arm: Could not load plugin x.so: undefined symbol: qemu_plugin_tb_n_insns",
        "TCG plugin x.so requires API version 1, but this QEMU supports only up to version 0",
    ],
)
def test_a_refusal_names_versions_that_were_tried(output: str, tmp_path: Path) -> None:
    qemu = fake_qemu(tmp_path, "QEMU emulator version 12.1.0")
    step = step_after_refusal(output, qemu)
    assert step is not None
    assert "QEMU 12.1" in step
    assert "7.2, 10.0 and 11.1" in step


@pytest.mark.parametrize("output", ["-plugin: invalid option", "-plugin file=x.so: plugins aren't enabled"])
def test_a_qemu_that_was_built_without_plugins_is_told(output: str, tmp_path: Path) -> None:
    """Its version may be one that was tried."""
    qemu = fake_qemu(tmp_path, "QEMU emulator version 7.2.22")
    step = step_after_refusal(f"qemu-system-arm: {output}", qemu)
    assert step is not None
    assert "QEMU 7.2 was built without plugins" in step
    assert "7.2, 10.0" not in step


def test_another_end_of_qemu_is_no_refusal(tmp_path: Path) -> None:
    assert step_after_refusal("qemu-system-arm: could not open 'x.elf'", f"{tmp_path}/none") is None


def test_it_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    qemu = fake_qemu(tmp_path, "QEMU emulator version 7.2.22")
    built = plugin_for(qemu)
    made = built.stat().st_mtime_ns
    assert built.is_relative_to(tmp_path / "cache")
    assert plugin_for(qemu) == built
    assert built.stat().st_mtime_ns == made


@pytest.mark.parametrize("version", ["10.0.2", "11.1.2"])
@pytest.mark.parametrize("source", [SOURCE, RECORDER])
def test_it_compiles_for_newer_interfaces(
    source: Path, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert plugin_for(fake_qemu(tmp_path, f"QEMU emulator version {version}"), source).is_file()


def test_without_a_compiler_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    qemu = fake_qemu(tmp_path, "QEMU emulator version 7.2.22")
    _ = qemu_version(qemu)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainMissingError, match="apt-get install gcc"):
        plugin_for(qemu)


def installed(library: Path, image: Image) -> int:
    """The result of the plugin's entry function for memory in this package's layout: it checks the memory
    before it needs QEMU."""
    with QemuCounters(image) as counters:
        (descriptor,) = counters.descriptors
        word = ctypes.c_char_p(f"fd={descriptor}".encode())
        plugin = ctypes.CDLL(str(library), mode=os.RTLD_LAZY)
        answer: int = plugin.qemu_plugin_install(ctypes.c_uint64(0), None, 1, ctypes.byref(word))
        return answer


@pytest.mark.parametrize(
    ("place", "field"),
    [
        ("uint64_t loads;\n", "\tuint64_t stalls;\n"),  # of struct window
        ("uint64_t calls;\n", "\tuint64_t returns;\n"),  # of struct node
        ("\tuint64_t trace_from;", "\tuint64_t trace_to;\n"),  # of struct control
    ],
)
def test_memory_of_another_layout_is_refused(
    place: str, field: str, tmp_path: Path, image: Image, capfd: pytest.CaptureFixture[str]
) -> None:
    source = SOURCE.read_text()
    assert place in source
    at = source.index(place)
    changed = tmp_path / "changed.c"
    changed.write_text(source[:at] + field + source[at:])
    words = [
        "cc",
        "-std=c11",
        "-fPIC",
        "-shared",
        "-DPLUGIN_API=1",
        f"-I{SOURCE.parent}",
        str(changed),
        "-o",
        "changed.so",
    ]
    subprocess.run(words, cwd=tmp_path, check=True)
    assert installed(tmp_path / "changed.so", image) == -1
    assert "no shared memory of layout" in capfd.readouterr().err
