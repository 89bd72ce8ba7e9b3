# SPDX-License-Identifier: Apache-2.0
"""Options that another option, or its absence, makes useless are refused before anything is built."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from minrpc.cli import main

Result = tuple[int, str, str]
MAP = "- {connected: true, id: '1', platform: posix, product: p, runner: r, serial: /dev/null}\n"


@pytest.fixture(autouse=True)
def nothing_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("running.start", "cli.constant_time", "cli.functions", "cli.size", "tuning.study"):
        monkeypatch.setattr(
            import_module(f"minrpc.{module}"), "build", lambda *_: pytest.fail("something was built")
        )


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (
            "time add --constant-time --secret 1 --serial-port /dev/null --platform bare_mps2_an385",
            "bare_mps2_an385 does not run under QEMU: nothing can be compared there",
        ),
        ("time add --plot a.png --platform posix,bare_mps2_an385", "--plot takes one platform"),
        ("time add --processes 2 --serial-port /dev/null", "--processes is for devices that are started"),
        ("time add --core cortex-m4 --counters loads", "--core: of no use without the counter of cycles"),
        ("profile add --flash-wait-states 2", "--flash-wait-states: of no use without cycles\n"),
        ("profile add --timing wall --platform bare_mps2_an385", "does not run under QEMU in exact time"),
        (
            "profile add --serial-port /dev/null --platform bare_mps2_an385",
            "does not run under QEMU in exact",
        ),
        ("call f.c f --wave f.fst --platform posix,bare_mps2_an385", "--wave takes one platform"),
        ("call f.c f --wave f.fst --serial-port /dev/null", "is attached: it has no waveform"),
        ("report --from a.json --arg 3 --wait-board 3", "--arg, --wait-board: of no use with --from\n"),
        ("compare a.json b.json --strict-timing", "--strict-timing: of no use without --fail\n"),
        ("cache --days 3 --all", "--days, --all: of no use without --clean\n"),
        ("cache --clean --days 3 --all", "--days: of no use with --all\n"),
        ("serve --pty x --bind ::1 --waiting 3", "--bind, --waiting: of no use without --tvm-port\n"),
        ("time add --flash auto --platform posix", "--flash auto is for a board: posix is started anew"),
        ("time add --cmake-option=-DA=1 --serial-port /dev/null", "nothing is built for"),
        ("time add --cmake-option=-DA=1 --build-dir .", "nothing is built for"),
        ("time add --build-dir . --platform a,b", "--build-dir has one firmware"),
        (
            "time add --hardware-map map.yml --timing wall",
            "--timing wall is not available over --hardware-map",
        ),
        ("time add --hardware-map map.yml --baud 9600", "--baud is for --serial-port: a hardware map has"),
        ("time add --serial-port p --elf map.yml --flash auto", "--flash replaces it"),
    ],
)
def test_an_option_of_no_use(minrpc: Callable[..., Result], command: str, told: str) -> None:
    Path("map.yml").write_text(MAP)
    Path("f.c").write_text("int f(void) { return 1; }\n")
    status, out, err = minrpc(*command.split())
    assert status != 0
    assert told in err, err
    assert "Traceback" not in err
    assert not out


@pytest.mark.parametrize("option", ["--serial-port=/dev/null", "--baud=9600", "--total-timeout=3"])
@pytest.mark.parametrize("command", ["study f.c f", "leakage f.c f", "functions f.c", "size"])
def test_a_command_that_starts_no_board_has_no_option_for_boards(
    capsys: pytest.CaptureFixture[str], command: str, option: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([*command.split(), option])
    assert f"unrecognized arguments: {option}" in capsys.readouterr().err
