# SPDX-License-Identifier: Apache-2.0
"""Opens devices by the name of a platform, or of a port."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import minrpc
import numpy as np
import pytest
from minrpc import (
    ConfigurationError,
    NothingHeardError,
    PortGoneError,
    Target,
    build,
    connect,
    open_device,
    start,
)
from minrpc.transport import set_raw

from tests.unit.client.device_model import DeviceModel


def serve(fd: int) -> None:
    """Act as a device on the terminal `fd` until its other side is closed."""
    model = DeviceModel()
    while True:
        try:
            data = os.read(fd, 65536)
        except OSError:
            return
        os.write(fd, model.receive(data))


@pytest.fixture
def port() -> Iterator[tuple[str, int]]:
    """A terminal: its path, and the descriptor of the far side."""
    far, near = os.openpty()
    set_raw(near)
    path = os.ttyname(near)
    yield path, far
    os.close(near)
    os.close(far)


@pytest.fixture
def served_port(port: tuple[str, int]) -> Iterator[str]:
    """The path of a terminal with a device behind it."""
    far, near = os.openpty()
    set_raw(near)
    path = os.ttyname(near)
    thread = threading.Thread(target=serve, args=(far,))
    thread.start()
    yield path
    os.close(near)
    thread.join()
    os.close(far)


def test_a_device_by_its_port(served_port: str) -> None:
    for _ in range(2):  # The port is released at the end of each.
        with open_device(serial_port=served_port) as device:
            assert device.system_lib()["inc"](1) == 2
            assert served_port in device.name


@pytest.mark.parametrize(("resend", "numbered"), [(None, True), (True, True), (False, False)])
def test_requests_over_a_port_are_numbered_by_default(
    served_port: str, resend: bool | None, numbered: bool
) -> None:
    with open_device(serial_port=served_port, resend=resend) as device:
        assert (device.rpc.link.numbered is not None) == numbered
        assert device.system_lib()["inc"](1) == 2


def test_the_names_of_the_package_are_there() -> None:
    for name in minrpc.__all__:
        found = getattr(minrpc, name)
        assert name == "PLATFORMS" or found.__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        minrpc.nope  # noqa: B018


def test_a_platform_that_is_not_in_the_table() -> None:
    with pytest.raises(ConfigurationError, match="there is no platform 'nope'"):
        open_device("nope")


def test_a_port_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PortGoneError):
        open_device(serial_port=str(tmp_path / "ttyACM0"))


def test_a_port_where_nobody_answers_is_let_go_of(port: tuple[str, int]) -> None:
    path, _ = port
    for _ in range(2):
        with pytest.raises(NothingHeardError):
            open_device(serial_port=path, session_timeout_s=0.05)


def test_arrays_over_a_port(served_port: str) -> None:
    data = np.random.default_rng(1).integers(0, 256, (100, 200), np.uint8)
    with open_device("a board of mine", serial_port=served_port, baud=1_000_000) as device:
        np.testing.assert_array_equal(device.array(data).numpy(), data)


def test_other_than_a_name_or_a_stage_is_refused() -> None:
    with pytest.raises(TypeError, match="opened by a platform's name, a target or a firmware, not by 3"):
        open_device(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        (build, "a firmware is built of a target, not of 3"),
        (start, "a target or a firmware is started, not 3"),
        (connect, "a client is connected to a running device, not to 3"),
        (Target.named, "a platform's name is a text, not 3"),
    ],
)
def test_a_stage_is_given_its_own_kind_of_value(stage: Callable[[Any], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        stage(3)
