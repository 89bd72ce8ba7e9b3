# SPDX-License-Identifier: Apache-2.0
"""A device as a program that two pipes lead to, for `tvm.rpc.client.PopenSession`.

    session = tvm.rpc.client.PopenSession(minrpc.tvm.pipe_program("bare_mps2_an385"))

TVM runs `PROGRAM READ_FD WRITE_FD` and gives it no other words, so the platform stands in the program.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from minrpc.firmware.zephyr_boards import resolved
from minrpc.pipeline import select
from minrpc.targets import TargetFields, Timing, find_platform, load_platforms
from minrpc.targets.options import Options
from minrpc.targets.project import find_project_file


def pipe_program(
    platform: str, *, platforms_file: str | Path | None = None, timing: Timing | None = None
) -> bytes:
    """The text of a program that is a device of this platform. Arguments: as `Target.named` has them.

    Raises ConfigurationError for a platform that there is not, or that can't run here.
    """
    file = Path(platforms_file) if platforms_file else find_project_file(Path.cwd())
    # For `select` "all" is many, and no name is few enough; here it is one platform.
    resolved(find_platform(load_platforms(file), platform))
    given = TargetFields(timing=timing) if timing else TargetFields()
    select(Options((platform,), file, given))
    words = [sys.executable, "-m", "minrpc.tvm.rpc.piped", "--platform", platform]
    if file is not None:
        words += ["--platforms-file", str(file.absolute())]
    if timing:
        words += ["--timing", timing]
    return f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n'.encode()
