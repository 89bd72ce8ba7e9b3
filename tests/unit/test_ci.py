# SPDX-License-Identifier: Apache-2.0
"""The runner of the checks: `.ci/run`, and the limits of its steps."""

import subprocess
import sys
from pathlib import Path

import pytest

CI = Path(__file__).parents[2] / ".ci"
# A process of its own: the runner ends all processes below it.
PROGRAM = """
import sys
sys.path.insert(0, {ci!r})
import steps
steps._LAST_WORDS_S = steps._ENDING_S = 0.3
from steps import Step, Steps
run = Steps({limit_s})
{steps}
print(*run.report(), sep="\\n")
"""


def report(*steps: str, limit_s: float = 60.0) -> list[str]:
    """The lines at the end of a run of these steps, without the times."""
    program = PROGRAM.format(
        ci=str(CI), limit_s=limit_s, steps="\n".join(f"run.run(Step({step}))" for step in steps)
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return [line for line in done.stdout.rpartition("step\n")[2].splitlines() if line.startswith("==")]


def is_running(word: str) -> bool:
    lines = (path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists())
    return any(line.split(b"\0")[:2] == [b"sleep", word.encode()] for line in lines)


def test_steps_that_pass() -> None:
    assert report("'one', ('true',)", "'two', skipped='no tool'") == [
        "== SKIPPED two: no tool",
        "== all passed",
    ]


def test_each_failed_step_is_named_and_the_others_run() -> None:
    assert report("'one', ('false',)", "'two', ('nonesuch',)", "'three', ('sh', '-c', 'kill $$')") == [
        "== FAILED one: exit status 1",
        "== FAILED two: can't be started: [Errno 2] No such file or directory: 'nonesuch'",
        "== FAILED three: ended by signal 15",
    ]


def test_a_hung_step_is_cut_with_all_its_processes() -> None:
    """One process of it has left the step's session, and another takes no notice of signals."""
    hangs = "setsid sleep 7001 & trap '' INT TERM; sleep 7002; sleep 7003"
    (failed, last) = report(f"'hangs', ('bash', '-c', {hangs!r}), 0.5", "'next', ('false',)")
    assert failed.startswith("== FAILED hangs: cut: the 0.5 s of this step had passed, while these ran: ")
    assert "sleep 7001" in failed
    assert last == "== FAILED next: exit status 1"
    assert not any(is_running(word) for word in ("7001", "7002", "7003"))


def test_a_step_that_leaves_a_process_has_failed() -> None:
    (failed,) = report("'leaves', ('bash', '-c', 'setsid sleep 7004 & true')")
    assert failed == "== FAILED leaves: left processes: sleep 7004"
    assert not is_running("7004")


def test_steps_for_which_no_time_is_left_are_named() -> None:
    (cut, later) = report("'long', ('sleep', '7005'), 60", "'later', ('true',)", limit_s=0.5)
    assert cut == "== FAILED long: cut: the 0.5 s of all steps had passed, while these ran: sleep 7005"
    assert later == "== FAILED later: did not run: the 0.5 s of all steps had passed"


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
