# SPDX-License-Identifier: Apache-2.0
"""A user's platforms, from TOML files merged over the harness's own table.

    [platforms.my_board]
    zephyr_board = "nucleo_f746zg"      # Zephyr's name for it; a new platform needs only this
    description = "the board on my desk"

    [platforms.slow_x86]
    extends = "qemu_x86"                # all fields of qemu_x86, then these
    icount_shift = 7

    [platforms.qemu_x86]                # changes fields of this platform
    link_uart = 0
    console_uart = "none"               # TOML has no null

    [platforms.my_board.time_bounds]    # seconds that a call takes, at least and at most
    add = [20e-6, 25e-6]

    [device]                            # for all platforms: options of devices, by Python's names
    call_timeout_s = 120                # one platform has them among its own keys
    link = "socket"

    [firmware]                          # for all platforms: the user's own C
    sources = ["kernels/*.c"]           # paths are relative to this file
    include_dirs = ["include"]
    defines = { TILE = 8 }              # or ["TILE=8", "FAST"]
    libraries = ["build/libkernels.a"]
    cmake_options = ["-DEXTRA_CONF_FILE={project}/fpu.conf"]

    [libraries.dsp]                     # C functions with their types: `minrpc.targets.libraries`
    sources = ["dsp/*.c"]

    [limits]                            # the limits of a run: `minrpc.targets.limits`
    exp.instructions = "+2%"

Keys of a platform are the fields of `Platform`; the keys of [firmware] are among these. Files, a later one
over an earlier:
$XDG_CONFIG_HOME/minrpc/platforms.toml (~/.config without it), then the file named by the user, or the nearest
minrpc.toml at or above the working directory.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, fields, replace
from pathlib import Path
from threading import TIMEOUT_MAX
from typing import Any, get_args

from minrpc.errors import ConfigurationError
from minrpc.host.files import utf8
from minrpc.host.system import user_directory
from minrpc.host.time_limits import require_seconds
from minrpc.names import did_you_mean, instead_of
from minrpc.targets.libraries import NamedLibrary, merged as merged_libraries, named_library
from minrpc.targets.option_table import FILE_OPTIONS, Option, seconds_of
from minrpc.targets.project import OWN, find_project_file, own_value
from minrpc.targets.rtl import rtl_of
from minrpc.targets.table import PLATFORMS, FirmwareLink, Platform, Port, ResetLine, Start, TimeBound
from minrpc.timing.clock import CountUnit

_NO_KEYS = ("name", "project", "named_libraries", "device_options")
_FIELDS = {option.name: option.type for option in fields(Platform) if option.name not in _NO_KEYS}
_FIELDS |= {"extends": "str"}
_CHOICES = {
    "port": get_args(Port),
    "starts": get_args(Start),
    "clock_counts": get_args(CountUnit),
    "firmware_link": get_args(FirmwareLink),
    "reset_line": get_args(ResetLine),
}
_NONE = "none"
_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*")
_TABLES = ("platforms", "device", "firmware", "libraries", "limits")
_NEW_BOARD = Platform("", port="zephyr", starts="board")


class Platforms(dict[str, Platform]):
    """All platforms by name.

    new: the base of a board without an entry; it has the values that the files set for all platforms.
    """

    def __init__(self, named: Mapping[str, Platform], new: Platform = _NEW_BOARD) -> None:
        super().__init__(named)
        self.new = new


def load_platforms(user_toml: str | Path | None = None) -> Platforms:
    """All platforms by name: the harness's, with the user's files merged over them.

    user_toml: read instead of the nearest minrpc.toml; must exist.
    Raises ConfigurationError, which names the file and the key.
    """
    platforms = Platforms(PLATFORMS)
    for path in _files(user_toml):
        platforms = merge(platforms, read_toml(path), str(path), utf8(path.absolute()).parent)
    return platforms


def find_platform(platforms: Platforms, name: str) -> Platform:
    """The platform `name`; if there is none, a platform for the Zephyr board of that name, which the build
    looks for."""
    if name in platforms:
        return platforms[name]
    return replace(platforms.new, name=name, zephyr_board=name)


def unknown_platform(name: str, boards: str) -> ConfigurationError:
    """The error when there is neither a platform nor a board `name`; proposes similar names.

    boards: the result of the search for a board, "Zephyr 4.2.0 has no board of that name".
    """
    platforms = load_platforms()
    hint = did_you_mean(name, platforms) or f"known are {', '.join(platforms)}"
    step = f"{hint}; name a Zephyr board as `west boards` lists it"
    return ConfigurationError(f"there is no platform {name!r}", details=[boards], next_step=step)


def merge(platforms: Platforms, document: Mapping[str, Any], origin: str, directory: Path) -> Platforms:
    """`platforms` with the entries of a parsed TOML `document` merged over them.

    origin: the file's name, for messages. directory: the file's directory; paths in it are relative to this.
    """
    _check_keys(document, _TABLES, origin, "")
    options = _options(document.get("device", {}), origin, "device")
    merged = _each(platforms, lambda platform: _with_options(platform, options))
    entries = document.get("platforms", {})
    if not isinstance(entries, Mapping):
        raise ConfigurationError(f"{origin}: platforms must be a table, [platforms.NAME]")
    for name, entry in entries.items():
        merged[name] = _merge_one(merged, name, entry, origin, directory)
    own = _for_all(document.get("firmware", {}), origin, directory)
    libraries = _libraries(document.get("libraries", {}), origin, directory)
    if own or libraries:
        return _each(merged, lambda platform: _with_own(platform, own, libraries, directory))
    return merged


def _each(platforms: Platforms, change: Callable[[Platform], Platform]) -> Platforms:
    changed = {name: change(platform) for name, platform in platforms.items()}
    return Platforms(changed, change(platforms.new))


def _libraries(tables: object, origin: str, directory: Path) -> tuple[NamedLibrary, ...]:
    if not isinstance(tables, Mapping):
        raise ConfigurationError(f"{origin}: libraries must be a table, [libraries.NAME]")
    return tuple(named_library(name, table, directory, origin) for name, table in tables.items())


def _for_all(table: object, origin: str, directory: Path) -> dict[str, tuple[str, ...]]:
    """The fields that [firmware] adds to every platform."""
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{origin}: firmware must be a table, [firmware]")
    _check_keys(table, OWN, origin, "firmware.")
    return {
        key: own_value(key, value, directory, f"{origin}: firmware.{key}") for key, value in table.items()
    }


def _with_own(
    platform: Platform,
    own: Mapping[str, tuple[str, ...]],
    libraries: tuple[NamedLibrary, ...],
    directory: Path,
) -> Platform:
    """`platform` with the fields of [firmware] before its own, and with the libraries."""
    fields: dict[str, Any] = {key: (*more, *getattr(platform, key)) for key, more in own.items()}
    named = merged_libraries(platform.named_libraries, libraries)
    return replace(platform, **fields, named_libraries=named, project=str(directory))


def _files(user_toml: str | Path | None) -> list[Path]:
    config_home = user_directory("XDG_CONFIG_HOME", ".config")
    files = [path for path in (config_home / "minrpc" / "platforms.toml",) if path.is_file()]
    if user_toml is not None:
        return [*files, Path(user_toml)]
    try:
        nearest = find_project_file(Path.cwd())
    except FileNotFoundError as error:
        step = "change to a directory that is there"
        raise ConfigurationError("the working directory has been deleted", next_step=step) from error
    return [*files, nearest] if nearest else files


def read_toml(path: Path) -> dict[str, Any]:
    """The document in the file. Raises ConfigurationError with the reason."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not valid TOML: {error}") from error


def _merge_one(platforms: Platforms, name: str, entry: object, origin: str, directory: Path) -> Platform:
    """The platform of one entry."""
    where = f"platforms.{name}"
    if not _NAME.fullmatch(name):
        step = "a name is of letters, digits, and _ . + - after the first"
        raise ConfigurationError(f"{origin}: {name!r} is no name for a platform", next_step=step)
    if not isinstance(entry, Mapping):
        raise ConfigurationError(f"{origin}: {where} must be a table, [{where}]")
    _check_keys(entry, (*_FIELDS, *FILE_OPTIONS), origin, where + ".")
    own = {key: entry[key] for key in entry if key in FILE_OPTIONS}
    options = _options(own, origin, where)
    given: dict[str, Any] = {
        key: _checked(value, key, directory, f"{origin}: {where}.{key}")
        for key, value in entry.items()
        if key not in FILE_OPTIONS and key != "rtl"
    }
    base = _base(platforms, name, given.pop("extends", None), f"{origin}: {where}.extends")
    if "rtl" in entry:
        given["rtl"] = rtl_of(entry["rtl"], base["rtl"], directory, f"{origin}: {where}.rtl")
    values = base | given | {"name": name, "project": str(directory)}
    _check_whole(values, f"{origin}: {where}")
    return _with_options(Platform(**values), options)


def _options(table: object, origin: str, where: str) -> dict[str, Any]:
    """The options of devices in a table of the file. Raises ConfigurationError."""
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{origin}: {where} must be a table, [{where}]")
    _check_keys(table, tuple(FILE_OPTIONS), origin, f"{where}.")
    return {
        key: option_value(FILE_OPTIONS[key], value, f"{origin}: {where}.{key}")
        for key, value in table.items()
    }


def option_value(option: Option, value: object, where: str) -> object:
    """The value that Python or minrpc.toml gives for an option, of the option's type.

    Raises ConfigurationError, which begins with `where`.
    """
    if option.type is bool and isinstance(value, bool):
        return value
    if option.type is float:
        with suppress(ValueError):
            return require_seconds(where, value)
    if option.type is seconds_of and isinstance(value, int | float | str):
        try:
            return seconds_of(str(value))
        except ValueError:
            pass
    if option.type is int and type(value) is int:
        return value
    if option.choices and value in option.choices:
        return value
    if option.type is Path and isinstance(value, str | Path):
        return Path(value).absolute()
    if option.type is str and not option.choices and isinstance(value, str | Path):
        return os.fspath(value)
    raise ConfigurationError(f"{where}: must be {_expected(option)}, not {value!r}")


def _expected(option: Option) -> str:
    kinds: Mapping[object, str] = {
        bool: "true or false",
        float: f"seconds, more than 0, at most {TIMEOUT_MAX:.0f}",
        seconds_of: "a time, such as 90s or 10m",
        int: option.help,
        Path: "a path",
    }
    return kinds.get(option.type) or (f"one of {', '.join(option.choices)}" if option.choices else "a text")


def _with_options(platform: Platform, options: Mapping[str, Any]) -> Platform:
    """`platform` with its options replaced by `options`."""
    merged = {**dict(platform.device_options), **options}
    return replace(platform, device_options=tuple(merged.items()))


def _base(platforms: Platforms, name: str, extends: str | None, where: str) -> dict[str, Any]:
    """The fields that an entry changes."""
    if extends is None:
        return asdict(platforms.get(name, platforms.new))
    if extends not in platforms:
        raise ConfigurationError(f"{where}: there is no platform {extends!r} before this entry")
    return asdict(platforms[extends])


def _check_keys(table: Mapping[str, Any], known: tuple[str, ...], origin: str, prefix: str) -> None:
    for key in table:
        if key not in known:
            step = instead_of(key, known)
            raise ConfigurationError(f"{origin}: {prefix}{key}: unknown key", next_step=step)


def _checked(value: object, key: str, directory: Path, where: str) -> object:
    if key in OWN:
        return own_value(key, value, directory, where)
    kind = _FIELDS[key]
    if key == "time_bounds":
        return _bounds(value, where)
    if key == "core" and isinstance(value, str) and value.endswith(".toml"):
        return str(directory / value)
    if key in _CHOICES and value not in _CHOICES[key]:
        known = ", ".join(choice or '""' for choice in _CHOICES[key])
        raise ConfigurationError(f"{where}: must be one of {known}, not {value!r}")
    if kind == "tuple[str, ...]":
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ConfigurationError(f"{where}: must be a list of strings, not {value!r}")
        return tuple(value)
    optional = str(kind).endswith(" | None")
    if optional and value == _NONE:
        return None
    expected = {"bool": bool, "int": int, "int | None": int}.get(str(kind), str)
    if type(value) is not expected:
        allowed = f"{expected.__name__} or {_NONE!r}" if optional else expected.__name__
        article = "an" if expected is int else "a"
        raise ConfigurationError(f"{where}: must be {article} {allowed}, not {value!r}")
    return value


def _bounds(value: object, where: str) -> tuple[TimeBound, ...]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{where}: must be a table of function = [least, most], in seconds")
    return tuple(_bound(name, pair, f"{where}.{name}") for name, pair in value.items())


def _bound(function: str, pair: object, where: str) -> TimeBound:
    match pair:
        case [int() | float() as least, int() | float() as most] if 0 <= least <= most:
            return TimeBound(function, float(least), float(most))
    raise ConfigurationError(
        f"{where}: must be [least, most] in seconds, such as [20e-6, 25e-6], not {pair!r}"
    )


def _check_whole(values: Mapping[str, Any], where: str) -> None:
    """Checks that involve several keys. Raises ConfigurationError."""
    if values["port"] == "zephyr" and not values.get("zephyr_board"):
        raise ConfigurationError(f"{where}: zephyr_board is missing, the name as `west build -b` takes it")
    if values.get("firmware_link", "uart") != "uart" and values["port"] != "baremetal":
        step = "under Zephyr the configuration chooses it: CONFIG_MINRPC_LINK_..."
        raise ConfigurationError(f"{where}: firmware_link is for the bare-metal port", next_step=step)
    link_uart = values.get("link_uart", 0) if values.get("firmware_link", "uart") == "uart" else None
    if values.get("console_uart") is not None and values["console_uart"] == link_uart:
        raise ConfigurationError(f"{where}: console_uart and link_uart are the same port")
    shift = values.get("icount_shift")
    if shift is not None and not 0 <= shift <= 10:
        raise ConfigurationError(f"{where}.icount_shift: QEMU takes 0 to 10, not {shift}")
    if values.get("link_uart", 0) < 0 or values.get("baud", 1) <= 0:
        raise ConfigurationError(f"{where}: link_uart and baud can't be negative")
