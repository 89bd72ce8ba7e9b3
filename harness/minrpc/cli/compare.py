# SPDX-License-Identifier: Apache-2.0
"""`minrpc compare`: lists slower and larger functions, as Markdown."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from minrpc.cli.json_output import add_json_option, write_json
from minrpc.cli.limit_lines import tell_limits
from minrpc.cli.timing_files import read_records
from minrpc.cli.unused_options import refuse
from minrpc.errors import HarnessError
from minrpc.publish.limit_check import broken_limits, idle_limits, unchecked_limits
from minrpc.reports.figures import check_target
from minrpc.targets.limits import load_limits
from minrpc.timing.compare import Comparison, compare, comparison_json
from minrpc.timing.comparison_text import comparison_markdown
from minrpc.timing.plot import draw_comparison


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("base", type=Path, metavar="BASE", help="a file of `time --json` or `report --json`")
    add("head", type=Path, metavar="HEAD", help="another file, to compare with BASE")
    add("--plot", type=Path, metavar="FILE", help="draw both against each other, as PNG, SVG or PDF")
    add(
        "--fail",
        action="store_true",
        help="exit with 1 when an exact time got slower, a firmware bigger, or nothing could be compared",
    )
    add_json_option(add)
    add("--platforms-file", type=Path, metavar="FILE", help="TOML file with the [limits]")
    add("--strict-timing", action="store_true", help="with --fail: any time that got slower significantly")


def main(arguments: argparse.Namespace) -> int:
    """Compare and print. Differences make it fail only with an option, or with a limit in minrpc.toml."""
    if not arguments.fail:
        refuse(arguments, ["strict-timing"], "without --fail", "add --fail")
    if arguments.plot:
        check_target(arguments.plot)
    base, head = (read_records(file, "report") for file in (arguments.base, arguments.head))
    limits = load_limits(arguments.platforms_file)
    comparison = compare(base, head)
    broken = broken_limits(limits, head, base)
    print(comparison_markdown(comparison, [str(limit) for limit in broken]), end="")
    if arguments.plot:
        draw_comparison(comparison, arguments.plot)
    if arguments.fail and not comparison.compared and not comparison.worse(strict=arguments.strict_timing):
        failure = _nothing_compared(comparison)
        write_json(arguments, comparison_json(comparison), failure=failure)
        arguments.json = None  # The file has been written.
        raise failure
    tell_limits(broken, idle_limits(limits, head), unchecked_limits(limits, head, base), sys.stderr)
    worse = bool(broken) or (arguments.fail and comparison.worse(strict=arguments.strict_timing))
    write_json(arguments, comparison_json(comparison), passed=not worse)
    return 1 if worse else 0


def _nothing_compared(comparison: Comparison) -> HarnessError:
    """The error if no call could be compared: "nothing got slower" would then mislead."""
    reasons = [
        f"{change.call} on {change.platform}: {change.verdict}{f', {change.note}' if change.note else ''}"
        for change in comparison.changes
    ]
    step = "measure the same calls on the same platforms and clocks, with at least 10 repeats, for both files"
    return HarnessError(
        "nothing could be compared, so no call is known to be unchanged",
        stage="compare",
        details=reasons or ["neither file has a call"],
        next_step=step,
    )
