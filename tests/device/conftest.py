# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests on devices."""

from collections.abc import Callable

import pytest
from minrpc import (
    CFunctions,
    Device,
    Firmware,
    FunctionNotFoundError,
    LoadedLibrary,
    RunningDevice,
    SystemLibrary,
    connect,
    library_of,
)
from minrpc.client import LentTransport
from minrpc.transport import Faults, LossyTransport

from tests.device.test_session import add_works

Amount = Callable[[int, int], int]
Load = Callable[..., LoadedLibrary]
MakeLossy = Callable[..., tuple[Device, LossyTransport]]


@pytest.fixture
def amount(request: pytest.FixtureRequest) -> Amount:
    """The first of two numbers in a normal run, the second with --load."""
    whole = bool(request.config.getoption("--load"))
    return lambda bounded, full: full if whole else bounded


@pytest.fixture
def lib(device: Device) -> SystemLibrary:
    """The system library: the functions that the firmware was linked with."""
    return device.system_lib()


@pytest.fixture
def image(running_device: RunningDevice, firmware: Firmware | None) -> Firmware:
    """The firmware under test; skips where instructions don't drive the clock."""
    if running_device.icount is None or firmware is None:
        pytest.skip(f"{running_device.name}: instructions are not counted (timing {running_device.timing})")
    return firmware


@pytest.fixture
def own_shift(image: Firmware, running_device: RunningDevice) -> int:
    """The shift that the platform itself uses."""
    assert running_device.icount is not None
    return running_device.icount.shift


@pytest.fixture
def need_memory(device: Device) -> Callable[[int], None]:
    """Skips the test if the device has less memory for arrays in one piece."""

    def need(nbytes: int) -> None:
        free = device.info().arena_largest_free
        if free < nbytes:
            pytest.skip(f"needs {nbytes} bytes of device memory, {free} are free in one piece")

    return need


@pytest.fixture
def load(load: Callable[..., CFunctions], device: Device, need_memory: Callable[[int], None]) -> Load:
    """Like the plugin's fixture, but gives the library object, not its functions; the tests' files take up to
    20 KB of a device."""
    need_memory(24_000)
    try:
        device.get_function("minrpc.code_alloc")
    except FunctionNotFoundError:
        pytest.skip("its firmware takes no code")
    return lambda *sources, **given: library_of(load(*sources, **given))


@pytest.fixture
def lossy(running_device: RunningDevice) -> MakeLossy:
    """Makes a client whose link to the device has faults."""

    def make(faults: Faults, seed: int, *, resend: bool, timeout_s: float) -> tuple[Device, LossyTransport]:
        transport = LossyTransport(LentTransport(running_device.transport), faults, seed)
        device = connect(
            running_device,
            transport=transport,
            call_timeout_s=timeout_s,
            session_timeout_s=60.0,
            resend=resend,
            direct=False,
        )
        return device, transport

    return make


@pytest.fixture
def works(running_device: RunningDevice) -> Callable[[], bool]:
    """True if the device works over a link without faults."""

    def check() -> bool:
        with connect(running_device, transport=LentTransport(running_device.transport)) as device:
            return add_works(device)

    return check
