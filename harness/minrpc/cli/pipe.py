# SPDX-License-Identifier: Apache-2.0
"""`minrpc pipe`: a program that is a device, for TVM's `PopenSession`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

from minrpc.errors import ConfigurationError
from minrpc.targets import Timing


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="the program to write")
    add("--platform", default="posix", metavar="NAME", help="what it runs (default %(default)s)")
    add("--platforms-file", type=Path, metavar="FILE", help="TOML file with more platforms")
    add(
        "--timing",
        choices=[mode for mode in get_args(Timing) if mode != "board"],
        help="clock that the device's times follow (default: exact under QEMU)",
    )


def main(arguments: argparse.Namespace) -> int:
    """Write it: 0. Raises ConfigurationError where the platform can't run, or the file not be written."""
    from minrpc.tvm.rpc.pipe import pipe_program

    file: Path = arguments.file
    text = pipe_program(arguments.platform, platforms_file=arguments.platforms_file, timing=arguments.timing)
    try:
        file.write_bytes(text)
        file.chmod(0o755)
    except OSError as error:
        raise ConfigurationError(
            f"{file} can't be written: {error.strerror}", next_step="name another file"
        ) from error
    print(f'try: tvm.rpc.client.PopenSession("{file.absolute()}")')
    return 0
