# SPDX-License-Identifier: Apache-2.0
"""RPC over USB: Zephyr's own stack and CDC ACM, by a controller whose wire is a UART; host.py is the PC."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from minrpc import HarnessError, Target, build, connect, start
from minrpc.firmware import Workspace, firmware_root, workspaces

from tests.device.other_firmware import require_passed
from tests.native import qemu_on_stdio

HERE = Path(__file__).parent / "usb"
FILE = HERE / "usb.toml"
TESTS = [f"test_{name}.py" for name in ("add", "errors", "c_functions", "fakes", "session", "death")]

pytestmark = pytest.mark.slow


@pytest.fixture(params=workspaces(firmware_root()), ids=lambda workspace: workspace.version)
def port(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The serial port of a device on this bus."""
    workspace: Workspace = request.param
    monkeypatch.setenv("ZEPHYR_BASE", str(workspace.base))
    firmware = build(Target.named("usb", platforms_file=FILE))
    # A port is one run's own; at the same time another test has a machine of another name.
    machine = f"{qemu_on_stdio(firmware)} -name {request.function.__name__}"
    return f"exec:{shlex.join([sys.executable, str(HERE / 'host.py')])} {machine}"


def test_what_holds_for_a_uart_holds_for_usb(port: str) -> None:
    require_passed(TESTS, "usb", FILE, "--serial-port", port, "--minrpc-session-timeout", "30")


def test_the_port_comes_back_after_a_crash(port: str, tmp_path: Path) -> None:
    """A crash sends no message over USB: the restart ends the session."""
    source = tmp_path / "crash.c"
    source.write_text("int crash(void) { return *(volatile int *)16; } int seven(void) { return 7; }")
    target = Target.named("usb", platforms_file=FILE, serial_port=port, session_timeout_s=30.0)
    with start(target) as running:
        for _ in range(3):
            with connect(running) as device:
                lib = device.load(source)
                assert lib["seven"]() == 7
                with pytest.raises(HarnessError, match="ended the session before it answered: it restarted"):
                    lib["crash"]()
