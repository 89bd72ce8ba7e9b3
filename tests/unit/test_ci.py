# SPDX-License-Identifier: Apache-2.0
"""The runner of the checks: `.ci/run`, and the limits of its steps."""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

CI = Path(__file__).parents[2] / ".ci"
# Other runs of these tests on this machine have other words: `sleep 7001.PID`.
PID = f".{os.getpid()}"
# A process of its own: the runner ends all processes below it.
PROGRAM = """
import sys
sys.path.insert(0, {ci!r})
import steps
steps._LAST_WORDS_S = steps._ENDING_S = {grace_s}
from steps import Step, Steps
run = Steps({limit_s})
{steps}
print(*run.report(), sep="\\n")
"""


def report(*steps: str, limit_s: float = 60.0, grace_s: float = 0.3) -> list[str]:
    """The lines at the end of a run of these steps, without the times."""
    return [line for line in table(*steps, limit_s=limit_s, grace_s=grace_s) if line.startswith("==")]


def table(*steps: str, limit_s: float = 60.0, grace_s: float = 0.3) -> list[str]:
    program = PROGRAM.format(
        ci=str(CI),
        limit_s=limit_s,
        grace_s=grace_s,
        steps="\n".join(f"run.run(Step({step}))" for step in steps),
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.rpartition("step\n")[2].splitlines()


def test_the_table_has_the_processor_time_of_each_step() -> None:
    burns = "from time import process_time as now\nwhile now() < 0.2: pass"
    (burnt, rest, both, *_) = table(f"'burns', ({sys.executable!r}, '-c', {burns!r})", "'rests', ('true',)")
    seconds = [float(line.split()[2]) for line in (burnt, rest, both)]
    assert seconds[0] >= 0.2 > seconds[1]
    assert seconds[2] >= 0.2


def is_running(word: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):  # It ends meanwhile, also after it was opened.
            if path.read_bytes().split(b"\0")[:2] == [b"sleep", f"{word}{PID}".encode()]:
                return True
    return False


def test_steps_that_pass() -> None:
    """The first has its own directory and environment, and a process of it ends a little later."""
    given = "directory='/', environment={'ADDED': '1', 'HOME': None}"
    test = 'test "$(pwd) ${ADDED-} ${HOME-none}" = "/ 1 none" || exit; sleep 0.1 &'
    assert report(f"'one', ('sh', '-c', {test!r}), {given}", "'two', skipped='no tool'", grace_s=60) == [
        "== SKIPPED two: no tool",
        "== all passed",
    ]


def test_each_failed_step_is_named_and_the_others_run() -> None:
    steps = (
        "'one', ('false',)",
        "'two', ('nonesuch',)",
        "'three', ('sh', '-c', 'kill $$')",
        "'four', ('true',)",
    )
    assert report(*steps) == [
        "== FAILED one: exit status 1",
        "== FAILED two: can't be started: [Errno 2] No such file or directory: 'nonesuch'",
        "== FAILED three: ended by signal 15",
    ]


def test_a_hung_step_is_cut_with_all_its_processes() -> None:
    """One process of it has left the step's session, and another takes no notice of signals."""
    hangs = f"setsid sleep 7001{PID} & trap '' INT TERM; sleep 7002{PID}; sleep 7003{PID}"
    (failed, last) = report(f"'hangs', ('bash', '-c', {hangs!r}), 1", "'next', ('false',)")
    assert failed.startswith("== FAILED hangs: cut: the 1 s of this step had passed, while these ran: ")
    assert "sleep 7001" in failed
    assert last == "== FAILED next: exit status 1"
    assert not any(is_running(word) for word in ("7001", "7002", "7003"))


def test_a_step_that_leaves_a_process_has_failed(tmp_path: Path) -> None:
    """The file's name is in /proc/PID/stat, before the process's parent."""
    (tmp_path / "a) S 1").symlink_to(str(shutil.which("sleep")))
    leaves = f'exec -a sleep "{tmp_path}/a) S 1" 7004{PID} & true'
    (failed,) = report(f"'leaves', ('bash', '-c', {leaves!r})")
    assert failed == f"== FAILED leaves: left processes: sleep 7004{PID}"
    assert not is_running("7004")


def test_steps_for_which_no_time_is_left_are_named(tmp_path: Path) -> None:
    """The step that is cut can remove its files."""
    words = ("bash", "-c", f"trap 'touch {tmp_path}/removed; exit' INT; sleep 5")
    (cut, later) = report(f"'long', {words}, 60", "'later', ('true',)", limit_s=0.5, grace_s=60)
    assert cut.startswith("== FAILED long: cut: the 0.5 s of all steps had passed, while these ran: bash ")
    assert later == "== FAILED later: did not run: the 0.5 s of all steps had passed"
    assert (tmp_path / "removed").exists()


# Runs parts of one step each: (name, extras, command).
PARTS = """
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # Below nohup it is ignored.
sys.path.insert(0, {ci!r})
import parts, steps
from pathlib import Path
def steps_of(name, command):
    def listed(work):
        if not command:
            raise parts.SetupError("no list")
        yield steps.Step(name + ": step", command)
    return listed
parts.ROOT = Path.cwd()
parts.GATE = tuple(parts.Part(name, "", steps_of(name, command), extras) for name, extras, command in {parts})
sys.exit(parts.main([]))
"""


def start(directory: Path, *parts: tuple[str, str, tuple[str, ...]]) -> subprocess.Popen[str]:
    """.ci/run with these parts of the gate."""
    command = [sys.executable, "-c", PARTS.format(ci=str(CI), parts=parts)]
    environment = os.environ | {"TMPDIR": str(directory), "MINRPC_PACKAGES": "x"}
    environment.pop("ZEPHYR_BASE", None)
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=directory, env=environment)


def test_a_part_that_fails_leaves_the_others_their_run(tmp_path: Path) -> None:
    """A set-up of the gate's extras adds no packages: here it would fail."""
    (tmp_path / "run").write_text('#!/bin/sh\ntest -z "$MINRPC_PACKAGES"\n')
    (tmp_path / "run").chmod(0o755)
    extras = parts_module().NIGHTLY_EXTRAS
    ran = start(
        tmp_path, ("a", extras, ("true",)), ("b", "", ()), ("c", "dev", ("true",)), ("d", "", ("true",))
    )
    out = ran.communicate()[0]
    assert re.findall("^ .* s  (.*)", out, re.MULTILINE) == [
        "a: set-up",
        "c: set-up",
        "c: step",
        "d: step",
        "all",
    ]
    assert [line for line in out.splitlines() if line.startswith("== FAILED")] == [
        "== FAILED a: set-up: exit status 1",
        "== FAILED a: did not run: its set-up failed",
        "== FAILED b: its steps can't be listed: no list",
    ]
    assert ran.returncode == 1


# The second has ended, and its process is given time to end.
@pytest.mark.parametrize(
    ("number", "ends"), [(signal.SIGINT, "wait"), (signal.SIGTERM, "true"), (signal.SIGHUP, "wait")]
)
def test_an_interrupted_run_names_all_and_leaves_nothing(number: int, ends: str, tmp_path: Path) -> None:
    until = "" if ends == "wait" else "while kill -0 $0; do :; done 2>/dev/null; "
    script = f"setsid sh -c '{until}echo ready; exec sleep 7006{PID}' $$ & {ends}"
    ran = start(tmp_path, ("a", "", ("true",)), ("b", "", ("bash", "-c", script)), ("c", "", ("true",)))
    assert ran.stdout is not None
    while ran.stdout.readline() != "ready\n":
        assert ran.poll() is None
    ran.send_signal(number)
    ran.send_signal(number)
    (step, *others) = [line for line in ran.communicate()[0].splitlines() if line.startswith("== FAILED")]
    assert step.startswith("== FAILED b: step: interrupted, while these ran: ")
    assert others == [f"== FAILED {part}: did not run to its end: interrupted" for part in "bc"]
    assert ran.returncode == 1
    assert not is_running("7006")
    assert not [*tmp_path.iterdir()]


def test_an_interrupt_while_a_step_is_started_leaves_nothing() -> None:
    code = f"""
real = steps.subprocess.Popen
def popen(*words, **given):
    real(*words, **given)
    raise KeyboardInterrupt
steps.subprocess.Popen = popen
try:
    run.run(Step("one", ("sleep", "7007{PID}")))
except KeyboardInterrupt:
    pass
"""
    program = PROGRAM.format(ci=str(CI), limit_s=60, grace_s=60, steps=code)
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True)
    assert "== FAILED one: interrupted, while these ran: " in done.stdout
    assert not is_running("7007")


def test_an_output_that_can_not_be_written_is_one_sentence(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARTS.format(ci=str(CI), parts=())]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False
        )
    assert (done.returncode, done.stderr) == (1, ".ci/run: stopped: [Errno 28] No space left on device\n")


def parts_module() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(CI))
        return import_module("parts")


def test_parts_have_their_order_and_their_limits() -> None:
    parts = parts_module()
    assert [part.name for part in parts._parts(["package", "zephyr", "gate"], pytest.fail)] == [
        *("fresh", "style", "zephyr", "package")
    ]
    some = parts._parts(["tests", "style"], pytest.fail)
    assert [part.name for part in some] == ["style", "tests"]
    assert (parts._limit_s(some, None), parts._limit_s(some[:1], None)) == (240 * 60, 40 * 60)
    assert parts._limit_s(some, 1.5) == 90
    with pytest.raises(argparse.ArgumentTypeError, match="no number of minutes above 0"):
        parts._minutes("nan")
    assert parts._wrong_zephyr_base("") is parts._wrong_zephyr_base(None) is None
    assert "holds no Zephyr" in parts._wrong_zephyr_base(str(CI))
    lists = re.findall(r"'(\[.*?\])'", (CI.parent / ".github/workflows/nightly.yml").read_text())
    assert {*lists} == {str([part.name for part in parts.NIGHTLY]).replace("'", '"')}


def test_tests_that_passed_in_the_clone_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "checkout/.pytest_cache").mkdir(parents=True)
    (step,) = parts_module().tests(tmp_path)
    assert f"--not-passed-in={tmp_path}/checkout" in step.command


def test_no_other_zephyr_stands_in_for_the_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = parts_module()
    monkeypatch.setattr(parts, "PYTHON", sys.executable)
    monkeypatch.setenv("ZEPHYR_BASE", str(tmp_path))
    (tmp_path / "VERSION").write_text("VERSION_MAJOR = 2\nVERSION_MINOR = 7\nPATCHLEVEL = 0\n")
    with pytest.raises(parts.SetupError, match=r"^Zephyr 2\.7\.0 in .* is too old"):
        parts.zephyrs()
    monkeypatch.setattr(parts, "_LACKING", "import os; print(os.environ['ZEPHYR_BASE'])")
    (step,) = parts.Zephyr("4.2.99", "/its/base").test(["qemu_x86"])
    assert step.command[-1] == step.environment["ZEPHYR_BASE"] == "/its/base"


@pytest.mark.parametrize(
    ("words", "base", "message"),
    [
        (["nosuch"], None, "there is no part 'nosuch'; parts are: gate, nightly, fresh, style, "),
        (["--limit", "soon"], None, "'soon' is no number of minutes above 0"),
        (["--limit", "-1"], None, "'-1' is no number of minutes above 0"),
        ([], "/nowhere", "ZEPHYR_BASE is '/nowhere', which holds no Zephyr"),
    ],
)
def test_wrong_usage_runs_nothing(
    words: list[str], base: str | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if base is None:
        monkeypatch.delenv("ZEPHYR_BASE", raising=False)
    else:
        monkeypatch.setenv("ZEPHYR_BASE", base)
    done = subprocess.run(["bash", CI / "run", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_the_style_of_c_is_not_passed_where_checkpatch_reads_no_file(tmp_path: Path) -> None:
    """checkpatch gives `diff` the name without quotes, reads nothing, and finds nothing."""
    (tmp_path / "a b/.ci").mkdir(parents=True)
    script = shutil.copy(CI / "c-style", tmp_path / "a b/.ci")
    done = subprocess.run([script, "/nowhere"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        f"checkpatch reads no file with a space in its path: {tmp_path}/a b\n",
    )


# Programs for .ci/debian that need no root: NAME -> its text for sh.
IMITATED = {
    "unshare": 'while [ "$1" != "${1#-}" ] || [ "$1" = private ]; do shift; done; exec "$@"',
    "debootstrap": 'echo "debootstrap $3"; mkdir -p "$4/etc/apt/apt.conf.d"; test "$FAILS" != debootstrap',
    "chroot": 'echo "$@" >>"$RAN"; case $* in *"run $FAILS") exit 4 ;; esac',
    **dict.fromkeys(("git", "mount", "cp", "apt-config"), "true"),
}


@pytest.mark.parametrize(("fails", "runs"), [("no", 3), ("check", 3), ("test", 3), ("debootstrap", 0)])
def test_a_debian_fails_if_one_of_readmes_commands_does(fails: str, runs: int, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "work").mkdir()
    for name, text in IMITATED.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    given = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "TMPDIR": f"{tmp_path}/work", "FAILS": fails}
    environment = os.environ | given | {"RAN": f"{tmp_path}/ran"}
    done = subprocess.run(
        [CI / "debian", "testing"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == (fails != "no"), done.stderr
    ran = (tmp_path / "ran").read_text().splitlines() if runs else []
    assert [line.rpartition("minrpc && ")[2] for line in ran][:2] == ["./run check", "./run test"][:runs]
    assert ("== Debian testing, with" in done.stdout) is (runs > 0)
    assert ("debootstrap testing" in done.stdout) is (runs == 0)
    assert not [*(tmp_path / "work").iterdir()]


@pytest.mark.parametrize(
    ("root", "tool", "why"),
    [(True, True, ""), (False, True, "it needs root"), (True, False, "debootstrap is not installed")],
)
def test_debians_that_can_not_be_made_are_skipped(
    root: bool, tool: bool, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = parts_module()
    monkeypatch.setattr(parts.os, "geteuid", lambda: 0 if root else 1000)
    monkeypatch.setattr(parts.shutil, "which", lambda name: name if tool else None)
    steps = [(step.command, step.skipped) for step in parts.debian(tmp_path)]
    assert steps == [((".ci/debian", suite), why) for suite in ("trixie", "testing")]


def test_workflows_run_on_all_that_is_promised() -> None:
    """The distributions of README; Zephyr's main branch in place of the manifest's version."""
    workflows = CI.parent / ".github" / "workflows"
    images = str(["debian:12", "debian:13", "debian:testing", "ubuntu:24.04", "ubuntu:26.04"])
    assert f"image: {images}".replace("'", '"') in (workflows / "pre-submit.yml").read_text()
    upstream = (workflows / "upstream.yml").read_text()
    (change,) = re.findall(r"sed -i '(.*)' workspace/app/west.yml", upstream)
    manifest = CI.parent / "west.yml"
    changed = subprocess.run(["sed", change, manifest], capture_output=True, text=True, check=True).stdout
    assert re.findall(r"revision: (.*)", changed) == ["main"]
    for text in (upstream, (workflows / "pre-submit.yml").read_text()):
        assert "&& .ci/run fresh" in text
