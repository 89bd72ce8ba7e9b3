# SPDX-License-Identifier: Apache-2.0
"""Places of a call's arrays and numbers, and the error for a write beside them."""

from __future__ import annotations

import ctypes
from functools import partial
from itertools import product
from pathlib import Path
from typing import cast
from unittest.mock import Mock

import numpy as np
import pytest
from minrpc import Address, GuardError, out
from minrpc.client import RpcClient
from minrpc.library.arguments import plan_call
from minrpc.library.frame import Block, CallFrame
from minrpc.library.placed import Placed
from minrpc.library.quick import quick_call
from minrpc.library.scalars import to_float
from minrpc.library.thunks import COPY
from minrpc.program.c_types import Scalar, same_type
from minrpc.wire.values import Handle

from tests.unit.library.host_library import HostLibrary

SOURCE = """
void copy(const short *x, short *y, int n) { for (int i = 0; i < n; i++) y[i] = x[i]; }
int length(const char *s) { int n = 0; while (s[n]) n++; return n; }
void put(signed char *y, int at) { y[at] = 1; }
void take(unsigned long long x) { (void)x; }
void reverse(const short *x, short *y, int n)
{
	for (int i = 0; i < n / 2; i++) { short held = x[i]; y[i] = x[n - 1 - i]; y[n - 1 - i] = held; }
}
int letter(char c) { return c; }
int corner(const int (*rows)[3]) { return rows[0][2]; }
int cube(const int (*x)[2][3]) { return x[0][1][2]; }
struct wide { unsigned a : 3; unsigned b : 7; } __attribute__((aligned(16)));
int wider(struct wide w) { return w.a; }
typedef int v4 __attribute__((vector_size(16)));
int sum4(v4 x) { return x[0] + x[1] + x[2] + x[3]; }
struct holder { short *p; };
void hold(struct holder *h, short *p) { h->p = p; }
int upper(char *s) { int n = 0; for (; *s; s++) if (*s >= 'a') { *s -= 32; n++; } return n; }
static int made;
int create(int **p, int value) { made = value; *p = &made; return 3; }
int two(int **p) { p[0] = 0; p[1] = &made; return 4; }
int look(const int *p) { return *p; }
__int128 wide(__int128 x, unsigned __int128 y) { return 2 * x + (__int128)y; }
long double longer(long double x) { return x; }
unsigned long long same(unsigned long long x) { return x; }
enum mode { SLOW, FAST = 7 };
int modes(const enum mode *m, int n) { int all = 0; while (n--) all += m[n]; return all; }
int first(const int *const *p) { return p[0] == 0; }
struct token { unsigned kind : 4; unsigned length : 12; int value; };
void scan(struct token *t, int n) { for (int i = 0; i < n; i++) t[i] = (struct token){1, i, 2 * i}; }
typedef struct { int x; } celsius;
typedef struct { int x; } kelvin;
int boils(const celsius *c, const kelvin *k) { return c->x > 99 || k->x > 372; }
void spoil(const struct token *t, int at) { ((struct token *)t)[at].value = 9; }
void both(struct token t, const struct token *p, int at) { spoil(p, at + (int)t.kind); }
int add(const struct token *a, struct token *b) { b->value += 3; return a->value; }
int sum(struct token t, struct token *b) { b->value += 4; return t.value; }
struct wide_pair { short x[300]; };
struct wide_pair doubled(const short *x, short *y) { (void)x; *y = 1; return (struct wide_pair){{2}}; }
void hold_at(struct holder *h, short *p, const short *part, int at) { (void)part; h->p = p + at; }
void leave(struct holder *h, short *p) { (void)h; (void)p; }
void drop(struct holder *h) { h->p = 0; }
struct rows { struct token t[3]; int n; };
int within(struct rows *r, struct token *t) { t[1].value = 7; return r->t[1].value; }
void unlike(int *a, short *b) { *a = *b = 1; }
void merge(short *z, const short *x, short *y) { (void)x; *z = *y; }
void turn(int *const *p) { *(int **)p = 0; }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> HostLibrary:
    directory: Path = tmp_path_factory.mktemp("placing")
    return HostLibrary(SOURCE, directory)


def test_a_matrix_is_an_array_and_a_masked_array_is_refused(library: HostLibrary) -> None:
    first, second = (
        np.array(rows, np.int16).view(np.matrix) for rows in ([[1, 2], [3, 4]], [[0, 0], [0, 0]])
    )
    library.call("copy", first, second, 4)
    assert second.tolist() == [[1, 2], [3, 4]]
    masked = np.ma.masked_array(np.zeros(4, np.int16), [True, False, False, False])
    with pytest.raises(TypeError, match=r"C knows no mask: pass .filled\(...\) or .data"):
        library.call("copy", masked, second, 4)


@pytest.mark.parametrize("swapped", [False, True])
def test_arrays_may_lie_side_by_side_but_not_overlap(library: HostLibrary, swapped: bool) -> None:
    whole = np.arange(8, dtype=np.int16)
    first, second = (whole[4:], whole[:4]) if swapped else (whole[:4], whole[4:])
    library.call("copy", first, second, 4)
    assert second.tolist() == first.tolist()
    with pytest.raises(ValueError, match="overlaps"):
        library.call("copy", whole[:4], whole[3:7], 4)
    with pytest.raises(ValueError, match="overlaps"):
        library.call("copy", whole[3:7], whole[:4], 4)


@pytest.mark.parametrize(
    ("at", "told"),
    [
        (-1, "wrote 1 byte before y"),
        (-3, "wrote 3 bytes before y"),
        (-8, "wrote at least 8 bytes before y"),
        (8, "wrote 1 byte behind y"),
        (10, "wrote 3 bytes behind y"),
        (15, "wrote at least 8 bytes behind y"),
    ],
)
def test_a_write_beside_an_array_is_told_in_bytes(library: HostLibrary, at: int, told: str) -> None:
    with pytest.raises(GuardError, match=told):
        library.call("put", np.zeros(8, np.int8), at)
    for inside in (0, 7):
        library.call("put", np.zeros(8, np.int8), inside)


@pytest.mark.parametrize("number", [0, 1, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, (1 << 64) - 1])
def test_numbers_without_a_sign_travel_as_int64(library: HostLibrary, number: int) -> None:
    (sent,) = plan_call(library.functions["same"], (number,), 8).arguments(0)
    assert isinstance(sent, int)
    assert -(1 << 63) <= sent < 1 << 63
    assert library.call("same", number) == number


def test_a_number_that_needs_another_form_needs_a_plan(library: HostLibrary) -> None:
    quick = quick_call(library.functions["take"])
    assert quick is not None
    nobody = cast("RpcClient", None)
    assert quick(((1 << 63) - 1,), nobody) == [(1 << 63) - 1]
    for number in (1 << 63, (1 << 64) - 1, -1, True, 1.0):
        assert quick((number,), nobody) is None


@pytest.mark.parametrize("text", [b"abc", "abc"])
def test_what_is_written_to_a_text_that_can_not_change_is_an_error(
    library: HostLibrary, text: bytes | str
) -> None:
    with pytest.raises(GuardError, match=f"upper wrote to s: {type(text).__name__} can't change"):
        library.call("upper", text)
    assert library.call("upper", text.upper()) == 0
    held = bytearray(b"abc\0")
    assert library.call("upper", held) == 3
    assert held == b"ABC\0"


def test_a_constant_that_c_changes_is_told(library: HostLibrary) -> None:
    """A struct, a list of structs, a list of pointers: nothing is written back."""
    tokens = [library.struct("token", value=value) for value in (1, 2)]
    for given, at in ((tokens[0], 0), (tokens, 0), (tokens, 1)):
        with pytest.raises(GuardError, match=f"spoil wrote 1 byte of t .*, .* at offset {8 * at + 4}"):
            library.call("spoil", given, at)
    with pytest.raises(GuardError, match=r"both wrote 1 byte of t .*, which it may only read"):
        library.call("both", tokens[0], tokens[0], 0)
    with pytest.raises(GuardError, match=r"turn wrote . bytes of p \(1 pointers\), which it may only read"):
        library.call("turn", [np.zeros(1, np.int32)])
    assert [token.value for token in tokens] == [1, 2]


def test_a_struct_comes_back_if_one_of_several_parameters_may_write(library: HostLibrary) -> None:
    token = library.struct("token", value=5)
    assert library.call("add", token, token) == 8
    assert token.value == 8
    assert library.call("sum", token, token) == 8
    assert token.value == 12
    row = [library.struct("token"), token]
    assert [library.call("add", given, token) for given in (row, token)] == [0, 18]
    assert library.call("add", token, row) == 18
    assert [token.value for token in row] == [3, 18]


def test_memory_that_is_only_written_is_not_sent(library: HostLibrary) -> None:
    frame = plan_call(library.functions["doubled"], (np.zeros(1, np.int16), out(300)), 8).frame
    sent = sum(len(data) for _, data in frame.image(0))
    assert sent == frame.size - 2 * 600
    assert library.call("doubled", np.zeros(1, np.int16), out(300))[0].x[0] == 2


def test_bytes_behind_the_constants_come_back_over_a_link(library: HostLibrary) -> None:
    """Each byte of the guards behind them is compared, and only results are taken."""
    x, y, z = np.zeros(300, np.int16), np.zeros(3, np.int16), np.zeros(5, np.int16)
    frame = plan_call(library.functions["merge"], (z, x, y), 8).frame
    sent = bytearray(frame.size)
    for at, data in frame.image(0):
        sent[at : at + len(data)] = data
    blocks = sorted(frame.blocks, key=lambda block: block.offset)
    assert blocks[0].value is x
    begin, size = frame.comes_back(cheap=False)
    assert (begin, begin + size) == (blocks[0].offset + x.nbytes, frame.size)
    returned = {at for block in blocks[1:] for at in range(block.offset, block.offset + block.size)}
    for at in range(begin, frame.size):
        back = bytearray(sent)
        back[at] ^= 1
        take = partial(frame.take, memoryview(back)[begin:], begin, 0, "merge")
        if at in returned:
            take()
        else:
            with pytest.raises(GuardError, match="merge wrote"):
                take()
    assert (y == 256 + 1).all()
    assert (z == 256 + 1).all()
    assert plan_call(library.functions["merge"], (x[5:6], x, y), 8).frame.comes_back(cheap=False)[0] == 0


def test_a_copy_on_the_device_has_any_places_and_size(library: HostLibrary) -> None:
    """Words are copied only if both places and the size are multiples of a word: no byte more."""
    memory = (ctypes.c_uint64 * 8)()
    base = ctypes.addressof(memory)
    for source, target, size in product(range(4), range(32, 36), range(10)):
        due = bytearray(range(100, 164))
        ctypes.memmove(base, bytes(due), 64)
        due[target : target + size] = due[source : source + size]
        library.call_thunk(COPY, [Handle(base + target), Handle(base + source), size])
        assert bytes(memory) == due


def test_a_pointer_that_is_written_is_an_address_for_other_functions(library: HostLibrary) -> None:
    result, handle = library.call("create", out(), 42)
    assert result == 3
    assert repr(handle).startswith("(int *)0x")
    assert library.call("look", handle) == 42
    assert library.call("two", out(2)) == (4, [None, handle])


def test_a_number_of_elements_is_a_whole_number() -> None:
    assert out(np.int64(3)).shape == out((np.int8(3),)).shape == (3,)  # type: ignore[arg-type]
    for wrong in ("a", 1.5, None):
        with pytest.raises(TypeError):
            out(wrong)  # type: ignore[arg-type]


def test_an_older_dwarf_gives_bit_fields_the_same_places(tmp_path: Path) -> None:
    source = SOURCE.replace("length : 12; int value;", "length : 12; int value, more[3];")
    older = HostLibrary(source, tmp_path, ("-O1", "-gdwarf-3", "-gstrict-dwarf"))
    given = [older.struct("token") for _ in range(3)]
    older.call("scan", given, 3)
    assert [(each.kind, each.length, each.value) for each in given] == [(1, 0, 0), (1, 1, 2), (1, 2, 4)]


def test_structs_that_only_typedefs_name_are_two_types(library: HostLibrary) -> None:
    types = library.declarations.types
    assert not same_type(types["celsius"], types["kelvin"])


def test_bit_fields_are_not_lost_in_a_returned_array(library: HostLibrary) -> None:
    """numpy has no bit fields, so an array of such structs would lack members silently."""
    with pytest.raises(TypeError, match=r"numpy has no bit fields \(kind, length\): give a list of structs"):
        library.call("scan", out(2), 2)


def test_an_address_without_a_type_fits_any_pointer_and_no_smaller_one(library: HostLibrary) -> None:
    handle = library.call("create", out(), 7)[1]
    assert library.call("look", Address(int(handle))) == 7
    with pytest.raises(ValueError, match="an address of the device has 64 bits"):
        library.call("look", Address(1 << 64))
    with pytest.raises(ValueError, match="an address is not negative"):
        Address(-1)


@pytest.mark.parametrize("number", [0, -1, 1 << 126, -(1 << 126) + 5])
def test_integers_of_128_bits(library: HostLibrary, number: int) -> None:
    due = (2 * number + ((1 << 128) - 1)) % (1 << 128)
    got = library.call("wide", number, (1 << 128) - 1)
    assert got % (1 << 128) == due
    assert -(1 << 127) <= got < 1 << 127
    with pytest.raises(ValueError, match="out of its range"):
        library.call("wide", 1 << 127, 0)


@pytest.mark.parametrize("number", [10**400, -(1 << 2000), 1e39])
def test_numbers_beyond_a_float_are_refused(number: float) -> None:
    with pytest.raises(ValueError, match=r"gain: expected float, got .*, which is out of its range"):
        to_float("gain", Scalar("float", 4, "float", True), number)


def test_long_double_is_refused_with_the_reason(library: HostLibrary) -> None:
    with pytest.raises(TypeError, match="long double can't be passed: Python has no number like it"):
        library.call("longer", 1.0)


def test_one_array_for_what_is_read_and_what_is_written_comes_back(library: HostLibrary) -> None:
    x = np.arange(4, dtype=np.int16)
    library.call("copy", x, x, 4)
    library.call("reverse", x, x, 4)
    assert x.tolist() == [3, 2, 1, 0]


def test_a_plain_char_holds_what_either_sign_does(library: HostLibrary) -> None:
    assert library.call("letter", 255) & 255 == 255
    assert library.call("letter", -128) & 255 == 128
    for wrong in (256, -129):
        with pytest.raises(ValueError, match="out of its range"):
            library.call("letter", wrong)


@pytest.mark.parametrize("letter", ["a", b"a", 97])
def test_a_char_takes_one_character(library: HostLibrary, letter: object) -> None:
    assert library.call("letter", letter) == 97
    for wrong in ("", "ab", b"ab", "\u00e9", 97.0):
        with pytest.raises(TypeError, match="expected char"):
            library.call("letter", wrong)


@pytest.mark.parametrize(("name", "size"), [("modes", 4), ("first", 8)])
def test_enums_and_addresses_are_integers_of_their_size(library: HostLibrary, name: str, size: int) -> None:
    further = (2,) if name == "modes" else ()
    for sign in "iu":
        assert library.call(name, np.array([0, 7], f"{sign}{size}"), *further) in (7, 1)
    for kind in (f"f{size}", f"i{12 - size}", f"u{size // 2}", "i1"):
        with pytest.raises(TypeError, match=r"expected u?int"):
            library.call(name, np.zeros(2, kind), *further)


def test_blocks_lie_at_a_multiple_of_8(library: HostLibrary) -> None:
    structs = [library.struct("token") for _ in range(3)]
    calls = (
        ("scan", (structs, 3)),
        ("scan", (structs[0], 1)),
        ("copy", (np.zeros(3, np.int16), out(3), 3)),
        ("length", (b"text",)),
    )
    for name, given in calls:
        blocks = plan_call(library.functions[name], given, 8).frame.blocks
        assert [block.alignment for block in blocks] == [8] * sum(not isinstance(item, int) for item in given)


def test_rows_of_an_array_have_the_pointers_length(library: HostLibrary) -> None:
    assert library.call("corner", np.arange(6, dtype=np.int32).reshape(2, 3)) == 2
    for name, wrong in (
        ("corner", (2, 2)),
        ("corner", (4,)),
        ("cube", (2,)),
        ("cube", (3,)),
        ("cube", (3, 3)),
    ):
        with pytest.raises(TypeError, match="expected int32"):
            library.call(name, np.zeros(wrong, np.int32))


def test_a_struct_that_is_aligned_further(library: HostLibrary) -> None:
    assert library.call("wider", (5, 100)) == 5
    (block,) = plan_call(library.functions["wider"], ((5, 100),), 8).frame.blocks
    assert block.offset == 16


def test_memory_that_two_pointers_share_is_aligned_for_both() -> None:
    frame = CallFrame(8)
    whole, part = Block("whole", 64, 8, None, host=0x1008), Block("part", 16, 32, None, host=0x1008)
    frame.blocks += [whole, part]
    frame.lay_out("f")
    assert (whole.offset, part.offset, frame.size) == (32, 32, 32 + 64 + 8)


def test_a_placed_object_lies_between_guards() -> None:
    room = Mock(address=0x1000, pointer=Mock(value=0x1000), freed=False)
    placed = Placed(Mock(), np.arange(5, dtype=np.uint8), 8, lambda *_: room, None, Mock())
    (image,) = room.copy_from.call_args.args
    assert (placed.address, placed.span) == (0x1008, (0x1000, len(image)))
    assert (image[8:13].tolist(), len(image)) == ([0, 1, 2, 3, 4], 8 + 5 + 8)
    assert repr(placed) == "<placed uint8_t [5] at 0x1008>"


@pytest.mark.parametrize("value", [[[1, 2], [3, 4]], [1, 2, 3], 1, [[1, 2, 3, 4]]])
def test_a_vector_takes_its_elements_in_a_row(library: HostLibrary, value: object) -> None:
    assert library.call("sum4", [1, 2, 3, 4]) == 10
    with pytest.raises(TypeError, match="4 elements are expected"):
        library.call("sum4", value)


def test_a_pointer_to_an_empty_array_is_that_array(library: HostLibrary) -> None:
    """The array has an address of its own, which the function may return."""
    holder, empty = library.struct("holder"), np.zeros(0, np.int16)
    library.call("hold", holder, empty)
    assert holder.p is empty


def test_a_pointer_of_a_struct_keeps_its_array_until_c_sets_it(library: HostLibrary) -> None:
    whole = np.arange(4, dtype=np.int16)
    part = whole[:3]
    holder = library.struct("holder", p=part)
    library.call("leave", holder, whole)
    assert holder.p is part
    holder.p = None
    library.call("hold", holder, part)
    assert holder.p is part
    # The largest array that begins there, else the smallest that has the element.
    for at, due in enumerate((whole, whole[1:2], whole[2:], whole[3:], whole[4:])):
        holder.p = None
        library.call("hold_at", holder, whole, whole[:2], at)
        np.testing.assert_array_equal(holder.p, due)
    library.call("drop", holder)
    assert holder.p is None


def test_an_array_of_structs_beside_its_struct(library: HostLibrary) -> None:
    rows = library.struct("rows")
    assert library.call("within", rows, rows.t) == 7
    assert [token.value for token in rows.t] == [0, 7, 0]


def test_what_c_may_write_can_be_written(library: HostLibrary) -> None:
    fixed, x = np.zeros(2, np.int16), np.ones(2, np.int16)
    fixed.flags.writeable = False
    library.call("copy", fixed, x, 2)
    assert x.tolist() == [0, 0]
    with pytest.raises(TypeError, match="the function may write to it, and it is read-only: pass a copy"):
        library.call("copy", x, fixed, 2)
    both = out(2)
    with pytest.raises(TypeError, match=r"unlike: b: .*it is a \(int32\[2\]\), too"):
        library.call("unlike", both, both)


def test_an_address_is_a_whole_number() -> None:
    with pytest.raises(TypeError, match="an address is a whole number, not 'x'"):
        Address("x")  # type: ignore[arg-type]


def test_a_text_with_a_nul_is_refused(library: HostLibrary) -> None:
    """C ends the text at the NUL character; bytes can contain NUL characters."""
    with pytest.raises(ValueError, match=r"'a\\x00b' has a NUL character"):
        library.call("length", "a\0b")
