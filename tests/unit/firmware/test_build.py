# SPDX-License-Identifier: Apache-2.0
"""Building and the cache, with a firmware of one file and the real CMake and compiler."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from minrpc import PLATFORMS, BuildError, ConfigurationError, Firmware, Target, build
from minrpc.firmware import cache_home
from minrpc.firmware.cache import filled, locked
from minrpc.firmware.firmware import elf_sizes

WAIT_S = 60.0
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
add_executable(minrpc_posix main.c ${EXTRA})
target_compile_definitions(minrpc_posix PRIVATE SIZE=${SIZE} STACK=${MINRPC_STACK_BYTES})
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a firmware of one file, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    port = tmp_path / "checkout" / "zephyr-app" / "ports" / "posix"
    port.mkdir(parents=True)
    (port / "CMakeLists.txt").write_text(CMAKE)
    (port / "main.c").write_text("int main(void) { return 3; }\n")
    return tmp_path / "checkout"


def main_c(root: Path) -> Path:
    return root / "zephyr-app" / "ports" / "posix" / "main.c"


def exit_status(firmware: Firmware) -> int:
    return subprocess.run([str(firmware.elf)], check=False).returncode


def test_built_once_then_taken_from_the_cache(root: Path) -> None:
    first, second = build(Target(POSIX), root=root), build(Target(POSIX), root=root)
    assert (first.cached, second.cached) == (False, True)
    assert replace(second, cached=False, seconds=0.0) == replace(first, seconds=0.0)
    assert exit_status(second) == 3


@pytest.mark.parametrize("name", ["minrpc_posix", "firmware.json", "inputs.json", "CMakeCache.txt"])
def test_a_firmware_with_an_empty_file_is_built_again(root: Path, name: str) -> None:
    """A loss of power leaves such files; each later run failed."""
    first = build(Target(POSIX), root=root)
    (first.build_dir / name).write_bytes(b"")
    again = build(Target(POSIX), root=root)
    assert not again.cached or name == "inputs.json"
    assert exit_status(again) == 3
    assert (again.build_dir / "minrpc_posix").stat().st_size


def test_a_change_is_built_and_the_way_back_is_cached(root: Path) -> None:
    first = build(Target(POSIX), root=root)
    old = main_c(root).read_text()
    main_c(root).write_text("int main(void) { return 4; }\n")
    changed = build(Target(POSIX), root=root)
    main_c(root).write_text(old)
    again = build(Target(POSIX), root=root)
    assert (changed.cached, again.cached) == (False, True)
    assert (exit_status(changed), exit_status(first), again.elf) == (4, 3, first.elf)


def test_a_file_that_configuring_looks_for_is_seen_when_it_comes(root: Path) -> None:
    lists = main_c(root).with_name("CMakeLists.txt")
    lists.write_text(CMAKE.replace("add_exec", "include(${CMAKE_SOURCE_DIR}/board.cmake OPTIONAL)\nadd_exec"))
    main_c(root).write_text("#ifndef STATUS\n#define STATUS 3\n#endif\nint main(void) { return STATUS; }\n")
    assert exit_status(build(Target(POSIX), root=root)) == 3
    main_c(root).with_name("board.cmake").write_text("add_compile_definitions(STATUS=5)\n")
    assert exit_status(build(Target(POSIX), root=root)) == 5


def test_another_ports_files_do_not_count(root: Path) -> None:
    build(Target(POSIX), root=root)
    other = root / "zephyr-app" / "ports" / "baremetal"
    other.mkdir()
    (other / "main.c").touch()
    assert build(Target(POSIX), root=root).cached


def test_options_and_the_files_that_they_name_count(root: Path, tmp_path: Path) -> None:
    extra = tmp_path / "extra.c"
    extra.write_text("int extra = 1;\n")
    options = [f"-DEXTRA={extra}"]
    target = Target(POSIX).changed(cmake_options=options)
    plain, first = build(Target(POSIX), root=root), build(target, root=root)
    assert first.content_hash != plain.content_hash
    assert build(target, root=root).cached
    extra.write_text("int extra = 2;\n")
    assert not build(target, root=root).cached


def test_an_option_without_a_dash_is_told(root: Path) -> None:
    with pytest.raises(ConfigurationError, match="'SIZE=1' is no option of CMake's") as caught:
        build(Target(POSIX).changed(cmake_options=["SIZE=1"]), root=root)
    assert caught.value.next_step == "write -DSIZE=1"
    assert build(Target(POSIX).changed(cmake_options=["-D", "SIZE=1"]), root=root).elf.is_file()


@pytest.mark.parametrize(
    ("options", "message", "step"),
    [
        (
            ["-DSIZE=1", "-DSIZ=1"],
            "-DSIZ=1 has no effect on posix: its CMake files don't read SIZ",
            "give the option only",
        ),
        (["-D", "SIZ:STRING=1"], "SIZ:STRING=1 has no effect", "correct the name"),
        (["-DMINRPC_STAK_BYTES=1"], "read MINRPC_STAK_BYTES", "did you mean MINRPC_STACK_BYTES"),
    ],
)
def test_an_option_that_no_file_reads_is_told(
    root: Path, options: list[str], message: str, step: str
) -> None:
    target = Target(POSIX).changed(cmake_options=options)
    for _ in range(2):
        with pytest.raises(BuildError, match=message) as caught:
            build(target, root=root)
        assert step in str(caught.value.next_step)
    assert exit_status(build(Target(POSIX).changed(cmake_options=["-DSIZE=1"]), root=root)) == 3


def test_an_option_of_kconfigs_is_for_the_platforms_that_have_it(root: Path) -> None:
    target = Target(POSIX).changed(cmake_options=["-DCONFIG_SIZE_OPTIMIZATIONS=y"])
    assert exit_status(build(target, root=root)) == 3


def test_the_compilers_first_error_is_shown_and_the_next_build_works(root: Path) -> None:
    good = main_c(root).read_text()
    main_c(root).write_text("int main(void) { return missing; }\n")
    with pytest.raises(BuildError, match="posix did not build") as caught:
        build(Target(POSIX), root=root)
    assert any("missing" in line and "undeclared" in line for line in caught.value.details)
    assert caught.value.log_path is not None
    assert "missing" in caught.value.log_path.read_text()
    assert str(caught.value.log_path) in str(caught.value)
    main_c(root).write_text(good)
    assert exit_status(build(Target(POSIX), root=root)) == 3


def test_a_configuration_that_fails_is_tried_anew(root: Path) -> None:
    lists = main_c(root).with_name("CMakeLists.txt")
    lists.write_text("cmake_minimum_required(VERSION 3.20)\nproject(tiny C)\nmessage(FATAL_ERROR nope)\n")
    with pytest.raises(BuildError) as caught:
        build(Target(POSIX), root=root)
    assert "CMake Error" in caught.value.details[0]
    lists.write_text(CMAKE)
    assert exit_status(build(Target(POSIX), root=root)) == 3
    # Now ninja runs CMake.
    lists.write_text(f"{CMAKE}message(FATAL_ERROR nope)\n")
    with pytest.raises(BuildError) as caught:
        build(Target(POSIX), root=root)
    assert "CMake Error" in caught.value.details[0]


@pytest.mark.parametrize("asked", [True, False])
def test_a_tree_of_a_killed_harness_or_an_older_one_is_made_anew(root: Path, asked: bool) -> None:
    """The first was killed while CMake ran; the second did not ask CMake for its inputs."""
    build(Target(POSIX), root=root)
    (tree,) = [path for path in (cache_home() / "work").iterdir() if path.is_dir()]
    if asked:
        (tree / ".minrpc-note").unlink()
        (tree / "CMakeCache.txt").write_text("CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere\n")
    else:
        shutil.rmtree(tree / ".cmake")
    main_c(root).write_text("int main(void) { return 4; }\n")
    assert exit_status(build(Target(POSIX), root=root)) == 4


def test_a_build_that_makes_another_program(root: Path) -> None:
    with pytest.raises(BuildError, match=r"made no other\.elf"):
        build(Target(replace(POSIX, elf="other.elf")), root=root)


def test_sources_that_change_while_they_are_built_are_built_again(root: Path) -> None:
    """The first compilation edits its own source, as a person in an editor might."""
    edits_itself(root, "int main(void) { return 7; }", "true")
    assert exit_status(build(Target(POSIX), root=root)) == 7


def test_a_failure_of_sources_that_change_meanwhile_is_not_the_last_word(root: Path) -> None:
    edits_itself(root, "int main(void) { return 8; }", "false")
    assert exit_status(build(Target(POSIX), root=root)) == 8


def edits_itself(root: Path, text: str, then: str) -> None:
    """Make only the first build change the source and end with the command `then`."""
    marker, script = root / "edited", root / "edit.sh"
    script.write_text(f"[ -e {marker} ] && exit\ntouch {marker}\necho '{text}' > {main_c(root)}\n{then}\n")
    lists = main_c(root).with_name("CMakeLists.txt")
    lists.write_text(f"{CMAKE}add_custom_command(TARGET minrpc_posix POST_BUILD COMMAND sh {script})\n")


def test_several_at_once_build_once(root: Path) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from minrpc.firmware import build; from minrpc.targets import Target\n"
        "print(build(Target.named('posix'), root=Path(sys.argv[1])).cached)"
    )
    command = [sys.executable, "-c", script, str(root)]
    builders = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    answers = sorted(builder.communicate()[0].strip() for builder in builders)
    assert answers == ["False", "True", "True"]


def test_a_lock_is_held_until_the_child_that_inherited_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    with locked(path) as lock:
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=(lock,))
    held = subprocess.run(["flock", "--nonblock", str(path), "true"], check=False).returncode
    child.communicate()
    free = subprocess.run(["flock", "--nonblock", str(path), "true"], check=False).returncode
    assert (held, free) == (1, 0)


def test_a_directory_is_filled_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "store" / "x"
    with pytest.raises(FileNotFoundError), filled(target) as partial:
        (partial / "half").rename(partial / "whole")
    assert list(target.parent.iterdir()) == []
    for text in ("one", "two"):
        with filled(target) as partial:
            (partial / "file").write_text(text)
        assert (target / "file").read_text() == text
    assert list(target.parent.iterdir()) == [target]


def test_a_cache_that_can_not_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ConfigurationError, match="can't be made") as caught:
        cache_home()
    assert "XDG_CACHE_HOME" in caught.value.next_step
    monkeypatch.setenv("XDG_CACHE_HOME", os.fsdecode(b"%s/\xff" % bytes(tmp_path)))
    with pytest.raises(ConfigurationError, match=r"/\\xff is not UTF-8"):
        cache_home()


def test_sizes_are_those_of_binutils(root: Path) -> None:
    """Flash includes gaps between sections: at most a page for each of the program's few segments."""
    elf = build(Target(POSIX), root=root).elf
    text, data, bss = map(
        int, subprocess.check_output(["size", str(elf)], text=True).splitlines()[1].split()[:3]
    )
    flash, ram = elf_sizes(elf)
    assert text + data <= flash <= text + data + 4 * 4096
    assert ram == data + bss


def test_blanks_and_letters_in_all_paths(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The paths of the checkout, of the cache, of the user's sources and headers."""
    home = tmp_path / "Mein Föhn"
    project, headers = home / "prö j", home / "prö j" / "ínc dir"
    headers.mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cäche x"))
    checkout = root.rename(home / "check out")
    (headers / "k ö.h").write_text("#define STATUS 6\n")
    (project / "k ö.c").write_text('#include "k ö.h"\nint status = STATUS;\n')
    main_c(checkout).write_text("extern int status;\nint main(void) { return status; }\n")
    lists = CMAKE.replace("${EXTRA}", "${MINRPC_EXTRA_SOURCES}")
    headers_too = "include_directories(${MINRPC_EXTRA_INCLUDES})\n"
    main_c(checkout).with_name("CMakeLists.txt").write_text(lists + headers_too)
    target = Target(POSIX).changed(sources=[project / "k ö.c"], include_dirs=[headers])
    assert exit_status(build(target, root=checkout)) == 6
    assert build(target, root=checkout).cached
    (headers / "k ö.h").write_text("#define STATUS 7\n")
    assert exit_status(build(target, root=checkout)) == 7


def test_a_harness_that_is_killed_in_a_build_leaves_nothing_that_runs(root: Path) -> None:
    """The next build waits for no process, uses no unfinished file, and is right."""
    script, started = root / "hang.sh", root / "started"
    script.write_text(
        f"[ -e {started} ] && exit\necho $$ > {started}.part\nmv {started}.part {started}\nexec sleep 1000\n"
    )
    lists = main_c(root).with_name("CMakeLists.txt")
    lists.write_text(f"{CMAKE}add_custom_command(TARGET minrpc_posix POST_BUILD COMMAND sh {script})\n")
    code = (
        "import sys; from pathlib import Path\n"
        "from minrpc.firmware import build; from minrpc.targets import PLATFORMS, Target\n"
        "build(Target(PLATFORMS['posix']), root=Path(sys.argv[1]))\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(root)]) as harness:
        while not started.exists():
            assert harness.poll() is None
        end = os.pidfd_open(int(started.read_text()))
        harness.kill()
    try:
        assert select.select([end], [], [], WAIT_S)[0], "a program of the build goes on"
    finally:
        os.close(end)
    assert exit_status(build(Target(POSIX), root=root)) == 3
