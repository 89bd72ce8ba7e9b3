# SPDX-License-Identifier: Apache-2.0
"""`minrpc debug`: calls one function of a C file with gdb stopped at it."""

from __future__ import annotations

import argparse

from minrpc.cli import call
from minrpc.host.process import shell_words
from minrpc.library import CFunctions
from minrpc.pipeline.debugging import debug


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    call.add_call_arguments(parser)
    add = parser.add_argument
    add("--gdb", default="", metavar="ARGS", help="arguments for gdb: '-batch -ex backtrace -ex finish'")
    add("--gdb-server", metavar="HOST:PORT", help="a board: the gdb server of its probe")


def main(arguments: argparse.Namespace) -> int:
    """Call the function under gdb; print the result, and the changed arrays."""
    gdb = shell_words(arguments.gdb)
    return call.call_on_each(
        arguments,
        lambda library: debug(
            CFunctions(library), arguments.function, gdb=gdb, gdb_server=arguments.gdb_server
        ),
    )
