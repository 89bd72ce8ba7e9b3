# SPDX-License-Identifier: Apache-2.0
"""Files in the form of TVM's C generator compile against this project's headers and link beside its system
library."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection
from minrpc import Device
from minrpc.transport import SocketTransport
from minrpc.wire.values import Handle

from tests.native import build, need_tools

GENERATED = Path(__file__).parent / "generated"
APP = Path(__file__).parents[2] / "zephyr-app"
# test_generated.c runs such files in the default run.
GENERATIONS = [pytest.param(name, marks=pytest.mark.slow) for name in ("v0_7", "v0_18")]

# Without warnings for the generator's code, which names unused arguments and casts functions.
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-unused", "-Wno-unused-parameter", "-Wno-cast-function-type"]
LANGUAGES = [["cc", "-std=gnu99"], ["cc", "-std=c11"], ["c++", "-std=c++17", "-x", "c++"]]


def compiled(source: Path, into: Path, *command: str) -> Path:
    """The object file."""
    need_tools(command[0])
    target = into / f"{source.stem}.o"
    include = f"-I{APP / 'runtime/include'}"
    done = subprocess.run(
        [*command, *WARNINGS, include, "-c", str(source), "-o", str(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.mark.parametrize("source", sorted(GENERATED.glob("*_v*.c")), ids=lambda path: path.stem)
@pytest.mark.parametrize("language", LANGUAGES, ids=lambda command: command[1].removeprefix("-std="))
def test_it_compiles(source: Path, language: list[str], tmp_path: Path) -> None:
    compiled(source, tmp_path, *language)


def test_two_registries_in_one_image_do_not_link(tmp_path: Path) -> None:
    objects = [str(compiled(path, tmp_path, "cc")) for path in sorted(GENERATED.glob("registry_v*.c"))]
    command = ["cc", "-r", "-nostdlib", *objects, "-o", str(tmp_path / "both.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "TVMSystemLibEntryPoint" in done.stderr


@pytest.fixture(scope="module", params=GENERATIONS)
def generation(request: pytest.FixtureRequest) -> str:
    """The generation of the files."""
    return str(request.param)


@pytest.fixture(scope="module")
def program(generation: str, native_build: Callable[[str], Path]) -> Path:
    """A posix device with the files of this generation."""
    need_tools("cmake", "ninja", "cc")
    sources = [str(GENERATED / f"{part}_{generation}.c") for part in ("operators", "registry")]
    directory = native_build(f"generated_{generation}")
    build(APP / "ports/posix", directory, f"-DMINRPC_EXTRA_SOURCES={';'.join(sources)}")
    return directory / "minrpc_posix"


@pytest.fixture
def device(program: Path) -> Iterator[Device]:
    """The device, over a socket pair."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen([str(program), "--fd", str(theirs.fileno())], pass_fds=[theirs.fileno()])
    try:
        with Device(SocketTransport(ours, "generated")) as device:
            yield device
    finally:
        process.terminate()
        process.wait()


def test_the_image_names_itself(program: Path, device: Device) -> None:
    with program.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".note.gnu.build-id")
        assert isinstance(section, NoteSection)
        assert [note["n_desc"] for note in section.iter_notes()] == [device.info().build_id]


def test_its_functions_run_and_ours_too(device: Device) -> None:
    a, b = device.array([2, 3], "int8"), device.array([4], "int8")
    for name in ("generated_add", "add"):
        c = device.array([0, 0], "int8")
        device.system_lib()[name](a, b, c)
        assert c.numpy().tolist() == [6, 7]


def test_workspace_comes_back(device: Device) -> None:
    a, b, c = (device.array(values, "int8") for values in ([2, 3], [4], [0, 0]))
    used = device.info().arena_used
    timing = device.system_lib().time_evaluator("generated_add", number=100)(a, b, c)
    assert timing.mean > 0
    assert device.info().arena_used == used


def test_values_are_returned(device: Device) -> None:
    assert device.system_lib()["generated_inc"](41) == 42


def test_the_last_name_of_the_registry_is_found(device: Device, generation: str) -> None:
    if generation == "v0_18":
        assert device.system_lib()["__tvm_main__"](-1) == 0
    else:
        assert device.system_lib()["_lookup_linked_param"](3) is None
        assert isinstance(device.system_lib()["_lookup_linked_param"](2), Handle)
