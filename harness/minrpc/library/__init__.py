# SPDX-License-Identifier: Apache-2.0
"""Calls C functions of a device with their own types: loaded functions, linked-in libraries, the firmware's
own functions."""

from minrpc.library.c_functions import (
    CFunctions,
    allow_kept_pointers,
    fakes,
    library_of,
    measure,
    place,
    read,
    time_evaluator,
    types,
    unload,
    variables,
    write,
)
from minrpc.library.c_library import CFunction, CLibrary
from minrpc.library.compiling import Compiled, Sources, compile_file, compile_sources
from minrpc.library.fake_functions import FakeFunction, fake
from minrpc.library.faking import FakesGiven, ReplacementsGiven
from minrpc.library.firmware_functions import FirmwareFunctions
from minrpc.library.linked import LinkedLibrary, Load, load_or_find, named
from minrpc.library.loaded import LoadedLibrary
from minrpc.library.loading import firmware_of, image_size, load, load_compiled
from minrpc.library.placed import Placed
from minrpc.library.placing import out
from minrpc.library.scalars import Address
from minrpc.library.structs import StructValue
from minrpc.library.toolset import Toolset, program_facts, run_tool, toolset_of
from minrpc.program.objects import function_sizes

__all__ = [
    "Address",
    "CFunction",
    "CFunctions",
    "CLibrary",
    "Compiled",
    "FakeFunction",
    "FakesGiven",
    "FirmwareFunctions",
    "LinkedLibrary",
    "Load",
    "LoadedLibrary",
    "Placed",
    "ReplacementsGiven",
    "Sources",
    "StructValue",
    "Toolset",
    "allow_kept_pointers",
    "compile_file",
    "compile_sources",
    "fake",
    "fakes",
    "firmware_of",
    "function_sizes",
    "image_size",
    "library_of",
    "load",
    "load_compiled",
    "load_or_find",
    "measure",
    "named",
    "out",
    "place",
    "program_facts",
    "read",
    "run_tool",
    "time_evaluator",
    "toolset_of",
    "types",
    "unload",
    "variables",
    "write",
]
