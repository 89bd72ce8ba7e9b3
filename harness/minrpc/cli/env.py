# SPDX-License-Identifier: Apache-2.0
"""`minrpc env`: variables for `west build` and twister, in shell syntax: eval "$(minrpc env)".

A second call in the same shell, for another compiler, unsets the variables of the first call.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Mapping

from minrpc.errors import ConfigurationError
from minrpc.firmware.sources import firmware_root
from minrpc.firmware.toolchain import OWN_VARIABLES, note_of, users_environment, zephyr_toolchain
from minrpc.firmware.zephyr_boards import resolved
from minrpc.firmware.zephyr_workspace import find_workspace
from minrpc.targets import Platform, find_platform, load_platforms
from minrpc.targets.options import add_device_options

_DEFAULT = "qemu_x86"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    text = f"the platform or board of the compiler (default {_DEFAULT})"
    parser.add_argument("--platform", default=_DEFAULT, metavar="NAME", help=text)
    add_device_options(parser.add_argument, ["platforms-file"])


def main(arguments: argparse.Namespace) -> int:
    """Print the lines."""
    platform = resolved(find_platform(load_platforms(arguments.platforms_file), arguments.platform))
    if platform.port != "zephyr":
        raise ConfigurationError(f"{platform.name} is no Zephyr board", next_step="leave --platform out")
    users = users_environment(os.environ)
    note = note_of(users, zephyr_toolchain(platform.arch).environment)
    wanted = {**users, **variables(platform), OWN_VARIABLES: note}
    for name in sorted(os.environ.keys() - wanted.keys()):
        print(f"unset {name}")
    for name, value in wanted.items():
        if os.environ.get(name) != value or name in variables(platform):
            print(f"export {name}={shlex.quote(value)}")
    return 0


def variables(platform: Platform) -> Mapping[str, str]:
    """The variables that the project's own builds of `platform` set, and the module."""
    modules = [str(firmware_root()), *os.environ.get("ZEPHYR_EXTRA_MODULES", "").split(";")]
    return {
        "ZEPHYR_BASE": str(find_workspace(firmware_root()).base),
        **zephyr_toolchain(platform.arch).environment,
        "ZEPHYR_EXTRA_MODULES": ";".join(dict.fromkeys(filter(None, modules))),
    }
