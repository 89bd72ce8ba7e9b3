# SPDX-License-Identifier: Apache-2.0
"""The command line as a whole."""

import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
from minrpc import PLATFORMS, lacking
from minrpc.cli import COMMANDS, DEVELOPERS, GROUPS, added, main
from minrpc.targets.option_table import DEVICE_OPTIONS

Minrpc = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(minrpc: Minrpc, command: str) -> None:
    status, out, _ = minrpc(command, "--help")
    assert status == 0
    assert f"minrpc {command}" in out
    module = import_module("minrpc_bench.command" if command in DEVELOPERS else f"minrpc.cli.{command}")
    assert (module.__doc__ or "").startswith(f"`minrpc {command}`")


def test_help_lists_the_commands(minrpc: Minrpc) -> None:
    status, out, _ = minrpc("--help")
    assert status == 0
    assert all(f"  {command} " in out for group in GROUPS.values() for command in group)
    assert not any(f"  {command} " in out for command in DEVELOPERS)
    assert max(map(len, out.splitlines())) <= 80


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package that adds the command `blink`."""
    (tmp_path / "blinking.py").write_text(
        "COMMAND = ('blink a light', 'blinking')\n"
        "def add_arguments(parser):\n    parser.add_argument('times', type=int)\n"
        "def main(arguments):\n    print('blink ' * arguments.times)\n    return 0\n"
    )
    info = tmp_path / "blinking-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: blinking\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[minrpc.commands]\nblink = blinking:COMMAND\n")
    monkeypatch.syspath_prepend(tmp_path)
    added.cache_clear()
    yield tmp_path
    added.cache_clear()
    sys.modules.pop("blinking", None)


@pytest.mark.usefixtures("package")
def test_an_installed_package_adds_a_command(minrpc: Minrpc) -> None:
    assert "\nAdded by packages:\n" in minrpc("--help")[1]
    assert re.search("^  blink +blink a light$", minrpc("--help")[1], re.MULTILINE)
    assert minrpc("blink", "3") == (0, "blink blink blink \n", "")
    assert minrpc("help", "blink")[1].startswith("usage: minrpc blink [-h] times\n\nBlink a light.")
    assert minrpc("blnk")[::2] == (2, "minrpc: there is no command blnk\n  next: did you mean blink\n")


def test_a_package_that_is_gone_adds_none(package: Path, minrpc: Minrpc) -> None:
    (package / "blinking.py").unlink()
    assert "blink" not in minrpc("--help")[1]
    assert "there is no command blink" in minrpc("blink", "3")[2]


def test_options_of_devices_have_one_page(minrpc: Minrpc) -> None:
    status, out, _ = minrpc("help", "devices")
    assert status == 0
    assert all(f"--{name} " in out for name in DEVICE_OPTIONS)
    of_a_command = minrpc("check", "--help")[1]
    assert "--platform" in of_a_command
    assert "--resend" not in of_a_command
    assert "minrpc help devices" in of_a_command


def test_a_word_that_is_no_command(minrpc: Minrpc) -> None:
    status, _, err = minrpc("chekc")
    assert status == 2
    assert "there is no command chekc\n  next: did you mean check" in err


def test_the_bench_is_of_a_checkout_only(minrpc: Minrpc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minrpc.cli.find_spec", lambda name: None)
    status, _, err = minrpc("bench", "--sizes")
    assert status == 2
    assert "minrpc bench is for developers, and not installed" in err


@pytest.mark.parametrize("argv", [[], ["check", "--nonsense"]], ids=str)
def test_wrong_usage_exits_with_2(minrpc: Minrpc, argv: list[str]) -> None:
    status, _, err = minrpc(*argv)
    assert status == 2
    assert "usage: minrpc" in err


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (
            "time add --serial x",
            "minrpc time: error: unrecognized arguments: --serial x; did you mean --seri",
        ),
        ("study f.c f --flash x", "study: error: unrecognized arguments: --flash x; did you mean --fla"),
        ("cache --cl", "cache: error: unrecognized arguments: --cl; did you mean --clean"),
        ("board scan --prob", "board scan: error: unrecognized arguments: --prob; did you mean --probe"),
        ("call f.c f 1 --number=3", "call: error: unrecognized arguments: 1 --number=3\n"),
    ],
)
def test_an_unknown_option_proposes_one(minrpc: Minrpc, command: str, told: str) -> None:
    """The beginning of a name is unknown, too: a later version could complete it to another option."""
    status, _, err = minrpc(*command.split())
    assert status == 2
    assert told in err
    assert "usage: minrpc" in err


def test_a_failure_is_a_report_and_no_traceback(minrpc: Minrpc) -> None:
    status, _, err = minrpc("check", "--platform", "posxi")
    assert status == 2
    assert err.startswith("minrpc: there is no platform 'posxi'\n")
    assert "did you mean posix" in err


def test_who_waits_too_short_is_told_the_option(minrpc: Minrpc) -> None:
    if lacking(PLATFORMS["bare_mps2_an385"]):
        pytest.skip("bare_mps2_an385 can't run here")
    status, _, err = minrpc("time", "testing.hang", "--platform", "bare_mps2_an385", "--call-timeout", "0.05")
    assert status == 1
    assert "did not come to its end within 0.05 s" in err
    assert "next: look at the console; if it is only slow: --call-timeout SECONDS" in err


def test_a_closed_output_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["platforms"]) == 0
    sys.stdout.close()
