# SPDX-License-Identifier: Apache-2.0
"""A finished cache that no process may write to: an image of a container, another user's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from minrpc import Firmware
from minrpc.firmware import cache_home

from tests.native import need_builtin

pytestmark = pytest.mark.once

USE = """
import sys, minrpc
from minrpc.running import all_counters, start
firmware = minrpc.build(minrpc.Target.named(sys.argv[1]))
assert firmware.cached
counters = all_counters(firmware) if firmware.platform.starts == "qemu" else None
with start(firmware, counters=counters) as running, minrpc.connect(running) as device:
    lib = device.load(sys.argv[2])
    assert (lib.twice(21), lib.thrice(7)) == (42, 21)
    timed = minrpc.measure(lib, "twice", counters=("instructions",) if counters else ())(21)
    print(sum(timed.counters["instructions"]) if counters else 1)
"""
READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'


def test_it_serves_firmware_plugin_and_new_code(firmware: Firmware | None, tmp_path: Path) -> None:
    if firmware is None or not firmware.build_dir.is_relative_to(cache_home()):
        pytest.skip("its firmware is not in the cache")
    need_builtin(firmware.platform.name)
    apart = ["unshare", "--map-root-user", "--mount", "sh", "-c", READ_ONLY, str(cache_home())]
    if subprocess.run([*apart, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine gives processes no mounts of their own")
    source = tmp_path / "own.c"
    source.write_text(
        f"/* {tmp_path} */ int twice(int x) {{ return 2 * x; }} int thrice(int x) {{ return 3 * x; }}"
    )
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    used = subprocess.run(
        [*apart, sys.executable, "-c", USE, firmware.platform.name, source],
        env=os.environ | {"TMPDIR": str(temporary)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert (used.returncode, used.stderr) == (0, "")
    assert int(used.stdout) > 0
    assert not list(temporary.iterdir())
