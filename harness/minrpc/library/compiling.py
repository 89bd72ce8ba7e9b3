# SPDX-License-Identifier: Apache-2.0
"""Compiles sources to objects with their types and thunks. Needs no device: worker processes can run it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from glob import has_magic
from pathlib import Path
from textwrap import shorten
from typing import Final, TypeAlias

from minrpc.errors import CompileError, ConfigurationError, ToolchainMissingError
from minrpc.firmware.cache import in_the_cache, is_whole, kept, kept_file, mark_used, objects_home, scratch
from minrpc.firmware.compiler_notes import noting
from minrpc.firmware.environment import build_environment, counted
from minrpc.firmware.identity import Content, Look, changed_since, content_of, file_hash, hash_of, name_of
from minrpc.firmware.inputs import inputs_of_compilation
from minrpc.firmware.places import Places
from minrpc.firmware.toolchain import environment_here
from minrpc.host.files import utf8, write_whole
from minrpc.host.process import run_compiler, shell_words
from minrpc.library.absent import ENDINGS, nowhere
from minrpc.library.reachable import forget_objects, needing
from minrpc.library.stack_bound import FLAG, parse_graphs, stack_frames
from minrpc.library.statics import (
    KEEP_INLINE,
    KEEP_STATICS,
    callable_statics,
    static_functions,
    weakened,
    with_global_symbols,
)
from minrpc.library.thunks import callable_functions, thunk_name, thunk_source
from minrpc.library.toolset import Toolset, is_clang, program_facts
from minrpc.program import Elf, read_program
from minrpc.program.c_types import Declarations, FunctionDeclaration, FunctionType, Pointer, strip
from minrpc.program.compiler import Compiler, compiler_of_object
from minrpc.program.debug_info import read_declarations
from minrpc.program.elf import CHOSEN_AT_START, GLOBAL, THREAD, UNDEFINED, WEAK
from minrpc.program.merging import UNTYPED, merged
from minrpc.program.objects import elves_of, elves_of_library, read_object
from minrpc.program.packing import SECTION, ask_alignments, ask_arguments
from minrpc.targets.flags import flags_at
from minrpc.targets.project import define_text

_COMPILE_S: Final = 10 * 60.0
_C: Final = (".c",)
_CXX: Final = (".cc", ".cpp", ".cxx", ".C")
_ASSEMBLER: Final = (".S", ".s")
_BINARY: Final = (".o", ".a")
# Its functions are inline: a C file that includes it is compiled, and keeps their code.
_HEADER: Final = (".h",)
# C++ without its runtime library.
_CXX_FLAGS: Final = (
    "-fno-exceptions", "-fno-rtti", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables",
    "-fno-threadsafe-statics", "-fno-use-cxa-atexit",
)  # fmt: skip
# Types are read from the object itself, whatever other flags say.
_WHOLE_DEBUG: Final = ("-g", "-gz=none", "-gno-split-dwarf", "-fno-debug-types-section")
# Zeroed memory up to this size, in bytes, is sent with the image; more is zeroed on the device.
_SMALL_BSS: Final = 512
# Number of sources whose types and thunks are kept in memory.
_KEPT: Final = 64
# Objects hold the paths of their sources.
_ANYWHERE: Final = Places({})
# Flags that change how functions are called.
_CALLING: Final = ("-m", "-fpcc-struct-return", "-freg-struct-return", "-ffixed-", "-fcall-")
_DECLARED: Final = "minrpc_declared_"
_SPECS: Final = "--specs=picolibc.specs"

PathText: TypeAlias = str | os.PathLike[str]
_NAME_MAX: Final = 255  # bytes of a file's name, on Linux and macOS


@dataclass(frozen=True)
class Sources:
    """The files to compile and their options: a value.

    files: C, C++, headers of C, assembler, objects, archives. include: directories. flags: come after the
        firmware's own. defines: each "NAME" or "NAME=VALUE". libraries: archives and objects that are only
        linked.
    headers: included before each source. declare: prototypes of assembler functions, or headers with them.
    statics: functions with internal linkage can be called, too.
    replaced: functions whose calls can be redirected.
    """

    files: tuple[Path, ...]
    include: tuple[Path, ...] = ()
    flags: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    libraries: tuple[Path, ...] = ()
    headers: tuple[Path, ...] = ()
    declare: tuple[str, ...] = ()
    statics: bool = False
    replaced: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        files: PathText | Sequence[PathText],
        *,
        include: PathText | Sequence[PathText] = (),
        flags: str | Sequence[str] = (),
        defines: Mapping[str, object] | str | Sequence[str] = (),
        libraries: PathText | Sequence[PathText] = (),
        headers: PathText | Sequence[PathText] = (),
        declare: str | Sequence[str] = (),
        statics: bool = False,
    ) -> Sources:
        """Sources from user input: flags and defines may be a string of several words, and a single path
        stands for a list. Files and libraries may be patterns, "src/*.c". Headers are also looked for in the
        directories of `include`. Relative paths start at the working directory, also in flags. Raises
        ConfigurationError for files that are missing or of unknown kind."""
        if not isinstance(statics, bool):
            raise TypeError(f"statics= is True or False, not {statics!r}")
        listed = [path for given in paths_of(files) for path in _matches(given)]
        if not listed:
            raise ConfigurationError(
                "there is nothing to load: no source was given", next_step="name a C file"
            )
        named = (
            [define_text(*item) for item in defines.items()]
            if isinstance(defines, Mapping)
            else [word.removeprefix("-D") for word in words_of(defines)]
        )
        directories = tuple(_directory(path) for path in paths_of(include))
        kinds = (*_C, *_CXX, *_HEADER, *_ASSEMBLER, *_BINARY)
        return cls(
            tuple(_file(_in(directories, path, _HEADER), kinds) for path in listed),
            directories,
            tuple(flags_at(words_of(flags), Path())),
            tuple(named),
            tuple(_file(path, _BINARY) for given in paths_of(libraries) for path in _matches(given)),
            tuple(_file(_in(directories, path), ()) for path in paths_of(headers)),
            (declare,) if isinstance(declare, str) else tuple(declare),
            statics,
        )

    @property
    def name(self) -> str:
        """The first source's name, for messages."""
        return self.files[0].name

    def has_statics(self, source: Path) -> bool:
        """True if functions of `source` with internal linkage can be called."""
        return (self.statics and source.suffix not in _ASSEMBLER) or source.suffix in _HEADER


def words_of(given: str | Sequence[str]) -> Sequence[str]:
    """The list, or a string's words as a shell splits them. Raises ConfigurationError for an open quote."""
    words = shell_words(given) if isinstance(given, str) else given
    if not isinstance(words, Sequence) or not all(isinstance(word, str) for word in words):
        raise TypeError(f"a text or a list of texts is expected, not {given!r}")
    return [utf8(word) for word in words]


def paths_of(given: PathText | Sequence[PathText]) -> Sequence[PathText]:
    """The list of paths; a single path becomes a list. Raises TypeError for anything else."""
    given = [given] if isinstance(given, str | os.PathLike) else given
    if not isinstance(given, Sequence) or not all(isinstance(item, str | os.PathLike) for item in given):
        raise TypeError(f"a path or a list of paths is expected, not {given!r}")
    for item in given:
        _require_path(item)
    return given


def _require_path(given: PathText) -> None:
    """Raise ConfigurationError for a text of C, or another text that no file can have as its name."""
    text = os.fspath(given)
    too_long = max(map(len, os.fsencode(text).split(b"/"))) > _NAME_MAX
    if too_long or (set(text) & set(";\n") and not os.path.exists(text)):
        shown = shorten(text, 60, placeholder=" ...") if " " in text else f"{text[:60]}..."
        raise ConfigurationError(
            f"not a file's name: {shown}", next_step="write C to a file, and name the file"
        )


def _directory(given: PathText) -> Path:
    path = utf8(Path(given).absolute())
    if not path.is_dir():
        raise ConfigurationError(f"there is no directory {given}", next_step="correct the path")
    return path


def _in(directories: Sequence[Path], given: PathText, suffixes: Sequence[str] = ()) -> PathText:
    """The path, or that of the first directory that has a file of this name, and of `suffixes` if any."""
    if Path(given).is_file() or (suffixes and Path(given).suffix not in suffixes):
        return given
    return next((path for directory in directories if (path := directory / given).is_file()), given)


def _matches(given: PathText) -> Sequence[PathText]:
    """The path, or the files that a pattern names, sorted. Raises ConfigurationError if there are none."""
    path = Path(given)
    if path.exists() or not has_magic(str(given)):
        return [given]
    # A directory's name may have a pattern's letters.
    root = next((parent for parent in path.parents if parent.exists()), Path())
    files: list[Path] = []
    with suppress(ValueError):  # Python before 3.13 takes no "**b".
        files = sorted(item for item in root.glob(str(path.relative_to(root))) if item.is_file())
    if not files:
        raise ConfigurationError(f"there is no file {given}", next_step="correct the path")
    return files


def _file(given: str | os.PathLike[str], suffixes: Sequence[str]) -> Path:
    path = utf8(Path(given).absolute())
    if not path.is_file():
        beside = ", or name its directory in include" if path.suffix in _HEADER else ""
        raise ConfigurationError(f"there is no file {given}", next_step=f"correct the path{beside}")
    if suffixes and path.suffix not in suffixes:
        raise ConfigurationError(
            f"{path.name}: files of this kind can't be loaded", next_step=f"name one of {', '.join(suffixes)}"
        )
    return path


@dataclass(frozen=True)
class Compiled:
    """Objects ready to be linked, with their declarations.

    objects: the user's, then `generated` ones, the thunks' last. libraries: archives linked after them.
    functions: by name, also those that can't be called. declarations: variables and types.
    start: True if `thunks.START` must run after loading.
    thread_pointer: True if thunks set the thread pointer, on RISC-V.
    key: hash of all content.
    stack_use: each function's own stack frame, in bytes. stack_bounds: with all its callees, where known.
    thunk_frames: stack use of each function's thunk, in bytes. check_frame: stack use of the check of the
        arguments, in bytes.
    options: the caller's definitions and flags.
    kept_data: sections of data that are linked also if no function needs them; None: all.
    alignments: of sections with code, by name, in bytes.
    wrapped: functions whose calls go to `__wrap_NAME`.
    """

    name: str
    objects: tuple[Path, ...]
    libraries: tuple[Path, ...]
    functions: Mapping[str, FunctionDeclaration]
    declarations: Declarations
    start: bool
    key: str
    thread_pointer: bool = False
    stack_use: Mapping[str, int] = field(default_factory=dict)
    stack_bounds: Mapping[str, int] = field(default_factory=dict)
    thunk_frames: Mapping[str, int] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    check_frame: int = 0
    kept_data: tuple[str, ...] | None = None
    alignments: Mapping[str, int] = field(default_factory=dict)
    generated: int = 1
    wrapped: tuple[str, ...] = ()

    @property
    def own_objects(self) -> tuple[Path, ...]:
        """The user's objects."""
        return self.objects[: -self.generated]

    @property
    def calling(self) -> Sequence[str]:
        """The flags that may choose registers for arguments, such as -mavx and -mfloat-abi=soft."""
        return calling_flags(self.options)

    @cached_property
    def compiler(self) -> Compiler:
        """The compiler of the first source, from its debug information, with the caller's options."""
        first = next((made for made in self.own_objects if made.suffix == ".o"), None)
        if first is None:
            return Compiler("", " ".join(self.options))
        compiler = compiler_of_object(Elf(first.read_bytes(), first.name))
        flags = compiler.flags.split()
        given = [option for option in self.options if option not in flags and not option.startswith("-O")]
        return Compiler(compiler.name, " ".join([*flags, *given]))


def compile_sources(sources: Sources, toolset: Toolset, missing: tuple[str, ...] = ()) -> Compiled:
    """Compile, read the types, make and compile the thunks. Unchanged sources come from the cache.

    missing: undefined symbols; functions that need them can't be called.

    Raises CompileError with the compiler's output, ToolchainMissingError.
    """
    compiled_file = partial(compile_file, sources=sources, toolset=toolset)
    if len(sources.files) == 1:
        objects: tuple[CompiledFile, ...] = (compiled_file(sources.files[0]),)
    else:
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            objects = tuple(pool.map(compiled_file, sources.files))
    contents = tuple(_Content.of(compiled.path) for compiled in objects)
    beside = [*map(str, sources.libraries), *_declared(sources, toolset)]
    given = (sources, toolset, objects, contents, tuple(map(file_hash, beside)), missing)
    compiled = _with_thunks(*given)
    made = compiled.objects if any(map(sources.has_statics, sources.files)) else compiled.objects[-1:]
    if not all(path.is_file() for path in made):  # The cache has been cleaned in the meantime.
        return _with_thunks.__wrapped__(*given)
    for path in made:
        mark_used(path.parent)
    for content in contents:
        content.data = b""
    return compiled


def forget_compiled() -> None:
    """Empty the caches in memory of what was compiled."""
    _with_thunks.cache_clear()
    forget_objects()


@dataclass(unsafe_hash=True)
class _Content:
    """A file's content; its hash identifies it. A key in a cache has no data any more."""

    digest: str
    data: bytes = field(repr=False, compare=False)
    name: str = field(compare=False)

    @classmethod
    def of(cls, path: Path) -> _Content:
        data = path.read_bytes()
        return cls(hashlib.sha256(data).hexdigest(), data, path.name)

    @property
    def elf(self) -> Elf | None:
        """The file, if it is an object; None for an archive."""
        return Elf(self.data, self.name) if self.data[:4] == b"\x7fELF" else None


@lru_cache(maxsize=_KEPT)
def _with_thunks(
    sources: Sources,
    toolset: Toolset,
    objects: tuple[CompiledFile, ...],
    contents: tuple[_Content, ...],
    libraries: tuple[str, ...],
    missing: tuple[str, ...],
) -> Compiled:
    """Reads the types, makes and compiles the thunks. libraries: hashes of the libraries' content, and of
    headers with prototypes. missing: see `compile_sources`."""
    facts = program_facts(toolset.elf)
    each = [item.declarations(content.data) for item, content in zip(objects, contents, strict=True)]
    for source, read in zip(sources.files, each, strict=True):
        if source.suffix in (*_C, *_HEADER):
            compiled = partial(_alignments, source=source, sources=sources, toolset=toolset)
            ask_alignments(read, str(source), facts.pointer_size, compiled)
            if facts.machine == "EM_ARM":
                ask_arguments(read, str(source), partial(compiled, flags=("-O1", "-fno-sanitize=all")))
    searched = [(library, elves_of_library(library)) for library in sources.libraries]
    for library, found in searched:
        _require_machine(library, found, facts.machine)
    elves = [content.elf for content in contents]
    _require_no_choice(elves)
    declarations = merged(_without_overridden(each, elves))
    if any(map(sources.has_statics, sources.files)):
        objects, statics = _with_statics(sources, objects, elves, each, toolset)
        declarations = replace(declarations, functions={**declarations.functions, **statics})
    if sources.declare:
        declarations = _with_prototypes(declarations, sources, toolset)
    functions = callable_functions(declarations.functions.values(), facts.limits)
    kept_data: tuple[str, ...] | None = None
    missing += _endings(elves)
    if missing:
        paths = [*(item.path for item in objects), *sources.libraries]
        lacking = needing([item.symbol for item in functions], missing, paths, toolset)
        functions, kept_data = list(_without(functions, lacking.functions)), lacking.whole_data
    start = any(_needs_start(elf) for elf in elves) or bool(sources.libraries)
    supported = [function for function in functions if not function.unsupported]
    own_block = facts.thread_locals is None and not facts.thread_room
    riscv = facts.machine == "EM_RISCV" and facts.thread_locals is None
    may_have = riscv and _may_have_thread_locals(elves, sources, toolset.elf)
    # The firmware's, which its kernel may need in each interrupt and fault, stays.
    thread_pointer = may_have and not read_program(toolset.elf).elf.thread_locals
    thread_room = may_have and bool(facts.thread_room)
    start = start or thread_room
    text = thunk_source(
        supported,
        facts.limits,
        start=start,
        own_block=own_block,
        thread_pointer=thread_pointer,
        thread_room=thread_room,
    )
    thunks = compile_text(text, toolset, calling_flags(sources.flags))
    graph = parse_graphs(object_file.graph for object_file in objects)
    hashes = [*(content.digest for content in contents), thunks.parent.name, *libraries]
    return Compiled(
        sources.name,
        (*(object_file.path for object_file in objects), thunks),
        sources.libraries,
        {function.name: function for function in functions},
        declarations,
        start,
        hashlib.sha256("".join(hashes).encode()).hexdigest(),
        thread_pointer,
        {name: size for object_file in objects for name, size in object_file.stack_use.items()},
        {name: bound for name in graph.frames if (bound := graph.bound(name)) is not None},
        thunk_frames(thunks, [function.name for function in supported]),
        (*(f"-D{define}" for define in sources.defines), *sources.flags),
        check_frame(stack_frames(thunks.with_suffix(".su"))),
        kept_data,
        code_alignments([*filter(None, elves), *(elf for _, found in searched for elf in found)]),
    )


def code_alignments(elves: Iterable[Elf]) -> dict[str, int]:
    """The alignments of the objects' sections with code, in bytes: for each name the largest."""
    sections = (section for elf in elves for section in elf.sections if section.executable)
    by_size = sorted(sections, key=lambda section: section.alignment)
    return {section.name: section.alignment for section in by_size}


def check_frame(frames: Mapping[str, int]) -> int:
    """The stack use in bytes of the check of a call's arguments, by that of the thunks' functions."""
    return max((size for name, size in frames.items() if name.partition(".")[0] == "minrpc_fits"), default=0)


def thunk_frames(thunks: Path, names: Sequence[str]) -> Mapping[str, int]:
    """The stack use in bytes of the thunk of each function, in the order of the thunks."""
    frames = stack_frames(thunks.with_suffix(".su"))
    each = ((name, frames.get(thunk_name(index))) for index, name in enumerate(names))
    return {name: frame for name, frame in each if frame is not None}


def _with_statics(
    sources: Sources,
    objects: tuple[CompiledFile, ...],
    elves: Sequence[Elf | None],
    declarations: Sequence[Declarations],
    toolset: Toolset,
) -> tuple[tuple[CompiledFile, ...], Mapping[str, FunctionDeclaration]]:
    """The objects with global symbols for functions with internal linkage, and these functions by name."""
    functions = [
        static_functions(
            elf, item.graph, declared.statics, {source} if source.suffix in _HEADER else frozenset()
        )
        if sources.has_statics(source)
        else ()
        for source, item, elf, declared in zip(sources.files, objects, elves, declarations, strict=True)
    ]
    external = {name for declared in declarations for name in declared.functions}
    named = callable_statics(functions, external)
    return tuple(
        replace(
            item,
            path=with_global_symbols(item.path, elf, own, [function.symbol for function in called], toolset),
            reports=item.path,
        )
        for item, elf, own, called in zip(objects, elves, functions, named, strict=True)
    ), {function.name: function for called in named for function in called}


def _without_overridden(each: Sequence[Declarations], elves: Sequence[Elf | None]) -> Sequence[Declarations]:
    """The declarations without those of weak functions and variables that another object replaces."""
    symbols = [elf.symbols if elf else () for elf in elves]
    weak = [{symbol.name for symbol in own if symbol.bind == WEAK and symbol.placed} for own in symbols]
    if not any(weak):
        return each
    strong = {symbol.name for own in symbols for symbol in own if symbol.bind == GLOBAL and symbol.placed}
    return [
        replace(
            read,
            functions={name: item for name, item in read.functions.items() if item.symbol not in names},
            every_variable=[item for item in read.every_variable if item.item.symbol not in names],
        )
        if names
        else read
        for read, names in zip(each, (own & strong for own in weak), strict=True)
    ]


def _endings(elves: Sequence[Elf | None]) -> tuple[str, ...]:
    """Functions of the C library that the objects need, and that have no effect in loaded code."""
    symbols = [symbol for elf in elves if elf for symbol in elf.symbols if symbol.name in ENDINGS]
    defined = {symbol.name for symbol in symbols if symbol.section != UNDEFINED}
    return tuple(sorted({symbol.name for symbol in symbols} - defined))


def _without(
    functions: Sequence[FunctionDeclaration], lacking: Mapping[str, Sequence[str]]
) -> Sequence[FunctionDeclaration]:
    """The functions; those in `lacking` can't be called, because these symbols are missing."""
    return [
        replace(function, unsupported=f"it needs {nowhere(lacking[function.symbol])}")
        if function.symbol in lacking
        else function
        for function in functions
    ]


def _with_prototypes(declarations: Declarations, sources: Sources, toolset: Toolset) -> Declarations:
    """The declarations, with assembler functions' types from `declare`. Raises CompileError."""
    lines = _prototypes(sources)
    untyped = [name for name, function in declarations.functions.items() if function.unsupported == UNTYPED]
    headers = (Path(path).read_text() for path in _headers(sources))
    known = "\n".join([*(item for item in sources.declare if "(" in item), *headers])
    named = [name for name in untyped if re.search(rf"\b{re.escape(name)}\s*\(", known)]
    lines += [f"__typeof__({name}) *const {_DECLARED}{name} = {name};" for name in named]
    made = _compiled_prototypes(lines, sources, toolset)
    given = read_declarations(Elf(made.read_bytes(), "declare="))
    functions = dict(declarations.functions)
    for name in named:
        pointer = strip(given.variables[f"{_DECLARED}{name}"].type)
        assert isinstance(pointer, Pointer)
        prototype = strip(pointer.target)
        assert isinstance(prototype, FunctionType)
        functions[name] = FunctionDeclaration(name, functions[name].symbol, prototype)
    declarations = merged([declarations, Declarations(every_type=given.every_type)])
    return replace(declarations, functions=functions)


def _prototypes(sources: Sources) -> list[str]:
    """The lines of C that `declare` stands for."""
    own = ["#include <stdbool.h>", "#include <stddef.h>", "#include <stdint.h>"]
    given = (
        item.strip().rstrip(";") + ";" if "(" in item else f'#include "{item}"' for item in sources.declare
    )
    return [*own, *given]


def _compiled_prototypes(lines: Sequence[str], sources: Sources, toolset: Toolset) -> Path:
    places = (*sources.include, *dict.fromkeys(file.parent for file in sources.files))
    options = ["-g", *(f"-I{place}" for place in places), *toolset.includes]
    return compile_text("\n".join(lines) + "\n", toolset, options)


def _declared(sources: Sources, toolset: Toolset) -> Sequence[str]:
    """Files that change with `declare`'s headers: these, and an object that is new if a header that they
    include has changed."""
    headers = _headers(sources)
    return [*headers, str(_compiled_prototypes(_prototypes(sources), sources, toolset))] if headers else ()


def _headers(sources: Sources) -> list[str]:
    return [str(_header(item, sources)) for item in sources.declare if "(" not in item]


def _header(name: str, sources: Sources) -> Path:
    """A header that `declare` names. Raises ConfigurationError."""
    _require_path(name)
    places = [*sources.include, *(file.parent for file in sources.files), Path()]
    header = next((place / name for place in places if (place / name).is_file()), None)
    return _file(header or name, ())


def _may_have_thread_locals(elves: Sequence[Elf | None], sources: Sources, firmware: Path) -> bool:
    """True if the code, or parts of the C library linked to it, may have thread-local variables."""
    if sources.libraries or None in elves:
        return True
    symbols = [symbol for elf in elves if elf for symbol in elf.symbols]
    needed = {symbol.name for symbol in symbols if symbol.section == UNDEFINED}
    needed -= {symbol.name for symbol in symbols if symbol.section != UNDEFINED} | {
        symbol.name for symbol in read_program(firmware).elf.symbols
    }
    return bool(needed) or any(symbol.kind == THREAD for symbol in symbols)


def _needs_start(elf: Elf | None) -> bool:
    """True if the object has constructors, or more than `_SMALL_BSS` of zeroed memory."""
    if elf is None:
        return True  # An archive: its linked members are not known yet.
    sections = elf.sections
    zeroed = sum(section.size for section in sections if section.allocated and not section.stored)
    constructors = any(section.name.startswith((".init_array", ".ctors")) for section in sections)
    return constructors or zeroed > _SMALL_BSS


@dataclass(frozen=True)
class CompiledFile:
    """An object file. reports: the compiler's stack reports lie beside this; None: compiled elsewhere.
    calls: another object of the same source, whose debug information tells the functions that it calls."""

    path: Path
    reports: Path | None
    calls: Path | None = None

    def declarations(self, content: bytes) -> Declarations:
        """The declarations in the file, whose content is given, and of the functions that it calls."""
        read = read_object(self.path, content)
        if self.calls is None:
            return read
        more = read_object(self.calls, self.calls.read_bytes())
        return replace(read, declared=more.declared, every_type=[*read.every_type, *more.every_type])

    @property
    def stack_use(self) -> Mapping[str, int]:
        """Stack frame of each function, in bytes."""
        return stack_frames(self.reports.with_suffix(".su")) if self.reports is not None else {}

    @property
    def graph(self) -> str:
        """The call graph as -fcallgraph-info writes it; "" if there is none."""
        notes = self.reports.with_suffix(".ci") if self.reports is not None else None
        return notes.read_text(errors="replace") if notes is not None and notes.is_file() else ""


def compile_file(source: Path, sources: Sources, toolset: Toolset) -> CompiledFile:
    if source.suffix in _BINARY:
        _require_machine(source, elves_of(source), program_facts(toolset.elf).machine)
        return CompiledFile(source, None)
    command = _command(source, sources, toolset)
    is_header = source.suffix in _HEADER
    if is_header:
        source = kept_file(f"{source.name}.c", f'#include "{source}"\n'.encode())
    made = _compiled(command, source) / "source.o"
    calls = None
    if source.suffix not in _ASSEMBLER and is_clang(command[0]):
        # Clang tells the functions that a source calls if it optimizes, and calls them by a PLT.
        calls = _compiled([*command, "-O1", "-fplt"], source) / "source.o"
    return CompiledFile(weakened(made, toolset) if is_header else made, made, calls)


def _alignments(
    text: str, source: Path, sources: Sources, toolset: Toolset, flags: Sequence[str] = ()
) -> bytes:
    """The answer to the question `text` about a source."""
    command = _command(source, sources, toolset)
    made = _compiled([*command, "-w", *flags], kept_file("alignments.c", text.encode())) / "source.o"
    return Elf(made.read_bytes(), made.name).section(SECTION) or b""


def _command(source: Path, sources: Sources, toolset: Toolset) -> list[str]:
    """The compiler's command for a source."""
    cxx, assembler = source.suffix in _CXX, source.suffix in _ASSEMBLER
    command = [toolset.cxx if cxx else toolset.compiler, *toolset.code_flags, "-g"]
    command += _CXX_FLAGS if cxx else ()
    if sources.has_statics(source):
        _require_gnu(command[0], source)
        command += KEEP_STATICS
    command += KEEP_INLINE if source.suffix in _HEADER else ()
    command += [f"-D{define}" for define in sources.defines]
    command += [f"-I{directory}" for directory in (*sources.include, source.parent)]
    for header in () if assembler else (*_weak(sources.replaced), *sources.headers):
        command += ["-include", str(header)]
    command += [*sources.flags, *toolset.includes, "-fno-lto"]
    if any(flag != "-g" and flag.startswith(("-g", "-fdebug-types")) for flag in command):
        command += _WHOLE_DEBUG
    if not is_clang(command[0]) and not assembler:
        command.append(FLAG)
    return command


def _require_gnu(compiler: str, source: Path) -> None:
    if is_clang(compiler):
        raise ConfigurationError(
            f"{source.name}: Clang has no option that keeps the code of static and inline functions",
            next_step="call them from a function with external linkage, or compile with GCC",
        )


def _require_machine(path: Path, elves: Sequence[Elf], machine: str) -> None:
    """Raise ConfigurationError for an object or archive of another machine."""
    other = {elf.machine for elf in elves} - {machine}
    if other:
        raise ConfigurationError(
            f"{path.name} was compiled for {min(other).removeprefix('EM_')}, "
            f"the device is {machine.removeprefix('EM_')}",
            next_step="name its source, or compile it for the device",
        )


def _require_no_choice(elves: Sequence[Elf | None]) -> None:
    """Raise ConfigurationError for a function whose code is chosen when a program starts."""
    for elf in filter(None, elves):
        for symbol in elf.symbols:
            if symbol.kind == CHOSEN_AT_START and symbol.placed:
                raise ConfigurationError(
                    f"{symbol.name} of {elf.name} is chosen when a program starts (ifunc), and loaded code "
                    "does not start as a program does",
                    next_step="leave out the attribute `ifunc`, and name the function that is to be called",
                )


def _weak(functions: Sequence[str]) -> Sequence[Path]:
    """A header that keeps the compiler from inlining the functions and from relying on their bodies."""
    if not functions:
        return ()
    text = "".join(f"#pragma weak {name}\n" for name in functions)
    return (kept_file("weak.h", text.encode()),)


def calling_flags(flags: Sequence[str]) -> Sequence[str]:
    """The flags that code which calls the sources, or is called by them, must have, too."""
    return [flag for flag in flags if flag.startswith(_CALLING)]


def compile_text(text: str, toolset: Toolset, flags: Sequence[str] = ()) -> Path:
    """Compiles generated C source to an object. flags: come after the firmware's own."""
    source = kept_file("thunks.c", text.encode())
    return _compiled([toolset.compiler, *toolset.code_flags, *flags, "-w", "-fno-lto"], source) / "source.o"


def _compiled(command: Sequence[str], source: Path) -> Path:
    """The cache directory with source.o.

    A list beside it has all inputs, with their hashes; it shows which directory is current.
    """
    content = source.read_bytes()
    environment = build_environment(environment_here())
    objects = objects_home()
    # The compiler and its assembler by the names that PATH has now; other programs lie beside the compiler.
    tools = [shutil.which(name, path=environment.get("PATH")) or "" for name in (command[0], "as")]
    variables = [f"{name}={value}" for name, value in counted(environment).items()]
    plan = hash_of([*command, str(source), *tools, *variables, hashlib.sha256(content).hexdigest()])[:32]
    known = _known(objects, plan)
    if known is not None:
        mark_used(known)
        return known
    begin_ns = time.time_ns()
    with scratch() as work:
        told = _compile(command, source, work, environment)
        inputs = inputs_of_compilation(command, work, told)
        look = Look.at("", inputs)
        changed = set(changed_since(inputs.files - {str(source)}, begin_ns))
        changed = {path for path in changed if not path.startswith(f"{objects}/")}
        if changed or source.read_bytes() != content:
            inputs = replace(inputs, unsure=f"{source.name} or a file that it includes changed meanwhile")
        contents = content_of(inputs, _ANYWHERE)

        def fill(directory: Path) -> None:
            for name in ("source.o", "source.su", "source.ci"):
                if (work / name).is_file():
                    shutil.copy2(work / name, directory / name)

        directory = kept(objects / _name(plan, contents), fill)
        if not contents.unsure:
            _note(directory.parent, plan, contents, look)
    return directory


def _known(objects: Path, plan: str) -> Path | None:
    """The directory of the object that the compiler would make from the current files, if it is there."""
    try:
        look = Look.from_text((objects / f"{plan}.look").read_text())
        directory = objects / look.name
        if not is_whole(directory):
            return None
        if look.holds():
            return directory
        content = Content.from_json(json.loads((objects / f"{plan}.json").read_text()))
    except (OSError, ValueError, KeyError):  # A file may be empty after a loss of power.
        return None
    look = Look.at(look.name, content.inputs(_ANYWHERE))
    if _name(plan, content) != look.name or not content.holds(_ANYWHERE, file_hash):
        return None
    with suppress(OSError):  # With a read-only cache all inputs are read each time.
        write_whole(objects / f"{plan}.look", look.to_text())
    return directory


def _note(objects: Path, plan: str, content: Content, look: Look) -> None:
    with in_the_cache():
        write_whole(objects / f"{plan}.json", json.dumps(content.to_json()))
        write_whole(objects / f"{plan}.look", replace(look, name=_name(plan, content)).to_text())


def _name(plan: str, content: Content) -> str:
    return f"{plan}-{name_of(plan, content)[:16]}"


def _compile(command: Sequence[str], source: Path, work: Path, environment: Mapping[str, str]) -> str:
    """The compiler's output; the object and the lists of files are in `work`. Raises CompileError."""
    made = work / "source.o"
    words = [*command, "-fstack-usage", "-c", str(source), "-o", made.name]
    gnu, assembler = not is_clang(command[0]), source.suffix == ".s"
    noted = noting(words, preprocessed=not assembler, assembled=gnu)
    status, output = _run(noted, work, environment)
    if status:
        # Once more without the compiler's notes, for the output that the user expects.
        status, plain = _run(words, work, environment)
        name = source.stem if Path(source.stem).suffix in _HEADER else source.name
        raise CompileError(f"{name} does not compile", plain if status else output)
    if gnu and _SPECS in words:
        _require_known_options(words, source, work, environment)
    if not made.is_file() or not made.read_bytes().startswith(b"\x7fELF"):
        error = CompileError(f"the compiler makes no object of {source.name}")
        error.next_step = "leave out the flag that ends its work earlier, such as -E, -S or -fsyntax-only"
        raise error
    return output


def _require_known_options(
    words: Sequence[str], source: Path, work: Path, environment: Mapping[str, str]
) -> None:
    """Raise CompileError for an option that GCC does not know: with picolibc's specs it takes any."""
    status, told = _run([*(word for word in words if word != _SPECS), "-###"], work, environment)
    if status:
        errors = [line for line in told.splitlines() if "error:" in line]
        raise CompileError(f"{source.name} does not compile", "\n".join(errors) or told)


def _run(command: Sequence[str], directory: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """The exit status and the output of a compiler."""
    try:
        status, output = run_compiler(command, directory, _COMPILE_S, environment)
    except FileNotFoundError as error:
        raise ToolchainMissingError(f"{command[0]} is not installed", stage="compile") from error
    except subprocess.TimeoutExpired:
        return 1, f"the compiler has run for {_COMPILE_S:g} s and was stopped"
    return status, (output or f"exit status {status}")
