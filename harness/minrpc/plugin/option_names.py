# SPDX-License-Identifier: Apache-2.0
"""Option names beside other plugins: each option is `--minrpc-NAME`, and two have a short name, too.

pytest ends with an error if two plugins register the same name, and their order is random. So the short names
are added after the options of other plugins and of conftest files, and only if they are free.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

from minrpc.targets.option_table import DEVICE_OPTIONS

_PREFIX: Final = "minrpc"

OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    **{name: option.argparse for name, option in DEVICE_OPTIONS.items()},
    "strict-timing": {
        "action": "store_true",
        "help": "fail on a wrong time that is not exact, too: by the host's clock, or of a board",
    },
    "coverage": {
        "metavar": "FILE",
        "help": "write the lines of your C that the tests executed under QEMU, in lcov's format",
    },
    "coverage-all": {
        "action": "store_true",
        "help": "with --minrpc-coverage, also lines of the runtime's sources and of Zephyr's",
    },
    "report": {
        "metavar": "FILE",
        "help": "write a page of this run: .html (one file, no network), .md or .json",
    },
    "allow-no-device": {
        "action": "store_true",
        "help": "succeed though tests wanted a device and none could run",
    },
}

SHORT: Final = ("platform", "serial-port")
"""Options that also have a short name, `--NAME`."""

TAKEN: Final = pytest.StashKey[tuple[str, ...]]()
"""The short names, such as "--platform", that belong to another plugin in this run."""


def add_long(parser: pytest.Parser) -> None:
    """Add the long names."""
    group = parser.getgroup(_PREFIX, "devices to test (minrpc)")
    for name, attributes in OPTIONS.items():
        group.addoption(f"--{_PREFIX}-{name}", **attributes)


def option_of(config: pytest.Config, name: str) -> Any:  # noqa: ANN401 - of the option's type
    """The value of the option `name`."""
    return getattr(config.option, _destination(name))


def spelled(config: pytest.Config, name: str) -> str:
    """The option's name in this run, as the user writes it."""
    if name not in SHORT:
        return f"--{_PREFIX}-{name}"
    taken = config.stash.get(TAKEN, None)
    short = f"--{name}"
    return f"--{_PREFIX}-{name}" if taken is None or short in taken else short


def values(config: pytest.Config) -> dict[str, Any]:
    """Values of `DEVICE_OPTIONS`, by the names that `options_from` takes."""
    return {name.replace("-", "_"): option_of(config, name) for name in DEVICE_OPTIONS}


def given(config: pytest.Config) -> bool:
    """True if the user gave an option about devices."""
    return any(
        option_of(config, name) != option.argparse.get("default") for name, option in DEVICE_OPTIONS.items()
    )


def wants_page(config: pytest.Config) -> bool:
    """True if this process writes the page of --minrpc-report."""
    return bool(option_of(config, "report")) and _runs_all(config)


def lacks_coverage(config: pytest.Config) -> bool:
    """True if the run should have written a file of coverage, and did not."""
    file = option_of(config, "coverage")
    return bool(file) and _runs_all(config) and not Path(file).exists()


def _runs_all(config: pytest.Config) -> bool:
    """True if tests run, and this process runs none for another."""
    return not hasattr(config, "workerinput") and not config.getoption("collectonly")


def look_past_short_names(config: pytest.Config, parser: pytest.Parser, args: Sequence[str]) -> None:
    """Make pytest look for conftest files as if the short names were known, so that their values are not
    taken for paths."""
    ours = _Quiet(add_help=False, allow_abbrev=False)
    _add_short(ours.add_argument, _free(parser))
    try:
        rest = ours.parse_known_args(list(args))[1]
    except _UnusableError:
        return  # pytest itself reports the error.
    known = parser.parse_known_args(rest, namespace=copy.copy(config.option))
    # Names that pytest has computed itself: without them conftest files above the project's root count, too.
    known.confcutdir = config.known_args_namespace.confcutdir
    config.known_args_namespace = known


def add_short(config: pytest.Config, parser: pytest.Parser) -> None:
    """Add the short names that no other plugin has registered."""
    free = _free(parser)
    _add_short(parser.getgroup(_PREFIX).addoption, free)
    config.stash[TAKEN] = tuple(f"--{name}" for name in SHORT if name not in free)


def refuse_former_names(parser: pytest.Parser, args: Sequence[str]) -> None:
    """Raise pytest.UsageError for `--NAME` if only `--minrpc-NAME` exists and no other plugin has
    `--NAME`."""
    for word in parser.parse_known_and_unknown_args(list(args))[1]:
        name = word.removeprefix("--").partition("=")[0]
        if word.startswith("--") and name in OPTIONS:
            raise pytest.UsageError(f"--{name} is not known here; the option is --{_PREFIX}-{name}")


def refuse_values_as_paths(config: pytest.Config) -> None:
    """Raise pytest.UsageError if pytest has taken an option's value for a path of tests, and so has found no
    configuration.

    pytest looks for the project's root before it knows the options of plugins.
    """
    if config.inipath is not None or config.getoption("rootdir"):
        return
    here, words = config.invocation_params.dir, config.invocation_params.args
    ours = {f"--{_PREFIX}-{name}" for name in OPTIONS} | {f"--{name}" for name in SHORT}
    for option, value in pairwise(words):
        path = here / value
        if option in ours and path.exists() and not path.is_relative_to(here):
            raise pytest.UsageError(
                f"pytest takes {value} for a path of tests, so its root is {config.rootpath}: "
                f"write {option}={value}"
            )


def _add_short(add: Any, names: Sequence[str]) -> None:  # noqa: ANN401 - argparse's or pytest's
    for name in names:
        attributes = {**OPTIONS[name], "help": f"short for --{_PREFIX}-{name}"}
        add(f"--{name}", dest=_destination(name), **attributes)


def _destination(name: str) -> str:
    return f"{_PREFIX}_{name}".replace("-", "_")


def _free(parser: pytest.Parser) -> list[str]:
    """The short names among the options that pytest does not know."""
    return [name for name in SHORT if _is_free(parser, name)]


def _is_free(parser: pytest.Parser, name: str) -> bool:
    try:
        return bool(parser.parse_known_and_unknown_args([f"--{name}=?"])[1])
    except (pytest.UsageError, SystemExit):
        return False


class _UnusableError(Exception):
    """The command line does not fit this plugin's options."""


class _Quiet(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _UnusableError(message)
