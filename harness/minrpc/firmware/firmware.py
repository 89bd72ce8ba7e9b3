# SPDX-License-Identifier: Apache-2.0
"""A firmware that has been built, and how big it is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple, Self, Unpack

from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

from minrpc.firmware.places import Places
from minrpc.targets import Platform, StartFields, Target

_NO_BITS: Final = "SHT_NOBITS"


class Sizes(NamedTuple):
    """Bytes that a firmware takes.

    flash: code, constants and the initial values of data; where all runs from RAM, the loaded image.
    ram: data, zeroed data and whatever the linker reserved.
    """

    flash: int
    ram: int


@dataclass(frozen=True, slots=True)
class Firmware:
    """The result of `build`.

    target: what it was built for: how it is started, and with which limits.
    elf: the program.
    build_dir: where it and the files that it needs are kept.
    content_hash: of its sources, its compiler and its options.
    cached: it was there already.
    seconds: what `build` took, of wall time.
    qemu_argv: QEMU's command line from Zephyr's build; empty for other ports.
    icount_shift: from Zephyr's configuration; None for other ports, or where it is off.
    places: where the sources are that its debug information names, see `source`.
    """

    target: Target
    elf: Path
    build_dir: Path
    content_hash: str
    cached: bool
    seconds: float
    qemu_argv: tuple[str, ...] = ()
    icount_shift: int | None = None
    places: Places = field(default_factory=lambda: Places({}), repr=False, compare=False)

    def source(self, name: str) -> Path:
        """The file that the debug information calls `name`: "/minrpc/app/zephyr-app/runtime/timer.c"."""
        return self.places.source(name)

    @property
    def platform(self) -> Platform:
        """Of its target."""
        return self.target.platform

    def changed(self, **given: Unpack[StartFields]) -> Self:
        """The same, to be started otherwise."""
        return replace(self, target=self.target.changed(**given))

    @property
    def sizes(self) -> Sizes:
        """Flash and RAM, from the ELF's sections."""
        return elf_sizes(self.elf)


def elf_sizes(elf: Path) -> Sizes:
    """Flash and RAM of the ELF file, from the sections that are allocated in memory.

    As `size` counts: flash is text and data, RAM is data and bss.
    """
    flash = ram = 0
    with elf.open("rb") as stream:
        for section in ELFFile(stream).iter_sections():
            flags = section["sh_flags"]
            if not flags & SH_FLAGS.SHF_ALLOC:
                continue
            stored = section["sh_type"] != _NO_BITS
            writable = bool(flags & SH_FLAGS.SHF_WRITE) and not flags & SH_FLAGS.SHF_EXECINSTR
            # Thread-local zeroes have an address but no room of their own.
            if not stored and flags & SH_FLAGS.SHF_TLS:
                continue
            flash += section["sh_size"] if stored else 0
            ram += section["sh_size"] if writable else 0
    return Sizes(flash, ram)
