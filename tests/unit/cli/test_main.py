# SPDX-License-Identifier: Apache-2.0
"""The command line as a whole."""

from collections.abc import Callable
from importlib import import_module

import pytest
from minrpc import PLATFORMS, lacking
from minrpc.cli import COMMANDS, DEVELOPERS, FORMER, FORMER_OPTIONS, GROUPS
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


def test_options_of_devices_have_one_page(minrpc: Minrpc) -> None:
    status, out, _ = minrpc("help", "devices")
    assert status == 0
    assert all(f"--{name} " in out for name in DEVICE_OPTIONS)
    of_a_command = minrpc("check", "--help")[1]
    assert "--platform" in of_a_command
    assert "--resend" not in of_a_command
    assert "minrpc help devices" in of_a_command


@pytest.mark.parametrize("name", FORMER)
def test_a_former_command_names_the_new(name: str, minrpc: Minrpc) -> None:
    status, _, err = minrpc(name, "--platform", "posix")
    assert status == 2
    assert f"there is no command {name}\n  next: write: minrpc {FORMER[name]}" in err


@pytest.mark.parametrize("name", FORMER_OPTIONS)
def test_a_former_option_names_the_new(name: str, minrpc: Minrpc) -> None:
    status, _, err = minrpc("time", "inc", f"{name}=1")
    assert status == 2
    assert f"there is no option {name}\n  next: write {FORMER_OPTIONS[name]}" in err


def test_a_path_as_the_link_of_serve_names_the_new(minrpc: Minrpc) -> None:
    status, _, err = minrpc("serve", "--link", "/tmp/device")
    assert status == 2
    assert "--pty /tmp/device" in err


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
