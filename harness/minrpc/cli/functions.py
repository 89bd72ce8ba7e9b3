# SPDX-License-Identifier: Apache-2.0
"""`minrpc functions`: the C functions of a source, compiled for a platform: prototype, code size, stack."""

from __future__ import annotations

import argparse
from pathlib import Path

from minrpc.cli.json_output import add_json_option, write_json
from minrpc.cli.selected import selected
from minrpc.cli.source_options import add_source_options, sources_from
from minrpc.firmware import build
from minrpc.library import compile_sources, function_sizes, toolset_of
from minrpc.targets.options import BUILD_OPTIONS, add_device_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("source", type=Path, nargs="+", metavar="FILE", help="C, C++, headers, assembler, objects, archives")
    add_source_options(add)
    add_json_option(add)
    add_device_options(add, BUILD_OPTIONS)


def main(arguments: argparse.Namespace) -> int:
    """Compile for each platform, and show the functions."""
    sources = sources_from(arguments, arguments.source)
    selection = selected(arguments, starts=False)
    shown = []
    for target in selection.targets:
        toolset = toolset_of(build(target))
        compiled = compile_sources(sources, toolset)
        sizes = function_sizes(compiled.own_objects)
        compiler = " ".join([Path(toolset.compiler).name, *sources.flags])
        print(f"{sources.name} on {target.name}: {compiler}")
        print(f"  {'code':>7} {'stack':>7}")
        for name, function in compiled.functions.items():
            size, stack = sizes.get(function.symbol, 0), compiled.stack_use.get(name)
            why = f"    can't be called: {function.unsupported}" if function.unsupported else ""
            print(f"  {size:>7} {'?' if stack is None else stack:>7}  {function.prototype}{why}")
            known = {"name": name, "prototype": function.prototype, "code_bytes": size, "stack_bytes": stack}
            shown.append({"platform": target.name, **known, "unsupported": function.unsupported})
    write_json(arguments, {"functions": shown})
    return 0
