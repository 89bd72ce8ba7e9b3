# SPDX-License-Identifier: Apache-2.0
"""Compares a core's timing table with its RTL: the same code under QEMU, and on the RTL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from minrpc.errors import ConfigurationError
from minrpc.library import library_of, measure
from minrpc.pipeline import open_device
from minrpc.targets import Platform, Platforms, Target

KERNELS: Final = Path(__file__).with_name("kernels.c")

# Instruction sets of the platforms may differ, and the code must not; a call of memcpy is another code.
_FLAGS: Final = ("-march=rv32imc", "-fno-tree-loop-distribute-patterns")
# Rounds of a short and of a long call: the difference has no cost of calling and of measuring.
_ROUNDS: Final = (3, 13)


@dataclass(frozen=True, slots=True)
class Compared:
    """Cycles of ten rounds of a kernel: the least and the most of the estimate, and the RTL's."""

    kernel: str
    least: int
    most: int
    rtl: int

    @property
    def within(self) -> bool:
        """True if the RTL's cycles are in the estimate's range."""
        return self.least <= self.rtl <= self.most

    @property
    def difference(self) -> int:
        """Cycles of the RTL above the range, or below (negative); 0 within it."""
        return self.rtl - max(self.least, min(self.rtl, self.most))


def estimator_for(rtl: Platform, platforms: Platforms) -> Platform:
    """The platform under QEMU that estimates cycles of the core of `rtl`.

    Raises ConfigurationError if `rtl` is not RTL, or its core has no table.
    """
    if rtl.starts != "rtl" or not rtl.core:
        names = ", ".join(name for name, item in platforms.items() if item.starts == "rtl" and item.core)
        what = "has no timing table" if rtl.starts == "rtl" else "is not RTL"
        raise ConfigurationError(f"{rtl.name} {what}", next_step=f"name {names}")
    alike = (item for item in platforms.values() if item.starts == "qemu" and item.arch == rtl.arch)
    return next(item for item in alike if item.core)


def compare(rtl: Target, estimator: Target, source: Path, optimize: str) -> Iterator[Compared]:
    """The kernels of `source`: its functions `uint32_t f(uint32_t rounds)`, compiled with `-O` of `optimize`.

    Raises ConfigurationError if a kernel's results differ, and the errors of both devices.
    """
    estimator = estimator.changed(core=rtl.platform.core, counters=True)
    flags = [f"-O{optimize}", *_FLAGS]
    with ExitStack() as stack:
        there, here = (
            stack.enter_context(open_device(target)).load(source, flags=flags) for target in (estimator, rtl)
        )
        for name in library_of(there).functions:
            if (seen := there[name](_ROUNDS[1])) != (other := here[name](_ROUNDS[1])):
                raise ConfigurationError(f"{name} gives {seen} under QEMU, and {other} on {rtl.name}")
            least, most = (_rounds(there, name, counter) for counter in ("cycles", "cycles_most"))
            yield Compared(name, least, most, _rounds(here, name, ""))


def _rounds(library: Any, name: str, counter: str) -> int:  # noqa: ANN401 - C functions
    """Cycles of the long call less the short one, by the counter, or by the device's clock."""
    timer = measure(library, name, number=1, repeat=1, counters=[counter] if counter else [])
    samples = [timer(rounds).samples[0] for rounds in _ROUNDS]
    short, long = (sample.columns[counter] if counter else sample.ticks for sample in samples)
    return int(long - short)
