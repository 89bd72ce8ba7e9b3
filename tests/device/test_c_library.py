# SPDX-License-Identifier: Apache-2.0
"""The C library for loaded code: text, the heap, and the end of a program."""

from __future__ import annotations

import re
from errno import ENOMEM
from pathlib import Path

import numpy as np
import pytest
from minrpc import Device, Firmware, HarnessError, LoadedLibrary, RemoteError, build, open_device
from minrpc.plugin.shared import SharedDevice

from tests.device.conftest import Load
from tests.device.test_c_deaths import lines_of


def test_text_arrives_at_the_console(load: Load, device: Device) -> None:
    assert load("c/library.c")["say"](-3) == -3
    device.console.expect_exact("-3 apples 0xff")
    device.console.expect_exact("a line")
    device.console.expect_exact("an error: -70000")


@pytest.mark.once
def test_text_comes_over_the_link_where_no_console_is(image: Firmware, tmp_path: Path) -> None:
    """On a board whose only UART carries RPC; also a line that has not ended."""
    source = tmp_path / "prompt.c"
    source.write_text('#include <stdio.h>\nvoid ask(void) { printf("more? "); }\n')
    if image.platform.port != "zephyr" or image.platform.starts != "qemu":
        pytest.skip("for Zephyr, whose console is another UART in QEMU")
    options = (*image.platform.cmake_options, "-DCONFIG_CONSOLE=n", "-DCONFIG_MINRPC_LOG_PRINTK=y")
    with open_device(build(image.target.changed(cmake_options=options))) as device:
        assert device.load(Path(__file__).parent / "c/library.c")["say"](-3) == -3
        device.console.expect_exact("-3 apples 0xff")
        device.console.expect_exact("an error: -70000")
        device.load(source)["ask"]()
        device.console.expect_exact("more? ")


def test_a_smaller_printf_where_the_c_library_has_one(load: Load) -> None:
    lib = load("c/library.c", defines=["PICOLIBC_INTEGER_PRINTF_SCANF"])
    assert lib["say"](-3) == -3


def test_floating_point_numbers_are_printed(load: Load, device: Device, tmp_path: Path) -> None:
    """The firmware's own printf may print "*float*": Zephyr's default does."""
    source = tmp_path / "numbers.c"
    source.write_text(
        '#include <stdio.h>\nvoid say(double x) { printf("%d is %.2f\\n", (int)x, x); }\n'
        'double read(const char *text) { double x = 0; sscanf(text, "%lf", &x); return x; }\n'
    )
    lib = load(source)
    lib["say"](2.75)
    device.console.expect_exact("2 is 2.75")
    assert lib["read"]("-12.5") == -12.5


def test_all_libraries_have_the_same_heap(load: Load) -> None:
    """With a malloc in each library, all would use the same memory."""
    lib, other = load("c/library.c"), load("c/library.c", defines=["OTHER"])
    kept = [lib["keep"]("mine"), other["keep"]("yours"), lib["keep"]("a longer text of mine")]
    other.unload()
    assert [lib["drop"](text) for text in kept] == [4, 5, 21]
    assert lib["too_large"]() == ENOMEM


def test_the_heap_keeps_what_is_in_it(load: Load) -> None:
    lib = load("c/library.c")
    assert lib["churn"](1500, 300) == 1500
    assert lib["churn"](200, 5000) == 200


def test_numbers_words_and_jumps(load: Load) -> None:
    """Loaded code uses the firmware's errno, so that functions of the firmware set it for loaded code,
    too."""
    for lib in (load("c/library.c"), load("c/library.c", defines=["OTHER"])):
        numbers = np.zeros(4, np.int32)
        assert lib["sum_of_words"](bytearray(b"30 99999999999999999999 -7 12\0"), numbers, 4) == 3
        assert numbers.tolist()[:3] == [-7, 12, 30]


def test_functions_for_the_end_of_loaded_code_are_refused(load: Load, tmp_path: Path) -> None:
    source = tmp_path / "end.c"
    source.write_text(
        "#include <stdlib.h>\nstatic void bye(void) {}\n"
        "int last(void) { return atexit(bye); }\nint first(void) { return 1; }\n"
    )
    lib = load(source)
    assert lib["first"]() == 1
    with pytest.raises(TypeError, match=r"last can't be called: it needs atexit, .* the device restarts"):
        lib["last"]()


def test_time_passes(load: Load) -> None:
    lib = load("c/library.c")
    first = lib["ticks"]()
    lib["churn"](500, 100)
    assert lib["ticks"]() >= first >= 0


def keeps_freed_memory(shared: SharedDevice) -> bool:
    return shared.target.platform.port in ("baremetal", "posix")


def test_a_write_past_a_block_of_the_heap_fails_the_call(load: Load, minrpc_shared: SharedDevice) -> None:
    if minrpc_shared.name == "native_sim":
        pytest.skip("its heap is the host's")
    lib = load("c/library.c")
    kept = lib["keep"]("123")
    with pytest.raises(RemoteError, match=f"write_at wrote beside the memory of malloc at 0x{int(kept):x}"):
        lib["write_at"](kept, 4)
    assert lib["drop"](kept) == 3


def test_a_write_to_freed_memory_fails_the_call(load: Load, minrpc_shared: SharedDevice) -> None:
    if not keeps_freed_memory(minrpc_shared):
        pytest.skip("Zephyr gives freed memory again at once")
    lib = load("c/library.c")
    kept = [lib["keep"](text) for text in ("first", "second", "third")]
    for text in kept:  # The second is merged with the first, and the third was the heap's last.
        lib["drop"](text)
        with pytest.raises(RemoteError, match="write_at wrote to memory that was freed, at 0x"):
            lib["write_at"](text, 1)
    assert lib["churn"](100, 300) == 100


@pytest.fixture
def ending(load: Load, minrpc_shared: SharedDevice) -> LoadedLibrary:
    """Loads the library into a device that is not used again."""
    if minrpc_shared.target.serial_port is not None:
        pytest.skip("a board that hangs has to be reset by hand")
    return load("c/library.c")


@pytest.mark.parametrize(
    ("name", "arguments", "words", "line"),
    [
        ("positive", (-1,), "assertion failed: n > 0", "assert(n > 0);"),
        ("leave", (3,), "exit(3)", "exit(status);"),
        ("give_up", (), "abort", "abort();"),
    ],
)
def test_the_end_of_a_program_fails_the_call(
    name: str,
    arguments: tuple[int],
    words: str,
    line: str,
    ending: LoadedLibrary,
    minrpc_shared: SharedDevice,
) -> None:
    with pytest.raises(HarnessError) as caught:
        ending[name](*arguments)
    assert caught.value.message.startswith(words)
    place = rf"{name}, at \S*library\.c:{lines_of('library.c', line)}"
    assert re.search(place, "\n".join((caught.value.message, *caught.value.details)))
    minrpc_shared.discard()


@pytest.mark.slow
def test_freed_memory_that_was_written_is_not_given_again(
    ending: LoadedLibrary, minrpc_shared: SharedDevice
) -> None:
    if not keeps_freed_memory(minrpc_shared):
        pytest.skip("Zephyr gives freed memory again at once")
    told = r"was written after it was freed, in reuse, at \S*library.c|reuse wrote to memory that was freed"
    with pytest.raises(HarnessError, match=told):
        ending["reuse"]()
    minrpc_shared.discard()


@pytest.mark.slow
def test_a_second_free_is_named(ending: LoadedLibrary, minrpc_shared: SharedDevice) -> None:
    if minrpc_shared.name == "native_sim":
        pytest.skip("its heap is the host's")
    text = ending["keep"]("twice")
    ending["keep"]("behind")
    ending["drop"](text)
    with pytest.raises(HarnessError, match=r"(was freed before|double free).*, in drop|double free"):
        ending["drop"](text)
    minrpc_shared.discard()
