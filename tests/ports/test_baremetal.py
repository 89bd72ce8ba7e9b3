# SPDX-License-Identifier: Apache-2.0
"""Properties of the bare-metal port on each processor that tests on devices don't see: faults before the
server starts, divisions by zero, a wrong machine, and the use of a vector unit.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from minrpc import (
    BuildError,
    Device,
    EmulatorExitedError,
    RemoteError,
    RunningDevice,
    SessionTerminatedError,
    Target,
    build,
    connect,
    open_device,
    start,
)
from minrpc.host import Deadline
from minrpc.program.elf import Elf
from minrpc.wire.values import Handle

from tests.native import need_platform
from tests.runtime.test_options import OPTIONS

SPEAK_S = 30.0
KERNELS = Path(__file__).parent / "kernels.c"


def slow(*values: object) -> object:
    """A machine that is tried with --all: each is a build."""
    return pytest.param(*values, marks=pytest.mark.slow)


def target_of(name: str, *sources: Path) -> Target:
    """The platform with further sources; skips the test if it can't run here."""
    target = Target.named(name, sources=sources)
    need_platform(target.platform)
    return target


def wait_for(running: RunningDevice, text: str, times: int) -> str:
    """The console's text after `text` has come `count` times."""
    deadline = Deadline("console", SPEAK_S, running.clock)
    tail = running.console_tail
    assert tail is not None
    at = 0
    while tail.text().count(text) < times:
        _, at = tail.since(at, 0.1)
        assert not deadline.expired(), tail.text()
    return tail.text()


def test_what_a_cortex_m3_traps_and_what_not(tmp_path: Path) -> None:
    """A division by zero is a fault; a word is loaded from any address."""
    source = tmp_path / "traps.c"
    source.write_text(
        "int divide(int a, int b) { return a / b; }\n"
        "unsigned load_word(const unsigned char *from, int at) { return *(const unsigned *)(from + at); }\n"
    )
    with open_device(target_of("bare_mps2_an385")) as device:
        lib = device.load(source)
        data = np.arange(1, 9, dtype=np.uint8)
        assert [lib.load_word(data, at) for at in (0, 1)] == [0x04030201, 0x05040302]
        assert lib.divide(42, 5) == 8
        with pytest.raises((SessionTerminatedError, EmulatorExitedError), match="divided by zero"):
            lib.divide(42, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["bare_mps2_an385", "bare_mps2_an386", "bare_mps2_an521", "bare_mps3_an547", "bare_microbit"],
)
@pytest.mark.parametrize("function", ["divide", "divide_wide"])
def test_a_division_by_zero_is_a_fault(name: str, function: str) -> None:
    with start(target_of(name, KERNELS)) as running:
        device = connect(running)
        divide = device.system_lib()[function]
        assert divide(42, 5) == 8
        with pytest.raises((SessionTerminatedError, EmulatorExitedError)) as caught:
            divide(42, 0)
        assert "fatal: " in (caught.value.console_tail or "")
        assert device.system_lib()["inc"](1) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bare_mps2_an385", "bare_microbit", "bare_mps2_an500", "bare_rv32"])
def test_a_load_that_is_not_aligned(name: str) -> None:
    """A Cortex-M0 has no unaligned loads and reports a fault with its name; the other cores load the
    bytes."""
    data = np.arange(1, 9, dtype=np.uint8)
    with start(target_of(name, KERNELS)) as running:
        device = connect(running)
        load_word, array = device.system_lib()["load_word"], device.array(data)
        assert load_word(Handle(array.address)) == 0x04030201
        if name != "bare_microbit":
            assert load_word(Handle(array.address + 1)) == 0x05040302
            return
        with pytest.raises((SessionTerminatedError, EmulatorExitedError)) as caught:
            load_word(Handle(array.address + 1))
        assert "fatal: HardFault at pc 0x" in (caught.value.console_tail or "")
        assert "HardFault, in load_word, at " in caught.value.message
        assert device.system_lib()["inc"](1) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bare_mps2_an386", "bare_mps2_an500", "bare_mps2_an505", "bare_mps3_an547"])
def test_an_interrupt_leaves_the_registers_of_the_fpu_alone(name: str) -> None:
    """The FPU's registers are also those of the vector unit. The processor saves them, since the FPU was
    enabled with that option."""
    with start(target_of(name, KERNELS)) as running:
        lib = connect(running).system_lib()
        assert lib["changed_by_interrupt"]() == 0


def instructions(device: Device, name: str, *args: object) -> float:
    found = device.system_lib().measure(name, number=10, repeat=5)(*args).net().instructions
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bare_mps3_an547", "bare_rv64v"])
def test_vectors_take_fewer_instructions_than_scalars(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    """Compares an int8 dot product of 1,024 elements by MVE or RVV with the same by a loop."""
    a, b = (np.random.default_rng(seed).integers(-128, 128, 1024, np.int8) for seed in (1, 2))
    defines = {"MACHINE_VECTORS": 1} if name == "bare_rv64v" else {}
    with start(target_of(name, KERNELS).changed(defines=defines)) as running:
        device = connect(running)
        lib, on_a, on_b = device.system_lib(), device.array(a), device.array(b)
        expected = int(np.dot(a.astype(np.int32), b.astype(np.int32)))
        assert (lib["dot"](on_a, on_b), lib["dot_scalar"](on_a, on_b)) == (expected, expected)
        vector, scalar = (instructions(device, name, on_a, on_b) for name in ("dot", "dot_scalar"))
    record_property("instructions of 1,024 elements", f"{vector:.0f} by vectors, {scalar:.0f} by a loop")
    assert vector < scalar / 4


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("bare_mps2_an385", 0xFFFFFFF0),
        slow("bare_mps2_an505", 0xFFFFFFF0),
        slow("bare_rv32", 0),
        slow("bare_microbit", 0),
        slow("rtl_ibex", 0),
    ],
)
def test_what_a_program_has_before_main(name: str, address: int, tmp_path: Path) -> None:
    """picolibc's linker script begins the heap behind .bss, where the linker puts zeros in sections of other
    names, too. A fault in a constructor speaks. address: a write there is a fault; 0: there is none."""
    section = '__asm__(".section {0},\\"aw\\",%nobits\\n{1}: .space 600\\n.text");\nextern char {1}[];\n'
    zeros = {f"zeros{i}": place for i, place in enumerate((".noinit", ".noinit.mine", "dma", ".dma.rx"))}
    source = tmp_path / "zeros.c"
    source.write_text(
        "".join(section.format(place, symbol) for symbol, place in zeros.items())
        + '__attribute__((section("my_data"))) int seven = 7;\n'
        + "__attribute__((constructor)) static void use(void)\n"
        + f"{{\n\tseven = {' + '.join(f'{symbol}[0]' for symbol in zeros)};\n"
        + f"\t*(volatile unsigned int *){address or 'zeros0'} = 0U;\n}}\n"
    )
    firmware = build(target_of(name, source))
    elf = Elf(firmware.elf.read_bytes(), firmware.elf.name)
    found = {symbol.name: symbol.value for symbol in elf.symbols}
    assert max(found[symbol] for symbol in zeros) + 600 <= found["__heap_start"] < found["__heap_end"]
    assert found["__data_start"] <= found["seven"] < found["__data_end"]
    if address:
        with start(firmware) as running:
            text = wait_for(running, "fatal: ", 2)
        assert "Fault at pc 0x" in text
        assert "ready" not in text


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("ERROR_TEXTS",), id="texts", marks=pytest.mark.slow),
        pytest.param(tuple(OPTIONS), id="all"),
    ],
)
def test_firmware_without_options_calls_and_fails_with_a_reason(options: tuple[str, ...]) -> None:
    off = [f"-DMINRPC_{name}=OFF" for name in options if name != "TESTING"]
    with open_device(target_of("bare_mps2_an385").changed(cmake_options=off)) as device:
        lib = device.system_lib()
        assert lib["inc"](1) == 2
        with pytest.raises(RemoteError, match=r"\.c:\d+"):
            lib["inc"]()
        assert lib["inc"](2) == 3


def test_a_machine_that_is_not_there_is_named_with_those_that_are() -> None:
    target = Target.named("bare_mps2_an385", cmake_options=["-DMINRPC_MACHINE=mps9"])
    with pytest.raises(BuildError) as caught:
        build(target)
    text = "\n".join(caught.value.details)
    assert "MINRPC_MACHINE=mps9" in text
