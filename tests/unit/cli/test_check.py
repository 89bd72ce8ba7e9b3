# SPDX-License-Identifier: Apache-2.0
"""`minrpc check`, on the posix device, and its report of wrong results."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from minrpc import PLATFORMS, Platform, Target, build
from minrpc.check.cases import Case, cases, ulps
from minrpc.check.checking import build_text, check, clock_hint
from minrpc.check.results import _outcome_json
from minrpc.firmware import cache_home, toolchain
from minrpc.host import Deadline
from minrpc.reports.document import to_text
from minrpc.timing import Timebase

Minrpc = Callable[..., tuple[int, str, str]]


def test_all_stages_both_tables_and_the_json(minrpc: Minrpc, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    build(Target.named("posix"))  # A build shows its progress on standard error.
    status, out, err = minrpc("check", "--platform", "posix", "--json", str(file))
    assert (status, err) == (0, "")
    stages = [line.split()[0] for line in out.splitlines() if line.startswith("  ")]
    assert stages == ["build", "start", "session", *["call"] * len(cases()), "clock"]
    assert "| posix    | exp float32 256 |" in out
    assert max(len(line) for line in out.splitlines() if line.startswith("|")) <= 80
    assert "passed |" in out
    document = json.loads(file.read_text())
    (platform,) = document["platforms"]
    assert document["passed"] is True
    assert platform["platform"] == "posix"
    assert platform["firmware"]["flash_bytes"] > 1000
    assert platform["clock"]["mode"] == "wall"
    for result in platform["results"]:
        assert len(result["results_s"]) == 3
        assert 0 < result["min_s"] <= result["mean_s"] <= result["max_s"]
        assert result["calls"] >= 60
        assert result["largest_error"] <= 1


def test_a_wrong_result_fails(minrpc: Minrpc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    right = cases()[0]
    wrong = dataclasses.replace(right, exact=right.exact + np.int8(1))
    monkeypatch.setattr("minrpc.cli.check.cases", lambda: [wrong])
    status, out, _ = minrpc("check", "--platform", "posix", "--json", str(tmp_path / "out.json"))
    assert status == 1
    assert "add int8 2: WRONG by 1" in out
    assert "FAILED |" in out
    assert json.loads((tmp_path / "out.json").read_text())["passed"] is False


@pytest.mark.slow
@pytest.mark.usefixtures("one_case")
def test_a_stage_that_fails_is_named_and_the_next_platform_checked(
    minrpc: Minrpc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    broken = tmp_path / "broken.c"
    broken.write_text("this is no C\n")
    toml = f'[platforms.broken]\nextends = "posix"\ncmake_options = ["-DMINRPC_EXTRA_SOURCES={broken}"]\n'
    (tmp_path / "minrpc.toml").write_text(toml)
    status, out, _ = minrpc("check", "--platform", "broken,posix")
    assert status == 1
    assert "  FAILED   the firmware of broken did not build" in out
    assert "broken.c:1:" in out
    assert "| posix    | add" in out


@pytest.fixture
def without_arm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither the compiler for Arm nor Zephyr is installed: only posix can run."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_home().parent))
    monkeypatch.setenv("HOME", str(tmp_path))  # CMake's registry of packages is in HOME.
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)
    version = toolchain.compiler_version
    monkeypatch.setattr(
        toolchain, "compiler_version", lambda name: None if name.startswith("arm-") else version(name)
    )


@pytest.mark.usefixtures("one_case", "without_arm")
@pytest.mark.parametrize("words", [("check",), ("info",), ("time", "inc", "--arg", "1")])
def test_what_was_left_out_is_named_at_the_end_and_in_json(minrpc: Minrpc, words: tuple[str, ...]) -> None:
    status, out, err = minrpc(*words, "--json", "-")
    assert status == 0
    left_out = json.loads(out)["left_out"]
    assert "arm-none-eabi-gcc is not installed" in left_out["bare_mps2_an385"]
    assert "no Zephyr workspace was found" in left_out["qemu_x86"]
    assert "posix" not in left_out
    last = err.splitlines()[-len(left_out) :]
    assert last == [f"minrpc: {name} was left out: {why}" for name, why in left_out.items()]


def test_where_nothing_can_run_that_is_the_failure(minrpc: Minrpc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    status, out, err = minrpc("check", "--json", "-")
    failure = json.loads(out)["failure"]
    assert (status, failure["class"]) == (1, "MissingError")
    assert any(line.startswith("bare_mps2_an385: ") and "apt-get" in line for line in failure["details"])
    assert "no platform can run here" in err


@pytest.mark.usefixtures("one_case")
def test_a_file_that_cannot_be_written(minrpc: Minrpc, tmp_path: Path) -> None:
    status, _, err = minrpc("check", "--platform", "posix", "--json", str(tmp_path / "no" / "out.json"))
    assert status == 2
    assert "can't be written: No such file or directory" in err


def test_errors_in_ulps() -> None:
    exact = np.array([1.0, 1.0, 1e-45, 2.0])
    result = np.array([1.0, 1.0 + 2**-23, 0.0, 2.0 + 2**-21], np.float32)
    assert ulps(result, exact).round(2).tolist() == [0.0, 1.0, 0.71, 2.0]


def test_a_result_that_is_no_number_never_passes() -> None:
    case = Case("exp", (np.zeros(1, np.float32),), np.ones(1), limit=1.0)
    assert not case.passes(case.error_of(np.array([np.nan], np.float32)))


def test_a_coarse_clock_of_a_zephyr_board_is_told_with_what_helps() -> None:
    board = Platform("desk", port="zephyr", starts="board", zephyr_board="nrf52840dk/nrf52840")
    slow, fine = Timebase(source="RTC").clock(32_768), Timebase(source="TIMER2").clock(16_000_000)
    assert "a count is 30.52 µs" in clock_hint(board, slow)
    assert "CONFIG_MINRPC_CLOCK_TIMING=y" in clock_hint(board, slow)
    assert not clock_hint(board, fine)
    assert not clock_hint(PLATFORMS["posix"], slow)


def test_of_somebodys_own_firmware_what_is_there_is_checked() -> None:
    """A function that the firmware lacks is named and not called; instead an array is copied to the device
    and back."""
    lines: list[str] = []
    absent = dataclasses.replace(cases()[0], function="no_such_function")
    checked = check(
        Target.named("posix"), Deadline("check", 60.0), [absent], lambda stage, text: lines.append(text)
    )
    assert checked.passed
    assert (checked.missing, checked.copied, checked.outcomes) == (["no_such_function"], True, [])
    assert "the firmware has no function no_such_function: not called" in lines
    assert "4,096 bytes there and back: right" in lines


def test_a_call_that_is_too_large_for_the_device_is_named() -> None:
    lines: list[str] = []
    large = dataclasses.replace(cases()[0], inputs=(np.zeros(1 << 30, np.int8),))
    checked = check(
        Target.named("posix"),
        Deadline("check", 60.0),
        [large, cases()[0]],
        lambda stage, text: lines.append(text),
    )
    assert checked.passed
    assert len(checked.outcomes) == 1
    assert any("add int8 2 needs 1,073,742,338 bytes for arrays and times" in line for line in lines)


def test_a_finished_build_does_not_come_from_the_cache() -> None:
    firmware = build(Target.named("posix"))
    theirs = dataclasses.replace(
        firmware, target=dataclasses.replace(firmware.target, build_dir=Path("build/theirs"))
    )
    assert build_text(theirs).startswith("as it is in build/theirs: flash ")


def test_where_time_is_the_hosts_the_option_that_helps_is_named() -> None:
    qemu = Platform("desk", port="zephyr", starts="qemu")
    wall = Timebase(mode="wall", source="SysTick").clock(25_000_000)
    assert "CONFIG_QEMU_ICOUNT=y" in clock_hint(qemu, wall)


def test_an_error_that_is_no_number_is_null_in_json() -> None:
    measurement: Any = SimpleNamespace(seconds_per_call=(1.0,))
    for error in (np.nan, np.inf):
        outcome: Any = SimpleNamespace(
            case=cases()[0], passed=False, error=error, calls=1, measurement=measurement
        )
        found = _outcome_json(outcome)
        assert found["largest_error"] is None
        to_text(found)
