# SPDX-License-Identifier: Apache-2.0
"""The recorded call of a command's options on one target."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from minrpc.cli.call_arguments import CallArgument, to_host
from minrpc.cli.source_options import given_sources, told_if_unfit
from minrpc.host.deadline import Deadline
from minrpc.publish.recording import CallOptions, CallRecord, record_call
from minrpc.targets import Target


def recorded(
    arguments: argparse.Namespace,
    target: Target,
    plan: Sequence[CallArgument],
    options: CallOptions,
    total: Deadline,
    say: Callable[[str], None],
) -> CallRecord:
    """The record of the command's function, with the arguments of `plan`. Raises as `record_call` does."""
    sources = given_sources(arguments)
    with told_if_unfit(arguments.source):
        return record_call(
            target,
            arguments.function,
            *to_host(plan),
            sources=sources,
            options=options,
            texts=[str(item) for item in plan],
            total=total,
            say=say,
        )
