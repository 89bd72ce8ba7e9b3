# SPDX-License-Identifier: Apache-2.0
"""Attempts to leave the sandbox: by a compiler, by a linker, and by code on a device that is a process."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from minrpc import BuildError, Device, EmulatorExitedError, Target, build, open_device
from minrpc.host import sandbox
from minrpc.host.process import run_compiler
from minrpc.library import linking
from minrpc.tuning import Kernel, Space, tune

WHY_NOT = sandbox.why_not()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=f"no sandbox here: {WHY_NOT}")

ESCAPES = Path(__file__).parent / "c" / "escapes.c"
HIDDEN = ("/etc/shadow", "/etc/passwd", str(Path.home() / ".bashrc"), "/home", "/var/log", __file__)


@pytest.fixture(scope="module", params=["posix", "bare_mps2_an385"])
def walled(request: pytest.FixtureRequest) -> Iterator[Device]:
    with sandbox.sandboxed(), open_device(request.param) as device:
        yield device


@pytest.fixture(scope="module")
def escapes() -> Iterator[Any]:
    with sandbox.sandboxed(), open_device("posix") as device:
        yield device.load(ESCAPES)


@pytest.mark.parametrize("line", ['__asm__(".incbin \\"{}\\"");', '#include "{}"'])
@pytest.mark.parametrize("file", ["/etc/passwd", "/etc/shadow"])
def test_a_compiler_sees_no_files_of_others(walled: Device, tmp_path: Path, line: str, file: str) -> None:
    """Root sees none either. The message has no text of the file."""
    assert Path(file).exists()
    (tmp_path / "m.c").write_text(f"{line.format(file)}\nint f(void) {{ return 1; }}\n")
    with pytest.raises(BuildError, match=r"No such file|can't open|not found") as caught:
        walled.load(tmp_path / "m.c")
    assert "root:" not in str(caught.value)


def test_a_linker_sees_no_files_of_others(walled: Device, tmp_path: Path) -> None:
    (tmp_path / "m.c").write_text("int f(void) { return 1; }\n")
    (tmp_path / "l.a").write_text("INPUT(/etc/passwd)\n")
    with pytest.raises(BuildError, match="cannot find /etc/passwd"):
        walled.load(tmp_path / "m.c", libraries=[tmp_path / "l.a"])


def test_a_huge_image_is_refused(walled: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged alignment makes a linked file of gigabytes."""
    monkeypatch.setattr(linking, "_LARGEST", 100)
    (tmp_path / "m.c").write_text("int huge(void) { return 1; }\n")
    with pytest.raises(BuildError, match="more than any device's memory"):
        walled.load(tmp_path / "m.c")


def test_a_device_works_behind_the_wall(walled: Device, tmp_path: Path) -> None:
    """Its arrays are in shared memory, and a crash is reported as without the sandbox."""
    (tmp_path / "m.c").write_text("int f(int a) { return a + 1; }\nvoid dies(void) { __builtin_trap(); }\n")
    library = walled.load(tmp_path / "m.c")
    assert library.f(1) == 2
    if walled.name == "posix":
        with pytest.raises(EmulatorExitedError, match="killed by SIGILL"):
            library.dies()
        walled.connect()


@pytest.mark.parametrize("path", HIDDEN)
def test_files(escapes: Any, path: str) -> None:  # noqa: ANN401
    for attempt in (escapes.reads, escapes.links):
        assert attempt(path.encode()) == -errno.ENOENT


@pytest.mark.parametrize("path", ["/new", "/usr/new", "/dev/new", "/dev/shm/new", "/proc/sysrq-trigger"])
def test_nothing_is_written_but_a_little_scratch(escapes: Any, path: str) -> None:  # noqa: ANN401
    assert escapes.writes(path.encode()) in (-errno.EROFS, -errno.EACCES, -errno.ENOENT)
    assert escapes.fills(b"/tmp/large", 1 << 30) < 0


def test_scratch_has_a_size(escapes: Any) -> None:  # noqa: ANN401
    assert escapes.hoards() == 256 // 15


def test_the_program_itself_is_not_changed(escapes: Any) -> None:  # noqa: ANN401
    assert escapes.changes(str(build(Target.named("posix")).elf).encode()) == -errno.EROFS


def test_network(escapes: Any) -> None:  # noqa: ANN401
    with socket.create_server(("127.0.0.1", 0)) as here:
        assert escapes.connects(here.getsockname()[1]) < 0


@pytest.mark.parametrize("how", [0, 1, 2, 3])
def test_processes_can_not_be_made(escapes: Any, how: int) -> None:  # noqa: ANN401
    """A fork bomb does not begin; for root, too."""
    assert escapes.forks(how) in (-errno.EPERM, -errno.ENOSYS)


def test_memory(escapes: Any) -> None:  # noqa: ANN401
    assert escapes.takes(1 << 20) == 0
    assert escapes.takes(8 << 30) == -errno.ENOMEM


def test_limits(escapes: Any, tmp_path: Path) -> None:  # noqa: ANN401
    names = (resource.RLIMIT_AS, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE)
    assert [escapes.limit(name) for name in (*names, resource.RLIMIT_CORE)] == [4 << 30, 16 << 20, 64, 64, 0]
    with sandbox.sandboxed():
        command = ["bash", "-c", "for limit in v f u n c t; do ulimit -$limit; done"]
        status, said = run_compiler(command, tmp_path, 60.0)
    assert status == 0
    assert list(map(int, said.split())) == [4 << 20, 128 << 10, 64, 256, 0, 120]  # KiB, s


def test_a_command_that_names_a_home_or_the_root_does_not_open_it(tmp_path: Path) -> None:
    with sandbox.sandboxed():
        _, said = run_compiler(["bash", "-c", "ls /etc", "ls", "/", "/etc"], tmp_path, 60.0)
    assert "passwd" not in said
    assert "alternatives" in said


def test_what_processes_share(escapes: Any) -> None:  # noqa: ANN401
    """Variables, shared memory by its key, and the session with its terminal."""
    assert "PYTEST_CURRENT_TEST" in os.environ
    assert not escapes.knows(b"PYTEST_CURRENT_TEST")
    libc, key = ctypes.CDLL(None), int.from_bytes(os.urandom(3))
    memory = libc.shmget(key, 4096, 0o1600)  # IPC_CREAT
    assert memory >= 0
    try:
        assert escapes.attaches(key) == -errno.ENOENT
    finally:
        libc.shmctl(memory, 0, None)  # IPC_RMID
    assert escapes.session() > 0  # It began in the namespace.


def test_other_processes(escapes: Any) -> None:  # noqa: ANN401
    # The first process of a container would be 1, which is a process within the sandbox, too.
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
        assert escapes.traces(other.pid) == escapes.kills(other.pid) == -errno.ESRCH
        assert escapes.reads(f"/proc/{other.pid}/mem".encode()) == -errno.ENOENT
        assert other.poll() is None
    assert escapes.reads(b"/proc/1/cwd/etc/shadow") == -errno.ENOENT


def test_device_nodes_and_mounts(escapes: Any) -> None:  # noqa: ANN401
    assert escapes.makes_node() == escapes.mounts() == -errno.EPERM
    for node in (b"/dev/kmsg", b"/dev/mem", b"/dev/sda", b"/dev/vda", b"/dev/kvm"):
        assert escapes.reads(node) == -errno.ENOENT


def test_tuned_candidates_see_no_files_of_others(tmp_path: Path) -> None:
    """One is compiled with the file, the other opens it where it runs."""
    (tmp_path / "k.c").write_text(
        '#include <fcntl.h>\n#ifdef READ\n__asm__(".incbin \\"/etc/passwd\\"");\n#endif\n'
        'int k(void) { return open("/etc/passwd", O_RDONLY) < 0; }\n'
    )
    kernel = Kernel(tmp_path / "k.c", "k", (), check=lambda: 1)
    with sandbox.sandboxed():
        tried = list(tune(kernel, Space(flags=[(), ("-DREAD",)]), build(Target.named("posix"))))
    assert {result.candidate.flags: result.outcome for result in tried} == {
        (): "correct",
        ("-DREAD",): "compile",
    }


def test_a_killed_server_leaves_nothing() -> None:
    code = f"""
from threading import Thread
from minrpc import open_device, sandboxed
from minrpc.host.sandbox import program_of
with sandboxed(), open_device("posix") as device:
    Thread(target=device.load("{ESCAPES}").stays).start()
    device.console.expect("here to stay")
    print(program_of(device.owner.process), flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        end = os.pidfd_open(int(server.stdout.readline()))
        server.kill()
    with os.fdopen(end, "rb"):
        assert select.select([end], [], [], 60)[0], "it runs on"


def test_nothing_is_left() -> None:
    with sandbox.sandboxed(), open_device("posix") as device:
        program = sandbox.program_of(device.owner.process)  # type: ignore[attr-defined]
        assert Path(f"/proc/{program}/exe").readlink().name
        end = os.pidfd_open(program)
    with os.fdopen(end, "rb"):
        assert select.select([end], [], [], 60)[0], "it runs on"
