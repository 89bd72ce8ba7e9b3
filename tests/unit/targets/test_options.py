# SPDX-License-Identifier: Apache-2.0
"""The options that select devices."""

import argparse
import tomllib
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from minrpc import PLATFORMS, ConfigurationError, Target
from minrpc.library import Sources
from minrpc.targets import Options, Platforms, TargetFields, merge, options_from
from minrpc.targets.option_table import DEVICE_OPTIONS
from minrpc.targets.options import add_device_options, split_names
from minrpc.targets.project import define_list


def parse(*argv: str) -> Options:
    """Parse options as a command line does."""
    parser = argparse.ArgumentParser()
    add_device_options(parser.add_argument)
    return options_from(vars(parser.parse_args(argv)))


def test_nothing_given() -> None:
    assert parse() == Options()


def test_platforms_by_comma_and_by_repetition() -> None:
    assert parse("--platform", "a, b", "--platform=c,a").platforms == ("a", "b", "c")


def test_empty_names_are_none() -> None:
    assert split_names([" ,,", ""]) == ()


@pytest.mark.parametrize(("argv", "resend"), [([], None), (["--resend=on"], True), (["--resend=off"], False)])
def test_resend(argv: list[str], resend: bool | None) -> None:
    assert parse(*argv).given.get("resend") is resend


def test_a_port_with_its_rate() -> None:
    options = parse("--serial-port", "/dev/ttyACM0", "--baud", "9600", "--platform", "my_board")
    assert options.platforms == ("my_board",)
    assert options.given == {"serial_port": "/dev/ttyACM0", "baud": 9600}


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["--serial-port", "p", "--platform", "a,b"], "leads to one device"),
        (["--serial-port", "p", "--timing", "exact"], "--timing exact is not available"),
        (["--serial-port", "p", "--elf", __file__, "--build-dir", "b"], "--elf and --build-dir both name"),
        (["--serial-port", "p", "--baud", "9600", "--build-dir", "b"], "the build's devicetree has the rate"),
        (["--total-timeout", "0"], "seconds above 0"),
        (["--platform", ""], "--platform is empty"),
        (["--platform", " ,", "--platform="], "--platform is empty"),
        (["--call-timeout", "inf"], "--call-timeout is a number of seconds above 0, and at most"),
    ],
)
def test_what_does_not_fit_together(argv: list[str], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        parse(*argv)


def test_each_is_a_keyword_of_python() -> None:
    fields = set(get_type_hints(TargetFields)) | {"platforms", "platforms_file"}
    assert {option.field for option in DEVICE_OPTIONS.values()} <= fields


def in_file(text: str) -> Platforms:
    return merge(Platforms(PLATFORMS), tomllib.loads(text), "my.toml", Path("/project"))


def test_a_name_in_place_of_a_platform_is_refused() -> None:
    with pytest.raises(TypeError, match=r"not 'posix'; Target\.named takes its name"):
        Target("posix")  # type: ignore[arg-type]


def test_a_file_sets_them_and_a_platform_over_that() -> None:
    platforms = in_file(
        '[device]\ncall_timeout_s = 120\nlink = "socket"\n'
        "[platforms.posix]\ncall_timeout_s = 5\ndirect = false\n"
        '[platforms.mine]\nzephyr_board = "x"\n'
        '[platforms.slow]\nextends = "posix"\nresend = true\n'
    )
    posix, mine, slow, other = (Target.of(platforms[name]) for name in ("posix", "mine", "slow", "qemu_x86"))
    assert (posix.call_timeout_s, posix.link, posix.direct) == (5.0, "socket", False)
    assert (mine.call_timeout_s, other.call_timeout_s, mine.link) == (120.0, 120.0, "socket")
    assert (slow.call_timeout_s, slow.resend) == (5.0, True)


def test_the_command_line_is_over_the_file() -> None:
    platform = in_file("[device]\ncall_timeout_s = 120\ndirect = false\n")["posix"]
    target = parse("--call-timeout", "7").target(platform)
    assert (target.call_timeout_s, target.direct) == (7.0, False)
    assert Target.of(platform, direct=True).direct


def test_a_later_file_is_over_an_earlier() -> None:
    first = in_file("[device]\ncall_timeout_s = 120\nsession_timeout_s = 9\n")
    later = merge(first, tomllib.loads("[device]\ncall_timeout_s = 5\n"), "my.toml", Path("/project"))
    target = Target.of(later["posix"])
    assert (target.call_timeout_s, target.session_timeout_s) == (5.0, 9.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("device = 3", "device must be a table"),
        ("[device]\ncall_timeout = 3", "device.call_timeout: unknown key"),
        (
            "[device]\ncall_timeout_s = 0",
            "device.call_timeout_s: must be seconds, more than 0, at most 9223372036, not 0",
        ),
        ("[device]\ncall_timeout_s = true", "must be seconds"),
        ('[device]\nlink = "usb"', "device.link: must be one of pty, socket, not 'usb'"),
        ('[platforms.posix]\ndirect = "off"', "platforms.posix.direct: must be true or false, not 'off'"),
    ],
)
def test_what_is_wrong_in_a_file(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        in_file(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"call_timeout_s": -3}, "call_timeout_s: must be seconds, more than 0, at most 9223372036, not -3"),
        (
            {"session_timeout_s": "3"},
            "session_timeout_s: must be seconds, more than 0, at most 9223372036, not '3'",
        ),
        ({"call_timeout_s": 1e10}, "call_timeout_s: must be seconds, more than 0, at most 9223372036, not 1"),
        (
            {"call_timeout_s": None},
            "call_timeout_s: must be seconds, more than 0, at most 9223372036, not None",
        ),
        (
            {"call_timeout_s": float("nan")},
            "call_timeout_s: must be seconds, more than 0, at most 9223372036, not nan",
        ),
        (
            {"call_timeout_s": float("inf")},
            "call_timeout_s: must be seconds, more than 0, at most 9223372036, not inf",
        ),
        ({"link": "usb"}, "link: must be one of pty, socket, not 'usb'"),
        ({"timing": "exakt"}, "timing: must be one of exact, wall, board, not 'exakt'"),
        ({"direct": "off"}, "direct: must be true or false, not 'off'"),
        ({"baud": "fast"}, "baud: must be bits per second of the serial port, not 'fast'"),
        ({"serial_port": 3}, "serial_port: must be a text, not 3"),
        ({"counters": "cycles"}, "counters: must be true or false, not 'cycles'"),
    ],
)
def test_what_is_wrong_in_a_keyword(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Target.named("posix", **given)
    assert message in str(caught.value)


def test_paths_are_given_as_text_too_and_do_not_follow_the_directory(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[platforms.mine]\nextends = "posix"\n')
    target = Target.named("mine", platforms_file=str(file), build_dir="build", elf=Path("a.elf"), timing=None)
    assert (target.build_dir, target.elf) == (Path.cwd() / "build", Path.cwd() / "a.elf")
    assert target.timing is None


def test_a_misspelled_option_is_proposed() -> None:
    with pytest.raises(TypeError, match="'timming'; did you mean timing"):
        Target.named("posix", timming="exact")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'xyz'; there is "):
        Target.named("posix", xyz=1)  # type: ignore[call-arg]


def test_a_table_of_definitions_means_the_same_in_python_as_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.c").touch()
    table = {"FAST": True, "SLOW": False, "TILE": 8}
    expected = ("FAST", "SLOW=0", "TILE=8")
    assert define_list(table, "defines") == expected
    given = {**table, "BARE": None}
    assert Target.named("posix", defines=given).platform.defines == (*expected, "BARE")
    assert Sources.of(tmp_path / "a.c", defines=given).defines == (*expected, "BARE")
