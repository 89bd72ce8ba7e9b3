# SPDX-License-Identifier: Apache-2.0
"""Links of the bare-metal port that need no UART: semihosting."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from minrpc import (
    ConfigurationError,
    EmulatorExitedError,
    SessionTerminatedError,
    Target,
    connect,
    lacking,
    start,
)
from minrpc.host import Deadline
from minrpc.targets.table import FirmwareLink

RESET_S = 60.0


def target_over(firmware_link: FirmwareLink, name: str) -> Target:
    """The platform with another link; skips the test if it can't run here."""
    target = Target.named(name)
    if lacks := lacking(target.platform):
        pytest.skip(f"{name}: {'; '.join(requirement.name for requirement in lacks)}")
    return replace(target, platform=replace(target.platform, firmware_link=firmware_link))


@pytest.mark.parametrize(
    "name",
    [
        "bare_mps2_an385",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("bare_mps2_an505", "bare_microbit", "bare_rv32", "bare_rv64")
        ),
    ],
)
def test_semihosting(name: str) -> None:
    with start(target_over("semihosting", name)) as running:
        device = connect(running, direct=False)
        lib = device.system_lib()
        sent = np.random.default_rng(1).integers(0, 256, 5_000, np.uint8)
        assert np.array_equal(device.array(sent).numpy(), sent)
        short, long = (lib.measure("spin", repeat=3)(count) for count in (1_000, 10_000))
        assert running.timing == "exact"
        assert 9 < long.net().typical_cycles / short.net().typical_cycles < 11
        with pytest.raises((SessionTerminatedError, EmulatorExitedError), match=r"[Ff]ault"):
            lib["testing.crash"]()
        count = device.system_lib()["testing.count"]
        assert (count(), count()) == (1, 2)
        running.reset(Deadline("reset", RESET_S, running.clock))
        with pytest.raises(SessionTerminatedError, match="it restarted"):
            count()
        assert device.system_lib()["testing.count"]() == 1


def test_semihosting_over_a_socket_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="semihosting goes over a pseudo-terminal"):
        start(replace(target_over("semihosting", "bare_mps2_an385"), link="socket"))
