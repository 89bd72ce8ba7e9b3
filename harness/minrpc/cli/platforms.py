# SPDX-License-Identifier: Apache-2.0
"""`minrpc platforms`: what can run here, and what each of the others lacks."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from minrpc.cli.json_output import add_json_option, write_json
from minrpc.pipeline.requirements import Requirement, lacking
from minrpc.reports.markdown import table
from minrpc.targets import Platform, load_platforms
from minrpc.targets.options import add_device_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_json_option(parser.add_argument)
    add_device_options(parser.add_argument, ["platforms-file"])


def main(arguments: argparse.Namespace) -> int:
    """Show the table; always 0."""
    platforms = load_platforms(arguments.platforms_file)
    head = ("platform", "what it is", "default", "here", "lacks")
    lacks = {name: [] if one.starts == "board" else lacking(one) for name, one in platforms.items()}
    print(table(head, [_row(one, lacks[name]) for name, one in platforms.items()], right=frozenset()))
    write_json(arguments, {"platforms": [_entry(one, lacks[name]) for name, one in platforms.items()]})
    return 0


def _entry(platform: Platform, lacks: list[Requirement]) -> dict[str, Any]:
    """Its fields, whether it can run here, and what is missing."""
    fields = asdict(platform)
    fields |= dict(fields.pop("device_options"))
    return {**fields, "here": not lacks, "lacks": [asdict(one) for one in lacks]}


def _row(platform: Platform, lacks: list[Requirement]) -> tuple[str, ...]:
    default = "yes" if platform.default else ""
    if platform.starts == "board":
        return platform.name, platform.description, default, "by --serial-port", ""
    reasons = "; ".join(f"{one.name}: {one.problem}" for one in lacks)
    return platform.name, platform.description, default, "no" if lacks else "yes", reasons
