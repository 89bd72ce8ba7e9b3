# SPDX-License-Identifier: Apache-2.0
"""Objects that stay on the device, and pointers that C code keeps when a call is over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from minrpc import Address, Device, GuardError, LoadedLibrary, Placed

Load = Callable[..., LoadedLibrary]
DRIVER = Path(__file__).with_name("c") / "driver.c"


@pytest.fixture
def driver(load: Load) -> LoadedLibrary:
    return load(DRIVER)


def place_config(driver: LoadedLibrary, gain: int) -> Placed:
    """A configuration, with the buffer and the Python function that it points to."""
    config = driver.types.config(gain=gain, buffer=np.full(4, 100, np.uint8), hook=lambda value: value + 1000)
    return driver.place(config)


def overwrite(driver: LoadedLibrary) -> None:
    """Use the memory of calls' arguments for other data."""
    assert driver["sum"](np.full(200, 7, np.uint8), 200) == 1400


def test_a_placed_struct_stays(driver: LoadedLibrary) -> None:
    config, buffer = place_config(driver, 5), driver.place(np.arange(8, dtype=np.uint8))
    driver["driver_init"](config, buffer)
    overwrite(driver)
    assert [driver["driver_apply"](at) for at in (0, 7)] == [105, 112]
    assert driver["driver_hook"](1) == 1001
    config.gain = -5
    buffer.write(np.full(8, 50, np.uint8))
    assert (driver["driver_apply"](3), config.gain, buffer[7]) == (145, -5, 50)
    driver["driver_fill"](9, 4)
    assert driver.read(config.buffer) == 9


def test_the_host_s_objects_are_refreshed(driver: LoadedLibrary) -> None:
    data = np.zeros(4, np.uint8)
    given = driver.types.config(gain=1, buffer=data)
    config = driver.place(given)
    driver["driver_init"](config, config.buffer)
    driver["driver_fill"](3, 4)
    assert data.tolist() == [0] * 4
    config.refresh()
    assert data.tolist() == [3] * 4
    data[:], given.gain = 9, 9  # The device's are the present ones.
    config.refresh()
    assert (data.tolist(), given.gain) == ([3] * 4, 1)
    driver["driver_fill"](3, 5)
    with pytest.raises(GuardError, match=r"wrote 1 byte behind .*buffer \(uint8\[4\]\)"):
        config.refresh()


def test_a_list_of_structs_and_the_end_of_a_with_block(driver: LoadedLibrary, device: Device) -> None:
    point = driver.types.point
    with driver.place([point(1, 2), point(3, 4)]) as points:
        driver["points_set"](points)
        points[1].x = 8
        overwrite(driver)
        assert [driver["points_at"](at) for at in (0, 1)] == [12, 84]
    uses: list[Callable[[], object]] = [
        lambda: driver["points_set"](points),
        lambda: points[0].x,
        lambda: points.read(),
    ]
    for use in uses:
        with pytest.raises(ValueError, match="has been freed"):
            use()
    driver["points_set"](device.array(np.arange(4, dtype=np.uint32)))
    assert driver["points_at"](1) == 23
    with pytest.raises(TypeError, match="a pointer to 8 bytes"):
        driver["points_set"](device.array(np.arange(1, dtype=np.uint32)))
    kept = driver.place(point(5, 6))
    driver.unload()
    with pytest.raises(ValueError, match="has been freed"):
        _ = kept.address


def test_a_pointer_to_a_call_s_argument_is_told(driver: LoadedLibrary) -> None:
    """The variable with its member, and the argument; again for another pointer; not if it is allowed."""
    config, data = driver.types.config(gain=1), np.zeros(8, np.uint8)
    with pytest.raises(
        GuardError, match=r"driver_init kept a pointer to config \(struct config\) in driver\.config:"
    ):
        driver["driver_init"](config, data)
    assert driver["sum"](data, 8) == 0
    with pytest.raises(GuardError, match=r"kept a pointer to buffer \(uint8\[8\]\) in driver\.buffer\[1\]:"):
        driver["driver_init"](place_config(driver, 1), data)
    with pytest.raises(GuardError, match="in points:"):
        driver["points_set"]([driver.types.point(1, 2)])
    driver["points_set"](None)
    driver["points_set"](driver.types.point(1, 2), guards=False)
    driver["points_set"](None)
    driver.allow_kept_pointers()
    driver["points_set"](driver.types.point(1, 2))


def test_pointers_in_a_placed_object_until_it_is_freed(driver: LoadedLibrary, device: Device) -> None:
    config = driver.place(driver.types.config(gain=1))
    with pytest.raises(
        GuardError, match=r"kept a pointer to buffer \(uint8\[8\]\) in a placed object\.buffer:"
    ):
        driver["config_set"](config, np.zeros(8, np.uint8))
    address, (base, size) = config.address, config.span
    config.free()
    memory = device.array(np.zeros(size, np.uint8))
    assert memory.address == base
    driver["config_set"](Address(address), np.zeros(5000, np.uint8))  # It is other memory now.
    assert memory.numpy().any()


@pytest.mark.once
def test_what_can_be_placed(driver: LoadedLibrary) -> None:
    for value in (5, None, [], [1], np.zeros(0, np.uint8), driver["sum"]):
        with pytest.raises(TypeError, match=r"place: a struct of minrpc\.types\(lib\), a numpy array"):
            driver.place(value)
    with pytest.raises(AttributeError, match="has no members"):
        driver.place(b"text").x = 1
