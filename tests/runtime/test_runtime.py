# SPDX-License-Identifier: Apache-2.0
"""Runs the C tests of the runtime, a pytest case for each of theirs.

They are built on the host under sanitizers, for 64 and for 32 bits.

Each program runs once; what it prints of a case is that case's report.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CASE = re.compile(r"^TEST\((\w+)\)", re.MULTILINE)
CASES = [
    (source.stem, case)
    for source in sorted(HERE.glob("test_*.c"))
    for case in CASE.findall(source.read_text())
]


@pytest.fixture(scope="session", params=["64", "32"], ids=lambda bits: f"{bits}bit")
def programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the test programs, built for that width."""
    if not (shutil.which("cmake") and shutil.which("ninja")):
        pytest.skip("no cmake or ninja: apt-get install cmake ninja-build")
    build = tmp_path_factory.mktemp(f"runtime{request.param}")
    if not _compiles(request.param, build):
        pytest.skip(f"cc makes no sanitized {request.param}-bit programs: apt-get install gcc-multilib")
    _run(["cmake", "-G", "Ninja", "-S", str(HERE), "-B", str(build), f"-DBITS={request.param}"])
    _run(["cmake", "--build", str(build), "--parallel", "2"])
    return build / "bin"


def _compiles(bits: str, build: Path) -> bool:
    source = build / "probe.c"
    source.write_text("#include <stdlib.h>\nint main(void) { return 0; }\n")
    width = ["-m32"] if bits == "32" else []
    command = ["cc", *width, "-fsanitize=address,undefined", str(source), "-o", str(build / "probe")]
    if shutil.which("cc") is None:
        return False
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"


@functools.cache
def _report(program: Path) -> str:
    """Everything that the program printed."""
    done = subprocess.run(
        [str(program)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return f"{done.stdout}\nexit status {done.returncode}"


@pytest.mark.parametrize(("program", "case"), CASES, ids=lambda value: value)
def test_case(programs: Path, program: str, case: str) -> None:
    """The C case ran to its end."""
    report = _report(programs / program)
    _, started, rest = report.partition(f"run {case}\n")
    assert started, f"{program} ended before it:\n{report[-4000:]}"
    if not re.match(rf"ok {case}$", rest, re.MULTILINE):
        pytest.fail(rest.partition("\nrun ")[0][:4000], pytrace=False)
