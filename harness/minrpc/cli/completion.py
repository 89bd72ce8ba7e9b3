# SPDX-License-Identifier: Apache-2.0
"""`minrpc completion`: makes a shell complete commands, options and platforms, by argcomplete."""

from __future__ import annotations

import argparse

import argcomplete
from argcomplete.shell_integration import shellcode

from minrpc.errors import HarnessError
from minrpc.targets import load_platforms

_SHELLS = ("bash", "zsh", "fish", "tcsh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("shell", choices=_SHELLS, help='in bash: eval "$(minrpc completion bash)"')


def main(arguments: argparse.Namespace) -> int:
    """Print the shell's code."""
    print(shellcode(["minrpc"], shell=arguments.shell))
    return 0


def answer(parser: argparse.ArgumentParser) -> None:
    """Send the asking shell the completions of its line, and end the process."""
    for action in _actions(parser):
        if action.dest == "platform":
            action.completer = _platforms  # type: ignore[attr-defined] # as argcomplete has it
    argcomplete.autocomplete(parser, always_complete_options=True, print_suppressed=True)


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """All options of all commands; argparse has no public access to them."""
    options: list[argparse.Action] = []
    for action in parser._actions:
        options.append(action)
        if isinstance(action, argparse._SubParsersAction):
            options += [item for command in action.choices.values() for item in _actions(command)]
    return options


def _platforms(**_given: object) -> list[str]:
    """Names of platforms; none if the user's file is wrong, which the command itself reports."""
    try:
        return list(load_platforms())
    except HarnessError:
        return []
