# SPDX-License-Identifier: Apache-2.0
"""A C file as a library of this process, its functions called through their thunks: no device, no link."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from minrpc import StructValue
from minrpc.library.arguments import plan_call
from minrpc.library.structs import make_struct
from minrpc.library.thunks import COPY, callable_functions, thunk_source
from minrpc.program import Elf
from minrpc.program.c_types import AlignmentLimits, Declarations
from minrpc.program.debug_info import read_declarations
from minrpc.wire.values import Handle

_STUB = """
#include <string.h>
char last_error[256];
void TVMAPISetLastError(const char *text)
{
	strncpy(last_error, text, sizeof(last_error) - 1);
}
"""


class _Value(ctypes.Union):
    _fields_ = (("i", ctypes.c_int64), ("f", ctypes.c_double), ("p", ctypes.c_void_p))


class HostLibrary:
    """The functions of C source `text`, compiled with `flags`, in `directory`."""

    def __init__(self, text: str, directory: Path, flags: Sequence[str] = ("-O1",)) -> None:
        source, thunks, stub = directory / "source.c", directory / "thunks.c", directory / "stub.c"
        compiled, shared = directory / "source.o", directory / "library.so"
        source.write_text(text)
        stub.write_text(_STUB)
        _run("gcc", "-g", "-fPIC", "-fno-ipa-icf", *flags, "-c", source, "-o", compiled)
        self.declarations: Declarations = read_declarations(Elf(compiled.read_bytes(), compiled.name))
        self.functions = {
            callable_function.name: callable_function
            for callable_function in callable_functions(
                self.declarations.functions.values(), AlignmentLimits()
            )
        }
        supported = [function for function in self.functions.values() if not function.unsupported]
        thunks.write_text(thunk_source(supported, AlignmentLimits(), copy=True))
        warnings = "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"
        _run("gcc", *warnings, *flags, "-fPIC", "-shared", thunks, stub, compiled, "-o", shared)
        self.library = ctypes.CDLL(str(shared))
        registry = (ctypes.c_void_p * 2).in_dll(self.library, "minrpc_registry")
        assert registry[1]
        self._thunks = ctypes.cast(registry[1], ctypes.POINTER(ctypes.c_void_p))
        names = [*(function.name for function in supported), COPY]
        self._index = {name: index for index, name in enumerate(names)}

    def struct(self, name: str, **values: object) -> StructValue:
        """A struct by its tag or typedef."""
        return make_struct(self.declarations.types[name], name, values)

    def call(self, name: str, *given: object) -> Any:  # noqa: ANN401 - a C function's result
        """Call the function through its thunk, in memory of this process."""
        plan = plan_call(self.functions[name], given, 8)
        memory = ctypes.create_string_buffer(max(plan.frame.size, 1) + 64)
        base = -(-ctypes.addressof(memory) // 64) * 64
        for offset, data in plan.frame.image(base):
            ctypes.memmove(base + offset, data, len(data))
        result = self.call_thunk(name, plan.arguments(base))
        begin, size = plan.frame.comes_back(cheap=True)
        plan.frame.take(memoryview(ctypes.string_at(base + begin, size)), begin, base, name)
        return plan.finish(result)

    def call_thunk(self, name: str, arguments: Sequence[object]) -> Any:  # noqa: ANN401 - a C function's result
        """Call the thunk as a device does. Raises RuntimeError with the thunk's text."""
        count = len(arguments)
        values, codes = (_Value * (count + 1))(), (ctypes.c_int * (count + 1))()
        for index, argument in enumerate(arguments):
            if isinstance(argument, Handle):
                values[index].p, codes[index] = argument.value, 3
            elif isinstance(argument, float):
                values[index].f, codes[index] = argument, 2
            else:
                values[index].i, codes[index] = argument, 0
        kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 2, ctypes.c_int, *[ctypes.c_void_p] * 3)
        returned, code = _Value(), ctypes.c_int(4)
        address = self._thunks[self._index[name]]
        assert address
        status = kind(address)(
            ctypes.addressof(values),
            ctypes.addressof(codes),
            count,
            ctypes.addressof(returned),
            ctypes.addressof(code),
            None,
        )
        if status:
            text = (ctypes.c_char * 256).in_dll(self.library, "last_error").value
            raise RuntimeError(text.decode())
        return {0: returned.i, 2: returned.f, 4: None}[code.value]


def _run(*words: object) -> None:
    ran = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
