# SPDX-License-Identifier: Apache-2.0
"""The C library in another program: two functions of the program, called and timed."""

from __future__ import annotations

import socket
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from minrpc import DeadlineError, Device, Firmware, FunctionNotFoundError, RemoteError, Target, connect, start
from minrpc.transport import SocketTransport

from tests.docs.pages import blocks_of
from tests.native import build, need_tools

ROOT = Path(__file__).parents[2]
APP = ROOT / "zephyr-app"
EXAMPLE = ROOT / "examples" / "own_functions"


@contextmanager
def running(program: Path, call_timeout_s: float = 60.0) -> Iterator[Device]:
    """The program, over a socket pair."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen([str(program), "--fd", str(theirs.fileno())], pass_fds=[theirs.fileno()])
    try:
        with Device(SocketTransport(ours, program.name), call_timeout_s=call_timeout_s) as device:
            yield device
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(
    scope="module", params=["add_subdirectory", pytest.param("find_package", marks=pytest.mark.slow)]
)
def program(
    request: pytest.FixtureRequest,
    native_build: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The example, with the library built along with it or installed before."""
    need_tools("cmake", "ninja", "cc")
    directory = native_build(f"own_functions_{request.param}")
    if request.param == "add_subdirectory":
        build(EXAMPLE, directory, f"-DMINRPC_DIR={APP}")
        return directory / "own_functions"
    library, prefix = native_build("minrpc_library"), tmp_path_factory.mktemp("prefix")
    build(APP, library)
    subprocess.run(["cmake", "--install", library, "--prefix", prefix], check=True, capture_output=True)
    build(EXAMPLE, directory, f"-DCMAKE_PREFIX_PATH={prefix}")
    return directory / "own_functions"


def test_a_build_for_a_zephyr_board_is_refused(tmp_path: Path) -> None:
    """`west build -b qemu_x86 .` runs this command, and would make libraries of this machine."""
    need_tools("cmake", "ninja")
    command = ["cmake", "-GNinja", "-DBOARD=qemu_x86", "-B", str(tmp_path), "-S", str(APP)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert f"west build -b qemu_x86 {ROOT}" in ran.stderr


def check_its_functions(device: Device) -> None:
    """Call and time the program's functions."""
    lib = device.system_lib()
    data = np.arange(-50, 50, dtype=np.int16)
    x, y = device.array(data), device.empty(data.shape, data.dtype)
    lib["smooth"](x, y, 1)
    assert y.numpy().tolist() == data.tolist()
    assert lib["adler32"](x) == zlib.adler32(data.tobytes())
    for name, arguments in (("smooth", (x, y, 5)), ("adler32", (x,))):
        assert lib.measure(name, number=3, repeat=2)(*arguments).summary.min > 0
    with pytest.raises(FunctionNotFoundError):
        lib["add"]


def test_its_own_functions_are_called_and_timed(program: Path) -> None:
    with running(program) as device:
        check_its_functions(device)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("platform", "compiler"),
    [("bare_mps2_an385", "arm-none-eabi-gcc"), ("bare_rv32", "riscv64-unknown-elf-gcc")],
)
def test_the_same_program_without_an_operating_system(
    platform: str, compiler: str, native_build: Callable[[str], Path]
) -> None:
    target = Target.named(platform)
    need_tools("cmake", "ninja", compiler, target.platform.qemu)
    directory = native_build(f"own_functions_{platform}")
    build(
        EXAMPLE,
        directory,
        f"-DMINRPC_DIR={APP}",
        f"-DMINRPC_MACHINE={platform.removeprefix('bare_')}",
        f"-DCMAKE_TOOLCHAIN_FILE={APP / 'ports/baremetal/toolchain.cmake'}",
        "-DCMAKE_BUILD_TYPE=MinSizeRel",
    )
    program = Firmware(target, directory / "own_functions.elf", directory, "", cached=True, seconds=0.0)
    with start(program) as machine, connect(machine) as device:
        check_its_functions(device)


def test_the_page_says_how_it_is_started(program: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "c-library.md").read_text(encoding="utf-8")
    (block,) = (block for block in blocks_of(page) if block.kind == "python")
    (tmp_path / "build").symlink_to(program.parent)
    ran = subprocess.run(
        [sys.executable, "-c", block.text], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout


def test_it_has_nothing_that_it_did_not_ask_for(program: Path) -> None:
    with running(program) as device:
        for name in ("add", "inc", "testing.crash"):
            with pytest.raises(FunctionNotFoundError):
                device.system_lib()[name]


def test_its_arguments_are_checked(program: Path) -> None:
    with running(program) as device:
        smooth = device.system_lib()["smooth"]
        x = device.array(np.zeros(4, np.int16))
        with pytest.raises(RemoteError, match="smooth: expected 3 arguments, got 2"):
            smooth(x, x)
        with pytest.raises(RemoteError, match="smooth: argument 2: expected int, got tensor"):
            smooth(x, x, x)
        with pytest.raises(RemoteError, match="smooth: expected a width of 1 to 1000"):
            smooth(x, x, 0)


def test_a_new_session_ends_what_nobody_waits_for(program: Path) -> None:
    """The measurement would take days: the next client does not wait for its end."""
    with running(program, call_timeout_s=0.2) as device:
        data = device.array(np.zeros(10_000, np.int8))
        evaluator = device.system_lib().time_evaluator("adler32", number=1 << 27)
        with pytest.raises(DeadlineError):
            evaluator(data)
        device.reset()
        assert device.system_lib()["adler32"](device.array(np.zeros(4, np.int8))) == zlib.adler32(bytes(4))
