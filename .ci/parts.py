# SPDX-License-Identifier: Apache-2.0
"""The parts of the checks, each a row of steps: `.ci/run --help`."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from steps import Step, Steps

ROOT: Final = Path(__file__).resolve().parent.parent
PYTHON: Final = ".venv/bin/python"


def device_tests(*names: str) -> tuple[str, ...]:
    """The files of tests on devices with these names."""
    return tuple(f"tests/device/test_{name}.py" for name in names)


# Tests whose results differ between cores, and between Zephyr's ports of them.
CORE_TESTS: Final = device_tests(
    *("add", "copy", "direct", "filling", "errors", "guards", "strays", "c_functions", "tvm_door"),
    "timing_laws",
)
DEFAULT_PLATFORMS: Final = "posix,bare_mps2_an385"
CORES: Final = (
    "bare_mps2_an386,bare_mps2_an500,bare_mps2_an505,bare_mps2_an521,bare_mps3_an547,"
    "bare_microbit,bare_rv32,bare_rv64,bare_rv64v"
)
# Slow tests, which `tests/device` leaves out, that alone see something of Zephyr's: a named file runs whole.
SLOW_ON_ZEPHYR: Final = device_tests("memory", "zephyr_options", "tcp_link", "linked", "c_loads")
# A board of Zephyr's by its name, with a platform of this file.
BY_NAME: Final = ("--minrpc-platforms-file", "tests/device/boards.toml", "--platform", "x86_64")
# Tests that build other projects: RTL in Verilator, models by TVM, pqm4's schemes.
FOREIGN_TESTS: Final = (
    "tests/device/test_rtl.py",
    "tests/device/test_littlefs.py",
    "tests/device/test_pqm4_sample.py",
    "tests/device/test_tvm_today.py",
    "tests/models/device",
)
SUITES: Final = ("trixie", "testing")
GATE_EXTRAS: Final = "dev"
NIGHTLY_EXTRAS: Final = "dev,rtl,tvm,litert,tune,dask,kernel-tuner,labgrid"
NIGHTLY_PACKAGES: Final = (
    "clang verilator libclang-rt-dev gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf qemu-system-misc "
    "strace libmagic1 gperf bubblewrap socat gdb-multiarch ser2net"
)


@dataclass(frozen=True, slots=True)
class Zephyr:
    version: str
    base: str

    def test(self, platforms: list[str], *tests: str, limit_s: float = 1800) -> Iterator[Step]:
        """Tests on those of the platforms that can run with this Zephyr; the others are skipped by name."""
        able, lacks = self._can_run(platforms)
        for why in lacks:
            yield Step(f"Zephyr {self.version}: {why.partition(':')[0]}", skipped=why.partition(": ")[2])
        if able:
            command = ("./run", "test", *tests, "--platform", ",".join(able))
            yield self.step(",".join(able), *command, limit_s=limit_s)

    def step(self, name: str, *command: str, limit_s: float = 600) -> Step:
        return Step(
            f"Zephyr {self.version}: {name}", command, limit_s, environment={"ZEPHYR_BASE": self.base}
        )

    def _can_run(self, platforms: list[str]) -> tuple[list[str], list[str]]:
        lines = _ask(_LACKING, *platforms, environment={"ZEPHYR_BASE": self.base})
        lacks = [line for line in lines if ": " in line]
        return [line for line in lines if ": " not in line], lacks


# Prints the names of platforms that can run here, and "NAME: REASON" for others.
_LACKING: Final = """
import sys
from minrpc.pipeline.requirements import lacking
from minrpc.targets import load_platforms
for name in sys.argv[1:]:
    lacks = "; ".join(f"{item.name}: {item.problem}" for item in lacking(load_platforms()[name]))
    print(f"{name}: {lacks}" if lacks else name)
"""
# Prints "VERSION PATH" for each Zephyr that the firmware builds with. No other stands in for ZEPHYR_BASE's.
_ZEPHYRS: Final = """
import os, sys
from minrpc.errors import ZephyrMissingError
from minrpc.firmware.sources import firmware_root
from minrpc.firmware.zephyr_workspace import find_workspace, workspaces
try:
    _ = os.environ.get("ZEPHYR_BASE") and find_workspace(firmware_root())
except ZephyrMissingError as error:
    sys.exit(str(error))
for workspace in workspaces(firmware_root()):
    print(workspace.version, workspace.base)
"""
_NO_ZEPHYR: Final = "there is none here (set ZEPHYR_BASE, or west zephyr-export)"


def _ask(program: str, *words: str, environment: dict[str, str] | None = None) -> list[str]:
    """The lines that a program prints which imports the package."""
    done = subprocess.run(
        [PYTHON, "-c", program, *words],
        env=os.environ | (environment or {}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode != 0:
        raise SetupError(done.stderr.strip())
    return done.stdout.splitlines()


class SetupError(Exception):
    """The steps of a part can't be listed."""


def zephyrs() -> list[Zephyr]:
    return [Zephyr(*line.split(" ", 1)) for line in _ask(_ZEPHYRS)]


def fresh(work: Path) -> Iterator[Step]:
    checkout = work / "checkout"
    unset = dict.fromkeys(("MINRPC_EXTRAS", "MINRPC_PACKAGES", "ZEPHYR_BASE", "VIRTUAL_ENV"))
    given = unset | {"XDG_CACHE_HOME": f"{work}/cache", "XDG_CONFIG_HOME": f"{work}/config"}
    yield Step("fresh: clone of HEAD", ("git", "clone", "-q", str(ROOT), str(checkout)), 120)
    yield Step("fresh: ./run check", ("./run", "check"), 600, checkout, given)
    yield Step("fresh: ./run test", ("./run", "test"), 1200, checkout, given)
    yield Step("fresh: remove its cache", ("rm", "-rf", f"{work}/cache"), 60)


def style(work: Path) -> Iterator[Step]:
    yield Step("style: ruff check", (".venv/bin/ruff", "check", "."), 60)
    yield Step("style: ruff format", (".venv/bin/ruff", "format", "--check", "."), 60)
    yield Step("style: mypy", (".venv/bin/mypy",), 300)
    yield Step("style: mypy of .ci", (".venv/bin/mypy", *map(str, sorted(Path(".ci").glob("*.py")))), 120)


def package(work: Path) -> Iterator[Step]:
    yield Step("package: the wheel, installed as another user", (".ci/package",), 600)


def zephyr(work: Path) -> Iterator[Step]:
    """The first Zephyr's qemu_x86."""
    first = next(iter(zephyrs()), None)
    if first is None:
        yield Step("zephyr", skipped=_NO_ZEPHYR)
        return
    yield first.step("check", "./run", "check", "--platform", "qemu_x86")
    yield from first.test(["qemu_x86"], *CORE_TESTS, limit_s=600)
    yield first.step("twister", ".ci/twister", f"{work}/twister", "qemu_x86:minrpc.qemu", limit_s=300)


def tests(work: Path) -> Iterator[Step]:
    """Tests that passed in `fresh` are not run again."""
    passed = work / "checkout" / ".pytest_cache"
    again = (f"--not-passed-in={passed.parent}",) if passed.is_dir() else ()
    others = tuple(f"--ignore={path}" for path in FOREIGN_TESTS)
    command = ("./run", "test", "--all", "--platform", DEFAULT_PLATFORMS, *again, *others)
    yield Step("tests: all", command, 3600)


def foreign(work: Path) -> Iterator[Step]:
    command = ("./run", "test", "--all", *FOREIGN_TESTS, "--platform", DEFAULT_PLATFORMS)
    yield Step("foreign: RTL, models, pqm4", command, 3600)


def cores(work: Path) -> Iterator[Step]:
    yield Step(f"cores: {CORES}", ("./run", "test", *CORE_TESTS, "--platform", CORES), 3600)


def all_zephyrs(work: Path) -> Iterator[Step]:
    """With the first Zephyr its style checks and all device tests on one platform; with each, the tests that
    differ between cores and Zephyrs."""
    found = zephyrs()
    if not found:
        yield Step("zephyrs", skipped=_NO_ZEPHYR)
    for each in found:
        slow = SLOW_ON_ZEPHYR
        if each is found[0]:
            yield each.step("C in its style", ".ci/c-style", each.base)
            yield each.step("its compliance checks", ".ci/compliance", each.base)
            yield from each.test(["qemu_x86"], "tests/device", "tests/models/device", *slow, limit_s=3600)
            boards = ["mps2_an385", "native_sim", "qemu_cortex_m3"]
            some = device_tests("session", "c_library", "zephyr_driver")
            yield from each.test(boards, *CORE_TESTS, *some)
            named = (*CORE_TESTS, *device_tests("death", "c_deaths", "memory"))
            yield each.step("qemu_x86_64 by its name", "./run", "test", *named, *BY_NAME, limit_s=1800)
            yield each.step("twister", ".ci/twister", f"{work}/twister", "qemu_x86", "qemu_x86:minrpc.qemu")
        else:
            some = device_tests("session", "c_deaths")
            yield from each.test(["qemu_x86"], *CORE_TESTS, *some, *device_tests("counters"), *slow)
            boards = ["mps2_an385", "qemu_cortex_m3"]
            yield from each.test(boards, *CORE_TESTS, *some, *device_tests("zephyr_driver"))


def lowest(work: Path) -> Iterator[Step]:
    yield Step("lowest: the lowest versions that are declared", (".ci/package", "--lowest"), 1800)


def fuzz(work: Path) -> Iterator[Step]:
    yield Step("fuzz: each target", (PYTHON, "-m", "tests.fuzz", "--runs", "200000"), 1800)
    # Each day has functions of its own, and a finding tells its seed.
    seed = str(date.today().toordinal())
    signatures = (PYTHON, "-m", "tests.fuzz.signature_runs", "--functions", "1500", "--seed", seed)
    yield Step("fuzz: signatures", signatures, 1800)


def debian(work: Path) -> Iterator[Step]:
    lacks = "" if os.geteuid() == 0 else "it needs root"
    if not lacks and shutil.which("debootstrap") is None:
        lacks = "debootstrap is not installed"
    for suite in SUITES:
        yield Step(f"debian: {suite}, both commands of README", (".ci/debian", suite), 3600, skipped=lacks)


@dataclass(frozen=True, slots=True)
class Part:
    """Steps that are run together.

    extras: of the virtual environment of this checkout; "" for a part that does not use it.
    """

    name: str
    text: str
    steps: Callable[[Path], Iterator[Step]]
    extras: str = GATE_EXTRAS


# `fresh` comes first: it must not need packages that later parts install. `package` needs those of `zephyr`.
GATE: Final = (
    Part("fresh", "HEAD as a new user has it: clone, empty cache, `./run check`, `./run test`", fresh, ""),
    Part("style", "ruff, mypy", style),
    Part("zephyr", "the first Zephyr's qemu_x86: check, core tests, twister's scenario", zephyr),
    Part("package", "the wheel, installed elsewhere, run as another user", package),
)
NIGHTLY: Final = (
    Part("tests", "all other tests, with all extras, on posix and bare_mps2_an385", tests, NIGHTLY_EXTRAS),
    Part("foreign", "tests that build RTL, models and other projects", foreign, NIGHTLY_EXTRAS),
    Part("cores", "tests that differ between cores, on the other bare machines", cores, NIGHTLY_EXTRAS),
    Part("zephyrs", "each Zephyr that is here: style, platforms, twister", all_zephyrs, NIGHTLY_EXTRAS),
    Part("lowest", "tests with the lowest versions that pyproject.toml declares", lowest, NIGHTLY_EXTRAS),
    Part("fuzz", "200,000 inputs of each fuzz target; 10,000 random C functions", fuzz, NIGHTLY_EXTRAS),
    Part("debian", f"README's commands in Debian {' and '.join(SUITES)}, made by debootstrap", debian, ""),
)
GATE_MINUTES: Final = 40.0
NIGHTLY_MINUTES: Final = 240.0
_INTERRUPTS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(words: list[str]) -> int:
    parser = _parser()
    given = parser.parse_args(words)
    parts = _parts(given.parts, parser.error)
    if (problem := _wrong_zephyr_base(os.environ.get("ZEPHYR_BASE"))) is not None:
        parser.error(problem)
    os.chdir(ROOT)
    for number in _INTERRUPTS:
        # `nohup` ignores SIGHUP; a shell ignores SIGINT for its background jobs, which must end all the same.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupted)
    steps = Steps(_limit_s(parts, given.limit))
    try:
        with tempfile.TemporaryDirectory() as work:
            _run_all(parts, steps, Path(work))
        print("", *steps.report(), sep="\n", flush=True)
    except OSError as error:  # No step raises it: the report can't be written.
        print(f".ci/run: stopped: {error}", file=sys.stderr)
        # The rest of the report is lost: from 3.13 on Python would try again at its end, and exit with 120.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 1 if steps.has_failed else 0


def _run_all(parts: list[Part], steps: Steps, work: Path) -> None:
    left = list(parts)
    try:
        while left:
            _run(left[0], steps, work)
            del left[0]
    except KeyboardInterrupt:
        for part in left:
            steps.note(part.name, "did not run to its end: interrupted")


def _limit_s(parts: list[Part], minutes: float | None) -> float:
    return 60 * (minutes or (GATE_MINUTES if set(parts) <= set(GATE) else NIGHTLY_MINUTES))


def _interrupted(number: int, frame: FrameType | None) -> None:
    """Further signals would interrupt the end of the processes, and the removal of the files."""
    for each in _INTERRUPTS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    width = max(len(part.name) for part in GATE + NIGHTLY)
    lines = ["gate: what a pull request must pass, and what runs without a word"]
    lines += [f"  {part.name:{width}}  {part.text}" for part in GATE]
    lines += ["nightly: everything else"]
    lines += [f"  {part.name:{width}}  {part.text}" for part in NIGHTLY]
    parser = argparse.ArgumentParser(
        prog=".ci/run", epilog="\n".join(lines), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", default=["gate"])
    text = f"limit of all steps (default {GATE_MINUTES:g}, or {NIGHTLY_MINUTES:g} with a part of the nightly)"
    parser.add_argument("--limit", type=_minutes, metavar="MINUTES", help=text)
    return parser


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 0 < minutes < 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of minutes above 0")
    return minutes


def _parts(names: list[str], error: Callable[[str], NoReturn]) -> list[Part]:
    """The named parts, each once, in their order."""
    known = {"gate": GATE, "nightly": NIGHTLY} | {part.name: (part,) for part in GATE + NIGHTLY}
    for name in names:
        if name not in known:
            error(f"there is no part {name!r}; parts are: {', '.join(known)}")
    wanted = {part for name in names for part in known[name]}
    return [part for part in GATE + NIGHTLY if part in wanted]


def _wrong_zephyr_base(base: str | None) -> str | None:
    """A sentence, if the environment's ZEPHYR_BASE leads to no Zephyr."""
    if not base or Path(base, "VERSION").is_file():
        return None
    return f"ZEPHYR_BASE is {base!r}, which holds no Zephyr: there is no file VERSION"


def _run(part: Part, steps: Steps, work: Path) -> None:
    if part.extras:
        # Each `./run` of the part's steps would otherwise set the default extras up again.
        os.environ["MINRPC_EXTRAS"] = part.extras
        os.environ["MINRPC_PACKAGES"] = NIGHTLY_PACKAGES if part.extras == NIGHTLY_EXTRAS else ""
        if not steps.run(Step(f"{part.name}: set-up", ("./run", "setup"), 900)):
            steps.note(part.name, "did not run: its set-up failed")
            return
    listed = part.steps(work)
    while True:
        try:
            step = next(listed, None)
        except (SetupError, OSError, subprocess.TimeoutExpired) as error:
            steps.note(part.name, f"its steps can't be listed: {error}")
            return
        if step is None:
            return
        steps.run(step)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
