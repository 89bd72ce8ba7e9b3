# SPDX-License-Identifier: Apache-2.0
"""`minrpc platforms`: the platforms that can run here, and the others' missing requirements."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from minrpc.cli.json_output import add_json_option, write_json
from minrpc.pipeline.requirements import Requirement, lacking
from minrpc.reports.columns import beside
from minrpc.targets import Platform, load_platforms
from minrpc.targets.options import add_device_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_json_option(parser.add_argument)
    add_device_options(parser.add_argument, ["platforms-file"])


def main(arguments: argparse.Namespace) -> int:
    """Show the list; always 0."""
    platforms = load_platforms(arguments.platforms_file)
    lacks = {
        name: [] if platform.starts == "board" else lacking(platform) for name, platform in platforms.items()
    }
    width = max(map(len, platforms))
    print(f"  {'platform':<{width}}  runs here description")
    for name, platform in platforms.items():
        mark = "*" if platform.default else " "
        about = "; ".join([platform.description, *(f"{need.name}: {need.problem}" for need in lacks[name])])
        head = f"{mark} {name:<{width}}  {_here(platform, lacks[name]):<9}"
        print(beside(head, about, column=len(head) + 2))
    print("\n* used if no platform is named.\n`minrpc doctor` shows how to install missing packages.")
    write_json(
        arguments, {"platforms": [_entry(platform, lacks[name]) for name, platform in platforms.items()]}
    )
    return 0


def _entry(platform: Platform, lacks: list[Requirement]) -> dict[str, Any]:
    """Its fields, whether it can run here, and its missing requirements."""
    fields = asdict(platform)
    fields |= dict(fields.pop("device_options"))
    return {**fields, "here": not lacks, "lacks": [asdict(requirement) for requirement in lacks]}


def _here(platform: Platform, lacks: list[Requirement]) -> str:
    if platform.starts == "board":
        return "a board"
    return "no" if lacks else "yes"
