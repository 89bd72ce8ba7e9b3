# SPDX-License-Identifier: Apache-2.0
"""Each public header by itself, in C and in C++: it includes the headers that it needs, and C++ finds the
functions."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.native import need_tools

APP = Path(__file__).parents[2] / "zephyr-app"
ROOMS = (APP / "runtime/include", APP / "ports/posix/include", APP / "ports/baremetal/include")
HEADERS = [str(path.relative_to(room)) for room in ROOMS for path in sorted(room.rglob("*.h"))]
WARNINGS = ("-Wall", "-Wextra", "-Werror", "-fsyntax-only")
# A function and a server in C++, linked with the runtime's C.
PROGRAM = """#include <minrpc/server.h>
#include <minrpc/text.h>

static bool negate(minrpc_call *call)
{
	return minrpc_return_int(call, -call->args.values[0].v_int64);
}

int main()
{
	static const minrpc_function functions[] = {{"negate", "i", negate}};
	static const minrpc_module module = {functions, 1, nullptr, nullptr};
	static minrpc_server server;
	minrpc_config config = {};
	minrpc_library library = {&module, 1};
	minrpc_callee callee;

	if (minrpc_server_init(&server, &config) || server.error[0] == '\\0') {
		return 1;
	}
	return minrpc_library_at(&library, minrpc_library_find(&library, "negate"), &callee) ? 0 : 1;
}
"""


def compile_alone(compiler: str, source: Path, *options: str) -> None:
    need_tools(compiler)
    rooms = [f"-I{room}" for room in ROOMS]
    done = subprocess.run([compiler, *options, *rooms, source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_needs_no_other(header: str, tmp_path: Path) -> None:
    for compiler, standard, suffix in (("cc", "c11", "c"), ("c++", "c++17", "cc")):
        source = tmp_path / f"alone.{suffix}"
        source.write_text(f"#include <{header}>\n#include <{header}>\n")
        compile_alone(compiler, source, f"-std={standard}", *WARNINGS)


def test_cpp_calls_the_runtime(tmp_path: Path) -> None:
    need_tools("c++", "cc")
    source = tmp_path / "program.cc"
    source.write_text(PROGRAM)
    objects = []
    for file in sorted((APP / "runtime").glob("*.c")):
        objects.append(str(tmp_path / f"{file.stem}.o"))
        compile_alone("cc", file, "-std=c11", "-c", "-o", objects[-1])
    compile_alone("c++", source, "-Wall", "-Wextra", "-Werror", *objects, "-o", str(tmp_path / "program"))
    assert subprocess.run([tmp_path / "program"], check=False).returncode == 0
