# SPDX-License-Identifier: Apache-2.0
"""Zephyr with options that change interrupts, threads and memory: values and times are right, or refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from minrpc import ConfigurationError, MissingError, Target, build, start
from minrpc.targets import load_platforms

from tests.device.other_firmware import require_passed

HERE = Path(__file__).parent
FILE = HERE / "zephyr_options.toml"
SAME = ("test_add.py", "test_measure.py", "test_timing.py")
# Others need more memory than this firmware has, exp, or the texts of failures.
LEAST = ("-k", "not (float32_equals or bounds_hold or fails or exp or twice_the_elements)")
NAMES = [name for name, platform in load_platforms(FILE).items() if platform.project]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_holds_for_other_firmware_holds_with_these_options(name: str) -> None:
    if name == "checked_userspace" and shutil.which("gperf") is None:
        pytest.skip("Zephyr's user mode needs gperf, which is not installed")
    try:
        firmware = build(Target.named(name, platforms_file=FILE))
    except MissingError as error:
        pytest.skip(str(error))
    require_passed(SAME, name, FILE, *(LEAST if name == "least" else ()))
    if "-smp" in firmware.qemu_argv:
        with pytest.raises(ConfigurationError, match="runs on several processors"):
            start(build(Target.named(name, platforms_file=FILE, timing="exact")))
