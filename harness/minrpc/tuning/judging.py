# SPDX-License-Identifier: Apache-2.0
"""One device that judges candidates: loaded, checked, timed.

A candidate that crashes or hangs is an outcome: its device is replaced, and it is tried once more, alone on a
fresh one, so that the verdict is the candidate's.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from minrpc.client import Device
from minrpc.errors import (
    DeadlineError,
    DeviceMemoryError,
    EmulatorExitedError,
    LinkClosedError,
    RemoteError,
    SessionTerminatedError,
)
from minrpc.firmware import Firmware
from minrpc.library import GuardError
from minrpc.library.linking import LinkError
from minrpc.library.loading import load_compiled, remember
from minrpc.library.toolset import Toolset
from minrpc.pipeline import open_device
from minrpc.timing import Measurement
from minrpc.tuning.candidates import Candidate, Result
from minrpc.tuning.compilers import Built, reason_of
from minrpc.tuning.kernel import Kernel

CALL_S: Final = 10.0
"""What one call of a candidate may take of the device's time."""


@dataclass
class Bench:
    """One device, replaced when a candidate has spoiled it. A context manager, which ends it."""

    kernel: Kernel
    firmware: Firmware
    toolset: Toolset
    call_timeout_s: float = CALL_S
    _device: Device | None = field(default=None, init=False)

    def __enter__(self) -> Bench:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def judge(self, candidate: Candidate, built: Built, *, check: bool | None = None) -> Result:
        """What comes of a candidate; a crash or a hang is tried once more on a fresh device.

        check: whether its results are looked at; None for what the kernel says. Raises what starting a
        device raises.
        """
        if built.compiled is None:
            return Result(candidate, built.outcome, built.reason, stage_s={"compile": built.seconds})
        check = self.kernel.checks(candidate) if check is None else check
        result = self._try(candidate, built, check)
        if result.outcome in ("crash", "hang"):
            self.close()
            result = self._try(candidate, built, check)
            if result.outcome in ("crash", "hang"):
                self.close()
        return replace(result, stage_s={"compile": built.seconds, **result.stage_s})

    def close(self) -> None:
        """End the device; the next candidate gets another."""
        device, self._device = self._device, None
        if device is not None:
            device.close()

    def _open(self) -> Device:
        if self._device is None:
            self._device = open_device(
                self.firmware, call_timeout_s=self.call_timeout_s, counters=bool(self.kernel.counters)
            )
        return self._device

    def _try(self, candidate: Candidate, built: Built, check: bool) -> Result:
        device = self._open()
        stages: dict[str, float] = {}
        try:
            return self._measured(device, candidate, built, check, stages)
        except DeviceMemoryError as error:
            result = Result(candidate, "no room", reason_of(error))
        except (GuardError, RemoteError) as error:
            result = Result(candidate, "wrong", error.message)
        except LinkError as error:
            result = Result(candidate, "link", reason_of(error))
        except DeadlineError as error:
            result = Result(candidate, "hang", error.message)
        except (EmulatorExitedError, LinkClosedError, SessionTerminatedError) as error:
            result = Result(candidate, "crash", error.message)
        return replace(result, stage_s=stages)

    def _measured(
        self, device: Device, candidate: Candidate, built: Built, check: bool, stages: dict[str, float]
    ) -> Result:
        kernel, compiled = self.kernel, built.compiled
        assert compiled is not None
        with _timed(stages, "load"):
            if built.image is not None:
                remember(compiled, self.toolset, built.image)
            library = load_compiled(device, compiled, self.toolset)
        with library:
            if check:
                with _timed(stages, "check"):
                    wrong = kernel.wrong(library[kernel.function])
                if wrong:
                    return Result(candidate, "wrong", wrong, stage_s=stages)
            with _timed(stages, "measure"):
                options = {"number": kernel.number, "repeat": kernel.repeat, "counters": kernel.counters}
                measured = library.measure(kernel.function, **options)(*copy.deepcopy(kernel.arguments))
            cycles = _fewest(measured, kernel.number)
            counters = {name: measured.counter_per_call(name) for name in measured.counters}
            stack = max(compiled.stack_use.values(), default=0)
            size = library.device_bytes
            seconds = measured.clock.seconds(cycles)
        return Result(candidate, "correct", "", cycles, seconds, size, stack, counters, stage_s=stages)


def _fewest(measured: Measurement, number: int) -> float:
    """Cycles of a call, without what measuring takes. Under icount, of a whole number of instructions: the
    counter's phase, a tick more or less, would make two runs differ. A tick must be shorter than half an
    instruction for that.
    """
    each = measured.clock.cycles_per_instruction
    if each is None:
        return max(0.0, min(measured.net().cycles_per_call))
    overhead = measured.overhead
    batch = round(min(measured.cycles_per_call) * number / each)
    batch -= round(overhead.timer / each) + number * round(overhead.call / each)
    return float(max(0, batch) * each / number)


@contextmanager
def _timed(stages: dict[str, float], name: str) -> Iterator[None]:
    begin = time.monotonic()
    try:
        yield
    finally:
        stages[name] = time.monotonic() - begin
