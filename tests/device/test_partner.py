# SPDX-License-Identifier: Apache-2.0
"""A fake as a full partner: while C waits for Python, Python reaches memory and calls functions of C."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock, call

import numpy as np
import pytest
from minrpc import ConfigurationError, Device, DialectError, GuardError, LoadedLibrary
from minrpc.plugin.shared import SharedDevice

pytestmark = pytest.mark.once

Load = Callable[..., LoadedLibrary]
PARTNER = Path(__file__).with_name("c") / "partner.c"


@pytest.fixture
def lib(load: Load) -> LoadedLibrary:
    lib = load(PARTNER, fakes="zero")
    lib.variables.interrupts = 0  # Linked in, it is as other tests left it.
    return lib


def test_memory_is_reached(lib: LoadedLibrary, device: Device) -> None:
    """Variables, addresses and arrays of the device: read, written, and seen by C."""
    array = device.array(np.arange(4, dtype=np.uint8))

    def wait(n: int) -> int:
        lib.variables.numbers = [n] * 4
        array.copy_from(array.numpy() + np.uint8(1))
        lib.write(lib.variables["numbers"].address, b"\7")
        return int(lib.variables.numbers[0] + lib.variables.numbers[3] + array.numpy().sum())

    lib.fakes.hal_wait.answer = wait
    assert lib["waited"](5) == (7 + 5 + 10) * 100
    assert (lib.variables.numbers.tolist(), array.numpy().tolist()) == ([7, 5, 5, 5], [1, 2, 3, 4])


def test_functions_are_called(lib: LoadedLibrary) -> None:
    """Numbers, floats, arrays that come back, pointers."""

    def wait(n: int) -> int:
        lib["isr"]()
        data = np.zeros(5, np.uint8)
        lib["count_up"](data, 5)
        assert (data.tolist(), lib["half"](3.0), lib.read(lib["kept"](), 2)) == (
            [1, 2, 3, 4, 5],
            1.5,
            b"\x09\x08",
        )
        return n + (lib["waited"](n - 1) if n else 0)

    lib.fakes.hal_wait.answer = wait
    assert lib["waited"](0) == 1
    assert lib["waited"](2) == (2 + (1 + 4) * 100 + 4) * 100 + 4


def test_functions_are_called_to_a_depth_of_eight(lib: LoadedLibrary, device: Device) -> None:
    """With the chain in the error; the next call works."""
    if device.info().stack_size < 6000:
        pytest.skip("its stack has no room for eight functions that wait")
    lib.fakes.hal_wait.answer = lambda n: n + (lib["waited"](n - 1) if n else 0)
    with pytest.raises(
        ConfigurationError, match=r"waited would be too deep: hal_wait -> hal_wait -> .* wait for Python"
    ):
        lib["waited"](8)
    lib.fakes.hal_wait.answer = lambda n: n
    assert lib["waited"](7) == 700


def test_a_struct_that_c_passed_is_that_struct_for_c_too(lib: LoadedLibrary) -> None:
    """Not a copy: by its pointer, with changes of either side, as a result, and in a pointer."""

    def pick(message: Any) -> Any:  # noqa: ANN401 - a struct
        second = message.next[0]
        assert [lib["is_first"](item) for item in (message, second, message.next)] == [1, 0, 0]
        message.length = 5
        for item in (message, second, message.next):
            lib["longer"](item)
        assert (message.length, second.length, message.next.length) == (15, 12, 22)
        second.next = message
        assert lib["is_first"](message.next.next) == 1
        given.append(message)
        return message

    given: list[Any] = []
    lib.fakes.hal_pick.answer = pick
    assert lib["picked"]() == 10000 + 1500 + 22
    assert lib["is_first"](given[0]) == 0  # Its memory is gone: C gets a copy.
    lib.fakes.hal_pick.answer = lambda message: message.next[0]
    assert lib["picked"]() == 400 + 2


def test_pointers_in_a_struct(lib: LoadedLibrary) -> None:
    """They are followed, assigned and called."""

    def transfer(message: Any) -> int:  # noqa: ANN401 - a struct
        assert message.data[: message.length].tolist() == [1, 2, 3, 4]
        assert (message.next[0].length, message.next[0].next) == (2, None)
        message.next.data = message.data
        assert (message.next.length, message.next[0].data) == (2, message.data)
        message.data = lib["kept"]()
        return int(message.done(30, message.next[0].data))

    lib.fakes.hal_transfer.answer = transfer
    assert lib["transferred"]() == 31 * 10000 + 9 * 100 + 1


def test_functions_in_python_are_stored(lib: LoadedLibrary) -> None:
    """A fake assigns them to pointers in structs: one again, and as many as have room without loaded code."""

    class Driver:
        def done(self, result: int, data: Any) -> int:  # noqa: ANN401 - a pointer
            return 1000 * result + int(data[0])

    driver, mock = Driver(), Mock(return_value=7)

    def transfer(message: Any) -> int:  # noqa: ANN401 - a struct
        message.next.done = mock
        with pytest.raises(AttributeError, match="has no member 'lenght'"):
            message.next.lenght = 1
        message.done = message.next[0].done if len(lib.fakes.hal_transfer.calls) == 6 else driver.done
        return 5

    lib.fakes.hal_transfer.answer = transfer
    assert [lib["transferred"]() for _ in range(6)] == [5001] * 5 + [7]
    mock.assert_called_once()
    lib.fakes.hal_transfer.answer = lambda message: setattr(message, "done", lib["isr"])
    with pytest.raises(TypeError, match=r"hal_transfer: expected int .*, got void isr"):
        lib["transferred"]()

    def stores_many(message: Any) -> None:  # noqa: ANN401
        for factor in range(9):
            message.next[0].done = lambda result, _, factor=factor: result * factor

    lib.fakes.hal_transfer.answer = stores_many
    with pytest.raises(ConfigurationError, match=r"no further function in Python fits .* while C waits"):
        lib["transferred"]()
    lib.fakes.hal_transfer.answer = transfer
    assert lib["transferred"]() == 5001


@pytest.mark.parametrize("with_fakes", [True, False])
@pytest.mark.parametrize("as_argument", [True, False])
def test_a_function_in_python_gives_another(load: Load, with_fakes: bool, as_argument: bool) -> None:
    """By a call, or in a struct, while C waits; of a library without fakes, too."""
    source = PARTNER.with_name("connection.c")
    lib = load(PARTNER, source, fakes="zero") if with_fakes else load(source)
    given: list[int] = []

    def received(made: Any, data: Any) -> int:  # noqa: ANN401
        return int(100 * made.number + data[0])

    def accept(made: Any, visit: Any) -> None:  # noqa: ANN401
        given.append(visit(1, b"\x02"))
        if as_argument:
            lib["on_received"](made, received)
        else:
            made.received = received

    assert lib["accepted"](accept, 7) == 709
    assert lib["accepted"](accept, 8) == 809
    assert given == [3, 3]


def test_the_memory_of_functions_in_python_ends_with_their_library(device: Device) -> None:
    """The arguments that C passed keep nothing either."""
    used = device.info().arena_used
    lib = device.load(PARTNER.with_name("connection.c"))
    assert (lib.accepted(lambda made, visit: None, 7), device.info().arena_used > used) == (-1, True)
    del lib
    assert device.info().arena_used == used


def test_a_function_that_c_passes(lib: LoadedLibrary) -> None:
    """It is the library's own function: it can be called, also later, by a mock too."""
    each = Mock(side_effect=lambda visit, data: visit(40, data) + visit(1, b"\x05"))
    lib.fakes.hal_each.answer = each
    assert lib["visited"](b"\x02") == 42 + 6
    visit = each.call_args.args[0]
    assert (visit.name, visit(1, b"\x01")) == ("with_first", 2)
    order = Mock()
    lib.fakes.hal_each.answer, lib.fakes.hal_wait.answer = order.each, order.wait
    order.each.side_effect = lambda *_: lib["waited"](3)
    order.wait.return_value = 2
    assert lib["visited"](b"\x02") == 200
    assert [item[0] for item in order.mock_calls] == ["each", "wait"]
    assert order.mock_calls[1] == call.wait(3)


def test_failures_inside(lib: LoadedLibrary, load: Load, minrpc_shared: SharedDevice) -> None:
    """An exception ends the whole call, once; the next call works. A crash names its own line."""
    fakes = lib.fakes
    fakes.hal_each.answer = lambda *_: lib["waited"](1)
    fakes.hal_wait.answer = lambda _: 1 // 0
    with pytest.raises(ZeroDivisionError):
        lib["visited"](b"\x02")

    def goes_on(*_: object) -> int:
        with pytest.raises(ZeroDivisionError):
            lib["waited"](1)
        return 1

    fakes.hal_each.answer = goes_on
    with pytest.raises(
        DialectError, match="hal_each: the call has ended on the device, since hal_wait raised"
    ):
        lib["visited"](b"\x02")
    fakes.hal_each.answer = lambda *_: lib["count_up"](np.zeros(3, np.uint8), 5)
    with pytest.raises(GuardError, match=r"count_up wrote 2 bytes behind data \(uint8\[3\]\)"):
        lib["visited"](b"\x02")
    fakes.hal_each.answer = lambda *_: 5
    assert lib["visited"](b"\x02") == 5
    fakes.hal_each.answer = lambda *_: lib["crashed"]()
    with pytest.raises(Exception, match=r"in crashed, at .*partner\.c:"):
        lib["visited"](b"\x02")
    minrpc_shared.discard()
