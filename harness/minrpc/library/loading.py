# SPDX-License-Identifier: Apache-2.0
"""Loads code into a running device: compile, link for the address that the device gives, copy, register."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from minrpc.client import memory
from minrpc.client.function import RemoteModule
from minrpc.client.rpc import RpcClient
from minrpc.client.session import Session
from minrpc.errors import (
    DeviceMemoryError,
    DialectError,
    HarnessError,
    LoadError,
    RemoteError,
    UndefinedSymbolsError,
)
from minrpc.firmware import Firmware
from minrpc.library.call_memory import upload
from minrpc.library.compiling import Compiled, Sources, compile_sources, compile_text
from minrpc.library.linking import LinkedImage, link
from minrpc.library.loaded import LoadedLibrary
from minrpc.library.thunks import COPY, START, thunk_source
from minrpc.library.toolset import COMMANDS, Toolset, program_facts, toolset_of
from minrpc.program import Elf, NotElfError, read_program
from minrpc.program.c_types import Declarations
from minrpc.targets import Target
from minrpc.wire.requests import free_data
from minrpc.wire.values import Handle, Module

CODE_ALLOC: Final = "minrpc.code_alloc"
CODE_LOAD: Final = "minrpc.code_load"
SYMBOL: Final = "minrpc.symbol"

_FIRST_BASE: Final = 0x10000
_IMAGES: Final = 256
# Three more requests than a copy over the link takes: as long as some 100 bytes.
_WORTH_STAGING: Final = 256
# A build's directory is at most so far above its program: build/zephyr/zephyr.elf.
_LEVELS: Final = 3
_ROUNDS: Final = 4


def load(device: Session, sources: Sources, *, firmware: Firmware | None = None) -> LoadedLibrary:
    """Compile `sources` for the device and load them.

    firmware: what runs on the device; left out it is what was started from here.

    Raises CompileError, LinkError, LoadError, DeviceMemoryError; the session goes on.
    """
    if firmware is not None:
        check_build(device, firmware)
    toolset = toolset_of(firmware or firmware_of(device))
    return load_compiled(device, compile_sources(sources, toolset), toolset)


def firmware_of(device: Session) -> Firmware:
    """What runs on the device. Raises LoadError when that is not known."""
    if device.owner.firmware is not None:
        return device.owner.firmware
    target = device.owner.target
    if target is not None and target.elf is not None:
        firmware = firmware_from(target, target.elf)
        check_build(device, firmware)
        return firmware
    raise LoadError(
        f"it is not known which firmware runs on {device.name}",
        stage="load",
        next_step="name the program that was flashed: --elf FILE, or `firmware=build(target)`",
    )


def firmware_from(target: Target, elf: Path) -> Firmware:
    """A program that somebody else has built. Raises LoadError where the file is none."""
    elf = elf.absolute()
    try:
        content = elf.read_bytes()
        Elf(content)
    except (OSError, NotElfError) as error:
        raise LoadError(
            f"{elf} is no program: {error}", stage="load", next_step="name the ELF file that was flashed"
        ) from error
    places = [place for place in elf.parents[:_LEVELS] if (place / COMMANDS).is_file()]
    build_dir = places[0] if places else elf.parent
    return Firmware(target, elf, build_dir, hashlib.sha256(content).hexdigest(), cached=True, seconds=0.0)


def check_build(device: Session, firmware: Firmware) -> None:
    """Raise LoadError when the device runs another build than `firmware`; nothing where it can't tell its
    own."""
    runs = device.info().build_id
    given = build_id_of(firmware.elf)
    if runs and given and runs != given:
        raise LoadError(
            f"{device.name} runs build {runs[:16]}, {firmware.elf.name} is build {given[:16]}",
            stage="load",
            next_step="flash the firmware that is given, or give `firmware=` the one that runs",
        )


def build_id_of(elf: Path) -> str:
    """What the linker calls the program, in hexadecimal; "" where it was not asked to."""
    return read_program(elf).build_id


def load_compiled(device: Session, compiled: Compiled, toolset: Toolset) -> LoadedLibrary:
    """Load what was compiled before, for instance by another process. Raises as `load` does."""
    rpc = device.rpc
    with rpc.lock:
        rpc.ready()
        image = _placed(rpc, device, compiled, toolset)
        try:
            _copy(rpc, device, image)
            _tell_owner(device, compiled.name, image)
            module = _registered(rpc, compiled.name, image)
        except HarnessError:
            _free(rpc, image.base)
            raise
    if compiled.start:
        try:
            module.get_function(START)()
        except HarnessError as error:
            raise error.add_context(stage=f"run the constructors of {compiled.name}") from None
    return LoadedLibrary(
        device, compiled, image, program_facts(toolset.elf), module, lambda: _load_copier(device, toolset)
    )


def _load_copier(device: Session, toolset: Toolset) -> LoadedLibrary:
    """A library that has only the function `COPY`."""
    thunks = compile_text(thunk_source((), program_facts(toolset.elf).limits, copy=True), toolset)
    compiled = Compiled(COPY, (thunks,), (), {}, Declarations(), start=False, key=thunks.parent.name)
    return load_compiled(device, compiled, toolset)


def _tell_owner(device: Session, name: str, image: LinkedImage) -> None:
    """Who starts and counts the device learns the names of what was loaded, thunks as one."""
    named = {f"({name})": (image.base, image.size)}
    named |= {item: (image.symbols[item], size) for item, size in image.sizes.items() if size}
    device.owner.note_code(image.base, image.size, named, image.program)
    if device.owner.counters is not None:
        device.owner.counters.note_code(image.base, image.size, named, image.program)


def image_size(device: Session, compiled: Compiled, toolset: Toolset) -> int:
    """Bytes of the device's memory that it will take. Raises LinkError, and as a call does."""
    with device.rpc.lock:
        device.rpc.ready()
        return _Linker(device, toolset).link(compiled, _last_base.get(toolset.elf, _FIRST_BASE)).size


def _copy(rpc: RpcClient, device: Session, image: LinkedImage) -> None:
    """Copy the code to its block; over the link only where the device shares no memory with us.

    Code is never written directly into that: an emulator would go on with what it has translated before.
    The device copies it, from an array.
    """
    size = len(image.data)
    if not rpc.facts.direct.usable or size < _WORTH_STAGING:
        upload(rpc, image.base, 0, image.data)
        return
    try:
        stage = device.empty((size,), "uint8")
    except DeviceMemoryError:  # Little is left: then over the link.
        upload(rpc, image.base, 0, image.data)
        return
    with stage:
        upload(rpc, stage.address, 0, image.data)
        memory.copy_among(rpc, stage.tensor, stage.tensor._replace(data=image.base), size)


def _placed(rpc: RpcClient, device: Session, compiled: Compiled, toolset: Toolset) -> LinkedImage:
    """Linked for a block that the device has given.

    How large it is shows when it is linked, and where it lies when the device is asked: so it is linked for
    where the last one was, which is nearly always right.
    """
    linker = _Linker(device, toolset)
    base = _last_base.get(toolset.elf, _FIRST_BASE)
    image = linker.link(compiled, base)
    for _ in range(_ROUNDS):
        given = _allocate(rpc, compiled.name, image.size)
        if given == image.base:
            _last_base[toolset.elf] = given
            return image
        try:
            moved = linker.link(compiled, given)
        except HarnessError:
            _free(rpc, given)
            raise
        if moved.size <= image.size:
            _last_base[toolset.elf] = given
            return moved
        _free(rpc, given)
        rpc.ready()  # Gives it back now: there may be no room for another beside it.
        image = moved
    raise LoadError(f"{compiled.name}: its size changes with its address", stage="load")


def likely_base(toolset: Toolset) -> int | None:
    """Where the next block of the toolset's firmware will be; None where only a device can link for it."""
    return None if toolset.has_shared_libraries else _last_base.get(toolset.elf, _FIRST_BASE)


def link_ahead(compiled: Compiled, toolset: Toolset, base: int) -> LinkedImage:
    """Linked without a device, for instance in another process, for `remember`. Raises LinkError."""
    return link(compiled, toolset, base)


def remember(compiled: Compiled, toolset: Toolset, image: LinkedImage) -> None:
    """Take what was linked ahead where a device gives a block at its address."""
    _keep((compiled.key, toolset.elf, image.base), _Linked(image))


class _Linked(NamedTuple):
    """far: addresses outside of the firmware that the image refers to: of functions in shared libraries."""

    image: LinkedImage
    far: Mapping[str, int] = {}


# Where the last block of a firmware was, and what was linked lately: the same for all devices of this
# process.
_last_base: dict[Path, int] = {}
_images: OrderedDict[tuple[str, Path, int], _Linked] = OrderedDict()
_images_lock = threading.Lock()


def _keep(key: tuple[str, Path, int], linked: _Linked) -> None:
    with _images_lock:
        _images[key] = linked
        _images.move_to_end(key)
        if len(_images) > _IMAGES:
            _images.popitem(last=False)


class _Linker:
    """Links, and asks the device for addresses that the firmware's ELF does not know: of shared libraries."""

    def __init__(self, device: Session, toolset: Toolset) -> None:
        self._device = device
        self._toolset = toolset

    def link(self, compiled: Compiled, base: int) -> LinkedImage:
        key = (compiled.key, self._toolset.elf, base)
        linked = _images.get(key)
        if linked is None or self._addresses(linked.far) != linked.far:
            linked = self._linked(compiled, base)
        _keep(key, linked)
        return linked.image

    def _linked(self, compiled: Compiled, base: int) -> _Linked:
        far: dict[str, int] = {}
        while True:
            try:
                return _Linked(link(compiled, self._toolset, base, far), far)
            except UndefinedSymbolsError as error:
                found = self._addresses(error.names)
                if len(found) < len(error.names) or not found.keys().isdisjoint(far):
                    raise
                far |= found

    def _addresses(self, names: Iterable[str]) -> dict[str, int]:
        """Those of `names` that the device has, until one that it has not; asked once in a session."""
        if not self._toolset.has_shared_libraries:
            return {}
        rpc = self._device.rpc
        found: dict[str, int] = {}
        for name in names:
            if name not in rpc.facts.symbols:
                finder = rpc.library_function(SYMBOL)
                address = rpc.call(finder, (name,), f"look up {name}") if finder else 0
                rpc.facts.symbols[name] = address if isinstance(address, int) else 0
            if not rpc.facts.symbols[name]:
                break
            found[name] = rpc.facts.symbols[name]
        return found


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
            next_step="unload what is no longer used, or build with a larger arena",
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
    """Give back a block that nothing was registered in; the session's end does it, if this can't."""
    rpc.release(rpc.generation, free_data(block))
