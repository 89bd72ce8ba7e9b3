# SPDX-License-Identifier: Apache-2.0
"""Many loads, of which some crash and some hang: none is lost, and nothing is left on the device or here."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from minrpc import (
    DeadlineError,
    Device,
    DeviceMemoryError,
    Firmware,
    HarnessError,
    LoadedLibrary,
    LoadError,
    RunningDevice,
    open_device,
    start,
)
from minrpc.firmware.cache import objects_home
from minrpc.library import Sources, load as load_sources, program_facts

from tests.device.conftest import Amount, Load

SOURCE = """\
static int held[N % 7 + 1];

int number(void)
{
	held[N % 7] = N;
	return held[N % 7];
}

void crash(void)
{
	__builtin_trap();
}

void hang(void)
{
	for (;;) {
		__asm__ volatile("");
	}
}
"""
DEATHS = ("crash", "hang")


def test_data_shares_no_page_of_an_emulator_with_code(
    device: Device, firmware: Firmware | None, load: Load, tmp_path: Path
) -> None:
    """A store to a page of code takes QEMU up to 50 times as long."""
    (tmp_path / "data.c").write_text(
        "int held = 5; int zeroed[3]; int next(int n) { zeroed[n] = ++held; return held; }"
    )
    (tmp_path / "code.c").write_text("int twice(int n) { return 2 * n; }")
    page = 1 if firmware is None else program_facts(firmware.elf).code_page
    if page == 1:
        pytest.skip("code and data may share pages here")
    libraries = [load(tmp_path / f"{name}.c") for name in ("data", "code", "data")]
    code = [
        range(library.image.base // page, -(-(library.image.base + library.image.constant_size) // page))
        for library in libraries
    ]
    arrays = [device.array(np.zeros(8, np.int8)) for _ in range(4)]
    data = [library.image.symbols[name] for library in libraries[::2] for name in ("held", "zeroed")]
    for address in (*data, *(array.address for array in arrays)):
        assert not any(address // page in pages for pages in code), hex(address)
    assert [library["next"](1) for library in libraries[::2]] == [6, 6]
    assert libraries[0].device_bytes == libraries[0].image.size - libraries[0].image.gap


@pytest.mark.slow
def test_many_loads(firmware: Firmware | None, tmp_path: Path, amount: Amount) -> None:
    """With --load there are a thousand loads, and forty of them end the device."""
    if firmware is None:
        pytest.skip("a board that has crashed may have to be reset by hand")
    (tmp_path / "n.c").write_text(SOURCE)
    rounds, loads = amount(4, 40), amount(5, 25)
    resident: list[int] = []
    numbers: list[int] = []
    for round_ in range(rounds):
        with start(firmware) as running:
            numbers += loads_of_a_session(running, tmp_path / "n.c", round_ * loads, loads)
            spoil(running, tmp_path / "n.c", DEATHS[round_ % len(DEATHS)])
        gc.collect()
        lines = Path("/proc/self/status").read_text().splitlines()
        resident.append(next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")))
    assert numbers == list(range(rounds * loads))
    # Caches fill at first; 256 images of some kilobytes are the largest.
    half = len(resident) // 2
    assert resident[-1] - resident[half] < 16 * 1024, resident


@pytest.mark.usefixtures("load")
def test_the_same_load_again_reads_no_program_and_links_nothing(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "sum.c"
    source.write_text("#include <string.h>\nint sum(int a, int b) { return a + b; }\n")
    for _ in range(2):  # The second image is linked for the address that the device gives again.
        with device.load(source) as library:
            assert library.sum(1, 2) == 3
    monkeypatch.setattr("minrpc.program.elf.Elf.__init__", lambda *_: pytest.fail("an ELF file was read"))
    monkeypatch.setattr("minrpc.library.loading.link", lambda *_: pytest.fail("it was linked again"))
    with device.load(source) as library:
        assert library.sum(3, 4) == 7


@pytest.mark.usefixtures("load")
def test_a_functions_alignment_is_not_the_others(device: Device, tmp_path: Path) -> None:
    names = [f"f{number}" for number in range(20)]
    functions = "".join(f"int {name}(int a) {{ return a + {name[1:]}; }}\n" for name in names)
    (tmp_path / "aligned.c").write_text(
        "#include <stdint.h>\n"
        f"{functions}__attribute__((aligned(1024))) int wide(int a) {{ return f1(a) + f2(a); }}\n"
        "uint32_t place(void) { return (uintptr_t)wide & 1022u; }\n"
    )
    free = device.info().arena_largest_free
    with device.load(tmp_path / "aligned.c") as library:
        assert [getattr(library, name)(5) for name in names] == [5 + number for number in range(20)]
        assert (library.wide(5), library.place()) == (13, 0)
        assert free - device.info().arena_largest_free < 16384


@pytest.mark.usefixtures("load")
def test_what_takes_most_of_the_memory(device: Device, tmp_path: Path) -> None:
    """A block that is too small for the code at its address is freed before the next is requested."""
    info = device.info()
    if any(region.kind == "code" for region in info.regions):
        pytest.skip("code has memory of its own")
    size = info.arena_largest_free * 2 // 3
    (tmp_path / "most.c").write_text(
        "char most[SIZE] __attribute__((aligned(256)));\nint last(void) { return most[SIZE - 1]; }\n"
    )
    for pad in (64, 128, 192, 256):
        with (
            device.empty((pad,), "uint8"),
            device.load(tmp_path / "most.c", defines={"SIZE": size}) as library,
        ):
            assert library.last() == 0


@pytest.mark.usefixtures("load")
def test_what_fills_the_memory_for_code(device: Device, tmp_path: Path) -> None:
    """Each page of it can be executed, the last one as well."""
    size = next((region.size for region in device.info().regions if region.kind == "code"), 0)
    if not size:
        pytest.skip("code is loaded into the memory of arrays")
    (tmp_path / "long.c").write_text(
        '#if defined(__x86_64__) || defined(__i386__)\n#define GO "jmp 1f"\n'
        '#elif defined(__riscv)\n#define GO "j 1f"\n#else\n#define GO "b 1f"\n#endif\n'
        "#define TEXT_(x) #x\n#define TEXT(x) TEXT_(x)\n"
        'int last(int x) { __asm__ volatile(GO "\\n\\t.skip " TEXT(PAD) "\\n1:"); return x + 7; }\n'
    )
    for pad in range(size - 512, size - 8192, -512):
        with (
            suppress(DeviceMemoryError, LoadError),
            device.load(tmp_path / "long.c", defines={"PAD": pad}) as library,
        ):
            assert library.last(1) == 8
            return
    pytest.fail("code of no size fits")


def loads_of_a_session(running: RunningDevice, source: Path, first: int, count: int) -> list[int]:
    """The results of the calls."""
    seen = []
    with open_device(running) as device:
        used = device.info().arena_used
        for number in range(first, first + count):
            with load_sources(device, Sources.of(source, defines={"N": number % 100})) as library:
                seen.append(number - number % 100 + library["number"]())
        gc.collect()
        assert device.info().arena_used == used
    return seen


def spoil(running: RunningDevice, source: Path, function: str) -> None:
    """Call a function that never returns: the error names it."""
    with open_device(running) as device:
        library: LoadedLibrary = load_sources(device, Sources.of(source, defines={"N": 0}))
        device.call_timeout_s = 0.5 if function == "hang" else device.call_timeout_s
        with pytest.raises(DeadlineError if function == "hang" else HarnessError) as caught:
            library[function]()
        assert caught.value.stage == f"call {function}"


@pytest.mark.usefixtures("load")
@pytest.mark.once
def test_code_that_is_copied_in_pieces(
    device: Device, need_memory: Callable[[int], None], tmp_path: Path
) -> None:
    """Each byte is at its place, although the memory has no room for a second copy of the code."""
    size = 600_001
    need_memory(2 * size)
    data = np.random.default_rng(1).integers(0, 256, size, np.uint8)
    digits = ",".join(map(str, data.tolist()))
    source = (
        "#include <stdint.h>\n"
        f"static const uint8_t held[] = {{{digits}}};\n"
        "uint32_t weighed(void)\n{\n\tuint32_t sum = 0U;\n\n"
        f"\tfor (uint32_t i = 0U; i < {size}U; i++) {{\n\t\tsum += held[i] * (i + 1U);\n\t}}\n"
        "\treturn sum;\n}\n"
    )
    (tmp_path / "held.c").write_text(source)
    in_arena = not any(region.kind == "code" for region in device.info().regions)
    room = size + 350_000 if in_arena else 100_000
    filling = device.empty((device.info().arena_largest_free - room,), np.uint8)
    with device.load(tmp_path / "held.c") as library:
        expected = int((data.astype(np.uint64) * np.arange(1, size + 1, dtype=np.uint64)).sum() % 2**32)
        assert library.weighed() == expected
    filling.free()


@pytest.mark.once
def test_an_empty_list_of_inputs_in_the_cache_is_made_again(device: Device, tmp_path: Path) -> None:
    """A loss of power leaves such files; each later load failed."""
    source = tmp_path / "one.c"
    source.write_text("int one(void)\n{\n\treturn 1;\n}\n")
    assert device.load(source).one() == 1
    both = [*objects_home().glob("*.json"), *objects_home().glob("*.look")]
    lists = [path for path in both if str(source) in path.read_text()]
    for path in lists:
        path.write_bytes(b"")
    assert device.load(source).one() == 1
    assert [str(source) in path.read_text() for path in lists] == [True] * 2
