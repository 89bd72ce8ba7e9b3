# SPDX-License-Identifier: Apache-2.0
"""Output of the command line: its streams, its JSON, and its errors if it can't be written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from minrpc import BuildError, Firmware, Target
from minrpc.cli import main
from minrpc.cli.timing_files import read_records
from minrpc.reports.document import UNITS, VERSION

Minrpc = Callable[..., tuple[int, str, str]]

TIME = ("time", "inc", "--arg", "5", "--platform", "posix")


def command(*words: str, **environment: str) -> list[str]:
    return [
        "env",
        *(f"{name}={value}" for name, value in environment.items()),
        sys.executable,
        "-m",
        "minrpc",
        *words,
    ]


def numbers(content: object) -> set[str]:
    """The keys of all fractions in a document."""
    if isinstance(content, dict):
        own = {key for key, value in content.items() if isinstance(value, float)}
        return own.union(*(numbers(value) for value in content.values()))
    return set().union(*(numbers(item) for item in content)) if isinstance(content, list) else set()


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (("check", "--platform", "posix"), "platforms"),
        (TIME, "timings"),
        (("info", "--platform", "posix"), "devices"),
        (("platforms",), "platforms"),
        (("doctor", "--platform", "posix"), "platforms"),
        (("cache",), "entries"),
        pytest.param(("bench", "--sizes"), "rows", marks=pytest.mark.slow),
    ],
    ids=lambda name: name[0] if isinstance(name, tuple) else name,
)
def test_all_json_is_of_one_kind(minrpc: Minrpc, words: tuple[str, ...], key: str) -> None:
    """With `-`, standard output has only the JSON."""
    status, out, err = minrpc(*words, "--json", "-")
    found = json.loads(out)
    about = (found["format"], found["version"], found["command"], found["units"])
    assert about == ("minrpc", VERSION, words[0], dict(UNITS))
    assert found["passed"] == (status == 0)
    assert found["failure"] is None
    assert found[key]
    assert err
    if words[0] != "bench":  # The rows of this command name their units.
        plain = {"error", "largest_error", "p_value", "timer", "call", "low", "high"}
        assert [name for name in numbers(found) - plain if not name.endswith(tuple(UNITS))] == []


def test_a_comparison_is_of_that_kind_too(minrpc: Minrpc) -> None:
    for name in ("base", "head"):
        assert minrpc(*TIME, "--json", f"{name}.json")[0] == 0
    status, out, _ = minrpc("compare", "base.json", "head.json", "--json", "-")
    found = json.loads(out)
    assert (status, found["command"], found["passed"]) == (0, "compare", True)
    (change,) = found["changes"]
    assert change["call"] == "inc(5)"
    assert set(change) >= {"verdict", "base_ticks", "head_ticks", "change_ratio"}


def test_a_failure_has_its_class_and_stage(
    minrpc: Minrpc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CFLAGS", "--no-option-of-compilers")
    assert minrpc("info", "--platform", "posix", "--json", "out.json")[0] == 1
    failure = json.loads((tmp_path / "out.json").read_text())["failure"]
    assert (failure["class"], failure["stage"]) == ("BuildError", "build")
    assert "did not build" in failure["message"]
    assert any("--no-option-of-compilers" in line for line in failure["details"])
    assert Path(failure["log"]).is_file()

    def failing(target: Target) -> Firmware:
        raise BuildError(f"{target.name} did not build")

    monkeypatch.setattr("minrpc.check.checking.build", failing)
    minrpc("check", "--platform", "posix", "--json", "out.json")
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["passed"] is False
    assert found["platforms"][0]["failure"]["class"] == "BuildError"


def test_a_failed_measurement_leaves_what_was_kept(minrpc: Minrpc) -> None:
    assert minrpc(*TIME, "--json", "kept.json")[0] == 0
    assert minrpc("time", "nothing", "--arg", "5", "--platform", "posix", "--json", "kept.json")[0] == 1
    assert len(read_records(Path("kept.json"))) == 1


@pytest.mark.slow
def test_several_at_once_lose_no_entry(minrpc: Minrpc, tmp_path: Path) -> None:
    assert minrpc(*TIME)[0] == 0  # so that no test has to build
    words = [(*TIME[:3], str(number), *TIME[4:], "--json", "kept.json") for number in range(6)]
    runs = [
        subprocess.Popen(command(*word), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for word in words
    ]
    assert [run.wait() for run in runs] == [0] * 6
    assert {record.call for record in read_records(tmp_path / "kept.json")} == {f"inc({n})" for n in range(6)}
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    "words", [("bench", "--sizes"), ("check", "--platform", "posix"), TIME], ids=lambda item: item[0]
)
@pytest.mark.parametrize(("file", "why"), [("/nonexistent/x", "No such file"), ("/", "it is a directory")])
def test_a_file_that_can_not_be_written_is_said_before_the_work(
    minrpc: Minrpc, words: tuple[str, ...], file: str, why: str
) -> None:
    status, out, err = minrpc(*words, "--json", file)
    assert (status, out) == (2, "")
    assert f"{file} can't be written: {why}" in err


def test_a_reader_that_has_enough_is_no_failure(tmp_path: Path) -> None:
    run = subprocess.Popen(
        command("platforms", "--json", "-"), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert run.stdout is not None
    run.stdout.close()
    _, err = run.communicate()
    assert run.returncode == 141
    assert b"Traceback" not in err


def test_a_full_disk_is_told_in_a_line(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        run = subprocess.run(
            command("platforms"), cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert run.returncode == 1
    assert run.stderr == "minrpc: standard output can't be written: No space left on device\n"


@pytest.mark.parametrize(
    "words",
    [
        ("platforms", "--json", "/dev/full"),
        (*TIME, "--json", "/dev/full"),
        ("size", "--platform", "posix", "--treemap", "/dev/full"),
    ],
    ids=lambda words: words[0],
)
def test_a_full_disk_is_blamed_on_the_file_that_was_named(minrpc: Minrpc, words: tuple[str, ...]) -> None:
    status, _, err = minrpc(*words)
    assert status == 2
    assert "minrpc: /dev/full can't be written: No space left on device" in err


def test_a_locale_without_our_letters(tmp_path: Path) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    run = subprocess.run(command(*TIME, **plain), cwd=tmp_path, capture_output=True, check=True)
    assert b"inc(5) on posix" in run.stdout
    assert run.stdout.isascii()


@pytest.mark.slow
@pytest.mark.parametrize(
    "option",
    [["--cmake-option", "-DMINRPC_RANDOM_FILL=OFF"], ["--cmake-option=-DMINRPC_RANDOM_FILL=OFF"]],
    ids=" ".join,
)
def test_an_option_as_the_help_shows_it(minrpc: Minrpc, option: list[str]) -> None:
    assert minrpc(*TIME, *option)[0] == 0


@pytest.mark.parametrize("value", [1 << 70, 1 << 63])
def test_an_integer_that_is_too_long(minrpc: Minrpc, value: int) -> None:
    status, _, err = minrpc("time", "inc", "--arg", str(value), "--platform", "posix")
    assert status == 2
    assert "does not fit into an integer" in err


def test_a_cache_that_can_not_be_written(
    minrpc: Minrpc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "minrpc").mkdir()
    (tmp_path / "minrpc" / "work").touch()
    status, _, err = minrpc(*TIME)
    assert status == 2
    assert "the cache can't be written" in err
    assert "XDG_CACHE_HOME" in err


def test_a_compiler_that_crashes_is_there(
    minrpc: Minrpc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "bin" / "gcc"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\nkill -SEGV $$\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{broken.parent}{os.pathsep}{os.environ['PATH']}")
    status, out, _ = minrpc("doctor", "--platform", "posix")
    assert status == 1
    assert f"{broken} does not run" in " ".join(out.split())
    assert "SIGSEGV" in out


def test_the_version(minrpc: Minrpc) -> None:
    status, out, _ = minrpc("--version")
    assert status == 0
    assert out.startswith("minrpc 0.")
    ran = subprocess.check_output(command("--version"), text=True)
    assert ran == out


def completed(line: str, tmp_path: Path) -> list[str]:
    """The completions that a shell offers after `line`."""
    answers = tmp_path / "answers"
    asks = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answers),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    subprocess.run(command(**asks), cwd=tmp_path, check=True)
    return answers.read_text().split()


def test_a_shell_completes_commands_options_and_platforms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert completed("minrpc comp", tmp_path) == ["compare", "completion"]
    assert "--min-repeat-ms" in completed("minrpc time --min", tmp_path)[0]
    assert "bare_mps2_an385" in completed("minrpc check --platform ba", tmp_path)
    assert main(["completion", "bash"]) == 0
    assert "minrpc" in capsys.readouterr().out


def test_the_cache_is_shown_and_cleaned(
    minrpc: Minrpc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    old, new = (tmp_path / "minrpc" / "firmware" / name for name in ("old", "new"))
    for entry, hours in ((old, 12 * 24), (new, 3)):
        entry.mkdir(parents=True)
        (entry / "elf").write_bytes(b"x" * 10_000)
        os.utime(entry, (time.time() - hours * 3600,) * 2)
    status, out, _ = minrpc("cache")
    assert (status, "12.0 days" in out, "3.0 h" in out) == (0, True, True)
    status, out, _ = minrpc("cache", "--clean")
    assert (status, old.exists(), new.exists(), "removed 1" in out) == (0, False, True, True)
    assert (minrpc("cache", "--clean", "--days", "0.1")[0], new.exists()) == (0, False)
    refused = (["--all"], ["--clean", "--days", "-0.1"], ["--clean", "--days", "nan"])
    assert [minrpc("cache", *words)[0] for words in refused] == [2, 2, 2]
