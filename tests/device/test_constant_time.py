# SPDX-License-Identifier: Apache-2.0
"""The check distinguishes an early exit, or a table indexed by a secret, from code without these leaks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from minrpc import (
    ConfigurationError,
    ConstantTime,
    Device,
    Firmware,
    QemuCounters,
    build,
    check_constant_time,
    connect,
    counters_for,
    library_of,
    secret_inputs,
    start,
)

Bytes = npt.NDArray[np.uint8]

LEAKS = Path(__file__).parent / "c/leaks.c"
SIZE = 32


class Checked(NamedTuple):
    """A device, and the counters that trace its instructions."""

    device: Device
    counters: QemuCounters

    def check(self, name: str, inputs: list[Bytes]) -> ConstantTime:
        """Compares runs of a function of leaks.c with a secret, a known array, and their size."""
        if "code_loading" not in self.device.info().options:
            pytest.skip("its firmware takes no code")
        right = np.arange(SIZE, dtype=np.uint8)
        given = [[item, right, SIZE] for item in inputs]
        with library_of(self.device.load(LEAKS, flags=["-O1"])) as library:
            return check_constant_time(self.device, self.counters, name, given, library)


@contextmanager
def traced(firmware: Firmware) -> Iterator[Checked]:
    with (
        counters_for(firmware.elf, trace=True) as counters,
        start(firmware, counters=counters) as running,
        connect(running) as device,
    ):
        yield Checked(device, counters)


@pytest.fixture
def checked(image: Firmware) -> Iterator[Checked]:
    with traced(image) as found:
        yield found


def inputs() -> list[Bytes]:
    """Equal to the compared value, different in the first byte, in the middle, and in the last."""
    made = [np.arange(SIZE, dtype=np.uint8) for _ in range(4)]
    for item, at in zip(made[1:], (0, SIZE // 2, SIZE - 1), strict=True):
        item[at] ^= 0x55
    return made


def test_a_comparison_that_leaves_early_is_told_where(checked: Checked) -> None:
    result = checked.check("early_compare", inputs())
    assert not result
    assert {difference.what for difference in result.differences} == {"path"}
    assert "early_compare at leaks.c:" in str(result)


def test_a_table_that_a_secret_indexes_is_told(checked: Checked) -> None:
    result = checked.check("lookup", inputs())
    assert {difference.what for difference in result.differences} == {"addresses"}
    assert "lookup at leaks.c:" in str(result)


def test_a_right_one_is_equal(checked: Checked) -> None:
    result = checked.check("whole_compare", inputs())
    assert result
    assert "no proof" in str(result)
    assert result.steps > SIZE
    assert result.masked


def test_inputs_must_fit_together(checked: Checked) -> None:
    with pytest.raises(ConfigurationError, match="not of the same shapes"):
        checked.check("whole_compare", [np.zeros(SIZE, np.uint8), np.zeros(SIZE + 1, np.uint8)])
    with pytest.raises(ConfigurationError, match="one input"):
        checked.check("whole_compare", [np.zeros(SIZE, np.uint8)])


@pytest.mark.slow
def test_a_function_that_is_loaded_is_checked_as_one_of_the_firmware(
    checked: Checked, tmp_path: Path
) -> None:
    source = tmp_path / "same.c"
    source.write_text(
        "#include <stdint.h>\n"
        "int early(const uint8_t *a, int n) { while (n > 0 && *a++ == 0) { n--; } return n; }\n"
        "int whole(const uint8_t *a, int n) { int all = 0; while (n-- > 0) { all |= *a++; } return all; }\n"
        "void sort(uint8_t *a, int n) { for (int i = 1; i < n; i++)"
        " for (int j = i; j > 0 && a[j - 1] > a[j]; j--)"
        " { uint8_t kept = a[j]; a[j] = a[j - 1]; a[j - 1] = kept; } }\n"
        "void invert(const uint8_t *a, uint8_t *b, int n) { while (n-- > 0) { b[n] = ~a[n]; } }\n"
    )
    given = [[np.full(SIZE, number, np.uint8), SIZE] for number in (0, 1)]
    with library_of(checked.device.load(source)) as library:
        assert check_constant_time(checked.device, checked.counters, "whole", given, library)
        early = check_constant_time(checked.device, checked.counters, "early", given, library)
        # A second call finds a sorted array, so that its trace differs from the first.
        unsorted = [[np.array(number, np.uint8), 4] for number in ([1, 2, 3, 4], [4, 3, 2, 1], [1, 3, 2, 4])]
        with pytest.raises(ConfigurationError, match="sort overwrites its input"):
            check_constant_time(checked.device, checked.counters, "sort", unsorted, library)
        # The array's content before the function writes it makes no difference.
        rng = np.random.default_rng(1)
        random = [[rng.integers(0, 256, SIZE, np.uint8) for _ in range(2)] + [SIZE] for _ in range(3)]
        assert check_constant_time(checked.device, checked.counters, "invert", random, library)
    assert not early
    assert "from early" in str(early)


def test_a_float_that_software_narrows_on_its_way_is_refused(checked: Checked, tmp_path: Path) -> None:
    """The call converts it from double, which the function can't change."""
    (tmp_path / "bits.c").write_text(
        "#include <stdint.h>\n#include <string.h>\n"
        "uint32_t at(const float *x) { uint32_t bits; memcpy(&bits, x, 4); return bits ^ 1; }\n"
        "uint32_t of(float x) { return at(&x); }\n"
    )
    with library_of(checked.device.load(tmp_path / "bits.c")) as library:

        def verdict(name: str, like: object) -> str:
            tried = secret_inputs([like], secret=[0])
            try:
                return str(bool(check_constant_time(checked.device, checked.counters, name, tried, library)))
            except ConfigurationError as error:
                return error.message

        assert verdict("at", np.zeros(1, np.float32)) == "True"
        refused = "of takes a float that software narrows from double"
        assert verdict("of", np.float32(0)).partition(",")[0] in ("True", refused)


def test_a_secret_in_an_it_block_is_a_perhaps(checked: Checked, tmp_path: Path) -> None:
    """It takes no other path, and may take another time."""
    if "code_loading" not in checked.device.info().options:
        pytest.skip("its firmware takes no code")
    (tmp_path / "pick.c").write_text(
        "#ifdef __thumb2__\n"
        "int has_it(void) { return 1; }\n"
        'int pick(int a, int b) { __asm__ volatile("cmp %0, #3\\n it eq\\n sdiveq %0, %1, %0"'
        ' : "+r"(a) : "r"(b) : "cc"); return a; }\n'
        "#else\nint has_it(void) { return 0; }\nint pick(int a, int b) { return a ^ b; }\n#endif\n"
    )
    with library_of(checked.device.load(tmp_path / "pick.c")) as library:
        given = [[secret, 12345] for secret in (3, 4)]
        result = check_constant_time(checked.device, checked.counters, "pick", given, library)
        assert result.perhaps == (library["has_it"]() == 1)
    assert bool(result) != result.perhaps
    assert str(result).startswith("perhaps: ") == result.perhaps


KEY = np.zeros(16, np.uint8)
MESSAGE = np.array([0x11 * number for number in range(16)], np.uint8)


@pytest.mark.slow
def test_textbook_leaks_are_told_from_code_without(checked: Checked) -> None:
    """The generated inputs find the leaks: single bits, the whole range, equal to the compared value."""
    if "code_loading" not in checked.device.info().options:
        pytest.skip("its firmware takes no code")
    out = np.zeros(16, np.uint8)
    with library_of(checked.device.load(LEAKS, flags=["-O2"])) as library:
        # FIPS 197, appendix C.1: the AES by the table gives the published result.
        library["aes_by_table"](np.arange(16, dtype=np.uint8), MESSAGE, out)
        assert out.tobytes().hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"

        def check(name: str, *arguments: object) -> ConstantTime:
            inputs = secret_inputs(arguments, [0])
            return check_constant_time(checked.device, checked.counters, name, inputs, library)

        for name in ("top_bit", "above_100", "lowest_bit"):
            result = check(name, np.uint8(0))
            assert {difference.what for difference in result.differences} == {"path"}, name
            assert f"{name} at leaks.c:" in str(result)
        early, whole = (check(name, KEY, MESSAGE, 16) for name in ("early_compare", "whole_compare"))
        assert len({difference.step for difference in early.differences}) > 1
        assert whole
        table = check("aes_by_table", KEY, MESSAGE, out)
        assert "addresses" in {difference.what for difference in table.differences}
        assert "aes_by_table at leaks.c:" in str(table)
        quotient = check("quotient", np.uint32(0), np.uint32(7))
        divides = [text for text in quotient.variable_time if "quotient at leaks.c:" in text]
        assert not quotient or "div" in divides[0]


def test_a_trace_of_any_length_is_compared(checked: Checked) -> None:
    """The runs have more steps than are kept, and differ in the last step."""
    if "code_loading" not in checked.device.info().options:
        pytest.skip("its firmware takes no code")
    rounds = 360_000
    with library_of(checked.device.load(LEAKS, flags=["-O1"])) as library:

        def check(name: str, *secrets: int) -> ConstantTime:
            given = [[secret, rounds] for secret in secrets]
            return check_constant_time(checked.device, checked.counters, name, given, library)

        assert check("long_straight_way", 0, 1).steps > 1 << 20
        (difference,) = check("long_way", 0, 2, 1).differences
    assert (difference.index, difference.what) == (2, "path")
    assert difference.step > 1 << 20
    line = LEAKS.read_text().splitlines()[int(difference.place.rpartition(":")[2]) - 1]
    assert "secret & 1U" in line or "sum++" in line


@pytest.mark.slow  # tests/runtime sees that a batch masks interrupts.
def test_an_interrupt_of_the_timer_waits_while_a_function_is_checked(image: Firmware) -> None:
    """An interrupt during the function makes runs differ; with interrupts masked, all runs are equal to the
    last access."""
    firmware = build(image.target.changed(sources=[Path(__file__).parent / "c/interrupted.c"]))
    with traced(firmware) as checked:
        _compare_with_interrupts(checked)


def _compare_with_interrupts(checked: Checked) -> None:
    lib = checked.device.system_lib()
    if not lib["interrupt"]():
        pytest.skip("how to raise a timer's interrupt from C is not known here")

    def run(*, masked: bool) -> int:
        measurer = lib.measure("interrupt", number=1, repeat=1, interrupts_masked=masked)
        # A pending SysTick counts as an overflow of the clock: nothing can be compared.
        measurer._unmasked = None
        measurer()
        return checked.counters.last_trace().hash

    assert len({run(masked=False) for _ in range(6)}) > 1
    assert len({run(masked=True) for _ in range(6)}) == 1
    # Interrupts come again afterwards.
    assert len({run(masked=False) for _ in range(6)}) > 1
