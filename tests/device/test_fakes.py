# SPDX-License-Identifier: Apache-2.0
"""Python functions that C calls: their values, their memory, failures, and a link that fails."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock, call

import minrpc
import numpy as np
import pytest
from minrpc import (
    ConfigurationError,
    DeadlineError,
    Device,
    DialectError,
    HarnessError,
    LoadedLibrary,
    RunningDevice,
    UndefinedSymbolsError,
    fake,
)
from minrpc.library import FakeFunction
from minrpc.plugin.shared import SharedDevice
from minrpc.transport import Faults

from tests.device.conftest import Load, MakeLossy

HAL = Path(__file__).with_name("c") / "hal.c"
SENSOR, FRAME = HAL.with_name("sensor.c"), HAL.with_name("frame.c")
INLINE = HAL.with_name("inline.h")
OLD, CONTEXT = HAL.with_name("old.c"), HAL.with_name("context.c")


@pytest.fixture
def hal(load: Load) -> LoadedLibrary:
    return load(HAL, fakes="zero")


def of(library: LoadedLibrary, name: str) -> FakeFunction:
    return library.fakes[name]


def test_values(hal: LoadedLibrary) -> None:
    of(hal, "hal_millis").answer = lambda: 0xFFFFFFFF
    assert hal["elapsed"](0xFFFFFFFE) == 1
    of(hal, "hal_gain").answer = lambda f, d: f * d
    assert hal["scaled"](1.5, 2.25) == 4.375
    of(hal, "hal_port").answer = lambda port, mask, bias: mask - (1 << 63) - bias
    assert hal["summed"](3) == 6
    assert of(hal, "hal_port").calls == [(0, 1 << 63, 0), (1, 1 << 63 | 1, -1), (2, 1 << 63 | 2, -2)]


def test_structs(hal: LoadedLibrary) -> None:
    def turn(reading: Any) -> dict[str, object]:  # noqa: ANN401 - a struct
        assert reading.state == hal.types.state.IDLE
        return {"x": -reading.y, "y": reading.x, "state": "BUSY"}

    def adjust(reading: Any) -> None:  # noqa: ANN401
        reading.x += 1

    of(hal, "hal_turn").answer = turn
    of(hal, "hal_adjust").answer = adjust
    assert hal["turned"](3, 4) == (-4 + 1) * 1000 + 30 + 5


def test_pointers(hal: LoadedLibrary) -> None:
    def read(data: Any, n: int) -> int:  # noqa: ANN401
        assert data[:n].tolist() == [0] * n
        data[0] = 7
        data[1:n] = range(1, n)
        assert (data[0], data[n - 1]) == (7, n - 1)
        return n

    texts: list[str] = []
    of(hal, "hal_read").answer = read
    of(hal, "hal_log").answer = lambda text: texts.append(text.text())
    data = np.zeros(60, np.uint8)
    assert hal["receive"](data, 50) == 50
    assert data.tolist() == [7, *range(1, 50), *[0] * 10]
    hal["noted"]("überall, " * 9)
    assert texts == ["überall, " * 9]
    with pytest.raises(ValueError, match="hal_read has returned"):
        _ = of(hal, "hal_read").calls[0][0][0]  # type: ignore[index]


def test_mocks_and_arrays(load: Load) -> None:
    write, log = Mock(side_effect=[3, -1]), Mock()
    hal = load(
        HAL,
        fakes={
            "hal_write": fake(write, "fd, data[n], n"),
            "hal_read": fake(lambda data, n: data.__setitem__(slice(None), 9) or 2, "data[n], n"),
            "hal_log": fake(log, "text[]"),
            "*": "zero",
        },
    )
    assert [hal["send"](4), hal["send"](0)] == [3, -1]
    with pytest.raises(AssertionError, match="hal_write is called again, call 3: its results have ended"):
        hal["send"](1)
    assert write.call_args_list.pop() == call(7, b"\0", 1)
    write.assert_has_calls([call(7, b"\0\1\4\x09", 4), call(7, b"", 0)])
    data = np.zeros(4, np.uint8)
    assert hal["receive"](data, 3) == 2
    assert data.tolist() == [9, 9, 0, 0]
    hal["noted"]("ready")
    log.assert_called_once_with("ready")
    assert hal["elapsed"](0) == 0
    hal.fakes.hal_write.reset()
    assert hal.fakes.hal_write.calls == []


def test_an_exception_is_the_caller_s(hal: LoadedLibrary) -> None:
    """The exception ends the C function, even a loop that polls."""

    def fails() -> bool:
        if len(of(hal, "hal_is_ready").calls) == 3:
            raise LookupError("no such pin")
        return False

    of(hal, "hal_is_ready").answer = fails
    with pytest.raises(LookupError, match="no such pin") as caught:
        hal["polled"](1000)
    assert [entry.name for entry in caught.traceback] == ["test_an_exception_is_the_caller_s", "fails"]
    assert len(of(hal, "hal_is_ready").calls) == 3
    of(hal, "hal_is_ready").answer = lambda: True
    assert hal["polled"](1000) == 0


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (lambda: 1 << 32, "the result of hal_millis: expected unsigned int|uint32_t, 0 to 4294967295"),
        (lambda: None, "the result of hal_millis: expected uint32_t"),
        (Mock(), "the result of hal_millis: expected uint32_t, got a Mock"),
    ],
)
def test_results_that_do_not_fit(hal: LoadedLibrary, given: Callable[[], object], text: str) -> None:
    of(hal, "hal_millis").answer = given
    with pytest.raises((TypeError, ValueError), match=text):
        hal["elapsed"](0)
    of(hal, "hal_millis").answer = lambda: 1
    assert hal["elapsed"](0) == 1


def test_the_device_waits_meanwhile(hal: LoadedLibrary, device: Device) -> None:
    """While the device waits, it refuses other requests; memory can be read and written."""
    of(hal, "hal_millis").answer = lambda: device.system_lib()["inc"](1)
    with pytest.raises(ConfigurationError, match="hal_millis runs in Python, and the device waits"):
        hal["elapsed"](0)
    of(hal, "hal_millis").answer = lambda: device.info().timer_hz
    with pytest.raises(ConfigurationError, match="can't serve another request"):
        hal["elapsed"](0)
    of(hal, "hal_millis").answer = lambda: 5
    with pytest.raises(ConfigurationError, match="elapsed is not timed: it calls hal_millis"):
        hal.measure("elapsed")(0)
    assert hal["elapsed"](0) == 5


PACKED = """
typedef union { void *p; long long i; } value;

int through(value *args, int *codes, int count, value *result, int *code, void *resource)
{
	const struct { void *data; int device[2]; int ndim; } *tensor = args[0].p;
	unsigned (*asked)(void) = args[1].p;
	int before = tensor->ndim + *(unsigned char *)tensor->data;
	unsigned told = asked();

	(void)codes, (void)count, (void)resource;
	result->i = told + before - tensor->ndim - *(unsigned char *)tensor->data;
	*code = 0;
	return 0;
}
"""


def test_an_answer_leaves_a_packed_function_s_tensors(
    hal: LoadedLibrary, device: Device, tmp_path: Path
) -> None:
    """An answer arrives behind the decoded arguments of the call, not over them."""
    (tmp_path / "packed.c").write_text(PACKED)
    library = device.load_tvm(tmp_path / "packed.c")
    of(hal, "hal_millis").answer = lambda: 42
    asked = hal.symbols.addresses["hal_millis"]
    assert library.packed("through")(device.array([[9]], np.uint8), asked) == 42


CRITICAL = """
#if defined(__arm__)
#define OFF() __asm__ volatile("cpsid i" ::: "memory")
#define ON() __asm__ volatile("cpsie i" ::: "memory")
#define MASKED() ({ int mask; __asm__ volatile("mrs %0, primask" : "=r"(mask)); mask & 1; })
#elif defined(__riscv)
#define OFF() __asm__ volatile("csrci mstatus, 8" ::: "memory")
#define ON() __asm__ volatile("csrsi mstatus, 8" ::: "memory")
#define MASKED() ({ long mask; __asm__ volatile("csrr %0, mstatus" : "=r"(mask)); (int)(mask & 8); })
#else
#define OFF()
#define ON()
#define MASKED() 0
#endif
int hal_sum(const int *x, int n);
int critical(const int *x, int n)
{
    OFF();
    int before = MASKED();
    int sum = hal_sum(x, n);
    int behind = MASKED();
    ON();
    return before == behind ? sum : -1;
}
"""


def test_a_function_that_masked_interrupts_is_answered(load: Load, tmp_path: Path) -> None:
    (tmp_path / "critical.c").write_text(CRITICAL)
    library = load(tmp_path / "critical.c", fakes={"hal_sum": lambda x, n: int(x[:n].sum())})
    x = np.arange(200, dtype=np.int32)
    assert [library["critical"](x, n) for n in (200, 3)] == [19900, 3]


def test_callbacks(load: Load) -> None:
    """Python functions as arguments for pointers to functions; their exceptions reach the caller."""
    kinds = load(HAL.with_name("kinds.c"))
    values = np.array([3, -1, 2], np.int32)
    size = 3

    def order(a: Any, b: Any) -> int:  # noqa: ANN401 - pointers
        left, right = (int.from_bytes(bytes(item[:4]), "little", signed=True) for item in (a, b))
        return right - left

    for _ in range(2):
        kinds["sort"](values, size, order)
        assert values.tolist() == [3, 2, -1]
    with pytest.raises(ZeroDivisionError):
        kinds["sort"](values, size, lambda a, b: 1 // 0)
    kinds["sort"](values, size, kinds["ascending"])
    assert values.tolist() == [-1, 2, 3]


def test_callbacks_in_a_struct(load: Load) -> None:
    """A driver's table of functions, as C libraries take it."""
    kinds = load(HAL.with_name("kinds.c"))
    seen = []

    def transfer(driver: Any, value: int) -> int:  # noqa: ANN401 - a struct
        seen.append(driver.port)
        return 2 * value

    driver = kinds.types.driver(port=7, transfer=transfer)
    assert [kinds["exchanged"](driver, value) for value in (4, -5)] == [8, -10]
    assert seen == [7, 7]
    driver.reset = lambda _: 1
    assert kinds["exchanged"](driver, 4) == -1


def test_a_new_session_ends_the_function(hal: LoadedLibrary, device: Device) -> None:
    """If the host is killed while the device waits, the device serves the next host."""

    def taken_over() -> bool:
        device.rpc.link.start(60.0)
        return False

    of(hal, "hal_is_ready").answer = taken_over
    with pytest.raises(DialectError, match="hal_is_ready: the session in which it was called has ended"):
        hal["polled"](1000)
    assert len(of(hal, "hal_is_ready").calls) == 1
    device.rpc.restart()
    assert device.system_lib()["inc"](1) == 2


@pytest.mark.once
def test_over_a_link_that_loses_bytes(load: Load, lossy: MakeLossy) -> None:
    """Each call in C calls its fake exactly once, in order, and the fake's writes arrive."""
    device, transport = lossy(Faults.spread(0.002), 5, resend=True, timeout_s=60.0)
    with device:
        hal = device.load(
            HAL,
            fakes={
                "hal_port": lambda port, *_: port,
                "hal_read": lambda data, n: data.__setitem__(0, n) or n,
                "*": "zero",
            },
        )
        assert hal.summed(150) == sum(range(150))
        assert [arguments[0] for arguments in minrpc.fakes(hal).hal_port.calls] == list(range(150))
        data = np.zeros(8, np.uint8)
        assert [hal.receive(data, n) for n in range(1, 9)] == list(range(1, 9))
        assert data[0] == 8
    assert any(transport.counts.values())


@pytest.mark.parametrize("flags", ["-O3", *(pytest.param(f, marks=pytest.mark.slow) for f in ("-O0", "-Os"))])
def test_replaced(load: Load, flags: str) -> None:
    """Calls from the same file, and through the function's address, are redirected, too."""
    crc = Mock(side_effect=range(10, 20))
    replace = {"crc_hw": fake(crc, "data[n], n"), "range": lambda value: 2 * value}
    lib = load(SENSOR, FRAME, flags=flags, replace=replace)
    assert lib["sealed"](b"abc", 3) == 10 + 11
    assert lib["framed"](b"d", 1) == 12 + 1 + 4
    assert lib["checked"](b"", 0) == 13
    assert lib["crc_hw"](b"ef", 2) == 14
    crc.assert_has_calls([call(b"abc", 3), call(b"abc", 3), call(b"d", 1), call(b"", 0), call(b"ef", 2)])
    assert [lib["limited"](50), lib["limited"](-50)] == [20, -20]
    assert len(of(lib, "range").calls) == 4
    assert load(SENSOR, FRAME, flags=flags)["sealed"](b"a", 1) == 2 * ord("a")


@pytest.mark.once
def test_what_can_not_be_replaced(load: Load, tmp_path: Path) -> None:
    assembler = tmp_path / "crc.S"
    assembler.write_text(".globl crc_asm\n.type crc_asm, %function\ncrc_asm:\n\t.long 0\n")
    for files, name, text in (
        ([SENSOR], "clamp", "clamp is static in sensor.c"),
        ([FRAME], "crc_hw", "frame.c calls crc_hw and does not define it.*fakes="),
        ([SENSOR], "crc_sw", "sensor.c defines no function crc_sw.*crc_hw"),
        ([SENSOR], "crc_hw; x", "sensor.c defines no function crc_hw; x"),
        ([SENSOR, assembler], "crc_asm", "crc_asm was not compiled here from C"),
    ):
        with pytest.raises(ConfigurationError, match=f"(?s){text}"):
            load(*files, replace={name: "zero"}, declare="int crc_asm(void)")
    with pytest.raises(ConfigurationError, match=r"(?s)crc_hw is defined in sensor.c.*replace="):
        load(SENSOR, fakes={"crc_hw": "zero"})


@pytest.mark.parametrize("flags", ["-O3", pytest.param("-O0", marks=pytest.mark.slow)])
def test_inline_functions_of_a_header(load: Load, flags: str) -> None:
    """Another header that it includes has none; the compiler always takes one of them into its callers."""
    lib = load(INLINE, flags=flags, fakes={"board_ticks": lambda: 40})
    bank = lib.types.bank()
    lib["bank_set"](bank, 6)
    assert (bank.mode, lib["bank_is_set"](bank, 2), lib["bank_is_set"](bank, 1)) == (6, True, False)
    assert (lib["bank_turned"]((1, 2)), lib["later"](2)) == (lib.types.bank(2, 1), 42)
    assert "middle" not in lib.functions
    both = load(INLINE, SENSOR, fakes="zero", headers=[INLINE])
    assert both["bank_turned"]((1, 2)).mode == 2
    with pytest.raises(KeyError, match="it is static"):
        _ = both["clamp"]


@pytest.mark.parametrize("flags", ["-O3", "-O0"])
def test_inline_functions_without_static(load: Load, flags: str, tmp_path: Path) -> None:
    """C99 leaves their code to one source; where there is none, the header's is taken."""
    header, source = tmp_path / "scale.h", tmp_path / "scale.c"
    header.write_text("inline int twice(int x) { return 2 * x; }\n")
    source.write_text(
        '#include "scale.h"\nextern int twice(int);\nint four(int x) { return twice(twice(x)); }\n'
    )
    assert load(header, flags=flags)["twice"](4) == 8
    both = load(source, header, flags=flags)
    assert (both["twice"](4), both["four"](1)) == (8, 4)
    with pytest.raises(
        ConfigurationError, match=r"twice is inline in scale\.c: callers have a copy"
    ) as caught:
        load(source, flags=flags, replace={"twice": lambda x: 7})
    assert '["inline="]' in caught.value.next_step
    replaced = load(source, header, flags=flags, replace={"twice": lambda x: 7}, defines=["inline="])
    assert (replaced["four"](1), replaced["twice"](1)) == (7, 7)


@pytest.mark.parametrize("flags", ["-O3", *(pytest.param(f, marks=pytest.mark.slow) for f in ("-O0", "-Os"))])
def test_static_functions(load: Load, flags: str) -> None:
    lib = load(SENSOR, FRAME, flags=flags, statics=True)
    assert [lib["unused"]((3, 9)), lib["twice"](-4), lib["limited"](99), lib["doubled"](3)] == [6, -8, 10, 6]
    assert [lib["sensor.c:clamp"](5, 1, 3), lib["frame.c:clamp"](-5)] == [3, 0]
    assert lib["unused"].size > 0 < lib["frame.c:clamp"].size
    with pytest.raises(KeyError, match=r"lib\[\"sensor.c:clamp\"\], or frame.c:clamp"):
        _ = lib["clamp"]
    with pytest.raises(KeyError, match=r"'middle' .* statics=True .* loading a header"):
        _ = lib["middle"]
    with pytest.raises(KeyError, match=r"'clamp' .* it is static: statics=True"):
        _ = load(SENSOR, flags=flags)["clamp"]


@pytest.mark.once
def test_what_can_not_be_a_fake(load: Load) -> None:
    with pytest.raises(UndefinedSymbolsError, match="hal_millis") as missing:
        load(HAL)
    assert "uint32_t hal_millis(void)" in str(missing.value)
    assert 'fakes={"' in str(missing.value)
    for fakes, error, text in (
        ({"hal_milis": lambda: 1}, ConfigurationError, "calls no hal_milis"),
        ({"elapsed": lambda: 1}, ConfigurationError, "elapsed is defined in hal.c"),
        ({"hal_millis": 42}, TypeError, 'the fake of hal_millis is a function or "zero"'),
        ({"hal_write": fake(print, "fd, data")}, ConfigurationError, "does not describe the 3 parameters"),
        ({"hal_write": fake(print, "fd, data[m], n")}, ConfigurationError, "m is neither a number nor"),
    ):
        with pytest.raises(error, match=text):
            load(HAL, fakes={**fakes, "*": "zero"})
    with pytest.raises(TypeError, match=r'fakes= takes \{"name": function\} or "zero", not a list'):
        load(HAL, fakes=["hal_write"])


@pytest.mark.parametrize("files", [(OLD, CONTEXT), (CONTEXT, OLD)])
def test_a_type_that_another_file_defines(load: Load, files: tuple[Path, Path]) -> None:
    """One file only declares the struct; both orders of the files; `void f(void)` answered by "zero"."""
    lib = load(*files, fakes="zero")
    context = lib.types.context(7)
    assert [lib["used"](context), lib["began"](), lib["logged"](1, 2.0), lib["summed"]()] == [8, 5, 0, 0]
    context.next = lib.types.context(8)
    assert lib["used"](context.next) == 9
    of(lib, "hal_open").answer = lambda given: given.value
    assert lib["opened"](context) == 7


def test_further_arguments(load: Load) -> None:
    """A fake gets the arguments that a format reads; without a format, the named ones if it says so."""
    log, total = Mock(return_value=4), Mock(return_value=6)
    table = {
        "hal_log": fake(log, "level, format[]"),
        "hal_sum": fake(total, "count"),
        "hal_init": lambda: None,
        "context_value": lambda context: 1,
        "nowhere": lambda: 1,
    }
    lib = load(OLD, fakes={**table, "*": "zero"})
    assert [lib["logged"](-7, 2.5), lib["summed"](), lib["began"]()] == [4, 6, 5]
    form = "%d%% %s %5.2f %c %llu %ld %hhu %.*s %p\n"
    log.assert_called_once_with(3, form, -7, "text", 2.5, ord("x"), 1 << 40, -3, 255, 2, "ab", None)
    total.assert_called_once_with(3)
    with pytest.raises(ValueError, match=r"the conversion at '%y' is none of printf's"):
        lib["broken"]()
    assert lib["summed"]() == 6
    with pytest.raises(TypeError, match=r"hal_sum\(int, \.\.\.\): only C knows the types"):
        load(OLD, fakes={**table, "hal_sum": lambda *_: 1, "*": "zero"})
    of(lib, "hal_open").answer = lambda context: context[0]
    with pytest.raises(TypeError, match="points to a type of unknown size"):
        lib["opened"](minrpc.Address(64))


FILLED = """
void fill(unsigned char *data, int n);
int *where(void);
void filled(int n) { unsigned char data[4]; fill(data, n); }
int there(void) { return *where(); }
"""


def test_memory_that_is_not_there(load: Load, tmp_path: Path, minrpc_shared: SharedDevice) -> None:
    """The error for a length or an index out of range names the Python function, and is not a fault of the
    device."""
    (tmp_path / "filled.c").write_text(FILLED)
    lib = load(
        tmp_path / "filled.c",
        fakes={
            "fill": fake(lambda data, n: data[0], "data[n], n"),
            "where": lambda: minrpc.Address(1 << 64),
        },
    )
    with pytest.raises(ValueError, match="fill: C gave -1 as the length of an array"):
        lib["filled"](-1)
    with pytest.raises(ValueError, match=r"the result of where: .* an address of the device has"):
        lib["there"]()
    lib = load(tmp_path / "filled.c", fakes={"fill": lambda data, n: data[n], "where": "zero"})
    of(lib, "fill").answer = lambda data, _: data[-(1 << 63)]
    with pytest.raises(ValueError, match=r"fill: 1 bytes at -0x.*: an address of the device has"):
        lib["filled"](4)
    of(lib, "fill").answer = lambda data, n: data[n]
    with pytest.raises((HarnessError, ValueError)) as caught:
        lib["filled"](3 << 29)
    # A process of 32 bits has its stacks near the end of its addresses.
    told = r"1 bytes at 0x[0-9a-f]+( were being read for fill|: an address of the device has 32 bits)"
    assert re.search(told, str(caught.value))
    minrpc_shared.discard()


def test_a_function_that_asks_without_end_runs_out_of_time(load: Load, tmp_path: Path) -> None:
    """Each answer comes in time, and while Python answers the device is in its own code."""
    source = tmp_path / "ticks.c"
    source.write_text(
        "int tick(void);\nint waits(int until)\n{\n\twhile (tick() < until) {\n\t}\n\treturn 1;\n}\n"
    )
    lib = load(source, fakes={"tick": lambda: 0})
    with pytest.raises(DeadlineError, match=r"within 0\.3 s") as caught:
        lib["waits"].with_timeout(0.3)(5)
    assert caught.value.details[0] == "it asked Python for tick, in waits at ticks.c:4"
    assert not re.search("link_wait|minrpc_asked|idle", str(caught.value))
    assert load(source, fakes={"tick": lambda: 7})["waits"](5) == 1


@pytest.mark.parametrize("optimized", ["-O0", "-O2"])
def test_handlers_of_undefined_behaviour(
    load: Load, tmp_path: Path, running_device: RunningDevice, optimized: str
) -> None:
    """GCC calls these functions by itself, and names them otherwise in its debug information."""
    if running_device.platform.port == "zephyr":
        pytest.skip("Zephyr's C library may have them")
    source = tmp_path / "add.c"
    source.write_text("int add(int a, int b)\n{\n\treturn a + b;\n}\n")
    flags, most = [optimized, "-fsanitize=undefined"], 2**31 - 1
    try:
        load(source, flags=flags)
    except UndefinedSymbolsError as error:
        told = str(error)
    else:
        pytest.skip("its C library has them, as picolibc 1.8.12")
    assert "needs __ubsan_handle_add_overflow" in told
    assert "__builtin" not in told
    for fakes in ("zero", {"*": "zero"}, {"__ubsan_handle_add_overflow": "zero"}):
        assert load(source, flags=flags, fakes=fakes)["add"](most, 1) == -most - 1
    noted = Mock(return_value=None)
    assert load(source, flags=flags, fakes={"__ubsan_handle_add_overflow": noted})["add"](most, 0) == most
    noted.assert_not_called()


@pytest.mark.parametrize("way", ["fake", "callback"])
def test_flags_that_choose_registers(
    way: str, load: Load, tmp_path: Path, running_device: RunningDevice
) -> None:
    """Functions in Python are called as the flags of their callers have it."""
    flag = {"posix": "-mavx", "bare_mps2_an386": "-mfloat-abi=soft"}.get(running_device.name)
    if flag is None or (flag == "-mavx" and " avx " not in Path("/proc/cpuinfo").read_text()):
        pytest.skip("its machine has one way to pass numbers")
    (tmp_path / "wide.c").write_text(
        "typedef float wide __attribute__((vector_size(32)));\n"
        "float summed(wide v, float x);\n"
        "float fake(float x) { return summed((wide){1, x}, 2); }\n"
        "float callback(float x, float (*f)(wide v, float x)) { return f((wide){1, x}, 2); }\n"
    )

    def summed(v: Any, x: float) -> float:  # noqa: ANN401 - a vector
        return float(v[0] + 10 * v[1] + 100 * x)

    wide = load(tmp_path / "wide.c", fakes={"summed": summed}, flags=[flag, "-w"])
    assert wide[way](3, *([summed] if way == "callback" else [])) == 231
