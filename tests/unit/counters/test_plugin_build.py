# SPDX-License-Identifier: Apache-2.0
"""The plugin: the interface version, a single build, and the error without a compiler."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

import pytest
from minrpc import (
    EmulatorExitedError,
    QemuCounters,
    QemuMissingError,
    ToolchainMissingError,
    counters_for,
    start,
)
from minrpc.counters import Image, plugin_build
from minrpc.counters.plugin_build import SOURCE, api_of, plugin_for, qemu_version, step_after_refusal
from minrpc.cycles import load_core
from minrpc.replay.trace import SOURCE as RECORDER

from tests.native import built, need_tools
from tests.unit.counters.test_image import image, program

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


def test_the_error_of_a_start_has_the_step_after_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    firmware = built("bare_mps2_an385")
    monkeypatch.setattr(plugin_build, "api_of", lambda version: 99)
    with counters_for(firmware.elf) as counters, pytest.raises(EmulatorExitedError) as caught:
        start(firmware, counters=counters)
    assert "ould not load plugin" in str(caught.value)
    assert caught.value.next_step.startswith("this is QEMU ")


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
    plugin = plugin_for(qemu)
    made = plugin.stat().st_mtime_ns
    assert plugin.is_relative_to(tmp_path / "cache")
    assert plugin_for(qemu) == plugin
    assert plugin.stat().st_mtime_ns == made


def test_all_that_makes_a_plugin_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(plugin_build, "_compile", lambda *given: given[-1].touch())
    first, other = fake_qemu(tmp_path, "QEMU emulator version 10.0.2"), tmp_path / "11"
    other.mkdir()
    made = [plugin_for(first), plugin_for(fake_qemu(other, "QEMU emulator version 11.1.2"))]
    made.append(plugin_for(first, RECORDER))
    for name, value in (("_HEADER", Path(__file__)), ("_FLAGS", ("-O1",)), ("_COMPILERS", ("true",))):
        monkeypatch.setattr(plugin_build, name, value)
        made.append(plugin_for(first))
    assert len({*made}) == 6


@pytest.mark.parametrize("version", ["10.0.2", "11.1.2"])
def test_the_recorder_compiles_for_newer_interfaces(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert plugin_for(fake_qemu(tmp_path, f"QEMU emulator version {version}"), RECORDER).is_file()


@pytest.mark.parametrize("version", ["9.0.4", "10.0.2", "11.1.2"])
def test_1000_by_7_and_a_skipped_division_have_exact_cycles(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In qemu.c, which has the types of each QEMU."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    plugin = plugin_for(fake_qemu(tmp_path, f"QEMU emulator version {version}"))
    need_tools("arm-none-eabi-gcc")
    arm = ("-mcpu=cortex-m3", "-mthumb", "-g", "-nostdlib", "-Wl,-emain")
    image = Image(program(tmp_path, *arm, compiler="arm-none-eabi-gcc"))
    major, minor, _ = map(int, version.split("."))
    qemu = tmp_path / "qemu"
    options = [f"-DPLUGIN_API={api_of((major, minor))}", f"-DQEMU={100 * major + minor}"]
    words = [f"-I{SOURCE.parent}", str(Path(__file__).with_name("qemu.c")), "-ldl", "-o", str(qemu)]
    subprocess.run(["cc", "-std=gnu11", "-rdynamic", *options, *words], check=True)
    with QemuCounters(image, core=load_core("cortex-m3")) as counters:
        (descriptor,) = counters.descriptors
        places = map(str, (*image.window.opens, *image.window.closes))
        subprocess.run(
            [str(qemu), str(plugin), f"fd={descriptor}", *places], pass_fds=[descriptor], check=True
        )
        (batch,) = counters.of_batches(0, ["instructions", "cycles", "cycles_most"])
        # 2 and 4 of the division, 1 of the IT, 1 of what it skips; 12 of a way that no instruction has.
        assert batch == {"instructions": 3, "cycles": 20, "cycles_most": 20}


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
