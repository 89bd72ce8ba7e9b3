# SPDX-License-Identifier: Apache-2.0
"""Links objects to bytes that run at a given address of a running firmware."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from minrpc.errors import LinkerError, UndefinedSymbolsError
from minrpc.firmware.cache import cache_home, kept, scratch
from minrpc.host.files import Stamp, stamp_of
from minrpc.host.process import run_compiler
from minrpc.library.absent import nowhere
from minrpc.library.compiling import Compiled
from minrpc.library.stubs import SPARE_SECTION
from minrpc.library.thunks import REGISTRY
from minrpc.library.toolset import Toolset, program_facts, run_tool
from minrpc.names import listed
from minrpc.program import elf as elf_reader, read_program
from minrpc.program.elf import FUNCTION, GLOBAL, HIDDEN, LOCAL, THREAD, UNDEFINED, WEAK, Elf, Symbol

_LINK_S: Final = 120.0
ALIGNMENT: Final = 16
"""Alignment of the block's address, and at least of each function in it, in bytes."""

_SCRIPT: Final = """\
PHDRS
{{
	memory PT_LOAD;
}}
SECTIONS
{{
	/DISCARD/ : {{
		*(.ARM.exidx* .ARM.extab* .eh_frame* .comment .note.gnu* .note.GNU* .gnu.[!l]*)
		*(.stab* .fini_array* .dtors*)
	}}
	{firmware_thread_locals}
	. = {base:#x};
	minrpc_base = .;
	.aligned_code : SUBALIGN({widest}) {{
		*({aligned})
	}} :memory
	/* A function's address within a line of flash does not depend on the functions before it. */
	.loaded_code : SUBALIGN({alignment}) {{
		KEEP(*({spare}))
		*(.text .text.*)
	}} :memory
	.loaded : {{
		*(.rodata .rodata.* .srodata .srodata.*)
		INPUT_SECTION_FLAGS (SHF_ALLOC & SHF_EXECINSTR & !SHF_WRITE) *(*)
		minrpc_constants_end = .;
		. = ALIGN(8);
		minrpc_constructors = .;
		KEEP(*(SORT_BY_INIT_PRIORITY(.init_array.*) SORT_BY_INIT_PRIORITY(.ctors.*)))
		KEEP(*(.init_array .ctors))
		minrpc_constructors_end = .;
	}} :memory
	/* In an emulator, a store to a page that has code takes far longer. */
	. = ALIGN({page});
	minrpc_data = .;
	.loaded_data : {{
		KEEP(*({kept}))
		*({data})
		*(.got .got.* .igot .igot.* .toc .relro* .ldata*)
		. = ALIGN(4);
	}} :memory
	.tdata : {{
		*(.tdata .tdata.* .gnu.linkonce.td.*)
	}}
	.tbss : {{
		*(.tbss .tbss.* .gnu.linkonce.tb.* .tcommon)
	}}
	.zeroed (NOLOAD) : {{
		/* The linker gives .tbss an address, but no room. */
		. += SIZEOF(.tbss);
		KEEP(*(.bss .bss.* .sbss .sbss.* .lbss .lbss.* .gnu.linkonce.[bs]* .noinit .noinit.* COMMON))
		minrpc_bss_end = .;
	}}
	.others : {{
		/* Sections with names of the user's: behind all others, so that these keep their places. */
		INPUT_SECTION_FLAGS (SHF_ALLOC & !SHF_TLS) *(*)
	}} :memory
	minrpc_bss = SIZEOF(.tbss) ? ADDR(.tbss) : ADDR(.zeroed);
	minrpc_thread_locals = SIZEOF(.tdata) ? ADDR(.tdata) : ADDR(.tbss);
	minrpc_thread_pointer = minrpc_thread_locals - {thread_block};
	minrpc_thread_alignment = MAX(ALIGNOF(.tdata), ALIGNOF(.tbss));
	minrpc_end = .;
}}
"""

# The linker counts a thread-local variable's offset from the first section of such variables. With the
# firmware's thread pointer this must be the firmware's section, and no byte of it is stored here.
_FIRMWARE_THREAD_LOCALS: Final = """\
.firmware_thread_locals {address:#x} (NOLOAD) : {{
		KEEP(*(.tbss.minrpc_firmware))
	}} :NONE"""

# The firmware's, and a section without room.
_ELSEWHERE: Final = (".firmware_thread_locals", ".tbss")
_ALIGNMENT: Final = "minrpc_thread_alignment"
_FIRST: Final = "minrpc_firmware_thread_locals"
_THREAD_LOCALS_ALIGNMENT: Final = "__tls_align"

# Size of the largest linked file, in bytes.
_LARGEST: Final = 1 << 30

_DATA: Final = ".data .data.* .sdata .sdata.*"

# Bytes between the thread pointer and the first thread-local variable, by machine: 0 for others.
_THREAD_BLOCKS: Final = {"EM_ARM": "MAX(8, MAX(ALIGNOF(.tdata), ALIGNOF(.tbss)))"}

# Unwinding tables refer to these symbols; loaded code never unwinds.
_UNWINDERS: Final = ("__aeabi_unwind_cpp_pr0", "__aeabi_unwind_cpp_pr1", "__aeabi_unwind_cpp_pr2")
_FORMATS: Final = {
    "PICOLIBC_INTEGER_PRINTF_SCANF": "i",
    "PICOLIBC_FLOAT_PRINTF_SCANF": "f",
    "PICOLIBC_DOUBLE_PRINTF_SCANF": "d",
}
# A conversion of a floating-point number, of printf or scanf.
_FLOAT: Final = re.compile(rb"%(\d+\$)?[-+ #0']*(\*|\d*)(\.(\*|\d*))?[lL]?[aAeEfFgG]")
# The firmware's function that replaces the C library's, under the name that the linker's --wrap gives it.
_WRAPPED: Final = "__wrap_"
_NOISE: Final = re.compile(r"warning:|NOTE:|: in function ")
_TRUNCATED: Final = re.compile(
    r"relocation truncated to fit: (?P<kind>R_X86_64_PLT32|R_X86_64_PC32) "
    r"against (?:undefined )?symbol [`'\"](?P<name>[^'\"]+)['\"]"
)
_DOUBLE: Final = re.compile(
    r"(?P<again>[^:\s]+(?::\d+)?): multiple definition of [`'\"](?P<name>[^'\"]+)['\"];\s*"
    r"(?:\S+\.o:)?(?P<first>[^:\s]+(?::\d+)?):\s*first defined here"
)
_UNDEFINED: Final = re.compile(r"undefined reference to [`'\"](?P<name>[^'\"]+)['\"]")


@dataclass(frozen=True)
class LinkedImage:
    """A linked image, ready to load.

    base: its address. data: its bytes. size: in bytes, with the zeroed memory after `data`. gap: bytes of it
        that keep code and data apart.
    registry: offset of the table of its packed functions. constant_size: bytes of code and constants, which
        come first.
    symbols: addresses; functions' as C function pointers.
    thread_locals: its thread-local variables in the room of the firmware's threads: offsets from the thread
        pointer.
    sizes: of functions and variables, in bytes. program: its ELF file, with debug information.
    """

    base: int
    data: bytes
    size: int
    gap: int
    registry: int
    constant_size: int
    symbols: Mapping[str, int]
    sizes: Mapping[str, int]
    program: bytes = field(repr=False)
    thread_locals: range = range(0)

    @property
    def device_bytes(self) -> int:
        """Bytes of the device's memory that it takes at least: without the gap."""
        return self.size - self.gap

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it takes here."""
        return len(self.data) + len(self.program)


def link(
    compiled: Compiled,
    toolset: Toolset,
    base: int,
    further: Mapping[str, int] | None = None,
    taken: Sequence[range] = (),
    page: int = 1,
) -> LinkedImage:
    """Link for the address `base`. further: addresses of symbols that the firmware's ELF lacks.

    taken: what other libraries have of the threads' room: offsets from the thread pointer.
    page: bytes of the pages that code and data do not share.

    Raises UndefinedSymbolsError, LinkerError with the linker's messages.
    """
    known = further or {}
    far: set[str] = set()
    with scratch() as directory:
        linked = directory / "loaded.elf"
        facts = program_facts(toolset.elf)
        firmwares = base if facts.thread_room else facts.thread_locals
        while True:
            script = _SCRIPT.format(
                base=base,
                alignment=ALIGNMENT,
                widest=max([ALIGNMENT, *compiled.alignments.values()]),
                aligned=_patterns(name for name, to in compiled.alignments.items() if to > ALIGNMENT),
                page=page,
                firmware_thread_locals=""
                if firmwares is None
                else _FIRMWARE_THREAD_LOCALS.format(address=firmwares),
                thread_block=_THREAD_BLOCKS.get(facts.machine, "0"),
                data=_DATA,
                spare=SPARE_SECTION,
                kept=_DATA if compiled.kept_data is None else _patterns(compiled.kept_data),
            )
            (directory / "load.ld").write_text(script)
            near = {known_name: value for known_name, value in known.items() if known_name not in far}
            stubs = _far_calls({symbol: known[symbol] for symbol in far}, toolset, directory) if far else ()
            command = _command(compiled, toolset, directory, near, stubs)
            status, output = run_compiler(command, directory, _LINK_S)
            if not status:
                _require_size(linked, compiled.name)
                file = Elf(linked.read_bytes(), compiled.name)
                _require_thread_locals(compiled, file, toolset.elf)
                image = _image(file, base, zeros=not compiled.start)
                own = _own_thread_locals(file) if facts.thread_room else range(0)
                if own:
                    start = own.start - own.start % image.symbols[_ALIGNMENT]
                    first = start - _place(compiled.name, own.stop - start, file, facts.thread_room, taken)
                    if firmwares != first:
                        firmwares = first
                        continue
                    image = replace(image, thread_locals=range(own.start - first, own.stop - first))
                _require_inside(image, file)
                return image
            # The linker reports only the first few.
            more = _called_too_far(output, toolset) & (known.keys() - far)
            if not more:
                raise _failure(compiled.name, output)
            far |= more


def _patterns(sections: Iterable[str]) -> str:
    """The linker's patterns of these names; of no sections a name that no section has."""
    return " ".join(re.sub(r"[^\w.$]", "?", name) for name in sections) or "minrpc_none"


def _command(
    compiled: Compiled, toolset: Toolset, directory: Path, known: Mapping[str, int], stubs: Sequence[Path]
) -> list[str]:
    # RISC-V's relaxation uses the firmware's global pointer; x86-64's shortens calls that may be far.
    relaxes = program_facts(toolset.elf).machine != "EM_RISCV" and not toolset.calls_far
    archives = [str(object_file) for object_file in compiled.objects if object_file.suffix == ".a"]
    command = [toolset.program("ld"), *toolset.emulation, "-nostdlib", "-T", str(directory / "load.ld")]
    # Constants that no function uses are left out: a library's tables may be larger than the device's memory.
    command += ["-o", str(directory / "loaded.elf"), "--gc-sections", "-e", REGISTRY, "-z", "noexecstack"]
    command += [] if relaxes else ["--no-relax"]
    command += [f"--defsym={unwinder}=0" for unwinder in _UNWINDERS]
    command += [f"--wrap={name}" for name in compiled.wrapped]
    command += _formats(compiled, toolset)
    command += [f"--defsym={known_name}={value:#x}" for known_name, value in known.items()]
    command += [str(object_file) for object_file in (*compiled.objects, *stubs) if object_file.suffix != ".a"]
    command += ["--whole-archive", *archives, "--no-whole-archive"] if archives else []
    command += ["--start-group", *map(str, compiled.libraries), "--end-group"] if compiled.libraries else []
    command += [str(firmware_symbols(toolset))]  # Behind, since an archive defines only undefined symbols.
    return command + list(toolset.library_options())


def _formats(compiled: Compiled, toolset: Toolset) -> list[str]:
    """Options for another of picolibc's printf and scanf; other C libraries have one of each.

    Its compiler specs choose by a definition. Without the definition, code with formats of floating-point
    numbers gets functions that know these: a firmware's own may print "*float*".
    """
    letter = next((letter for name, letter in _FORMATS.items() if f"-D{name}" in compiled.options), "")
    if not letter and any(map(_has_float_formats, compiled.objects)):
        letter = "d"
    chosen = f"__{letter}_vfprintf".encode()
    archives = toolset.library_files()
    if not letter or not _has_symbol(tuple((path, stamp_of(path)) for path in archives), chosen):
        return []
    return [f"--defsym={name}=__{letter}_{name}" for name in ("vfprintf", "vfscanf")]


@lru_cache(maxsize=16)
def _has_symbol(archives: tuple[tuple[Path, Stamp], ...], name: bytes) -> bool:
    return any(name in path.read_bytes() for path, _ in archives)


def _has_float_formats(object_file: Path) -> bool:
    data = object_file.read_bytes()
    return (b"printf" in data or b"scanf" in data) and _FLOAT.search(data) is not None


def _called_too_far(output: str, toolset: Toolset) -> set[str]:
    """Functions out of reach of a call instruction: objects of other compilers assume near calls."""
    called = set()
    for match in _TRUNCATED.finditer(output):
        if match["kind"] == "R_X86_64_PLT32" or match["name"] in toolset.shared_functions():
            called.add(match["name"])
    return called


def _far_calls(functions: Mapping[str, int], toolset: Toolset, directory: Path) -> Sequence[Path]:
    """An object with a jump to each function, linked next to the code."""
    source, made = directory / "far.S", directory / "far.o"
    lines = ['.section .text.minrpc_far, "ax", %progbits']
    for name, address in functions.items():
        lines += [f".globl {name}", f".type {name}, %function", f"{name}:", "\tjmp *0f(%rip)"]
        lines += [f"0:\t.quad {address:#x}"]
    source.write_text("\n".join(lines) + "\n")
    run_tool([toolset.compiler, *toolset.flags, "-c", str(source), "-o", str(made)])
    return (made,)


def _failure(library: str, output: str) -> LinkerError:
    lines = [re.sub(r"^\S*ld(\.bfd)?: ", "", line) for line in output.splitlines() if not _NOISE.search(line)]
    names = tuple(dict.fromkeys(match["name"] for line in lines for match in _UNDEFINED.finditer(line)))
    shown = [line for line in lines if _UNDEFINED.search(line)]
    if names:
        return UndefinedSymbolsError(f"{library} needs {nowhere(names)}", names, shown)
    step = LinkerError.default_next_step
    if double := _DOUBLE.findall(output):
        lines = [f"{name} is defined at {first} and at {again}" for again, name, first in double]
        step = "leave one of the definitions out, or make it static; fakes and replace= need none in C"
    if _TRUNCATED.search(output):
        step = "compile it with -fPIC: variables of the C library lie further away than this code expects"
    error = LinkerError(f"{library} does not link", details=lines[:8], next_step=step)
    error.stage = "link"
    return error


def _require_thread_locals(compiled: Compiled, linked: Elf, firmware: Path) -> None:
    """Raise LinkerError for thread-local variables if loaded code can't have its own thread pointer."""
    facts = program_facts(firmware)
    names = linked.thread_locals
    if not names or facts.machine == "EM_ARM" or facts.thread_locals is not None or facts.thread_room:
        return
    if (
        facts.machine == "EM_RISCV"
        and compiled.thread_pointer
        and not read_program(firmware).elf.thread_locals
    ):
        return
    error = LinkerError(
        f"{compiled.name}: {listed(names, 6)} {'is' if len(names) == 1 else 'are'} thread-local (__thread), "
        "which loaded code can't have on this platform: the thread pointer is the firmware's",
        next_step="leave out __thread: a device calls functions one at a time",
    )
    error.stage = "link"
    raise error


def _own_thread_locals(linked: Elf) -> range:
    """Where the image has the first values of the thread-local variables that are not the firmware's."""
    own = [item for item in linked.sections if item.name in (".tdata", ".tbss") and item.size]
    return range(own[0].address, own[-1].address + own[-1].size) if own else range(0)


def _place(name: str, size: int, linked: Elf, room: range, taken: Sequence[range]) -> int:
    """The offset of the first place in the threads' room for the library's thread-local variables.

    Raises LinkerError for variables that have no place there.
    """
    alignment = next(item.value for item in linked.symbols if item.name == _ALIGNMENT)
    free = []
    for begin in (room.start, *sorted(-(-own.stop // alignment) * alignment for own in taken)):
        end = min((own.start for own in taken if own.stop > begin), default=room.stop)
        free.append(range(begin, end))
    place = next((part.start for part in free if len(part) >= size), None)
    if place is not None and alignment <= ALIGNMENT:
        return place
    names = linked.thread_locals
    step = "leave out __thread: a device calls functions one at a time"
    if place is not None:
        why = f"aligned to {alignment} bytes, and the stacks of the firmware's threads to {ALIGNMENT}"
    else:
        most = max(map(len, free))
        why = f"{size} bytes, and each of the firmware's threads has {most} of {len(room)} free in one piece"
        step = f"build the firmware with a larger CONFIG_MINRPC_THREAD_LOCALS, or {step}"
    are = f"{listed(names, 6)} {'is' if len(names) == 1 else 'are'} thread-local (__thread)"
    error = LinkerError(f"{name}: {are}: {why}", next_step=step)
    error.stage = "link"
    raise error


def _require_size(linked: Path, name: str) -> None:
    """Raise LinkerError for a file that a damaged object's alignment or address has made huge."""
    size = linked.stat().st_size
    if size > _LARGEST:
        raise LinkerError(f"{name}: the linked image has {size} bytes, more than any device's memory")


def _require_inside(image: LinkedImage, file: Elf) -> None:
    """Raise LinkerError for a section outside of the image, whose memory is not the library's."""
    for section in file.sections:
        inside = image.base <= section.address <= image.base + image.size - section.size
        if section.allocated and section.size and not inside and not section.name.startswith(_ELSEWHERE):
            error = LinkerError(
                f"{file.name}: section {section.name} has no place in the loaded image",
                next_step="leave out the section's name, or link the library into the firmware",
            )
            error.stage = "link"
            raise error


def _image(file: Elf, base: int, *, zeros: bool) -> LinkedImage:
    """zeros: True if the content has the zeroed variables, since no code on the device zeroes them."""
    # File-local symbols are found, too, unless a global has the same name.
    by_name = {item.name: item for item in file.symbols if item.bind == LOCAL}
    by_name |= {item.name: item for item in file.symbols if item.bind != LOCAL}
    by_name |= file.statics
    symbols = {name: symbol.value for name, symbol in by_name.items()}
    sizes = {name: symbol.size for name, symbol in by_name.items()}
    sections = file.loaded()
    end = max((at + len(data) for at, data in sections), default=base)
    content = bytearray(end - base)
    for at, data in sections:
        content[at - base : at - base + len(data)] = data
    size = symbols["minrpc_end"] - base
    own = any(item.name == ".others" and item.size and not item.stored for item in file.sections)
    if own or (zeros and symbols["minrpc_bss"] != symbols["minrpc_bss_end"]):
        content = content.ljust(size, b"\0")
    registry = symbols[REGISTRY] - base
    constants = symbols["minrpc_constants_end"] - base
    whole = max(size, len(content))
    gap = symbols["minrpc_data"] - symbols["minrpc_constructors_end"]
    return LinkedImage(base, bytes(content), whole, gap, registry, constants, symbols, sizes, file.content)


def firmware_symbols(toolset: Toolset) -> Path:
    """An object that defines the firmware's global symbols at their addresses; weakly, so that the user's own
    symbols win.

    The assembler makes it once for each firmware. Symbols without a type (--just-symbols) are no
    alternative: a far call would enter Thumb code in ARM state.
    """
    command = " ".join([toolset.compiler, *toolset.flags]).encode()
    key = hashlib.sha256(b"\0".join([toolset.elf.read_bytes(), command, _maker()])).hexdigest()[:32]
    facts = program_facts(toolset.elf)

    def fill(directory: Path) -> None:
        source = directory / "firmware.S"
        source.write_text(_symbol_source(toolset.elf, facts.thumb))
        run_tool([toolset.compiler, *toolset.flags, "-c", str(source), "-o", str(directory / "firmware.o")])
        source.unlink()

    return kept(cache_home() / "symbols" / key, fill) / "firmware.o"


def _maker() -> bytes:
    """The code that generates the symbols' source, as part of its cache key."""
    return b"".join(Path(file).read_bytes() for file in (__file__, elf_reader.__file__))


def _symbol_source(elf: Path, thumb: bool) -> str:
    lines = [".syntax unified", ".thumb"] if thumb else []
    symbols = read_program(elf).elf.symbols
    if not symbols:
        raise LinkerError(f"{elf.name} has no symbols: nothing can be linked against it")
    wrapped = {symbol.name.removeprefix(_WRAPPED) for symbol in symbols if symbol.name.startswith(_WRAPPED)}
    for symbol in symbols:
        # In a simulator, the program's symbols are local and hidden, to keep them apart from its C library's.
        hidden = symbol.bind == LOCAL and symbol.visibility == HIDDEN
        if (
            not (symbol.bind in (GLOBAL, WEAK) or hidden)
            or symbol.section == UNDEFINED
            or symbol.kind == THREAD
        ):
            continue
        if not re.fullmatch(r"[A-Za-z_.$][\w.$]*", symbol.name):
            continue
        name = symbol.name.removeprefix(_WRAPPED)
        if name in wrapped and name == symbol.name:
            continue
        lines.append(f".weak {name}")
        if symbol.kind == FUNCTION and thumb:
            lines += [f".type {name}, %function", f".thumb_set {name}, {symbol.value | 1:#x}"]
        else:
            lines.append(f".set {name}, {symbol.value:#x}")
    facts = program_facts(elf)
    if facts.thread_locals is not None or facts.thread_room:
        lines += _thread_local_source(symbols)
    return "\n".join(lines) + "\n"


def _thread_local_source(symbols: Sequence[Symbol]) -> list[str]:
    """The firmware's thread-local variables at their offsets, in a section that linking places over them.

    They have no size, so that code that is linked against them does not contain them.
    """
    there = [symbol for symbol in symbols if symbol.kind == THREAD and symbol.section != UNDEFINED]
    # The thread pointer of an Arm program depends on the alignment.
    alignment = next((symbol.value for symbol in symbols if symbol.name == _THREAD_LOCALS_ALIGNMENT), 1)
    lines = ['.section .tbss.minrpc_firmware, "awT", %nobits', f".balign {alignment}", f"{_FIRST}:"]
    for symbol in there:
        if symbol.bind in (GLOBAL, WEAK):
            lines += [f".weak {symbol.name}", f".type {symbol.name}, %tls_object"]
            lines += [f".set {symbol.name}, {_FIRST} + {symbol.value}"]
    return [*lines, f".space {max(symbol.value + symbol.size for symbol in there)}"]
