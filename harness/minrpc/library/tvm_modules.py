# SPDX-License-Identifier: Apache-2.0
"""Modules that TVM generated, loaded into a running device: C code, objects, archives of `export_library`.

TVM has had two calling conventions. Until v0.20, a function `f` is TVM's packed C function of that name,
which the device calls directly. From v0.21 on, it is `__tvm_ffi_f` and takes an array of TVMFFIAny: a small
adapter, compiled with the module, converts the device's call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from minrpc.client import RemoteArray, Session
from minrpc.errors import ModuleError
from minrpc.firmware import Firmware
from minrpc.firmware.cache import kept_file, scratch
from minrpc.library import LoadedLibrary
from minrpc.library.archives import UNPACKED, members
from minrpc.library.compiling import Compiled, Sources, code_alignments, compile_file, compile_text
from minrpc.library.loading import firmware_of, load_compiled
from minrpc.library.thunks import registry_source
from minrpc.library.toolset import Toolset, program_facts, toolset_of
from minrpc.library.tvm_targets import float16_flags, misfit
from minrpc.names import kind_of
from minrpc.program import Elf
from minrpc.program.c_types import Declarations
from minrpc.program.elf import FUNCTION, GLOBAL, UNDEFINED
from minrpc.wire.dtypes import BOOLEAN

PREFIX: Final = "__tvm_ffi_"

HEADERS: Final = Path(__file__).with_name("tvm_headers")
"""Directory of the headers that generated C code includes."""

_SOURCES: Final = (".c", ".cc", ".o")
# Symbols of generated code that are not functions for callers.
_NOT_FUNCTIONS: Final = ("__tvm_", "_GLOBAL_", "tvmgen_")
# Functions that an LLVM object calls through weak pointers, which stay NULL unless they are set.
_POINTERS: Final = (
    "TVMBackendAllocWorkspace",
    "TVMBackendFreeWorkspace",
    "TVMBackendParallelLaunch",
    "TVMFFIErrorSetRaisedFromCStr",
    "TVMFFIErrorSetRaisedFromCStrParts",
)

_NEXT_TARGET: Final = 'compile it for minrpc.tvm.llvm_target(device), or for the target "c"'

_ADAPTER: Final = """\
typedef union { long long i; double f; void *p; } value;
typedef struct { int type_index; unsigned zero_padding; union { long long i; double f; void *p; }; } any;
typedef int packed(value *a, int *c, int n, value *r, int *rc, void *resource);
typedef int ffi(void *self, void *args, int n, void *result);

extern void TVMAPISetLastError(const char *);
extern void *TVMBackendAllocWorkspace(int, int, unsigned long long, int, int);
extern int TVMBackendFreeWorkspace(int, int, void *);
extern int TVMBackendParallelLaunch(void *, void *, int);

#define MOST_ARGUMENTS 64

static char *joined(char *to, const char *from, char *end)
{
	while (from != (void *)0 && to != end && *from != 0) {
		*to++ = *from++;
	}
	return to;
}

void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int count)
{
	char text[256], *end = text + sizeof(text) - 1;
	char *at = joined(joined(text, kind, end), ": ", end);

	for (int i = 0; i < count; i++) {
		at = joined(at, parts[i], end);
	}
	*at = 0;
	TVMAPISetLastError(text);
}

void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message)
{
	TVMFFIErrorSetRaisedFromCStrParts(kind, &message, 1);
}

#ifdef __arm__
/* Functions of Arm's run-time ABI; GCC's library has other names. Arguments are in core registers. */
#define CORE_REGISTERS __attribute__((pcs("aapcs")))

extern CORE_REGISTERS float __gnu_h2f_ieee(unsigned short);
extern CORE_REGISTERS unsigned short __gnu_f2h_ieee(float);

CORE_REGISTERS float __aeabi_h2f(unsigned short half)
{
	return __gnu_h2f_ieee(half);
}

CORE_REGISTERS unsigned short __aeabi_f2h(float number)
{
	return __gnu_f2h_ieee(number);
}
#endif

/* An argument's type index by its type code; -1 for a code without a type index. */
static int index_of(int code)
{
	static const signed char indices[] = {1, 1, 3, 4, 0, 5, 6, 7, -1, -1, -1, 8, -1, -1, -1, 2};

	return code >= 0 && code < (int)sizeof(indices) ? indices[code] : -1;
}

static int call(ffi *function, value *a, int *c, int n, value *r, int *rc)
{
	any args[MOST_ARGUMENTS], result = {0};
	int status;

	if (n > MOST_ARGUMENTS) {
		TVMAPISetLastError("more arguments than a generated function may have");
		return -1;
	}
	for (int i = 0; i < n; i++) {
		args[i] = (any){.type_index = index_of(c[i])};
		args[i].i = 0;
		if (args[i].type_index < 0) {
			TVMAPISetLastError("an argument of a type that generated functions do not take");
			return -1;
		}
		if (c[i] == 2) {
			args[i].f = a[i].f;
		} else if (c[i] == 3 || c[i] == 7 || c[i] == 11) {
			args[i].p = a[i].p;
		} else if (c[i] != 4) {
			args[i].i = a[i].i;
		}
	}
	status = function((void *)0, args, n, &result);
	if (status != 0) {
		return status;
	}
	r->i = result.i;
	*rc = result.type_index == 0 ? 4 : result.type_index == 3 ? 2 : result.type_index <= 2 ? 0 : 3;
	return 0;
}
"""


def load_tvm(
    session: Session,
    module: str | PathLike[str] | Any,  # noqa: ANN401 - TVM has no types
    *,
    firmware: Firmware | None = None,
) -> TvmLibrary:
    """See `Device.load_tvm`."""
    name, content = _content(module)
    return load_module(session, name, content, firmware=firmware)


def load_module(
    session: Session,
    name: str,
    content: bytes,
    *,
    firmware: Firmware | None = None,
    flags: Sequence[str] = (),
    unpacked: int = UNPACKED,
) -> TvmLibrary:
    """Does the same as `load_tvm`, with a file's name and content, and further flags for its C code.

    unpacked: limit of an archive's content, in bytes.
    """
    toolset = toolset_of(firmware_of(session, firmware))
    compiled, names = compile_module(name, content, toolset, flags, unpacked)
    return TvmLibrary(session, load_compiled(session, compiled, toolset), names)


def _content(module: str | PathLike[str] | Any) -> tuple[str, bytes]:  # noqa: ANN401
    """A module's file name, whose suffix gives its type, and its bytes. Raises ModuleError."""
    if isinstance(module, str | PathLike):
        path = Path(module)
        if not path.is_file():
            raise ModuleError(f"there is no file {path}")
        return path.name, path.read_bytes()
    inner = getattr(module, "mod", module)
    if not hasattr(inner, "get_write_formats"):
        raise ModuleError(f"{kind_of(module)} is no module: give the result of tvm.compile, or a file")
    suffix = "c" if "c" in inner.get_write_formats() else "o"
    with scratch() as directory:
        path = directory / f"module.{suffix}"
        inner.write_to_file(str(path), suffix)
        return path.name, path.read_bytes()


def compile_module(
    name: str, content: bytes, toolset: Toolset, flags: Sequence[str] = (), unpacked: int = UNPACKED
) -> tuple[Compiled, tuple[str, ...]]:
    """Objects with a table of packed functions, and the functions' names.

    name: its suffix gives the type of the content: .c, .cc, .o or .tar. flags: further flags for C code.
    unpacked: limit of an archive's content, in bytes. Raises as `load_tvm` does.
    """
    objects = [_object(name, suffix, part, toolset, flags) for suffix, part in parts(name, content, unpacked)]
    contents = [object_file.read_bytes() for object_file in objects]
    elves = [Elf(content, name) for content in contents]
    symbols = [symbol for elf in elves for symbol in _functions(elf, toolset)]
    names, text = adapter_source(symbols)
    if not names:
        raise ModuleError(f"{name} has no function that TVM generated")
    adapter = compile_text(text, toolset)
    key = hashlib.sha256(b"".join(contents) + text.encode()).hexdigest()
    declared, alignments = Declarations({}, {}, {}), code_alignments(elves)
    return Compiled(name, (*objects, adapter), (), {}, declared, False, key, alignments=alignments), names


def _functions(elf: Elf, toolset: Toolset) -> list[str]:
    """The functions that an object defines. Raises ProgramFileError; ModuleError for another processor."""
    name, given = elf.name, (elf.machine, elf.bits)
    defined, used = defined_functions(elf), elf.used()
    facts = program_facts(toolset.elf)
    due = (facts.machine, facts.bits)
    if given != due:
        words = [f"{str(machine).removeprefix('EM_')}, {bits} bits" for machine, bits in (given, due)]
        raise ModuleError(f"{name} is code for {words[0]}; the device is {words[1]}", next_step=_NEXT_TARGET)
    absent = sorted(
        symbol for symbol in used if symbol.startswith("__TVM") and symbol.removeprefix("__") not in _POINTERS
    )
    if absent:
        calls = ", ".join(symbol.removeprefix("__") for symbol in absent)
        raise ModuleError(
            f"{name} calls {calls}, which only TVM's own runtime has",
            next_step="let TVM generate loops for it: this operator looks a packed function up, as sort does",
        )
    why = misfit(toolset, used)
    if why:
        raise ModuleError(f"{name} {why}", next_step=_NEXT_TARGET)
    return defined


def _object(name: str, suffix: str, content: bytes, toolset: Toolset, further: Sequence[str]) -> Path:
    """The object of a part of the module `name`, in the cache. Raises ModuleError, CompileError."""
    if suffix == ".o" and content[:4] != b"\x7fELF":
        raise ModuleError(
            f"{name} is no ELF object" if name.endswith(".o") else f"{name} has an object that is not ELF"
        )
    source = kept_file(Path(name).stem + suffix, content)  # the compiler's messages contain the name
    if suffix == ".o":
        return source
    include = [HEADERS] if b"tvm/ffi/" in content else []
    flags = ["-w", *further, *float16_flags(content.decode(errors="replace"), toolset)]
    return compile_file(source, Sources.of(source, include=include, flags=flags), toolset).path


def parts(name: str, content: bytes, unpacked: int = UNPACKED) -> list[tuple[str, bytes]]:
    """The sources and objects in a module: suffix of the name, and bytes. Raises ModuleError.

    unpacked: limit of an archive's content, in bytes.
    """
    suffix = Path(name).suffix
    if suffix in _SOURCES:
        return [(suffix, content)]
    if suffix != ".tar":
        raise ModuleError(f"{name}: a module is a file .c, .o or .tar")
    pieces = [
        (Path(inner).suffix, data)
        for inner, data in members(name, content, unpacked)
        if Path(inner).suffix in _SOURCES
    ]
    if not pieces:
        raise ModuleError(f"{name} holds no C code and no object")
    return pieces


def defined_functions(elf: Elf) -> list[str]:
    """The names of the global functions that an object defines."""
    return [
        symbol.name
        for symbol in elf.symbols
        if symbol.kind == FUNCTION and symbol.bind == GLOBAL and symbol.section != UNDEFINED
    ]


def adapter_source(symbols: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """The names of the generated functions among `symbols`, and C code with a table of them."""
    today = [symbol for symbol in symbols if symbol.startswith(PREFIX)]
    before = [] if today else [symbol for symbol in symbols if not symbol.startswith(_NOT_FUNCTIONS)]
    parts = [_ADAPTER]
    parts += [f"void *__{name} = (void *){name};" for name in _POINTERS]
    for number, symbol in enumerate(today):
        parts.append(
            f"extern ffi {symbol};\n"
            f"static int f{number}(value *a, int *c, int n, value *r, int *rc, void *resource)\n"
            f"{{\n\t(void)resource;\n\treturn call({symbol}, a, c, n, r, rc);\n}}\n"
        )
    parts += [f'extern packed f{number} __asm__("{symbol}");' for number, symbol in enumerate(before)]
    names = tuple(symbol.removeprefix(PREFIX) for symbol in (today or before))
    parts.append(registry_source([(name, f"f{number}") for number, name in enumerate(names)]))
    return names, "\n".join(parts)


class TvmFunction:
    """One function of a loaded module: takes numpy arrays, arrays of the device and numbers."""

    def __init__(self, library: TvmLibrary, name: str) -> None:
        self.name = name
        self._library = library

    def __call__(self, *args: object) -> object:
        """Call the function. Writable numpy arrays are updated in place."""
        remote = [
            self._library.array(argument) if isinstance(argument, np.ndarray) else argument
            for argument in args
        ]
        result = self._library.packed(self.name)(*remote)
        for given, there in zip(args, remote, strict=True):
            if isinstance(given, np.ndarray) and isinstance(there, RemoteArray) and given.flags.writeable:
                given[...] = there.numpy()
        return result

    def __repr__(self) -> str:
        return f"<{self.name} of {self._library.name}>"


class TvmLibrary:
    """A module of TVM's on a device: each function is an attribute, and an item."""

    def __init__(self, session: Session, loaded: LoadedLibrary, names: Sequence[str]) -> None:
        self._session = session
        self.loaded = loaded
        self.name = loaded.name
        self.functions = tuple(names)
        addresses = loaded.symbols.addresses
        self._today = any(f"{PREFIX}{name}" in addresses for name in names)
        prefix = PREFIX if self._today else ""
        loaded.module.code = {name: addresses[f"{prefix}{name}"] for name in names}

    def array(self, data: npt.NDArray[Any]) -> RemoteArray:
        """A copy of `data` on the device, with this module's type for booleans, which changed in v0.21."""
        boolean = BOOLEAN if self._today and data.dtype == np.bool_ else None
        return self._session.array(data, boolean)

    def packed(self, name: str) -> Any:  # noqa: ANN401
        """The packed function itself, which takes arrays of the device."""
        return self.loaded.module[name]

    @property
    def module(self) -> Any:  # noqa: ANN401
        """The device's module: `time_evaluator` and `measure` take names of its functions."""
        return self.loaded.module

    def __getitem__(self, name: str) -> TvmFunction:
        if name not in self.functions:
            raise KeyError(f"{self.name} has no function {name!r}; there is {', '.join(self.functions)}")
        return TvmFunction(self, name)

    def __getattr__(self, name: str) -> TvmFunction:
        if name.startswith("__") or "functions" not in self.__dict__:
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def unload(self) -> None:
        """Free its memory. A second call does nothing."""
        self.loaded.unload()
