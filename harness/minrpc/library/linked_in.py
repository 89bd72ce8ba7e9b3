# SPDX-License-Identifier: Apache-2.0
"""Makes the C that calls the functions of linked-in libraries, from their debug information.

    python -m minrpc.library.linked_in --output DIR --library dsp fir.o --library lut lut.a

writes DIR/thunks.c, and copies the objects to DIR/dsp/0.o, ...: the host reads the types from the copies.
With `--fakes dsp hal_millis` it writes DIR/stubs.c, too, with functions that ask Python. The firmware's build
runs this module, since the build knows compiler and flags.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from minrpc.errors import ConfigurationError
from minrpc.library.stubs import declared_fake, stub_source
from minrpc.library.thunks import LINKED, callable_functions, thunk_source
from minrpc.library.toolset import alignment_limits
from minrpc.program.c_types import AlignmentLimits, Declarations, FunctionDeclaration, is_const
from minrpc.program.objects import elves_in, read_objects


def packed_name(library: str, function: str) -> str:
    """The name of the packed function that calls a function of a library."""
    return f"{library}.{function}"


def declared_in(directory: Path) -> tuple[Declarations, dict[str, FunctionDeclaration], AlignmentLimits]:
    """The declarations of the library whose objects are in `directory`; its functions, also those that can't
    be called; and its target's alignment limits for members of structs.

    Raises ConfigurationError without debug information.
    """
    # In the order of the link.
    paths = sorted(directory.glob("*.[oa]"), key=lambda path: int(path.stem))
    contents = [path.read_bytes() for path in paths]
    declarations = read_objects(paths, contents)
    if not declarations.functions:
        raise ConfigurationError(
            f"the library {directory.name} has no function with external linkage and debug information",
            next_step="compile its objects with -g",
        )
    limits = alignment_limits(elves_in(paths[0], contents[0])[0].machine)
    functions = callable_functions(declarations.functions.values(), limits)
    return declarations, {function.name: function for function in functions}, limits


def main(words: Sequence[str] | None = None) -> int:
    """Write the thunks and copy the objects."""
    parser = argparse.ArgumentParser(prog="python -m minrpc.library.linked_in")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--library", action="append", nargs="+", required=True, metavar="NAME OBJECT")
    parser.add_argument("--fakes", action="append", nargs="+", default=[], metavar="NAME FUNCTION")
    arguments = parser.parse_args(words)
    fakes = {name: functions for name, *functions in arguments.fakes}
    asking: dict[str, FunctionDeclaration] = {}
    named: list[FunctionDeclaration] = []
    variables: list[str] = []
    limits = AlignmentLimits()
    for name, *objects in arguments.library:
        directory = arguments.output / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        for index, item in enumerate(objects):
            kind = ".a" if item.endswith(".a") else ".o"  # CMake names some objects .obj.
            shutil.copy2(item, directory / f"{index}{kind}")
        try:
            declarations, functions, limits = declared_in(directory)
            asking |= {fake: declared_fake(declarations, name, fake) for fake in fakes.get(name, ())}
        except ConfigurationError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        named += [
            replace(function, name=packed_name(name, function.name))
            for function in functions.values()
            if not function.unsupported
        ]
        # A constant that no function uses is left out; a variable is kept, since a test may set it.
        variables += [
            variable.symbol
            for variable in declarations.variables.values()
            if variable.external and not is_const(variable.type)
        ]
    text = thunk_source(named, limits, copy=True, kept=variables, registry=LINKED)
    (arguments.output / "thunks.c").write_text(text)
    if asking:
        (arguments.output / "stubs.c").write_text(stub_source(list(asking.values()), limits))
    return 0


if __name__ == "__main__":
    sys.exit(main())
