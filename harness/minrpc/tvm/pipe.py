# SPDX-License-Identifier: Apache-2.0
"""A device as a program that is reached by two pipes, for `tvm.rpc.client.PopenSession`.

    session = tvm.rpc.client.PopenSession(minrpc.tvm.pipe_program("bare_mps2_an385"))

TVM runs `PROGRAM READ_FD WRITE_FD` without other arguments, so the program's text contains the platform.
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
    """The text of a program that serves a device of this platform. Arguments: as for `Target.named`.

    Raises ConfigurationError for an unknown platform, or a platform that can't run here.
    """
    file = Path(platforms_file) if platforms_file else find_project_file(Path.cwd())
    # `select` takes "all" as several platforms, and no name as the default; a program needs one platform.
    resolved(find_platform(load_platforms(file), platform))
    given = TargetFields(timing=timing) if timing else TargetFields()
    select(Options((platform,), file, given))
    words = [sys.executable, "-m", "minrpc.tvm.piped", "--platform", platform]
    if file is not None:
        words += ["--platforms-file", str(file.absolute())]
    if timing:
        words += ["--timing", timing]
    return f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n'.encode()
