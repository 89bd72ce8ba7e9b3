# SPDX-License-Identifier: Apache-2.0
"""The compiler and linker of a firmware, with the flags that determine its calling convention."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from minrpc.errors import ConfigurationError, ToolchainMissingError
from minrpc.firmware import Firmware
from minrpc.firmware.toolchain import base_extensions, debian_compiler
from minrpc.host.files import Stamp, stamp_of
from minrpc.host.process import ask_tool
from minrpc.program import Elf, read_program
from minrpc.program.c_types import AlignmentLimits
from minrpc.program.compiler import compiler_of
from minrpc.program.elf import CHOSEN_AT_START, FUNCTION, THREAD

COMMANDS: Final = "compile_commands.json"
# A source of the firmware that is compiled with just the port's flags.
_EXAMPLE: Final = "operators/operators.c"
_THREAD_LOCALS: Final = "__tls_base"
# Room for those of loaded code in each thread, which Zephyr's port has on a RISC-V.
_THREAD_ROOM: Final = "minrpc_thread_room"
_CODE_PAGE: Final = "minrpc_code_page"

_WITH_VALUE: Final = frozenset({"-o", "-c", "-MF", "-MT", "-MQ"})
_PLACES: Final = ("-I", "-isystem", "-imacros", "-include", "-iquote", "-idirafter")
# Flags that only the firmware's own build uses: warnings, standard, dependency files, debug paths,
# link-time optimization.
_DROPPED: Final = re.compile(
    r"-(W(?!l,|a,|p,).*|Wa,--MD,.*|pedantic.*|std=.*|M[DMGP]*|g.*|flto.*|fuse-linker-plugin|"
    r"fno-fat-lto-objects|ffat-lto-objects|f\w+-prefix-map=.*|fdiagnostics.*|DNDEBUG|fpie|fPIE|fno-pie|"
    r"fno-pic|save-temps.*|fprofile.*|D__PROGRAM_START.*)"
)
# The firmware's definitions that its headers test; a user's file gets none of the runtime's.
_OWN_DEFINITION: Final = re.compile(r"-DMINRPC_")


_ARCHITECTURES: Final = {
    "EM_ARM": "arm",
    "EM_AARCH64": "arm64",
    "EM_386": "x86",
    "EM_X86_64": "host",
    "EM_RISCV": "riscv",
}
# Flags in debug information that determine the calling convention.
_TOLD: Final = re.compile(
    r"-m(?!indirect|fentry|record).*|-O.|-f(no-)?(short-enums|short-wchar|(un)?signed-char|pack-struct.*)"
)

EMULATIONS: Final = {
    ("EM_386", 32): "elf_i386",
    ("EM_X86_64", 64): "elf_x86_64",
    ("EM_RISCV", 32): "elf32lriscv",
    ("EM_RISCV", 64): "elf64lriscv",
}


@dataclass(frozen=True)
class Toolset:
    """The tools and options that make code for a running firmware.

    compiler: the C compiler; the C++ compiler has its name with "g++". flags: for the processor and its ABI.
    includes: the firmware's own include options, which come last.
    elf: the firmware; loaded code is linked against it. libraries: a C library that was built with it.
    stamp: of the firmware's file, which another build may overwrite.
    """

    compiler: str
    flags: tuple[str, ...]
    includes: tuple[str, ...]
    elf: Path
    libraries: tuple[Path, ...] = ()
    stamp: Stamp = (0, 0, 0)

    @property
    def cxx(self) -> str:
        """The compiler of C++."""
        return re.sub(r"gcc(?=[^/]*$)|cc(?=[^/]*$)", "g++", self.compiler, count=1)

    @property
    def has_shared_libraries(self) -> bool:
        """True if the firmware is a program with a dynamically linked C library."""
        return program_facts(self.elf).dynamic

    @property
    def calls_far(self) -> bool:
        """True if callees of the loaded code may be out of reach of a call instruction."""
        return self.has_shared_libraries and program_facts(self.elf).bits == 64

    @property
    def code_flags(self) -> tuple[str, ...]:
        """The flags for code that is loaded.

        Functions with the same body are not merged: the debug information would name only one of them. Code
        is linked for its address, so it need not be position-independent, which is the default of Debian's
        GCC.
        """
        calls = ("-fPIC", "-fno-plt", "-fno-semantic-interposition") if self.calls_far else ("-fno-pie",)
        merging = () if is_clang(self.compiler) else ("-fno-ipa-icf",)  # Clang merges nothing.
        return (*self.flags, "-ffunction-sections", "-fdata-sections", *merging, *calls)

    @property
    def emulation(self) -> tuple[str, ...]:
        """The linker's option for the processor, for a linker of several."""
        facts = program_facts(self.elf)
        emulation = EMULATIONS.get((facts.machine, facts.bits))
        return ("-m", emulation) if emulation else ()

    @property
    def _libgcc(self) -> str:
        return _asked(self.compiler, "-print-libgcc-file-name", base_extensions(self.flags))

    def program(self, name: str) -> str:
        """The compiler's path of a tool: "ld", "as", ..."""
        return _asked(self.compiler, f"-print-prog-name={name}")

    def shared_functions(self) -> frozenset[str]:
        """Functions of the firmware's dynamically linked C library."""
        return _shared_functions(self.compiler, self.flags)

    def library_options(self) -> tuple[str, ...]:
        """Options that link the compiler's libraries after the user's: directories, libm, libc, libgcc."""
        if self.has_shared_libraries:
            return (self._libgcc,)
        if "-nostdinc" in self.flags:  # The firmware's C library is not the compiler's.
            return ("--start-group", *map(str, self.libraries), self._libgcc, "--end-group")
        return _library_options(self.compiler, self.flags)

    def library_files(self) -> Sequence[Path]:
        """The archives that `library_options` names."""
        options = self.library_options()
        places = [Path(option[2:]) for option in options if option.startswith("-L")]
        paths = [Path(option) for option in options if not option.startswith("-")]
        for name in (f"lib{option[2:]}.a" for option in options if option.startswith("-l")):
            paths += [place / name for place in places if (place / name).is_file()][:1]
        return paths


def alignment_limits(machine: str) -> AlignmentLimits:
    """The alignment limits of the machine's compiler for members of structs."""
    return AlignmentLimits(4 if machine == "EM_386" else 8, 8 if machine == "EM_ARM" else 64)


@dataclass(frozen=True)
class ProgramFacts:
    """machine: "EM_ARM", ...; bits: 32 or 64; dynamic: True if linked with shared libraries; thumb: True for
    Thumb code.

    thread_locals: address of its thread-local variables, as picolibc's linker script names it; None if it has
        none, or each thread of an operating system has its own.
    thread_room: of each thread's variables, those that are for loaded code: offsets from the thread pointer.
    code_page: bytes of an emulator's page, which loaded code and data do not share; 1: they may.
    """

    machine: str
    bits: int
    dynamic: bool
    thread_locals: int | None = None
    thread_room: range = range(0)
    code_page: int = 1

    @property
    def pointer_size(self) -> int:
        """Size of a pointer, in bytes."""
        return self.bits // 8

    @property
    def limits(self) -> AlignmentLimits:
        """The alignment limits for members of structs."""
        return alignment_limits(self.machine)

    @property
    def thumb(self) -> bool:
        """True if functions' addresses have their lowest bit set."""
        return self.machine == "EM_ARM"


def program_facts(elf: Path) -> ProgramFacts:
    """The facts from the program's ELF header and symbols, read once while the file is the same."""
    return _facts(elf, stamp_of(elf))


@lru_cache(maxsize=64)
def _facts(elf: Path, stamp: Stamp) -> ProgramFacts:
    file = read_program(elf).elf
    addresses = (symbol.value for symbol in file.symbols if symbol.name == _THREAD_LOCALS)
    thread_locals = next(addresses, None) if file.thread_locals else None
    rooms = (
        range(symbol.value, symbol.value + symbol.size)
        for symbol in file.symbols
        if symbol.name == _THREAD_ROOM and symbol.kind == THREAD
    )
    dynamic = file.section(".dynamic") is not None
    page = next((symbol.value for symbol in file.symbols if symbol.name == _CODE_PAGE), 0) or 1
    return ProgramFacts(file.machine, file.bits, dynamic, thread_locals, next(rooms, range(0)), page)


def toolset_of(firmware: Firmware) -> Toolset:
    """The toolset from the firmware's build; without the build's commands, from its debug information.

    Raises ConfigurationError if neither has it.
    """
    commands = firmware.build_dir / COMMANDS
    given = (firmware.elf, stamp_of(firmware.elf))
    return _toolset_from(commands, *given) if commands.is_file() else _toolset_by(*given)


@lru_cache(maxsize=16)
def _toolset_by(elf: Path, stamp: Stamp) -> Toolset:
    """Debian's compiler for the program's processor, with the flags that its debug information names.

    Raises ConfigurationError, ToolchainMissingError.
    """
    facts = program_facts(elf)
    arch = _ARCHITECTURES.get(facts.machine)
    told = compiler_of(elf, "")
    if arch is None or not told.flags:
        raise ConfigurationError(
            f"the compiler that built {elf.name} is not known: its debug information does not name it",
            next_step="compile it with -g, or keep compile_commands.json beside it",
        )
    flags = [word for word in told.flags.split() if _TOLD.fullmatch(word)]
    specs = ["--specs=picolibc.specs"] if arch in ("arm", "riscv") else []
    return Toolset(debian_compiler(arch), (*flags, *specs), (), elf, stamp=stamp)


def is_clang(compiler: str) -> bool:
    """True if the compiler is Clang, also by another name: cc."""
    return _is_clang(shutil.which(compiler) or compiler)


@lru_cache(maxsize=64)
def _is_clang(path: str) -> bool:
    return "clang" in Path(os.path.realpath(path)).name


@lru_cache(maxsize=64)
def _toolset_from(commands: Path, elf: Path, stamp: Stamp) -> Toolset:
    """The toolset from a build's compile_commands.json, for the program `elf`."""
    entries = json.loads(commands.read_text())
    entry = next((entry for entry in entries if str(entry["file"]).endswith(_EXAMPLE)), entries[0])
    words = entry.get("arguments") or shlex.split(entry["command"])
    return _from_command(words, Path(entry["directory"]), commands.parent, elf, stamp)


def _from_command(words: Sequence[str], work: Path, kept: Path, elf: Path, stamp: Stamp) -> Toolset:
    """work: the build's directory at the time; its generated files are in `kept` now."""
    if Path(words[0]).name == "ccache":
        words = words[1:]
    flags: list[str] = []
    includes: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if word in _WITH_VALUE:
            next(rest, None)
        elif word.startswith(_PLACES):
            option = next(place for place in sorted(_PLACES, key=len, reverse=True) if word.startswith(place))
            value = word[len(option) :] or next(rest)
            includes += [option, _moved(value, work, kept)]
        elif word in ("-D", "-U"):
            flags += _kept_definition(word + next(rest))
        elif word.startswith("-D"):
            flags += _kept_definition(word)
        elif word.startswith("-") and not _DROPPED.fullmatch(word):
            flags.append(_moved(word, work, kept))
    library = kept / "modules" / "picolibc" / "libc.a"
    libraries = (library,) if library.is_file() else ()
    return Toolset(words[0], tuple(flags), tuple(includes), elf, libraries, stamp)


def _kept_definition(word: str) -> list[str]:
    return [] if _OWN_DEFINITION.match(word) or word == "-DNDEBUG" else [word]


def _moved(text: str, work: Path, kept: Path) -> str:
    return text.replace(str(work), str(kept))


@lru_cache(maxsize=64)
def _asked(compiler: str, question: str, flags: tuple[str, ...] = ()) -> str:
    return run_tool([compiler, *flags, question]).strip()


@lru_cache(maxsize=4)
def _shared_functions(compiler: str, flags: tuple[str, ...]) -> frozenset[str]:
    functions: set[str] = set()
    for library in ("libc.so.6", "libm.so.6"):
        path = Path(_asked(compiler, f"-print-file-name={library}", flags))
        if not path.is_file():
            continue
        symbols = Elf(path.read_bytes(), library).dynamic_symbols
        functions |= {symbol.name for symbol in symbols if symbol.kind in (FUNCTION, CHOSEN_AT_START)}
    return frozenset(functions)


@lru_cache(maxsize=64)
def _library_options(compiler: str, flags: tuple[str, ...]) -> tuple[str, ...]:
    """The directories that the compiler's driver gives the linker, without the script and options of its
    specs."""
    ran = ask_tool([compiler, *flags, "-###", "-x", "none", "minrpc.o"])
    lines = [line for line in ran.stderr.splitlines() if "collect2" in line or "/ld" in line.split(" ")[1:2]]
    words = shlex.split(lines[-1]) if lines else []
    directories = [word for word in words if word.startswith("-L")]
    return (*directories, "--start-group", *_present(("m", "c", "gcc"), directories), "--end-group")


def _present(libraries: Iterable[str], directories: Sequence[str]) -> list[str]:
    places = [Path(directory[2:]) for directory in directories]
    return [
        f"-l{library}"
        for library in libraries
        if any((place / f"lib{library}.a").is_file() for place in places)
    ]


def run_tool(command: Sequence[str]) -> str:
    """The output of a tool that must succeed. Raises MissingError when it is not there or fails."""
    ran = ask_tool(command)
    if ran.returncode:
        raise ToolchainMissingError(f"{' '.join(command)}: {ran.stderr.strip()}", stage="load")
    return ran.stdout
