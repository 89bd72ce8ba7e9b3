# SPDX-License-Identifier: Apache-2.0
"""A firmware that has been built, and its sizes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, Self, Unpack

from minrpc.firmware.cache import cache_home
from minrpc.firmware.places import Places
from minrpc.targets import Platform, StartFields, Target


class Sizes(NamedTuple):
    """Sizes of a firmware, in bytes.

    flash: code, constants and the initial values of data; for firmware that runs from RAM, the loaded image.
    ram: data, zeroed data and memory that the linker reserved.
    """

    flash: int
    ram: int


@dataclass(frozen=True, slots=True)
class Firmware:
    """The result of `build`.

    target: the target that it was built for, with the way to start it and the limits.
    elf: the program.
    build_dir: the directory of the program and the files that it needs.
    content_hash: hash of its sources, its compiler and its options.
    cached: True if it was in the cache already.
    seconds: duration of `build`, wall time.
    qemu_argv: QEMU's command line from Zephyr's build; empty for other ports.
    icount_shift: from Zephyr's configuration; None for other ports, or if it is off.
    places: directories of the sources that its debug information names, see `source`.
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

    def users_source(self, name: str) -> Path | None:
        """The file of `source`; None for files of the runtime and of Zephyr's workspace, and for generated
        files."""
        path = self.source(name)
        generated = path.is_relative_to(self.build_dir) or path.is_relative_to(cache_home())
        return None if generated or not self.places.is_users(name) else path

    @property
    def platform(self) -> Platform:
        """The platform of its target."""
        return self.target.platform

    def changed(self, **given: Unpack[StartFields]) -> Self:
        """The same firmware, to be started with other options."""
        return replace(self, target=self.target.changed(**given))

    @property
    def sizes(self) -> Sizes:
        """Flash and RAM, from the ELF's sections."""
        return elf_sizes(self.elf)

    @property
    def floating_point(self) -> str:
        """The unit that computes floats: "software", "FPU", "FPU, single precision"; "" if unknown."""
        from minrpc.program.compiler import floating_point

        return floating_point(self.elf)


def elf_sizes(elf: Path) -> Sizes:
    """Flash and RAM of the ELF file: the file size of its load segments, and the size of writable sections.

    Flash is slightly more than text and data of `size`, because it includes gaps between sections.
    """
    from minrpc.sizes.pieces import totals  # A firmware from the cache is started without it.

    return Sizes(*totals(elf))
