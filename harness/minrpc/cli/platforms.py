# SPDX-License-Identifier: Apache-2.0
"""`minrpc platforms`: what can run here, and what each of the others lacks."""

from __future__ import annotations

import argparse
from pathlib import Path

from minrpc.pipeline import lacking
from minrpc.reports.markdown import table
from minrpc.targets import Platform, load_platforms


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--platforms-file", type=Path, metavar="FILE", help="TOML file with more platforms")


def main(arguments: argparse.Namespace) -> int:
    """Show the table; always 0."""
    platforms = load_platforms(arguments.platforms_file)
    head = ("platform", "what it is", "default", "here", "lacks")
    print(table(head, map(_row, platforms.values()), right=frozenset()))
    return 0


def _row(platform: Platform) -> tuple[str, ...]:
    default = "yes" if platform.default else ""
    if platform.starts == "board":
        return platform.name, platform.description, default, "by --serial-port", ""
    lacks = lacking(platform)
    reasons = "; ".join(f"{one.name}: {one.problem}" for one in lacks)
    return platform.name, platform.description, default, "no" if lacks else "yes", reasons
