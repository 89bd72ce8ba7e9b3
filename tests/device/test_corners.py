# SPDX-License-Identifier: Apache-2.0
"""Corners of C's rules: what a fake, a kept pointer, a struct's padding, an enum and a bit field may do."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import Mock, call

import numpy as np
import pytest
from minrpc import CompileError, Device, GuardError, HarnessError, LoadedLibrary
from minrpc.library.fake_functions import PointerArgument

from tests.device.conftest import Load

CORNERS = Path(__file__).with_name("c") / "corners.c"


@pytest.fixture
def corners(load: Load) -> LoadedLibrary:
    return load(CORNERS, fakes="zero")


@pytest.mark.parametrize("answer", [lambda: None, Mock(return_value=None), "zero"])
def test_a_fake_of_a_function_that_does_not_return(corners: LoadedLibrary, answer: object) -> None:
    corners.fakes["hal_reset"].answer = answer  # type: ignore[assignment]
    with pytest.raises(AssertionError, match="hal_reset is declared as _Noreturn"):
        corners["check"](-1)
    corners.fakes["hal_reset"].answer = Mock(side_effect=SystemError("reset"))
    with pytest.raises(SystemError, match="reset"):
        corners["check"](-1)
    assert (corners["check"](4), corners.variables.counter, corners["bump"](1)) == (4, 0, 1002)


def test_elements_of_a_slice_of_a_pointer_in_a_fake_are_set(corners: LoadedLibrary) -> None:
    def in_place(buffer: PointerArgument, n: int) -> int:
        buffer[:n][0] = 7
        buffer[1:n] += 1
        values = buffer[:n]
        values -= 1
        assert np.add(values, 1, out=np.zeros(n, np.int16)).tolist() == [7, 3, 4]
        assert np.add(values, 0, out=values) is values
        with pytest.raises(ValueError, match="read-only"):
            values[1:] *= 2
        with pytest.raises(ValueError, match="read-only"):
            values.fill(9)
        assert values.tolist() == buffer[:n].tolist() == [6, 2, 3]
        return 0

    corners.fakes["hal_recv"].answer = in_place
    assert corners["recv3"]() == 623


def test_a_variable_of_a_library_that_is_gone_is_no_argument(device: Device, load: Load) -> None:
    gone = load(CORNERS, fakes="zero")
    buffer = gone.variables["buf"]
    assert gone["clear"](buffer, 1) is None
    gone.unload()
    other = load(CORNERS, fakes="zero")
    with pytest.raises(ValueError, match="has been freed"):
        other["clear"](buffer, 4)
    assert other.variables.buf.tolist() == [1, 2, 3, 4]


def test_an_array_of_the_other_byte_order_is_no_array_of_enums(corners: LoadedLibrary) -> None:
    assert corners["colours"](np.array([1, 2], np.int32), 2) == 3
    with pytest.raises(TypeError, match="colour"):
        corners["colours"](np.array([1, 2], ">i4"), 2)


@dataclass
class Recorder:
    """A function in Python that is equal to another one with the same calls."""

    seen: list[int] = field(default_factory=list)

    def __call__(self, x: int) -> int:
        self.seen.append(x)
        return x

    def method(self, x: int) -> int:
        return self(x + 1)


def test_equal_functions_in_python_are_two_callbacks(corners: LoadedLibrary) -> None:
    one, two = Recorder(), Recorder()
    assert corners["run"](one, 1) == 1
    one.seen.clear()
    assert (corners["run"](two, 2), corners["run"](two.method, 2)) == (2, 3)
    assert (one.seen, two.seen) == ([], [2, 3])


def test_a_pointer_that_is_kept_again_is_told_again(corners: LoadedLibrary) -> None:
    data = np.arange(3, dtype=np.int32)
    for _ in range(2):
        with pytest.raises(GuardError, match="keep kept a pointer to p"):
            corners["keep"](data)
        corners.variables.kept = None
        corners["bump"](1)
    assert corners["bump"](1) > 0


def test_kept_pointers_are_found_in_inner_calls_placed_structs_and_packed_ones(
    corners: LoadedLibrary,
) -> None:
    data, types = np.arange(3, dtype=np.int32), corners.types
    corners.fakes["hal_call"].answer = lambda: corners["keep"](data) or 0
    with pytest.raises(GuardError, match="keep kept a pointer to p"):
        corners["call_out"]()
    corners.variables.kept = None
    placed = corners.place(types.top(n=types.node()))
    with pytest.raises(GuardError, match=r"kept a pointer to p .* in a placed object\.p"):
        corners["keep_in"](placed, data)
    placed.free()
    with pytest.raises(GuardError, match=r"keep_packed kept a pointer to p .* in packed_kept\.p"):
        corners["keep_packed"](data)


def test_padding_is_no_part_of_a_struct(corners: LoadedLibrary) -> None:
    reader = corners.fakes["hal_read"].answer = Mock(return_value=None)
    corners["read_dirty"]()
    config = corners.types.cfg
    reader.assert_has_calls([call(config(on=1, gain=9))])
    assert config(on=1, gain=9) != config(on=1, gain=8)
    table, values = corners.types.table, np.array([1, 2], np.int16)
    assert table(values, 1) == table(values.copy(), 1) != table(values + 1, 1)
    assert table(values, 1) != table(None, 1)


def test_an_element_of_a_structured_array_has_its_bits(corners: LoadedLibrary) -> None:
    data = np.zeros(3, corners.types.bits.dtype)
    corners["fill_bits"](data, 3)
    assert [corners["show_bits"](element) for element in data] == [47, 1047, 2047]


def test_placed_arrays_of_unsigned_numbers(corners: LoadedLibrary) -> None:
    assert corners["sum_words"](corners.place(np.arange(4, dtype=np.uint32)), 4) == 6


def test_a_constant_that_python_changed_is_not_blamed_on_c(corners: LoadedLibrary) -> None:
    values = np.array([1, 2], np.int16)
    placed = corners.place(corners.types.table(values, 5))
    values[0] = 9
    placed.refresh()
    assert (corners["first_of"](placed), values.tolist()) == (6, [9, 2])


def test_a_struct_with_a_long_double_is_shown(corners: LoadedLibrary) -> None:
    shown = "…" if corners["is_long_double_wide"]() else "0.0"
    assert repr(corners.types.precise(n=4)) == f"precise(n=4, x={shown})"


def test_after_each_refusal_the_device_goes_on(corners: LoadedLibrary) -> None:
    with pytest.raises((HarnessError, AssertionError)):
        corners["check"](-1)
    assert corners["check"](3) == 3


REGISTERS = """
#include <stdint.h>
struct timer { volatile uint32_t ctrl, value; struct { volatile uint32_t lo:8, hi:24; } reload; };
uint32_t memory[4] __attribute__((aligned(16)));
struct timer *timer(void) { return (struct timer *)memory; }
"""


def test_a_bit_field_is_written_with_its_whole_container(tmp_path: Path, load: Load) -> None:
    source = tmp_path / "registers.c"
    source.write_text(REGISTERS)
    library = load(source)
    timer = library.read(library["timer"]())
    written: list[int] = []
    storage = timer.reload._minrpc_inside.storage
    place = storage.place

    class Memory:
        name = place.memory.name
        read = place.memory.read

        @staticmethod
        def write(address: int, data: bytes) -> None:
            written.append(len(data))
            place.memory.write(address, data)

    storage.place = place._replace(memory=Memory())
    timer.reload.lo, timer.reload.hi = 7, 5
    assert (written, library.variables.memory.tolist()) == ([4, 4], [0, 0, 0x507, 0])


BIG_ENDIAN = """
#include <stdint.h>
enum kind { K0, K1, K2 = 100000 };
struct __attribute__((scalar_storage_order("big-endian"))) hdr { enum kind k; uint16_t version:4, len:12; };
struct hdr h = {K1, 4, 0x123};
int kind_of(const struct hdr *b) { return b->k; }
"""


def test_members_of_the_other_byte_order_are_refused(tmp_path: Path, load: Load) -> None:
    source = tmp_path / "big.c"
    source.write_text(BIG_ENDIAN)
    library = load(source)
    header = library.variables.h
    for name in ("k", "version", "len"):
        with pytest.raises(TypeError, match="big-endian"):
            getattr(header, name)
        with pytest.raises(TypeError, match="big-endian"):
            setattr(header, name, 1)


def test_a_static_function_has_its_own_size(tmp_path: Path, load: Load) -> None:
    for name, most in (("a", 10), ("b", 20)):
        (tmp_path / f"{name}.c").write_text(
            f"static int clamp(int x) {{ return x > {most} ? {most} : x; }} "
            f"int {name}(int x) {{ return clamp(x); }}"
        )
    for order in ("ab", "ba"):
        library = load(*(tmp_path / f"{name}.c" for name in order), statics=True, flags=["-O2"])
        sizes = [library[f"{name}.c:clamp"].size for name in "ab"]
        assert sizes == [library.own_sizes[f"clamp ({name}.c)"] for name in "ab"]
        assert min(sizes) > 0


def test_an_option_that_the_compiler_does_not_know_is_refused(load: Load) -> None:
    with pytest.raises(CompileError, match="--funroll-loops"):
        load(CORNERS, flags=["-O2", "--funroll-loops"], fakes="zero")
    assert load(CORNERS, flags=["-O2", "-funroll-loops"], fakes="zero")["bump"](1) == 1002
