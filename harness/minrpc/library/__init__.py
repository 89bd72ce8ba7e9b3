# SPDX-License-Identifier: Apache-2.0
"""Calls C functions of a device with their own types: loaded functions, linked-in libraries, the firmware's
own functions."""

from minrpc.errors import CompileError, GuardError, LinkerError, LoadError, UndefinedSymbolsError
from minrpc.library.c_functions import (
    CFunctions,
    fakes,
    library_of,
    measure,
    read,
    time_evaluator,
    types,
    unload,
    variables,
    write,
)
from minrpc.library.c_library import CFunction, CLibrary
from minrpc.library.compiling import Compiled, Sources, compile_sources
from minrpc.library.fake_functions import Fake, FakeFunction, Fakes, PointerArgument, fake
from minrpc.library.faking import FakesGiven, ReplacementsGiven
from minrpc.library.firmware_functions import FirmwareFunctions
from minrpc.library.linked import LinkedLibrary, Load, load_or_find, named, sources_of
from minrpc.library.linking import LinkedImage, link
from minrpc.library.loaded import LoadedLibrary
from minrpc.library.loading import firmware_of, load, load_compiled
from minrpc.library.placing import out
from minrpc.library.scalars import Address
from minrpc.library.structs import StructValue
from minrpc.library.toolset import Toolset, program_facts, toolset_of
from minrpc.program.objects import function_sizes

__all__ = [
    "Address",
    "CFunction",
    "CFunctions",
    "CLibrary",
    "CompileError",
    "Compiled",
    "Fake",
    "FakeFunction",
    "Fakes",
    "FakesGiven",
    "FirmwareFunctions",
    "GuardError",
    "LinkedImage",
    "LinkedLibrary",
    "LinkerError",
    "Load",
    "LoadError",
    "LoadedLibrary",
    "PointerArgument",
    "ReplacementsGiven",
    "Sources",
    "StructValue",
    "Toolset",
    "UndefinedSymbolsError",
    "compile_sources",
    "fake",
    "fakes",
    "firmware_of",
    "function_sizes",
    "library_of",
    "link",
    "load",
    "load_compiled",
    "load_or_find",
    "measure",
    "named",
    "out",
    "program_facts",
    "read",
    "sources_of",
    "time_evaluator",
    "toolset_of",
    "types",
    "unload",
    "variables",
    "write",
]
