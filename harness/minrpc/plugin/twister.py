# SPDX-License-Identifier: Apache-2.0
"""Runs tests inside Zephyr's twister (`harness: pytest`), with twister's build and twister's device.

Twister starts pytest with its own plugin, whose options name the build directory and the board's port.
"""

from __future__ import annotations

import csv
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from _pytest.junitxml import xml_key

from minrpc.errors import ConfigurationError
from minrpc.firmware.zephyr_build import board_of
from minrpc.host.process import spawn_on, stop_group
from minrpc.targets import TargetFields
from minrpc.targets.options import Options


def runs_here(config: pytest.Config) -> bool:
    """True if twister runs this pytest."""
    return bool(_option(config, "--twister-harness"))


def as_twister_says(config: pytest.Config, options: Options) -> Options:
    """`options` with twister's build and device if twister runs this pytest; else unchanged."""
    if not runs_here(config) or options.given.get("build_dir") or options.given.get("serial_port"):
        return options
    build_dir = _option(config, "--build-dir")
    if build_dir is None:
        return options
    # Zephyr 3.7 passes the platform's name only for hardware.
    name = _option(config, "--platform") or board_of(Path(build_dir))
    given = TargetFields(build_dir=Path(build_dir))
    if _option(config, "--device-type") != "hardware":
        return options.changed(platforms=(name,), given=given)
    port = _option(config, "--device-serial") or _served(config)
    if port is None:
        raise ConfigurationError(
            "twister names no serial port for RPC",
            next_step="give the board one in the hardware map (serial:), or use --device-serial",
        )
    given |= TargetFields(
        serial_port=port,
        flash=options.given.get("flash", "always"),
        flash_arguments=tuple(_flash_arguments(config)),
    )
    command = _flash_command(config)
    if command:
        given["flash_command"] = command
    return options.changed(platforms=(name,), given=given)


class ReportForTwister:
    """Moves tests' properties to the report's head, since twister takes a test with properties for a failed
    test."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        xml = self._config.stash.get(xml_key, None)
        if xml is not None and report.when == "teardown":
            name = report.nodeid.rpartition("::")[2]
            for key, value in report.user_properties:
                xml.add_global_property(f"{name}.{key}", value)
        report.user_properties = []


def _served(config: pytest.Config) -> str | None:
    """Starts the program of --device-serial-pty, which ends with the run; returns its terminal."""
    program = _option(config, "--device-serial-pty")
    if not program:
        return None
    master, slave = os.openpty()
    try:
        process = spawn_on(re.split("[, ]", program), master)
    except OSError as error:
        raise ConfigurationError(f"{program} can't be run: {error.strerror}") from error
    finally:
        os.close(master)
    config.add_cleanup(lambda: _end(process, slave))
    return os.ttyname(slave)


def _end(process: subprocess.Popen[bytes], slave: int) -> None:
    stop_group(process)
    os.close(slave)


def _flash_command(config: pytest.Config) -> str:
    """The flash command as twister's own adapter builds it: build and board follow the first word."""
    given = _option(config, "--flash-command")
    if not given:
        return ""
    command, *rest = next(csv.reader([given])) if isinstance(given, str) else given
    board = _option(config, "--device-id")
    about = ["--build-dir", "{build}", *(["--board-id", str(board)] if board else [])]
    return shlex.join([command, *about, *rest])


def _flash_arguments(config: pytest.Config) -> list[str]:
    """The arguments for `west flash` as twister's own adapter passes them."""
    words = []
    if _option(config, "--runner"):
        words += ["--runner", str(_option(config, "--runner"))]
    if _option(config, "--device-id"):
        words += ["--dev-id", str(_option(config, "--device-id"))]
    extra = _option(config, "--west-flash-extra-args")
    return words + (["--", *str(extra).split(",")] if extra else [])


def _option(config: pytest.Config, name: str) -> Any:  # noqa: ANN401 - of the option's type
    return config.getoption(name, None)
