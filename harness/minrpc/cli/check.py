# SPDX-License-Identifier: Apache-2.0
"""`minrpc check`: build, boot, call, compare with numpy, time; a table at the end, and an exit status."""

from __future__ import annotations

import argparse
from functools import partial

from minrpc.check.cases import cases
from minrpc.check.checking import Checked, check
from minrpc.check.results import report_text, to_json
from minrpc.cli.json_output import add_json_option, write_json
from minrpc.cli.selected import selected
from minrpc.errors import visible
from minrpc.host.deadline import Deadline
from minrpc.targets import Target
from minrpc.targets.options import add_device_options, options_from

say = partial(print, flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_device_options(parser.add_argument)
    add_json_option(parser.add_argument, "write the results to this file, too")


def main(arguments: argparse.Namespace) -> int:
    """Check all targets; returns 0 if all results are right on each."""
    options = options_from(vars(arguments))
    selection = selected(arguments)
    total = Deadline("check", options.total_timeout_s)
    checked = [_check(target, total) for target in selection.targets]
    say(f"\n{report_text(checked)}")
    passed = all(item.passed for item in checked)
    write_json(arguments, to_json(checked), passed=passed)
    return 0 if passed else 1


def _check(target: Target, total: Deadline) -> Checked:
    description = target.platform.description or "attached"
    say(f"{target.name}: {description}")
    checked = check(target, total, cases(), lambda stage, text: say(f"  {stage:8} {text}"))
    if checked.failure is not None:
        say(f"  FAILED   {visible(checked.failure.message)}")
    return checked
