# SPDX-License-Identifier: Apache-2.0
"""Loads code into a running device: compile, link for the address that the device gives, copy, register."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import BuiltinMethodType, MethodType
from typing import Final, NamedTuple
from weakref import ref

from minrpc.client import memory
from minrpc.client.function import RemoteModule
from minrpc.client.rpc import RpcClient
from minrpc.client.session import Session
from minrpc.errors import (
    ConfigurationError,
    DeviceMemoryError,
    DialectError,
    HarnessError,
    LoadError,
    ProgramFileError,
    RemoteError,
    UndefinedSymbolsError,
)
from minrpc.firmware import Firmware
from minrpc.firmware.store import program_with
from minrpc.host.files import Stamp
from minrpc.library.call_memory import BYTES, upload
from minrpc.library.compiling import Compiled, Sources, compile_sources, compile_text, forget_compiled
from minrpc.library.fake_functions import CallbackFunction, CallingLibrary, FakeFunction
from minrpc.library.faking import (
    FakesGiven,
    ReplacementsGiven,
    compile_stubs,
    require_asking,
    tell_prototypes,
    with_fakes,
)
from minrpc.library.heap_notes import with_heap_notes
from minrpc.library.linking import ALIGNMENT, LinkedImage, link
from minrpc.library.loaded import LoadedLibrary
from minrpc.library.scalars import Address, describe
from minrpc.library.stubs import SPARE, spares
from minrpc.library.thunks import COPY, START, thunk_source
from minrpc.library.toolset import COMMANDS, Toolset, program_facts, toolset_of
from minrpc.names import kind_of, text_name
from minrpc.program import Elf, read_program
from minrpc.program.c_types import (
    CType,
    Declarations,
    FunctionDeclaration,
    FunctionType,
    Pointer,
    declaration,
    strip,
)
from minrpc.targets import Target
from minrpc.wire.requests import free_data
from minrpc.wire.values import DLTensor, Handle, Module

CODE_ALLOC: Final = "minrpc.code_alloc"
CODE_LOAD: Final = "minrpc.code_load"
SYMBOL: Final = "minrpc.symbol"
CALLBACK: Final = "minrpc_callback"

# Bytes of the recently linked images together, with their ELF files.
_IMAGES: Final = 32 << 20
# Staging takes three more requests than a copy over the link: the time of some 100 bytes.
_WORTH_STAGING: Final = 256
# Large code goes through a small block piece by piece: a block of its size would take its memory twice.
_STAGED: Final = 256 * 1024
# Number of directories to search above a program for its build: build/zephyr/zephyr.elf.
_LEVELS: Final = 3
_ROUNDS: Final = 4


def load(
    session: Session,
    sources: Sources,
    *,
    firmware: Firmware | None = None,
    fakes: FakesGiven | None = None,
    replaced: ReplacementsGiven | None = None,
) -> LoadedLibrary:
    """Compile `sources` for the device and load them.

    firmware: the firmware that runs on the device; by default, the firmware that the device was started with.
    fakes, replaced: as `fakes` and `replace` of `Device.load`.

    Raises CompileError, LinkError, LoadError, DeviceMemoryError; the session goes on.
    """
    toolset = toolset_of(firmware_of(session, firmware))
    if not isinstance(replaced, Mapping | None):
        raise TypeError(f'replace= takes {{"name": function}}, not {describe(replaced)}')
    names = sorted(name for name in replaced or () if text_name(name, "function").isidentifier())
    sources = replace(sources, replaced=tuple(names))
    compiled = compile_sources(sources, toolset)
    _require_content(compiled)
    try:
        return _load(session, compiled, toolset, fakes, replaced)
    except UndefinedSymbolsError as error:
        tell_prototypes(compiled, error)
        rest = compile_sources(sources, toolset, error.names)
        if rest.functions == compiled.functions or all(item.unsupported for item in rest.functions.values()):
            raise
        return _load(session, rest, toolset, fakes, replaced)


def _require_content(compiled: Compiled) -> None:
    """Raise LoadError for sources without a function or variable that can be reached by name."""
    if not compiled.functions and not compiled.declarations.variables:
        raise LoadError(
            f"{compiled.name} has no function and no variable that could be reached",
            stage="load",
            next_step="name another source; statics=True makes static functions callable; a function in "
            "assembler has .globl, .type and .size",
        )


def _load(
    session: Session,
    compiled: Compiled,
    toolset: Toolset,
    fakes: FakesGiven | None,
    replaced: ReplacementsGiven | None,
) -> LoadedLibrary:
    """Load the sources, with the Python functions that they call."""
    functions: Mapping[str, FakeFunction] = {}
    if fakes is not None or replaced is not None:
        missing = partial(_missing, session, compiled, toolset)
        compiled, functions = with_fakes(compiled, toolset, fakes or {}, replaced or {}, missing)
    return load_compiled(session, compiled, toolset, functions)


def _missing(session: Session, compiled: Compiled, toolset: Toolset) -> Sequence[str]:
    """The symbols that the sources, their libraries and the firmware lack."""
    with session.rpc.lock:
        session.rpc.ready()
        linker = _Linker(session, toolset)
        try:
            linker.link(compiled, linker.base)
        except UndefinedSymbolsError as error:
            return [name for name in error.names if not linker.addresses([name])]
    return ()


def firmware_of(session: Session, given: Firmware | None = None) -> Firmware:
    """The firmware that runs on the device: `given`, or the firmware that the device was started with.

    Raises LoadError if it is unknown or another build runs, ConfigurationError if `given` is no build.
    """
    if given is not None:
        if not isinstance(given, Firmware):
            raise ConfigurationError(
                f"firmware= takes a build, minrpc.Firmware, not {kind_of(given)}",
                next_step="leave it out for the firmware that runs; device.firmware has its functions",
            )
        check_build(session, given)
        return given
    if session.owner.firmware is not None:
        if session.owner.firmware.target.build_dir is not None:
            attached = session.owner.firmware.target.attached
            anew = "it was built again: open the device again, which starts it"
            step = "flash this build: --flash auto" if attached else anew
            check_build(session, session.owner.firmware, step)
        return session.owner.firmware
    target = session.owner.target
    if target is not None and target.elf is not None:
        firmware = firmware_from(target, target.elf)
        check_build(session, firmware)
        return firmware
    build_id = session.info().build_id
    elf = program_with(build_id) if build_id and target is not None else None
    if elf is not None and target is not None:
        session.owner.note_program(elf)
        return firmware_from(target, elf)
    why = f": no firmware of the cache has its build id {build_id[:16]}" if build_id else ""
    raise LoadError(
        f"the running firmware of {session.name} is not known{why}",
        stage="load",
        next_step="name the program that was flashed: --elf FILE, or `firmware=build(target)`",
    )


def firmware_from(target: Target, elf: Path) -> Firmware:
    """A program that was built elsewhere. Raises LoadError if the file is no program."""
    elf = elf.absolute()
    try:
        content = elf.read_bytes()
        Elf(content, elf.name)
    except (OSError, ProgramFileError) as error:
        reason = error.strerror if isinstance(error, OSError) else error.message
        raise LoadError(
            f"{elf} is no program: {reason}", stage="load", next_step="name the ELF file that was flashed"
        ) from error
    places = [place for place in elf.parents[:_LEVELS] if (place / COMMANDS).is_file()]
    build_dir = places[0] if places else elf.parent
    return Firmware(target, elf, build_dir, hashlib.sha256(content).hexdigest(), cached=True, seconds=0.0)


def check_build(
    session: Session,
    firmware: Firmware,
    next_step: str = "flash the given firmware, or give the running firmware as `firmware=`",
) -> None:
    """Raise LoadError if the device runs another build than `firmware`. A device that can't report its build
    passes."""
    runs = session.info().build_id
    given = build_id_of(firmware.elf)
    if runs and given and runs != given:
        raise LoadError(
            f"{session.name} runs build {runs[:16]}, {firmware.elf.name} is build {given[:16]}",
            stage="load",
            next_step=next_step,
        )


def build_id_of(elf: Path) -> str:
    """The linker's build ID of the program, in hexadecimal; "" if it has none."""
    return read_program(elf).build_id


def load_compiled(
    session: Session, compiled: Compiled, toolset: Toolset, fakes: Mapping[str, FakeFunction] | None = None
) -> LoadedLibrary:
    """Load compiled sources, for instance from another process. Raises as `load` does.

    fakes: functions in Python, by the symbol of their stub.
    """
    rpc = session.rpc
    answers = {name: item for name, item in (fakes or {}).items() if not name.startswith(SPARE)}
    if session.owner.access_check is not None:
        compiled = with_heap_notes(compiled, toolset)
    with rpc.lock:
        rpc.ready()
        image = _placed(rpc, session, compiled, toolset)
        try:
            _copy(rpc, image)
            _tell_owner(session, compiled.name, image)
            module = _registered(rpc, compiled.name, image)
            rpc.facts.code[image.base] = ref(module)
            rpc.facts.thread_locals[image.base] = image.thread_locals
            for symbol, function in answers.items():
                if symbol in image.symbols:  # A fake without a linked caller is never called.
                    rpc.facts.fakes[image.symbols[symbol]] = function
        except HarnessError:
            _free(rpc, image.base)
            raise
    if compiled.start:
        try:
            module.get_function(START)(image.thread_locals.start, len(image.thread_locals))
        except HarnessError as error:
            raise error.add_context(stage=f"run the constructors of {compiled.name}") from None
    unused = [(image.symbols[name], item.type) for name, item in (fakes or {}).items() if name not in answers]
    callbacks = Callbacks(session, toolset, compiled.functions.values(), unused, compiled.calling)
    library = LoadedLibrary(
        session,
        compiled,
        image,
        program_facts(toolset.elf),
        module,
        lambda: _load_copier(session, toolset),
        {function.name: function for function in answers.values()},
        callbacks.address,
    )
    callbacks.library = library.calling
    return library


class _Callback(NamedTuple):
    """A C function that calls a Python function. loaded: its own code, if it is not part of a library."""

    ctype: CType
    function: Callable[..., object]
    address: int
    loaded: LoadedLibrary | None

    def answers(self, ctype: CType, function: Callable[..., object], rpc: RpcClient) -> bool:
        """True if it calls this function, and is on the device."""
        is_there = self.loaded is None or self.loaded.module.usable_on(rpc)
        # Equal objects are not the same function; each access to a method makes another object of it.
        is_method = isinstance(function, MethodType | BuiltinMethodType) and self.function == function
        return (self.function is function or is_method) and self.ctype is ctype and is_there


class Callbacks:
    """C functions that call Python functions: each is loaded once, and stays as long as the library.

    library: the library whose functions get them; set by it.
    """

    library: CallingLibrary

    def __init__(
        self,
        session: Session,
        toolset: Toolset,
        functions: Collection[FunctionDeclaration],
        unused: Iterable[tuple[int, FunctionType]] = (),
        flags: Sequence[str] = (),
    ) -> None:
        """functions: the library's. unused: addresses and types of spares, which can be taken while C waits
        for Python; without any, the first function in Python brings some. flags: of the code that calls."""
        self._session = session
        self._toolset = toolset
        self._functions = functions
        self._spares = list(unused)
        self._flags = flags
        self._made: list[_Callback] = []

    def address(self, ctype: CType, function: Callable[..., object]) -> Address:
        """The C function of type `ctype` that calls `function`. Raises as `load` does, and
        ConfigurationError if C waits for Python and too many functions were assigned meanwhile."""
        callback = next(
            (item for item in self._made if item.answers(ctype, function, self._session.rpc)), None
        )
        if callback is None:
            callback = self._new(ctype, function)
            self._made.append(callback)
        return Address(callback.address, Pointer(ctype, program_facts(self._toolset.elf).pointer_size))

    def _new(self, ctype: CType, function: Callable[..., object]) -> _Callback:
        require_asking(self._toolset)
        prototype = strip(ctype)
        assert isinstance(prototype, FunctionType)
        name = getattr(function, "__name__", type(function).__name__)
        declared = FunctionDeclaration(name, CALLBACK, prototype)
        made = CallbackFunction(declared, function)
        if self._session.rpc.conversation is not None:
            address, loaded = self._spare(prototype), None
            self._session.rpc.facts.fakes[address] = made
        else:
            loaded = self._loaded(declared, made)
            address = loaded.symbols.addresses[CALLBACK]
        made.library = self.library
        return _Callback(ctype, function, address, loaded)

    def _spare(self, prototype: FunctionType) -> int:
        text = declaration(prototype)
        for item in self._spares:
            if declaration(item[1]) == text:
                self._spares.remove(item)
                return item[0]
        raise ConfigurationError(
            f"no further function in Python fits {text} while C waits: no code is loaded meanwhile",
            next_step="use one function again, or place it before: minrpc.place(lib, a struct that has it)",
        )

    def _loaded(self, declared: FunctionDeclaration, made: FakeFunction) -> LoadedLibrary:
        # The thunk keeps the stub, which nothing else refers to.
        limits = program_facts(self._toolset.elf).limits
        thunks = compile_text(thunk_source([declared], limits), self._toolset, self._flags)
        further = [] if self._spares else spares([declared], self._functions, limits)
        stubs = compile_stubs([declared, *further], self._toolset, self._flags)
        key = f"{stubs.parent.name}{thunks.parent.name}"
        compiled = Compiled(
            declared.name, (stubs, thunks), (), {}, Declarations(), start=False, key=key, generated=2
        )
        answers = {CALLBACK: made} | {item.symbol: FakeFunction(item, "zero") for item in further}
        loaded = load_compiled(self._session, compiled, self._toolset, answers)
        self._spares += [(loaded.symbols.addresses[item.symbol], item.type) for item in further]
        return loaded


def _load_copier(session: Session, toolset: Toolset) -> LoadedLibrary:
    """A library that has only the function `COPY`."""
    thunks = compile_text(thunk_source((), program_facts(toolset.elf).limits, copy=True), toolset)
    compiled = Compiled(COPY, (thunks,), (), {}, Declarations(), start=False, key=thunks.parent.name)
    return load_compiled(session, compiled, toolset)


def _tell_owner(session: Session, name: str, image: LinkedImage) -> None:
    """Report the loaded code to the device's owner, which counts instructions and explains crashes."""
    session.owner.note_code(image.base, image.size, name, image.program)
    for watcher in (session.owner.counters, session.owner.access_check):
        if watcher is not None:
            watcher.note_code(image.base, image.size, name, image.program)


def image_size(session: Session, compiled: Compiled, toolset: Toolset) -> int:
    """Size of the linked image in the device's memory, in bytes. Raises LinkError, and as a call does."""
    with session.rpc.lock:
        session.rpc.ready()
        linker = _Linker(session, toolset)
        return linker.link(compiled, linker.base).device_bytes


def _copy(rpc: RpcClient, image: LinkedImage) -> None:
    """Copy the code to its block; over the link only if the device shares no memory with this process.

    Code is never written directly into shared memory: an emulator would go on running its old translation.
    The device copies the code from another block.
    """
    size = len(image.data)
    if not rpc.facts.direct.usable or size < _WORTH_STAGING:
        upload(rpc, image.base, 0, image.data)
        return
    try:
        stage = memory.allocate(rpc, DLTensor(0, BYTES, (min(size, _STAGED),)))
    except DeviceMemoryError:  # Too little memory for a second block: copy over the link.
        upload(rpc, image.base, 0, image.data)
        return
    try:
        for begin in range(0, size, _STAGED):
            piece = image.data[begin : begin + _STAGED]
            upload(rpc, stage, 0, piece)
            source = DLTensor(stage, BYTES, (len(piece),))
            memory.copy_among(rpc, source, source._replace(data=image.base, byte_offset=begin), len(piece))
    finally:
        _free(rpc, stage)


def _placed(rpc: RpcClient, session: Session, compiled: Compiled, toolset: Toolset) -> LinkedImage:
    """Allocate a block on the device and link the image for its address.

    The size is known after linking, the address after allocation. So the image is first linked for the last
    block's address, which is nearly always right. Where the device has no room for an emulator's whole pages,
    the image has no gap between code and data.
    """
    linker = _Linker(session, toolset)
    loaded = rpc.facts.loaded
    taken = tuple(own for base, own in rpc.facts.thread_locals.items() if own and base in loaded)
    image = linker.link(compiled, linker.base, taken)
    for _ in range(_ROUNDS):
        try:
            given = _allocate(rpc, compiled.name, image.size)
        except DeviceMemoryError:
            if not image.gap:
                raise
            linker.page = 1
            image = linker.link(compiled, image.base, taken)
            continue
        if given == image.base:
            _last_base[toolset.elf] = given
            return image
        linker.page = min(linker.page, _page_at(toolset.elf, given))
        try:
            moved = linker.link(compiled, given, taken)
        except HarnessError:
            _free(rpc, given)
            raise
        if moved.size <= image.size and moved.gap == image.gap:
            _last_base[toolset.elf] = given
            return moved
        _free(rpc, given)
        rpc.ready()  # Free the block now: there may be no room for a second block.
        image = moved
    raise LoadError(f"{compiled.name}: its size changes with its address", stage="load")


def _expected_base(elf: Path) -> int:
    """Address of the firmware's last block; at first, the end of its program, which is near."""
    known = _last_base.get(elf)
    if known is not None:
        return known
    end = max((segment.address + segment.size for segment in read_program(elf).elf.segments), default=0)
    alignment = max(ALIGNMENT, program_facts(elf).code_page)
    return -(-end // alignment) * alignment


def _page_at(elf: Path, base: int) -> int:
    """Bytes of the pages that code at this address shares with no data. A device without room for whole pages
    gives a block that begins none."""
    page = program_facts(elf).code_page
    return 1 if base % page else page


def likely_base(toolset: Toolset) -> int | None:
    """Expected address of the firmware's next block; None if linking needs a device."""
    return None if toolset.has_shared_libraries else _expected_base(toolset.elf)


def link_ahead(compiled: Compiled, toolset: Toolset, base: int) -> LinkedImage:
    """Link without a device, for instance in another process, for `remember`. Raises LinkError."""
    return link(compiled, toolset, base, page=_page_at(toolset.elf, base))


def remember(compiled: Compiled, toolset: Toolset, image: LinkedImage) -> None:
    """Caches an image linked in advance; used if the device allocates a block at its address."""
    page = _page_at(toolset.elf, image.base)
    _keep(_Key(compiled.key, toolset.elf, toolset.stamp, image.base, (), page), _Linked(image))


class _Key(NamedTuple):
    """elf, stamp: the firmware's. taken: what other libraries have of the threads' room. page: see `link`."""

    compiled: str
    elf: Path
    stamp: Stamp
    base: int
    taken: tuple[range, ...]
    page: int


class _Linked(NamedTuple):
    """far: addresses of functions in shared libraries that the image refers to."""

    image: LinkedImage
    far: Mapping[str, int] = {}


# Address of each firmware's last block, and recently linked images: shared by all devices of this process.
_last_base: dict[Path, int] = {}
_images: OrderedDict[_Key, _Linked] = OrderedDict()
_images_lock = threading.Lock()


def _keep(key: _Key, linked: _Linked) -> None:
    with _images_lock:
        _images[key] = linked
        _images.move_to_end(key)
        while sum(item.image.nbytes for item in _images.values()) > _IMAGES:
            _images.popitem(last=False)


def forget() -> None:
    """Free the memory of code that was compiled and linked; it is made again when it is needed."""
    with _images_lock:
        _images.clear()
    forget_compiled()


class _Linker:
    """Links, and asks the device for addresses that the firmware's ELF lacks: of shared libraries.

    base: the expected address of the next block. page: bytes of the pages that code and data do not share.
    """

    def __init__(self, session: Session, toolset: Toolset) -> None:
        self.base = _expected_base(toolset.elf)
        self.page = _page_at(toolset.elf, self.base)
        self._session = session
        self._toolset = toolset

    def link(self, compiled: Compiled, base: int, taken: tuple[range, ...] = ()) -> LinkedImage:
        key = _Key(compiled.key, self._toolset.elf, self._toolset.stamp, base, taken, self.page)
        linked = _images.get(key)
        if linked is None or self.addresses(linked.far) != linked.far:
            linked = self._linked(compiled, base, taken)
        _keep(key, linked)
        return linked.image

    def _linked(self, compiled: Compiled, base: int, taken: tuple[range, ...]) -> _Linked:
        far: dict[str, int] = {}
        while True:
            try:
                return _Linked(link(compiled, self._toolset, base, far, taken, self.page), far)
            except UndefinedSymbolsError as error:
                addresses = self.addresses(error.names)
                if not addresses or not addresses.keys().isdisjoint(far):
                    raise
                far |= addresses

    def addresses(self, names: Iterable[str]) -> dict[str, int]:
        """Addresses of those `names` that the device has; each is asked once in a session."""
        if not self._toolset.has_shared_libraries:
            return {}
        rpc = self._session.rpc
        addresses: dict[str, int] = {}
        for name in names:
            if name not in rpc.facts.symbols:
                finder = rpc.library_function(SYMBOL)
                address = rpc.call(finder, (name,), f"look up {name}") if finder else 0
                rpc.facts.symbols[name] = address if isinstance(address, int) else 0
            if rpc.facts.symbols[name]:
                addresses[name] = rpc.facts.symbols[name]
        return addresses


def _allocate(rpc: RpcClient, name: str, size: int) -> int:
    allocate = rpc.global_function(CODE_ALLOC)
    if not allocate:
        raise LoadError(f"the firmware of {rpc.link.name} can't load code", stage=f"load {name}")
    stage = f"load {name}"
    try:
        block = rpc.call(allocate, (size,), stage)
    except RemoteError as error:
        raise DeviceMemoryError(
            error.text,
            stage=stage,
            console_tail=error.console_tail,
            details=(f"{name} takes {size} bytes",),
            next_step="unload unused libraries, or build with a larger arena",
        ) from error
    if not isinstance(block, Handle):
        raise DialectError(f"{CODE_ALLOC} returned {block!r}, which is no address", stage=stage)
    return block.value


def _registered(rpc: RpcClient, name: str, image: LinkedImage) -> RemoteModule:
    register = rpc.global_function(CODE_LOAD)
    module = rpc.call(register, (Handle(image.base), image.registry), f"load {name}")
    if not isinstance(module, Module):
        raise DialectError(f"{CODE_LOAD} returned {module!r}, which is no module", stage=f"load {name}")
    return RemoteModule(rpc, name, module.handle)


def _free(rpc: RpcClient, block: int) -> None:
    """Free a block without registered functions; if this fails, the session's end frees it."""
    rpc.release(rpc.generation, free_data(block))
