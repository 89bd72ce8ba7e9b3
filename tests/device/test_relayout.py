# SPDX-License-Identifier: Apache-2.0
"""Changing the places of arrays and code while the device runs; a layout that needs a restart keeps the
`Device`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from minrpc import (
    BuildError,
    ConfigurationError,
    Device,
    DeviceMemoryError,
    Firmware,
    RunningDevice,
    library_of,
    start,
)
from minrpc.client.layout import LAYOUT, home

pytestmark = pytest.mark.once


@pytest.fixture
def laid_out(device: Device) -> Device:
    """The device, if its layout can change and its memory can be divided."""
    if not device.rpc.global_function(LAYOUT) or device.info().arena_size < 64 * 1024:
        pytest.skip(f"{device.name}: its layout can't change, or it has no memory to speak of")
    return device


@pytest.fixture
def restartable(laid_out: Device, firmware: Firmware | None) -> Device:
    if firmware is None or getattr(laid_out.owner, "process", None) is None:
        pytest.skip(f"{laid_out.name}: it was not started from here")
    if any("{path}" in argument for argument in firmware.platform.arguments):
        pytest.skip(f"{laid_out.name} opens its link by path: it can't be started with a socket instead")
    return laid_out


def still_adds(device: Device) -> None:
    c = device.empty((3,), "float32")
    device.system_lib()["add"](device.array(np.ones(3, "float32")), device.array(np.ones(3, "float32")), c)
    assert c.numpy().tolist() == [2, 2, 2]


def test_a_smaller_arena_keeps_arrays_and_functions(laid_out: Device) -> None:
    own = laid_out.info()
    kept = laid_out.array(np.arange(100, dtype=np.int16))
    inc = laid_out.system_lib()["inc"]
    layout = laid_out.relayout(arena=16384)
    assert (layout.how, layout.restarted, layout.arena.size) == ("session", False, 16384)
    assert layout.arena.base == home(own, "").base
    assert kept.numpy().tolist() == list(range(100))
    assert inc(1) == 2
    with pytest.raises(DeviceMemoryError, match="of 16384"):
        laid_out.empty((16384,), "uint8")
    assert laid_out.relayout().arena.size == own.arena_size
    assert kept.numpy().tolist() == list(range(100))
    still_adds(laid_out)


def test_code_of_its_own_and_what_was_loaded_before(laid_out: Device, load: Callable[..., object]) -> None:
    del load  # The fixture skips devices that can't load code.
    with laid_out.load(["tests/device/c/twice.c"]) as before:
        layout = laid_out.relayout(code=32768)
        assert layout.how == "session"
        assert layout.code is not None
        assert layout.code.size == 32768
        with laid_out.load(["tests/device/c/twice.c"]) as lib:
            assert 0 <= library_of(lib).image.base - layout.code.base < layout.code.size
            assert lib.twice(21) == 42
        assert before.twice(4) == 8
    still_adds(laid_out)


def test_arrays_in_the_way_end_the_session_and_say_so(
    laid_out: Device, caplog: pytest.LogCaptureFixture
) -> None:
    large = laid_out.array(np.zeros(40_000, np.uint8))
    inc = laid_out.system_lib()["inc"]
    with caplog.at_level(logging.INFO, "minrpc.layout"):
        layout = laid_out.relayout(arena=16384)
    assert (layout.how, layout.arena.size) == ("new session", 16384)
    assert "live arrays" in layout.why
    assert "arrays, functions and libraries are gone" in caplog.text
    for use in (large.numpy, lambda: inc(1)):
        with pytest.raises(ValueError, match="belonged to a session that has ended"):
            use()
    still_adds(laid_out)
    laid_out.rpc.restart()  # A layout applies to each session of this client,
    assert laid_out.info().arena_size == 16384


def test_the_next_client_has_the_firmwares_own(laid_out: Device) -> None:
    """The test runs on the same device, after tests that changed the layout."""
    info = laid_out.info()
    assert info.arena_size == home(info, "").size


def test_another_memory(laid_out: Device) -> None:
    several = [
        region for region in laid_out.info().regions if region.kind == "memory" and region.size >= 65536
    ]
    if len(several) < 2:
        pytest.skip(f"{laid_out.name}: one memory for arrays is all that it has")
    layout = laid_out.relayout(arena=(several[1].base + 1024, 32768))
    assert several[1].base <= layout.arena.base < several[1].base + 2048
    array = laid_out.array(np.arange(1000, dtype=np.int32))
    assert layout.arena.base <= array.address < layout.arena.base + layout.arena.size
    np.testing.assert_array_equal(array.numpy(), np.arange(1000))
    still_adds(laid_out)
    whole = laid_out.relayout(arena=several[1], code=0).arena
    assert 0 <= whole.base - several[1].base < 16, "arrays begin at the first granule"


def test_the_heap_keeps_its_place(laid_out: Device, load: Callable[..., object]) -> None:
    """Without an operating system the heap has part of the second memory."""
    del load  # The fixture skips devices that can't load code.
    kept = laid_out.load(["tests/device/c/library.c"]).keep("mine")
    several = [region for region in laid_out.info().regions if region.kind == "memory"]
    if len(several) < 2:
        pytest.skip(f"{laid_out.name}: one memory for arrays is all that it has")
    laid_out.relayout(arena=several[1], code=0)
    lib = laid_out.load(["tests/device/c/library.c"])
    assert lib.churn(300, 3000) == 300
    assert lib.drop(kept) == 4


def test_what_is_no_memory_is_refused_and_all_is_as_before(laid_out: Device) -> None:
    array = laid_out.array([1, 2, 3])
    own = laid_out.info().regions
    with pytest.raises(ConfigurationError, match="no memory for arrays") as caught:
        laid_out.relayout(arena=(0x10, 4096))
    assert "for arrays: 0x" in str(caught.value)
    with pytest.raises(ConfigurationError, match="no memory for code"):
        laid_out.relayout(code=(0x10, 4096))
    for wrong in ({"arena": 0}, {"code": -1}, {"stack": 0}):
        with pytest.raises(ValueError, match="the size must be above 0"):
            laid_out.relayout(**wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="relayout takes no 'call_timeout_s'"):
        laid_out.relayout(call_timeout_s=3.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="arena is bytes"):
        laid_out.relayout(arena="large")  # type: ignore[arg-type]
    assert laid_out.info().regions == own
    assert array.numpy().tolist() == [1, 2, 3]


def test_a_restart_keeps_the_device_and_tells_the_rest_that_it_is_gone(
    restartable: Device, caplog: pytest.LogCaptureFixture
) -> None:
    device, before = restartable, restartable.owner
    array = device.array([1, 2, 3])
    library = library_of(device.load(["tests/device/c/twice.c"]))
    assert library["twice"](1) == 2
    device.call_timeout_s = 7.0
    with caplog.at_level(logging.INFO, "minrpc.layout"):
        layout = device.relayout(link="socket")
    assert layout.restarted
    assert "built or started with other options" in layout.why
    assert "are gone" in caplog.text
    assert device.owner is not before
    for use in (array.numpy, lambda: library["twice"](1)):
        with pytest.raises(ValueError, match="belonged to a session that has ended"):
            use()
    assert device.call_timeout_s == 7.0
    still_adds(device)
    with device.load(["tests/device/c/twice.c"]) as again:
        assert again.twice(21) == 42
    assert device.relayout(link="socket", arena=16384).how in ("session", "new session")
    assert device.relayout().restarted
    still_adds(device)


def test_of_what_is_tried_nothing_is_left(restartable: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is left of a device that is too small, nor of the device before it."""
    device = restartable
    started: list[RunningDevice] = []

    def noted(what: Firmware, **given: Any) -> RunningDevice:  # noqa: ANN401 - as `start`
        started.append(start(what, **given))
        return started[-1]

    monkeypatch.setattr("minrpc.pipeline.relayout.start", noted)
    device.connect()
    with pytest.raises(ConfigurationError, match="no memory for code"):
        device.relayout(link="socket", code=(0x10, 4096))
    # Zephyr's stack is a number in Kconfig.
    with pytest.raises((ConfigurationError, BuildError), match=r"can't have|outside the active range"):
        device.relayout(link="socket", arena=1 << 33)
    assert started
    assert not any(item.alive() for item in started)
    still_adds(device)
    assert device.relayout(link="socket").restarted
    if device.owner.platform.port == "posix":  # type: ignore[attr-defined]
        assert device.relayout(arena=home(device.info(), "").size + 65536).restarted
    device.close()
    assert not any(item.alive() for item in started)


@pytest.mark.once
def test_options_of_the_build(restartable: Device, amount: Callable[[int, int], int]) -> None:
    """Changes the stack and a definition; on Zephyr, whose builds take long, only with --load."""
    device = restartable
    platform = device.owner.platform  # type: ignore[attr-defined]
    if platform.port == "zephyr" and amount(0, 1) == 0:
        pytest.skip(f"{device.name}: a build of Zephyr; use --load")
    if platform.port == "posix":
        with pytest.raises(ConfigurationError, match="on a stack of this machine"):
            device.relayout(stack=16384)
    own = device.info()
    with pytest.raises(ConfigurationError if platform.port == "baremetal" else ValueError):
        device.relayout(arena=1 << 31 if platform.port == "baremetal" else -1)
    assert device.info().regions == own.regions
    if platform.port != "posix":
        assert device.relayout(stack=16384).restarted
        assert device.info().stack_size == 16384
    if platform.port != "baremetal":
        larger = home(own, "").size + 65536
        layout = device.relayout(arena=larger)
        assert (layout.how, layout.arena.size) == ("restart", larger)
        assert "more than the firmware had" in layout.why
        assert device.relayout(arena=larger).how == "session"
        assert device.relayout().arena.size == own.arena_size
    still_adds(device)
