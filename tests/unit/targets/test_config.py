# SPDX-License-Identifier: Apache-2.0
"""The table of platforms, and a user's files merged over it."""

from __future__ import annotations

import os
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from minrpc import PLATFORMS, ConfigurationError, Platform, Target
from minrpc.targets import Platforms, find_platform, load_platforms, merge
from minrpc.targets.config import unknown_platform


def merged(text: str) -> Platforms:
    return merge(Platforms(PLATFORMS), tomllib.loads(text), "my.toml", Path())


@pytest.fixture(autouse=True)
def no_files_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=lambda platform: platform.name)
def test_each_of_ours_is_whole(platform: Platform) -> None:
    assert platform.description
    assert platform.arch
    assert (platform.port == "zephyr") == bool(platform.zephyr_board)
    assert (platform.starts == "qemu") == bool(platform.qemu)
    assert (platform.starts == "process") == bool(platform.arguments)
    assert platform.link_uart != platform.console_uart


def test_without_a_file_there_are_ours() -> None:
    assert load_platforms() == dict(PLATFORMS)


def test_a_new_zephyr_board_needs_its_name_only() -> None:
    board = merged('[platforms.mine]\nzephyr_board = "nucleo_f746zg"')["mine"]
    assert (board.port, board.starts, board.zephyr_board) == ("zephyr", "board", "nucleo_f746zg")
    assert (board.link_uart, board.console_uart, board.baud) == (0, None, 115200)


def test_a_field_of_ours_can_be_changed() -> None:
    platforms = merged("[platforms.qemu_x86]\nlink_uart = 0\nconsole_uart = 1")
    assert platforms["qemu_x86"] == replace(PLATFORMS["qemu_x86"], link_uart=0, console_uart=1, project=".")
    assert platforms["posix"] == PLATFORMS["posix"]


def test_none_takes_a_number_away() -> None:
    """A board with one UART has no console."""
    item = merged('[platforms.one]\nextends = "qemu_x86"\nlink_uart = 0\nconsole_uart = "none"')["one"]
    assert item == replace(PLATFORMS["qemu_x86"], name="one", link_uart=0, console_uart=None, project=".")


def test_extends_takes_over_all_but_the_name() -> None:
    text = '[platforms.slow]\nextends = "qemu_x86"\nicount_shift = 7\ncmake_options = ["-DX=1"]'
    slow = merged(text)["slow"]
    assert slow == replace(
        PLATFORMS["qemu_x86"], name="slow", icount_shift=7, cmake_options=("-DX=1",), project="."
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[platforms.a]\nzephir_board = 'x'", r"my.toml: platforms.a.zephir_board: unknown key"),
        ("[platform.a]\nzephyr_board = 'x'", r"my.toml: platform: unknown key"),
        ("platforms = 3", r"platforms must be a table"),
        ("[platforms]\na = 3", r"platforms.a must be a table"),
        ("[platforms.a]\nbaud = 9600", r"platforms.a: zephyr_board is missing"),
        ("[platforms.qemu_x86]\nlink_uart = '1'", r"platforms.qemu_x86.link_uart: must be an int, not '1'"),
        ("[platforms.qemu_x86]\nlink_uart = true", r"link_uart: must be an int, not True"),
        ("[platforms.qemu_x86]\nlink_uart = 'none'", r"link_uart: must be an int, not 'none'"),
        ("[platforms.qemu_x86]\nconsole_uart = 'no'", r"console_uart: must be an int or 'none', not 'no'"),
        (
            "[platforms.qemu_x86]\nfirmware_link = 'usb'",
            r"firmware_link: must be one of uart, semihosting, rtt, not",
        ),
        ("[platforms.qemu_x86]\nfirmware_link = 'rtt'", r"firmware_link is for the bare-metal port"),
        ("[platforms.qemu_x86]\nlink_uart = 0", r"console_uart and link_uart are the same port"),
        ("[platforms.qemu_x86]\nlink_uart = -1", r"can't be negative"),
        ("[platforms.qemu_x86]\nbaud = 0", r"can't be negative"),
        ("[platforms.qemu_x86]\nicount_shift = 40", r"QEMU takes 0 to 10, not 40"),
        ("[platforms.qemu_x86]\nstarts = 'magic'", r"must be one of process, qemu, rtl, board, not 'magic'"),
        ("[platforms.qemu_x86]\nqemu_args = 'x'", r"must be a list of strings"),
        ("[platforms.qemu_x86]\nqemu_args = [1]", r"must be a list of strings"),
        ("[platforms.a]\nextends = 'b'", r"platforms.a.extends: there is no platform 'b'"),
        ("[platforms.a]\nname = 7\nzephyr_board = 'x'", r"platforms.a.name: unknown key"),
    ],
)
def test_what_is_wrong_is_named(text: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        merged(text)


def test_a_near_key_is_proposed() -> None:
    with pytest.raises(ConfigurationError, match="write 'zephyr_board'"):
        merged("[platforms.a]\nzephir_board = 'x'")


def test_files_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "config" / "minrpc").mkdir(parents=True)
    home = tmp_path / "config" / "minrpc" / "platforms.toml"
    home.write_text('[platforms.mine]\nzephyr_board = "from_home"\nbaud = 9600')
    (tmp_path / "minrpc.toml").write_text('[platforms.mine]\nzephyr_board = "from_here"')
    mine = load_platforms()["mine"]
    assert (mine.zephyr_board, mine.baud) == ("from_here", 9600)
    named = tmp_path / "other.toml"
    named.write_text('[platforms.mine]\nzephyr_board = "named"')
    assert load_platforms(named)["mine"].zephyr_board == "named"


def test_a_file_that_is_not_there_or_no_toml(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none\.toml can't be read: No such file"):
        load_platforms(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[platforms.a\n")
    with pytest.raises(ConfigurationError, match=r"bad\.toml is not valid TOML.*line 1"):
        load_platforms(tmp_path / "bad.toml")
    (tmp_path / "latin.toml").write_bytes(b"# \xe9\n")
    with pytest.raises(ConfigurationError, match=r"latin\.toml is not valid TOML"):
        load_platforms(tmp_path / "latin.toml")


def test_an_unknown_name_may_be_a_boards() -> None:
    found = find_platform(Platforms(PLATFORMS), "mps2/an521/cpu0")
    assert (found.port, found.zephyr_board, found.arch) == ("zephyr", "mps2/an521/cpu0", "")


def test_a_board_without_an_entry_has_what_the_files_say_of_all(tmp_path: Path) -> None:
    (tmp_path / "config" / "minrpc").mkdir(parents=True)
    home = tmp_path / "config" / "minrpc" / "platforms.toml"
    home.write_text('[device]\ncall_timeout_s = 7\n[firmware]\ndefines = ["ALL"]\n')
    (tmp_path / "dsp.c").touch()
    (tmp_path / "minrpc.toml").write_text(
        '[libraries.dsp]\nsources = ["dsp.c"]\n[platforms.mine]\nzephyr_board = "x"\n'
    )
    platforms = load_platforms()
    new = find_platform(platforms, "qemu_riscv32")
    assert new == replace(
        platforms["mine"], name="qemu_riscv32", zephyr_board="qemu_riscv32", project=str(tmp_path)
    )
    attached = Target.named("of_the_lab", serial_port="/dev/ttyACM0")
    for platform in (new, attached.platform):
        assert [library.name for library in platform.named_libraries] == ["dsp"]
        assert platform.defines == ("ALL",)
    assert (attached.call_timeout_s, attached.platform.zephyr_board) == (7.0, "")
    assert Target.named("qemu_riscv32").platform == new


def test_an_unknown_platform_gets_near_names() -> None:
    error = unknown_platform("qemu_x68", "Zephyr has no such board")
    assert "no platform 'qemu_x68'" in error.message
    assert "qemu_x86" in error.next_step


PROJECT = """
[firmware]
sources = ["kernels/*.c", "one.c"]
include_dirs = ["include"]
defines = { TILE = 8, FAST = true, NAME = "x" }
cmake_options = ["-DEXTRA_CONF_FILE={project}/fpu.conf"]

[platforms.posix]
libraries = ["libk.a"]
sources = ["one.c"]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with its own files, and a directory in it from which a command is run."""
    root = tmp_path / "project"
    for name in ("kernels/b.c", "kernels/a.c", "one.c", "include/k.h", "libk.a", "deep/er/x"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / "minrpc.toml").write_text(PROJECT)
    return root


def test_the_nearest_file_above_counts_and_its_paths_are_its_own(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "deep" / "er")
    platforms = load_platforms()
    posix, bare = platforms["posix"], platforms["bare_mps2_an385"]
    kernels = [str(project / name) for name in ("kernels/a.c", "kernels/b.c", "one.c")]
    assert list(bare.sources) == kernels
    assert list(posix.sources) == [*kernels, str(project / "one.c")]
    assert (posix.libraries, bare.libraries) == ((str(project / "libk.a"),), ())
    assert bare.include_dirs == (str(project / "include"),)
    assert bare.defines == ("TILE=8", "FAST", "NAME=x")
    own = PLATFORMS["bare_mps2_an385"].cmake_options
    assert bare.cmake_options == (f"-DEXTRA_CONF_FILE={project}/fpu.conf", *own)
    assert (posix.project, bare.project) == (str(project), str(project))


def test_a_file_that_is_named_counts_instead(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text("[firmware]\nsources = ['project/one.c']\n")
    assert load_platforms(other)["posix"].sources == (str(project / "one.c"),)


@pytest.mark.parametrize(
    ("text", "says", "step"),
    [
        ("sources = ['nothing.c']", "firmware.sources: there is no file nothing.c", "relative to"),
        ("sources = ['*.cc']", "there is no file", "relative to"),
        ("sources = ['include']", "there is no file include", "relative to"),
        ("include_dirs = ['one.c']", "there is no directory one.c", "relative to"),
        ("sources = 'one.c'", "must be a list of strings", ""),
        ("defines = ['-DX=1']", "'-DX=1' is no definition", "without -D"),
        ("defines = ['X=1;2']", "is no definition", ""),
        ("defines = { X = [1] }", "firmware.defines.X: must be a number", ""),
        ("cmake_options = ['X=1']", "'X=1' is no option", 'write "-DX=1"'),
        ("sorces = []", "firmware.sorces: unknown key", "write 'sources'"),
        ("baud = 9600", "firmware.baud: unknown key", ""),
    ],
)
def test_what_is_wrong_with_ones_own_files(project: Path, text: str, says: str, step: str) -> None:
    (project / "minrpc.toml").write_text(f"[firmware]\n{text}\n")
    with pytest.raises(ConfigurationError, match=says) as caught:
        load_platforms(project / "minrpc.toml")
    assert step in caught.value.next_step


def test_a_projects_directory_that_is_not_utf8_is_told(project: Path) -> None:
    (project / os.fsdecode(b"\xe4.c")).touch()
    (project / "minrpc.toml").write_text("[firmware]\nsources = ['*.c']\n")
    with pytest.raises(ConfigurationError, match=r"/\\xe4.c is not UTF-8"):
        load_platforms(project / "minrpc.toml")
    directory = project.rename(project.parent / os.fsdecode(b"\xff"))
    with pytest.raises(ConfigurationError, match=r"/\\xff/minrpc.toml is not UTF-8"):
        load_platforms(directory / "minrpc.toml")


@pytest.mark.parametrize("name", ["../../../evil", "", "-x", ".hidden", "a/b", "a b", "a,b"])
def test_a_name_that_is_none(name: str) -> None:
    with pytest.raises(ConfigurationError, match="is no name for a platform"):
        merged(f'[platforms."{name}"]\nextends = "posix"')


def test_a_projects_directory_may_have_the_letters_of_a_pattern(project: Path) -> None:
    directory = project.rename(project.parent / "p[1]*")
    (directory / "minrpc.toml").write_text("[firmware]\nsources = ['kernels/*.c', 'one.c']\n")
    names = [str(directory / name) for name in ("kernels/a.c", "kernels/b.c", "one.c")]
    assert list(load_platforms(directory / "minrpc.toml")["bare_mps2_an385"].sources) == names


def test_a_working_directory_that_was_deleted_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigurationError, match="the working directory has been deleted"):
        load_platforms()
