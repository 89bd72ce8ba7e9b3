# SPDX-License-Identifier: Apache-2.0
"""A firmware's name depends on all files that its build read, and not on their directory."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from minrpc import PLATFORMS, BuildError, ConfigurationError, Firmware, Target, build
from minrpc.firmware import cache_home, identity, store
from minrpc.firmware.cache import Entry, bound, bound_at_times, entries, limit, locked, remove
from minrpc.firmware.environment import build_environment, counted, searched_from
from minrpc.firmware.identity import Look
from minrpc.firmware.inputs import Inputs, _configured_from
from minrpc.firmware.places import Places
from minrpc.firmware.recipes import recipe_for
from minrpc.host import process_session

POSIX = PLATFORMS["posix"]
# CMake gets the compiler's properties: finding them takes longer than the rest of the build.
CMAKE = """cmake_minimum_required(VERSION 3.20)
set(CMAKE_C_COMPILER_FORCED TRUE)
set(CMAKE_C_COMPILER_ID_RUN TRUE)
set(CMAKE_C_COMPILER_ID GNU)
set(CMAKE_C_COMPILER_VERSION 12)
project(tiny C)
# The platform's own options.
set(READ ${MINRPC_CODE_LOADING} ${MINRPC_ASK} ${MINRPC_FILL}
  ${MINRPC_COUNTERS} ${MINRPC_LAYOUT} ${MINRPC_TESTING})
include(more.cmake)
configure_file(version.h.in version.h)
add_custom_command(OUTPUT table.h COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/table.sh
  ${CMAKE_CURRENT_SOURCE_DIR}/table.txt > table.h DEPENDS table.sh table.txt)
add_executable(minrpc_posix main.c user.c ${CMAKE_CURRENT_BINARY_DIR}/table.h ${EXTRA})
target_include_directories(minrpc_posix PRIVATE include ${CMAKE_CURRENT_BINARY_DIR})
target_link_libraries(minrpc_posix PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/libuser.a)
target_link_options(minrpc_posix PRIVATE -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/exports.map)
set_target_properties(minrpc_posix PROPERTIES LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/exports.map)
"""
FILES = {
    "CMakeLists.txt": CMAKE,
    "more.cmake": "add_compile_definitions(MORE=1)\n",
    "version.h.in": "#define VERSION 1\n",
    "table.sh": 'cat "$1"\n',
    "table.txt": "#define TABLE 0\n",
    "exports.map": "{ global: *; };\n",
    "include/k.h": "#define K 1\n",
    "inner.h": "#define INNER 0\n",
    "main.c": '#include <stdlib.h>\n#include <k.h>\n#include "version.h"\n#include "table.h"\n'
    "int user(void);\nint main(void) { return user() + VERSION + TABLE + MORE; }\n",
    "user.c": '#include "inner.h"\n#include "k.h"\nint two(void);\n'
    "int user(void) { return K + two() + INNER; }\n",
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a firmware of several kinds of files, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return checkout(tmp_path / "checkout")


def checkout(root: Path) -> Path:
    for name, text in FILES.items():
        file = port(root) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    library = "int two(void) { return 2; }\n"
    subprocess.run(
        ["gcc", "-c", "-x", "c", "-", "-o", "two.o"], input=library, text=True, cwd=root, check=True
    )
    subprocess.run(["ar", "rcsD", str(port(root) / "libuser.a"), "two.o"], cwd=root, check=True)
    (root / "two.o").unlink()
    return root


def port(root: Path) -> Path:
    return root / "zephyr-app" / "ports" / "posix"


def status(firmware: Firmware) -> int:
    return subprocess.run([str(firmware.elf)], check=False).returncode


def known(root: Path) -> bool:
    """True if the present state has been built."""
    return store.find(recipe_for(POSIX, root)) is not None


def test_each_file_of_the_users_counts(root: Path) -> None:
    """A change is found in any kind of file, for changed and deleted files, with any time stamp."""
    assert status(build(Target(POSIX), root=root)) == 5
    files = [path for path in port(root).rglob("*") if path.is_file()]
    assert len(files) == len(FILES) + 1
    for file in files:
        before, times = file.read_bytes(), file.stat()
        file.write_bytes(before.replace(b"\n", b" \n", 1))
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert not known(root), f"{file} was changed"
        file.unlink()
        assert not known(root), f"{file} is gone"
        file.write_bytes(before)
        assert known(root), f"{file} is as it was"


def test_cmakes_last_answer_counts(tmp_path: Path) -> None:
    replies = tmp_path / ".cmake/api/v1/reply"
    replies.mkdir(parents=True)
    with pytest.raises(BuildError, match="CMake did not list the files"):
        _configured_from(tmp_path)
    for moment, name in (
        ("2026-11-26T21-09-00-0001", "new.cmake"),
        ("2026-11-26T20-59-59-0002", "old.cmake"),
    ):
        answer = {"paths": {"source": "/s"}, "inputs": [{"path": name}, {"path": "/x", "isExternal": True}]}
        (replies / f"{name}.json").write_text(json.dumps(answer))
        index = {"reply": {"cmakeFiles-v1": {"kind": "cmakeFiles", "jsonFile": f"{name}.json"}}}
        (replies / f"index-{moment}.json").write_text(json.dumps(index))
    assert _configured_from(tmp_path) == ["/s/new.cmake", "/x"]


def test_all_that_the_build_opened_is_known(root: Path, tmp_path: Path) -> None:
    """The kernel reports the opened files; only the files of programs themselves may be missing."""
    trace = tmp_path / "trace"
    traced(trace, root)
    opened = {path for path in opened_files(trace) if not path.is_relative_to(cache_home())}
    assert port(root) / "include" / "k.h" in opened
    (directory,) = (cache_home() / "firmware").iterdir()
    content = (directory / "inputs.json").read_text()
    recipe = recipe_for(POSIX, root)
    missing = [path for path in opened if f'"{recipe.places.shorten_path(str(path))}"' not in content]
    assert [path for path in missing if not part_of_a_program(path)] == []


def traced(trace: Path, root: Path) -> None:
    """Build under strace, in a process of its own."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed (sudo apt-get install strace)")
    script = (
        "import sys; from pathlib import Path\nfrom minrpc.firmware import build\n"
        "from minrpc.targets import Target\nbuild(Target.named('posix'), root=Path(sys.argv[1]))"
    )
    strace = ["strace", "-f", "-y", "-e", "trace=execve,openat,open", "-o", str(trace)]
    ran = subprocess.run([*strace, "true"], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        pytest.skip(f"strace can't work here: {ran.stderr.strip()}")
    subprocess.run([*strace, sys.executable, "-c", script, str(root)], check=True)


def opened_files(trace: Path) -> set[Path]:
    """The regular files that a build's processes have opened, from ninja's or CMake's start on."""
    lines = trace.read_text(errors="replace").splitlines()
    ours = lines[0].split()[0]
    found = set()
    for line in lines:
        opened = re.search(r"(?:openat|open)\(.* = \d+<([^>]+)>", line)
        path = Path(opened[1]) if opened else None
        if (
            path
            and line.split()[0] != ours
            and path.is_file()
            and path.parts[1] not in ("proc", "sys", "dev")
        ):
            found.add(path)
    return found


def part_of_a_program(path: Path) -> bool:
    """Shared libraries, locales, Python's own files; the files that CMake's program always opens; and the
    session leader of this package."""
    text = str(path)
    if path == Path(process_session.__file__):
        return True
    if re.search(r"\.so(\.|$)|/(locale|gconv|site-packages|python3[\d.]*|__pycache__)/|\.pyc$", text):
        return True
    if re.match(r"/etc/|/usr/share/zoneinfo/|/usr/share/cmake[^/]*/|/tmp/|/run/", text):
        return not text.startswith("/tmp/pytest")
    return text.endswith(("/locale.alias", "/pyvenv.cfg"))


def test_a_second_checkout_of_the_same_state_builds_nothing(root: Path, tmp_path: Path) -> None:
    first = build(Target(POSIX), root=root)
    second = build(Target(POSIX), root=checkout(tmp_path / "elsewhere" / "again"))
    assert second.cached
    assert second.elf == first.elf
    assert second.source("/minrpc/app/zephyr-app/x.c") == tmp_path / "elsewhere/again/zephyr-app/x.c"


def test_two_checkouts_make_the_same_bytes(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    debug = Target(POSIX).changed(cmake_options=["-DCMAKE_BUILD_TYPE=Debug"])
    first = build(debug, root=root).elf.read_bytes()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    second = build(debug, root=checkout(tmp_path / "longer name"))
    assert not second.cached
    assert second.elf.read_bytes() == first
    assert str(tmp_path).encode() not in first


def test_a_header_that_hides_another_counts_when_it_comes(root: Path) -> None:
    assert status(build(Target(POSIX), root=root)) == 5
    (port(root) / "k.h").write_text("#define K 5\n")  # user.c includes "k.h", and looks beside itself first
    assert status(build(Target(POSIX), root=root)) == 9


_BYTES = '__asm__(".pushsection .rodata\\n.globl got\\ngot: .incbin \\"" NAME "\\"\\n.popsection");\n'
_MORE = "\nextern const char got[];\nint user(void) { return got[0] - 48; }\n"
_ASKED = "#if __has_include({0})\n#include {0}\n#else\n#define N 1\n#endif\nint user(void) {{ return N; }}\n"


@pytest.mark.parametrize(
    ("user", "file", "before", "after"),
    [
        ('#define NAME "{at}/d.bin"\n' + _BYTES + _MORE, "d.bin", "1", "2"),
        ("#ifdef __has_include\n#endif\n" + _ASKED.format('"deep/new.h"'), "deep/new.h", "", "#define N 2\n"),
        (_ASKED.format("<new.h>"), "include/new.h", "", "#define N 2\n"),
    ],
    ids=["incbin", "has_include of a sibling", "has_include"],
)
def test_a_file_that_no_rule_of_ninjas_names(
    root: Path, user: str, file: str, before: str, after: str
) -> None:
    """The assembler and the preprocessor tell it, or the text asks for it."""
    (port(root) / "user.c").write_text(user.replace("{at}", str(port(root))))
    if before:
        (port(root) / file).write_text(before)
    assert status(build(Target(POSIX), root=root)) == 3
    assert known(root)
    (port(root) / file).parent.mkdir(exist_ok=True)
    (port(root) / file).write_text(after)
    assert not known(root)
    assert status(build(Target(POSIX), root=root)) == 4


def test_a_build_with_an_input_that_nobody_tells_is_not_used_again(root: Path) -> None:
    (port(root) / "user.c").write_text("#define NAME <new.h>\n" + _ASKED.format("NAME"))
    first = build(Target(POSIX), root=root)
    assert status(first) == 3
    (port(root) / "include" / "new.h").write_text("#define N 2\n")
    second = build(Target(POSIX), root=root)
    assert status(second) == 4
    assert not second.cached
    assert not build(Target(POSIX), root=root).cached
    assert status(first) == 3


def test_a_file_of_no_concern_does_not_count(root: Path) -> None:
    build(Target(POSIX), root=root)
    for name in ("results.json", "notes.txt"):
        (root / name).touch()
    (port(root) / ".main.c.swp").touch()
    (port(root) / "main.c~").touch()
    assert known(root)


def test_what_is_older_than_the_build_is_still_built(root: Path) -> None:
    """A file from an archive has an old time stamp: ninja alone would not see it."""
    build(Target(POSIX), root=root)
    main = port(root) / "main.c"
    main.write_text(main.read_text().replace("user()", "3 * user()"))
    os.utime(main, (1e9, 1e9))
    assert status(build(Target(POSIX), root=root)) == 11


@pytest.mark.parametrize(
    ("name", "value", "counts"),
    [
        ("CMAKE_BUILD_TYPE", "Debug", True),
        ("CFLAGS", "-DMORE2", True),
        ("CC", "gcc", True),
        ("CPATH", "/tmp", True),
        ("C_INCLUDE_PATH", "/tmp", True),
        ("LDFLAGS", "-Wl,-O1", True),
        ("CPPFLAGS", "-DNOBODY_READS_THIS", False),
        ("CMAKE_GENERATOR", "Unix Makefiles", False),
        ("WHATEVER", "1", False),
    ],
)
def test_the_environment_counts_or_is_kept_away(
    root: Path, name: str, value: str, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(name, raising=False)
    recipe = recipe_for(POSIX, root)
    monkeypatch.setenv(name, value)
    changed = recipe_for(POSIX, root)
    assert (changed.plan != recipe.plan) == counts
    assert changed.environment.get(name) == (value if counts else None)


def test_a_debug_build_is_no_normal_one(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    normal = build(Target(POSIX), root=root)
    monkeypatch.setenv("CMAKE_BUILD_TYPE", "Debug")
    debug = build(Target(POSIX), root=root)
    assert not debug.cached
    assert debug.elf != normal.elf
    assert b".debug_info" in debug.elf.read_bytes()


def test_what_a_build_sees() -> None:
    given = {"PATH": "/bin", "CCACHE_DIR": "/c", "LANG": "de_DE", "CC": "gcc", "ARM_TOOLCHAIN_PATH": "/opt"}
    assert build_environment(given) == {
        "PATH": "/bin",
        "CCACHE_DIR": "/c",
        "LC_ALL": "C.UTF-8",
        "CC": "gcc",
        "ARM_TOOLCHAIN_PATH": "/opt",
    }
    assert counted(given) == {"CC": "gcc", "ARM_TOOLCHAIN_PATH": "/opt"}


def test_relative_directories_of_compilers_start_where_the_user_is() -> None:
    """The compiler runs elsewhere, and found nothing there."""
    given = {"CPATH": "../inc:/opt/inc", "LIBRARY_PATH": "/opt/lib:", "C_INCLUDE_PATH": "", "CC": "./cc"}
    assert searched_from(given, "/home/me") == given | {
        "CPATH": "/home/me/../inc:/opt/inc",
        "LIBRARY_PATH": "/opt/lib:/home/me/",
    }


def test_platforms_that_differ_in_how_they_run_share_a_build(root: Path) -> None:
    first = build(Target(POSIX), root=root)
    other = replace(POSIX, name="other", description="x", icount_shift=3, arguments=("--fd", "{fd}", "-x"))
    second = build(Target(other), root=root)
    assert (second.cached, second.elf, second.platform) == (True, first.elf, other)


def test_after_a_failed_build_what_was_missing_may_come(root: Path) -> None:
    """CMake searches for a missing file once, and remembers that it was missing."""
    lists = port(root) / "CMakeLists.txt"
    looks = "include(more.cmake)\nfind_file(EXTRA extra.c PATHS ${CMAKE_SOURCE_DIR}/module)"
    lists.write_text(CMAKE.replace("include(more.cmake)", looks))
    with pytest.raises(BuildError, match="did not build"):
        build(Target(POSIX), root=root)
    (port(root) / "module").mkdir()
    (port(root) / "module" / "extra.c").write_text("int extra;\n")
    assert status(build(Target(POSIX), root=root)) == 5


def test_ctrl_c_in_a_build_leaves_no_compiler(root: Path, tmp_path: Path) -> None:
    """ninja gives each compiler a process group of its own. A process that is just being started when Ctrl-C
    comes is ended by the end of the harness, which is a moment after it."""
    started = tmp_path / "started"
    os.mkfifo(started)
    (port(root) / "table.sh").write_text(f"echo $$ > {started}\nexec sleep 600\n")
    script = (
        "import sys; from pathlib import Path\nfrom minrpc.firmware import build\n"
        "from minrpc.targets import Target\nbuild(Target.named('posix'), root=Path(sys.argv[1]))"
    )
    builder = subprocess.Popen([sys.executable, "-c", script, str(root)], stderr=subprocess.DEVNULL)
    compiler = os.pidfd_open(int(started.read_text()))
    builder.send_signal(signal.SIGINT)
    assert builder.wait() != 0
    assert select.select([compiler], [], [], 60.0)[0], "it still runs"
    os.close(compiler)
    (port(root) / "table.sh").write_text(FILES["table.sh"])
    assert status(build(Target(POSIX), root=root)) == 5


def test_a_quick_look_sees_each_change(tmp_path: Path) -> None:
    file, directory = tmp_path / "a", tmp_path / "d"
    file.write_text("one")
    directory.mkdir()
    for path in (file, directory):
        os.utime(path, (1e9, 1e9))
    none: frozenset[str] = frozenset()
    inputs = Inputs(frozenset({str(file)}), none, frozenset({str(directory)}), none, none)
    assert not Look.at("x", inputs).holds()  # Both are too new to be trusted.
    until_old(file, directory)
    look = Look.at("x", inputs)
    assert look.holds()
    assert Look.from_text(look.to_text()) == look
    file.write_text("two")
    os.utime(file, (1e9, 1e9))
    assert not look.holds()


def test_a_quick_look_sees_names_that_come(tmp_path: Path) -> None:
    inputs = Inputs(frozenset(), frozenset(), frozenset(), frozenset({str(tmp_path)}), frozenset({"k.h"}))
    until_old(tmp_path)
    look = Look.at("x", inputs)
    (tmp_path / "other").touch()
    assert not look.holds()


def test_a_quick_look_sees_directories_that_come(tmp_path: Path) -> None:
    """A compiler looks for headers in directories that are not there; one look is enough for many of them."""
    around, beside = tmp_path / "around", tmp_path / "beside"
    around.mkdir()
    beside.mkdir()
    missing = [around / "sub" / "a", around / "sub" / "b", beside / "other", beside / "more" / "c"]
    searched = frozenset(map(str, [around, *missing]))
    inputs = Inputs(frozenset(), frozenset(), frozenset(), searched, frozenset({"k.h"}))
    until_old(tmp_path, around, beside)
    assert Look.at("x", inputs).paths == tuple(map(str, [around, beside / "more", beside / "other"]))
    for path in missing:
        look = Look.at("x", inputs)
        assert look.holds()
        path.mkdir(parents=True)
        assert not look.holds(), path
        path.rmdir()
        if not any(path.parent.iterdir()) and path.parent not in (around, beside):
            path.parent.rmdir()
        until_old(around, beside)


def test_a_look_does_not_hold_if_a_directory_came_during_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later changes within that directory would not be seen."""
    missing = tmp_path / "sub"
    none: frozenset[str] = frozenset()
    inputs = Inputs(none, none, none, frozenset(map(str, (tmp_path, missing))), none)
    until_old(tmp_path)
    assert Look.at("x", inputs).about
    about = identity._about

    def made_meanwhile(paths: Sequence[str], now_ns: int | None) -> str:
        facts = about(paths, now_ns)
        missing.mkdir()
        return facts

    monkeypatch.setattr(identity, "_about", made_meanwhile)
    assert not Look.at("x", inputs).about


def until_old(*paths: Path) -> None:
    """Wait until the clock of file times has advanced by much more than a tick."""
    newest = max(path.stat().st_ctime for path in paths)
    while time.time() < newest + 0.1:
        os.sched_yield()


names = st.text("abcz/-. ", min_size=1, max_size=12)


@given(st.lists(names, min_size=1, max_size=3, unique=True), names)
def test_places_come_back(directories: list[str], rest: str) -> None:
    places = Places({f"p{i}": Path("/top", name.strip("/ ") or "x") for i, name in enumerate(directories)})
    for name in directories:
        path = os.path.normpath(f"/top/{name.strip('/ ') or 'x'}/{rest}")
        assert places.expand_path(places.shorten_path(path)) == path


def test_places_are_whole_names() -> None:
    places = Places({"app": Path("/a/b"), "project": Path("/a/b/c")})
    given = "-DX=/a/b/x.c;/a/b/c/y.c;/a/bc/z.c -S /a/b"
    assert places.shorten(given) == "-DX={app}/x.c;{project}/y.c;/a/bc/z.c -S {app}"
    assert places.source("/minrpc/project/y.c") == Path("/a/b/c/y.c")
    assert places.source("/usr/include/stdio.h") == Path("/usr/include/stdio.h")


def test_the_cache_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("MINRPC_CACHE_SIZE", "100K")
    now = time.time()
    for age_h, name in enumerate(("young", "new", "old", "older"), 1):
        directory = cache_home() / "firmware" / name
        directory.mkdir(parents=True)
        (directory / "elf").write_bytes(b"x" * 60_000)
        used = now if name == "young" else now - age_h * 3600
        os.utime(directory, (used, used))
    removed = bound(keep=[cache_home() / "firmware" / "older"])
    assert [entry.path.name for entry in removed] == ["new", "old"]
    assert {entry.path.name for entry in entries()} == {"young", "older"}


def test_what_was_not_used_for_long_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name, days in (("old", 31), ("new", 29)):
        directory = cache_home() / "work" / name
        directory.mkdir(parents=True)
        os.utime(directory, (time.time() - days * 86400,) * 2)
    assert [entry.path.name for entry in bound()] == ["old"]


def test_builds_bound_the_cache_once_in_ten_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    now = time.time()
    for since_s, left in ((None, False), (500, True), (700, False), (-3600, False)):
        directory = cache_home() / "work" / "old"
        directory.mkdir(parents=True, exist_ok=True)
        os.utime(directory, (now - 31 * 86400,) * 2)
        if since_s is not None:  # A clock that was set back is no reason to wait.
            os.utime(cache_home() / ".bounded", (now - since_s,) * 2)
        bound_at_times([])
        assert directory.exists() == left, since_s


def test_a_tree_in_which_is_built_is_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    directory = cache_home() / "work" / "x"
    directory.mkdir(parents=True)
    entry = Entry(directory, "work", 0, 0.0)
    with locked(directory.with_suffix(".lock")):
        assert not remove(entry)
    assert directory.exists()
    assert remove(entry)
    assert not directory.exists()


@pytest.mark.parametrize(("text", "size"), [("", 4 << 30), ("500M", 500 << 20), ("10G", 10 << 30), ("7", 7)])
def test_the_limit(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINRPC_CACHE_SIZE", text)
    assert limit() == size


def test_a_limit_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINRPC_CACHE_SIZE", "much")
    with pytest.raises(ConfigurationError, match="MINRPC_CACHE_SIZE=much is no size"):
        limit()


@pytest.mark.usefixtures("root")
def test_what_killed_processes_left_goes_with_the_cleaning() -> None:
    """Remains of compilations are deleted after a day, unfinished entries after 30 days."""
    day = 24 * 3600.0
    ages = {"scratch/killed": 2, "scratch/runs": 0.5, "objects/.half": 31, "plugin/.half": 2}
    ages |= {"objects/list.json": 31, "objects/young.json": 2}
    for name, days in ages.items():
        path = cache_home() / name
        path.parent.mkdir(exist_ok=True)
        path.touch() if path.suffix else path.mkdir()
        then = time.time() - days * day
        os.utime(path, (then, then))
    bound()
    left = {name for name in ages if (cache_home() / name).exists()}
    assert left == {"scratch/runs", "plugin/.half", "objects/young.json"}
