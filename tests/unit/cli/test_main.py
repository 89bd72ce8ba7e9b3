# SPDX-License-Identifier: Apache-2.0
"""The command line as a whole."""

from collections.abc import Callable
from importlib import import_module

import pytest
from minrpc.cli import COMMANDS
from minrpc.pipeline import lacking
from minrpc.targets import PLATFORMS

Minrpc = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(minrpc: Minrpc, command: str) -> None:
    status, out, _ = minrpc(command, "--help")
    assert status == 0
    assert f"minrpc {command}" in out
    module = import_module(f"minrpc.cli.{command}")
    assert (module.__doc__ or "").startswith(f"`minrpc {command}`")


def test_help_lists_the_commands(minrpc: Minrpc) -> None:
    status, out, _ = minrpc("--help")
    assert status == 0
    assert all(command in out for command in COMMANDS)


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["check", "--nonsense"]], ids=str)
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
