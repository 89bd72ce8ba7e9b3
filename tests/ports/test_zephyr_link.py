# SPDX-License-Identifier: Apache-2.0
"""The Zephyr port's links, compiled for this machine: a serial driver that counts in eight bits, sockets."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from minrpc.firmware import firmware_root

from tests.native import compiles, need_tools

HERE = Path(__file__).parent / "zephyr_link"
SUPPORT = Path(__file__).parents[1] / "runtime" / "support"
PORT = firmware_root() / "zephyr-app" / "ports" / "zephyr"
FLAGS = ["-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fno-sanitize-recover=all"]
SANITIZERS = "-fsanitize=address,undefined"


@pytest.fixture
def headers(tmp_path: Path) -> Path:
    """The directory of Zephyr's headers: empty files, since zephyr_api.h has all declarations."""
    for source in ("link_uart.c", "link_tcp.c", "link.h", "hang_up.h", "ring.h"):
        for name in re.findall(r"#include <(zephyr/[^>]+)>", (PORT / source).read_text()):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("sources", "flags", "cases"),
    [
        (("test_link.c", "link_uart.c"), (), 7),
        (("test_link_tcp.c",), (), 4),
        (("test_link_tcp.c",), ("-DZEPHYR_44",), 4),
    ],
    ids=["uart", "tcp", "tcp of Zephyr 4.4"],
)
def test_link(headers: Path, sources: tuple[str, ...], flags: tuple[str, ...], cases: int) -> None:
    need_tools("cc")
    if not compiles("cc", SANITIZERS):
        pytest.skip("cc makes no sanitized programs")
    program = headers / "test_link"
    includes = [f"-I{headers}", f"-I{PORT}", f"-I{SUPPORT}", "-include", str(HERE / "zephyr_api.h")]
    files = [next(path for path in (HERE / name, PORT / name) if path.is_file()) for name in sources]
    command = ["cc", *FLAGS, *flags, SANITIZERS, *includes, *map(str, [*files, SUPPORT / "check.c"])]
    made = subprocess.run([*command, "-o", str(program)], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    ran = subprocess.run([str(program)], capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("ok ") == cases
