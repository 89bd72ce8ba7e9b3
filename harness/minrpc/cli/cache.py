# SPDX-License-Identifier: Apache-2.0
"""`minrpc cache`: shows the size of the cached firmware, and removes it."""

from __future__ import annotations

import argparse
import time
from typing import Any, Final

from minrpc.cli.json_output import add_json_option, write_json
from minrpc.cli.unused_options import refuse
from minrpc.errors import ConfigurationError
from minrpc.firmware.cache import Entry, bound, cache_home, entries, limit, remove, size_text
from minrpc.reports.markdown import table

_DAY_S: Final = 24 * 3600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--clean", action="store_true", help="remove entries unused for --days, and those over the limit")
    add("--days", type=float, default=7.0, metavar="N", help="with --clean (default %(default)g)")
    add("--all", action="store_true", help="with --clean: remove everything that no build uses now")
    add_json_option(add)


def main(arguments: argparse.Namespace) -> int:
    """Clean the cache if requested, and show its content."""
    if not arguments.days >= 0:  # NaN, too.
        raise ConfigurationError("--days is at least 0", next_step="leave it out")
    if not arguments.clean:
        refuse(arguments, ["days", "all"], "without --clean", "add --clean")
    if arguments.all:
        refuse(arguments, ["days"], "with --all")
    removed = _clean(0.0 if arguments.all else arguments.days) if arguments.clean else []
    left = entries()
    used = sum(cache_entry.bytes for cache_entry in left)
    print(f"{cache_home()}: {size_text(used)} of at most {size_text(limit())}")
    if removed:
        print(f"removed {len(removed)}, {size_text(sum(cache_entry.bytes for cache_entry in removed))}")
    if left:
        rows = [
            (cache_entry.kind, cache_entry.path.name, size_text(cache_entry.bytes), _age(cache_entry))
            for cache_entry in left
        ]
        print(table(("what", "name", "size", "not used for"), rows, right=frozenset({2, 3})))
    content: dict[str, Any] = {
        "directory": str(cache_home()),
        "used_bytes": used,
        "limit_bytes": limit(),
        "entries": [_entry(cache_entry) for cache_entry in left],
        "removed": [_entry(cache_entry) for cache_entry in removed],
    }
    write_json(arguments, content)
    return 0


def _clean(days: float) -> list[Entry]:
    now = time.time()
    old = [entry for entry in entries() if now - entry.used >= days * _DAY_S]
    return [cache_entry for cache_entry in old if remove(cache_entry)] + bound()


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "kind": entry.kind,
        "name": entry.path.name,
        "size_bytes": entry.bytes,
        "age_s": time.time() - entry.used,
    }


def _age(entry: Entry) -> str:
    days = (time.time() - entry.used) / _DAY_S
    return f"{days:.1f} days" if days >= 1 else f"{days * 24:.1f} h"
