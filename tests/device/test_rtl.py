# SPDX-License-Identifier: Apache-2.0
"""A core's RTL as a device: its clock counts the core's cycles."""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from minrpc import CFunctions, Device, RunningDevice, Target, measure, open_device
from minrpc.check.against_rtl import compare, estimator_for
from minrpc.cli import main
from minrpc.errors import ConfigurationError, DeadlineError, EmulatorExitedError, SessionTerminatedError
from minrpc.targets import load_platforms

from tests.native import need_platform

# Each core takes 20 s to build.
pytestmark = pytest.mark.slow

LOOP = """
#include <stdint.h>
#ifdef NO_MACHINE_MODE
#define CYCLE "cycle"
#define COUNTS (void)0
#else
#define CYCLE "mcycle"
#define COUNTS __asm__ volatile("csrw mcountinhibit, zero")
#endif
int32_t loop(int32_t n, uint32_t *cycles)
{
    uint32_t begin, end;
    int32_t sum = 0;
    COUNTS;
    __asm__ volatile("csrr %0, " CYCLE : "=r"(begin));
    for (volatile int32_t i = 0; i < n; i++) { sum += i / 3; }
    __asm__ volatile("csrr %0, " CYCLE : "=r"(end));
    *cycles = end - begin;
    return sum;
}
void hang(void) { for (volatile int i = 0;; i++) { } }
void wild(uintptr_t at) { *(volatile int32_t *)at = 1; }
"""


NOPS = """
#define NOPS(n) __asm__ volatile(".option push\\n.option norvc\\n.rept " #n "\\nnop\\n.endr\\n.option pop")
void few(void) { NOPS(64); }
void many(void) { NOPS(320); }
"""
FLAGS = {"rtl_ibex": [], "rtl_cv32e40p": [], "rtl_picorv32": ["-DNO_MACHINE_MODE"]}


MASKED = Path(__file__).parent / "c/masked.c"


@pytest.fixture(scope="module", params=FLAGS)
def core(request: pytest.FixtureRequest) -> Iterator[Device]:
    need_platform(load_platforms()[request.param])
    with open_device(request.param) as device:
        yield device


@pytest.fixture
def load(core: Device, tmp_path: Path) -> Callable[[], CFunctions]:
    (tmp_path / "loop.c").write_text(LOOP)
    assert core.owner.target is not None
    return partial(core.load, tmp_path / "loop.c", flags=FLAGS[core.owner.target.name])


def test_the_clock_is_the_cores_cycle_counter(load: Callable[[], CFunctions]) -> None:
    """The witness is the core's own counter, read by the function."""
    library = load()
    own, clock = [], []
    for n in (10, 200):
        cycles = np.zeros(1, np.uint32)
        assert library.loop(n, cycles) == sum(i // 3 for i in range(n))
        own.append(int(cycles[0]))
        times = measure(library, "loop")(n, cycles)
        assert len({sample.ticks for sample in times.samples}) == 1
        clock.append(times.summary.median)
    assert own[1] > own[0] > 370
    assert clock[1] - clock[0] == own[1] - own[0]


@pytest.mark.parametrize("address", [0x1000, 0x80000000, 0x40000000])
def test_a_store_where_no_memory_is_fails_the_call(load: Callable[[], CFunctions], address: int) -> None:
    """Ibex takes the bus's error as a fault. The others can't: their program ends, and is started again."""
    with pytest.raises((SessionTerminatedError, EmulatorExitedError), match=r"wrote to .*loop\.c:22"):
        load().wild(address)
    assert load().loop(4, np.zeros(1, np.uint32)) == 1


def test_a_hang_ends_with_its_line(load: Callable[[], CFunctions], core: Device) -> None:
    hanging = load()
    core.call_timeout_s = 0.2
    with pytest.raises(DeadlineError, match=r"it was in hang, at \S+loop\.c:21"):
        hanging.hang()
    core.call_timeout_s = 60.0
    assert load().loop(4, np.zeros(1, np.uint32)) == 1


@pytest.mark.parametrize("waits", [0, 3])
@pytest.mark.parametrize("core", ["rtl_ibex", "rtl_cv32e40p"], indirect=True)
def test_wait_states_are_of_each_fetch(core: Device, tmp_path: Path, waits: int) -> None:
    """256 instructions of a word each take as many fetches."""
    (tmp_path / "nops.c").write_text(NOPS)
    assert core.owner.target is not None
    with open_device(core.owner.target.changed(flash_wait_states=waits)) as device:
        library = device.load(tmp_path / "nops.c")
        few, many = (measure(library, name, number=1, repeat=1)() for name in ("few", "many"))
    assert many.samples[0].ticks - few.samples[0].ticks == 256 * (1 + waits)


@pytest.mark.parametrize("core", ["rtl_ibex", "rtl_cv32e40p"], indirect=True)
def test_the_table_of_a_core_holds_against_its_rtl(core: Device, capsys: pytest.CaptureFixture[str]) -> None:
    assert core.owner.target is not None
    assert main(["cycles", "--against", core.owner.target.name]) == 0
    assert "31 of 31 are within" in capsys.readouterr().out


@pytest.mark.parametrize("core", ["rtl_ibex"], indirect=True)
def test_a_wrong_table_is_outside(core: Device, tmp_path: Path) -> None:
    """Ibex multiplies in three cycles, CV32E40P in one."""
    (tmp_path / "product.c").write_text(
        "unsigned product(unsigned n) { unsigned p = 1; while (n--) p *= p + n; return p; }"
    )
    assert core.owner.target is not None
    rtl = core.owner.target.changed(core="cv32e40p")
    (row,) = compare(rtl, Target.named("bare_rv32"), tmp_path / "product.c", "2")
    assert (row.within, row.difference) == (False, 20)


def test_a_comparison_needs_rtl_and_a_table() -> None:
    platforms = load_platforms()
    for name, why in {
        "posix": "posix is not RTL",
        "rtl_picorv32": "rtl_picorv32 has no timing table",
    }.items():
        with pytest.raises(ConfigurationError, match=f"{why}[^$]*rtl_ibex"):
            estimator_for(platforms[name], platforms)


def test_a_masked_table_does_not_leak_and_an_overwritten_share_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The flaw is published: Balasch et al., "On the cost of lazy engineering for masked software", 2014."""
    need_platform(load_platforms()["rtl_ibex"])
    monkeypatch.chdir(MASKED.parent)
    tables = ["--arg", "uint8[1]", "--arg", "uint8[16]", "--arg", "uint8[1]"]
    shares = ["--arg", "uint8[2]", *tables, "--shares", "shares"]
    for function, given, says in (
        ("masked", shares, "no leak: the threshold is 4.5"),
        ("overwritten", shares, r"\|t\| +\d\d\.\d  overwritten at masked.c:36"),
        ("plain", [*tables[:2], *tables[4:], "--secret", "1"], r"\|t\| +\d+\.\d  plain at masked.c:4[12]"),
    ):
        leaks = main(["leakage", "masked.c", function, *given, "--platform", "rtl_ibex", "--traces", "400"])
        assert (leaks, re.search(says, capsys.readouterr().out) is not None) == (function != "masked", True)
    early = ["leakage", "masked.c", "early", *tables[:2], "--secret", "secret", "--platform", "rtl_ibex"]
    assert main(early) == 2
    assert "their time leaks already" in capsys.readouterr().err


def test_a_waveform_has_the_cycles_of_one_call(tmp_path: Path) -> None:
    """The witness is GTKWave's reader of FST."""
    need_platform(load_platforms()["rtl_picorv32"])
    reader = shutil.which("fst2vcd") or pytest.skip("not installed: gtkwave, for fst2vcd")
    (tmp_path / "loop.c").write_text(LOOP)
    with open_device("rtl_picorv32", wave=tmp_path / "call.fst") as device:
        function = device.load(tmp_path / "loop.c", flags=FLAGS["rtl_picorv32"]).loop
        assert isinstance(device.owner, RunningDevice)
        assert device.owner.recording is not None
        device.owner.recording.watch(function.address)
        function(20, np.zeros(1, np.uint32))
        cycles = len(device.owner.recording.last().pc)
        function(3, np.zeros(1, np.uint32))
    text = subprocess.run([reader, tmp_path / "call.fst"], capture_output=True, text=True, check=True).stdout
    assert len(re.findall(r"^#\d+$", text, re.MULTILINE)) == 2 * cycles
    assert " reg_pc [31:0] $end" in text
