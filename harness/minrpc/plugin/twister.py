# SPDX-License-Identifier: Apache-2.0
"""Inside Zephyr's twister: its build and its device are the ones that tests of `harness: pytest` get.

Twister starts pytest with a plugin of its own, whose options say what it has built and where the board is.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from minrpc.errors import ConfigurationError
from minrpc.targets.options import Options


def as_twister_says(config: pytest.Config, options: Options) -> Options:
    """`options` with twister's build and device, where twister runs this test; else as they are."""
    if not _option(config, "--twister-harness") or options.build_dir or options.serial_port:
        return options
    build_dir = _option(config, "--build-dir")
    if build_dir is None:
        return options
    options = replace(options, build_dir=Path(build_dir), platforms=(str(_option(config, "--platform")),))
    if _option(config, "--device-type") != "hardware":
        return options
    port = _option(config, "--device-serial")
    if port is None:
        raise ConfigurationError(
            "twister names no serial port for RPC",
            next_step="give the board one in the hardware map (serial:), or use --device-serial",
        )
    return replace(options, serial_port=port, flash_arguments=tuple(_flash_arguments(config)))


def _flash_arguments(config: pytest.Config) -> list[str]:
    """As twister's own adapter passes them to `west flash`."""
    words = []
    if _option(config, "--runner"):
        words += ["--runner", str(_option(config, "--runner"))]
    if _option(config, "--device-id"):
        words += ["--dev-id", str(_option(config, "--device-id"))]
    extra = _option(config, "--west-flash-extra-args")
    return words + (["--", *str(extra).split(",")] if extra else [])


def _option(config: pytest.Config, name: str) -> Any:  # noqa: ANN401 - of the option's type
    return config.getoption(name, None)
