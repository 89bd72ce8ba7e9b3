# SPDX-License-Identifier: Apache-2.0
"""Whether a function takes the same path and touches the same addresses, whatever its arguments hold.

Equal means equal for the inputs that were tried, on this build of the code, by instructions and addresses. It
is no proof, and says nothing of instructions whose own time depends on their operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

import numpy as np
import numpy.typing as npt

from minrpc.client import RemoteArray, Session
from minrpc.client.device_counters import device_counters
from minrpc.counters.image import Image
from minrpc.counters.lines import LineTable
from minrpc.counters.profile import Measures
from minrpc.counters.qemu_counters import STEP_JUMP, STEP_STORE, QemuCounters
from minrpc.errors import ConfigurationError, HarnessError

Trace = npt.NDArray[np.void]
Bytes = npt.NDArray[np.uint8]


class Functions(Measures, Protocol):
    """What has the function: it is measured, and called."""

    def __getitem__(self, name: str, /) -> Callable[..., Any]: ...


# Where interrupts are not masked, one in a call changes its trace. Two traces of an input that are equal had
# none, or the same.
_TRIES: Final = 20
# The bytes that an access may reach, whose size is not known.
_WORD: Final = np.arange(8)


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the run of input number `index` parted from that of the first.

    what: "path", other instructions were executed, or "addresses", the same ones accessed other memory.
    place: function, file and line of the instruction from which on they differ: the branch, or the access.
    step: jumps and accesses before it.
    """

    index: int
    what: Literal["path", "addresses"]
    place: str
    step: int

    def __str__(self) -> str:
        done = "took another path from" if self.what == "path" else "accessed another address in"
        return f"input {self.index} {done} {self.place}, after {self.step:,} equal steps"


@dataclass(frozen=True, slots=True)
class ConstantTime:
    """What comparing the runs gave. As a bool: whether all were equal.

    masked: no interrupt could come in a run; else those runs count that came out the same twice.
    """

    function: str
    inputs: int
    steps: int
    differences: tuple[Difference, ...]
    masked: bool = True

    def __bool__(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        if self.differences:
            lines = [f"{self.function} depends on its input:", *(f"  {one}" for one in self.differences)]
            return "\n".join(lines)
        how = "" if self.masked else ", interrupts not masked"
        return (
            f"{self.function} took the same path and the same addresses, {self.steps:,} steps, for these "
            f"{self.inputs} inputs{how}; that is no proof for others"
        )


def check_constant_time(
    device: Session,
    counters: QemuCounters,
    name: str,
    inputs: Sequence[Sequence[Any]],
    library: Functions | None = None,
) -> ConstantTime:
    """Call `name` with each of `inputs`, and compare what it executed and accessed, step by step.

    Interrupts are masked meanwhile. Where the firmware can't, two runs of an input that are equal had none.

    Arrays of numpy are copied to the same addresses for each input, so all must be of one shape and type;
    other arguments go as they are. The device was started with `counters`, which keep traces.
    library: what has the function, where it is not the firmware's own.

    The call that is traced is not the first of an input: a function that overwrites what it reads would be
    traced with what it has made of its input. Where that shows no difference, it is refused.

    Raises ConfigurationError for inputs that don't fit together, and for such a function, HarnessError where
    no two runs of an input are equal, ValueError for a run that is too long to keep.
    """
    arguments = _on_device(device, inputs)
    functions: Functions = library if library is not None else device.system_lib()
    masks = bool(device_counters(device.rpc))
    measurer = functions.measure(name, number=1, repeat=1, interrupts_masked=masks)
    traces = []
    for given in inputs:
        traces.append(_trace(measurer, counters, name, _copied(arguments, given)))
    lines = LineTable(counters.image.path)
    found = [
        difference(index, traces[0], other, counters.image, lines)
        for index, other in enumerate(traces[1:], 1)
    ]
    differences = tuple(one for one in found if one is not None)
    if not differences:
        _require_kept_input(functions[name], name, arguments, inputs, traces)
    return ConstantTime(name, len(inputs), len(traces[0]), differences, masks)


def _on_device(device: Session, inputs: Sequence[Sequence[Any]]) -> list[RemoteArray | None]:
    """An array for each position that has one."""
    if len(inputs) < 2:
        raise ConfigurationError("one input can't be compared", next_step="give two or more")
    forms = [[_form(value) for value in given] for given in inputs]
    if any(form != forms[0] for form in forms):
        raise ConfigurationError("inputs are not of the same shapes and types", next_step="make them so")
    return [
        device.empty(value.shape, value.dtype) if isinstance(value, np.ndarray) else None
        for value in inputs[0]
    ]


def _copied(arguments: Sequence[RemoteArray | None], given: Sequence[Any]) -> list[Any]:
    """What to call with: the arrays hold what is given."""
    call: list[Any] = []
    for on_device, value in zip(arguments, given, strict=True):
        if on_device is not None:
            on_device.copy_from(value)
        call.append(value if on_device is None else on_device)
    return call


def _require_kept_input(
    function: Callable[..., Any],
    name: str,
    arguments: Sequence[RemoteArray | None],
    inputs: Sequence[Sequence[Any]],
    traces: Sequence[Trace],
) -> None:
    """Raise ConfigurationError where a call overwrites what it has read of an array that is an input."""
    for given, trace in zip(inputs, traces, strict=True):
        function(*_copied(arguments, given))
        for place, array in enumerate(arguments):
            if array is None or all(np.array_equal(other[place], given[place]) for other in inputs):
                continue
            written = np.flatnonzero(_bytes(array.numpy()) != _bytes(given[place]))
            if _loads_first(trace, np.unique((array.address + written) // len(_WORD)) * len(_WORD)):
                raise ConfigurationError(
                    f"{name} overwrites its input: the call that is traced finds what an earlier one left",
                    stage="constant time",
                    next_step=f"check a function that copies the input, and then calls {name} with the copy",
                )


def _loads_first(trace: Trace, words: npt.NDArray[np.int64]) -> bool:
    """Whether the first access to something of one of these words of 64 bits is a load."""
    addresses = (words[:, None] + _WORD).ravel()
    reaching = (words[:, None] + np.arange(1 - len(_WORD), len(_WORD))).ravel()
    what = trace["what"]
    accesses = what[what & np.uint64(STEP_JUMP) == 0]
    places = accesses & ~np.uint64(STEP_STORE)
    accesses = accesses[np.isin(places, reaching.astype(np.uint64))]
    stored: set[int] = set()
    due = set(addresses.tolist())
    for access in accesses.tolist():
        if access & STEP_STORE:
            stored.update(range(access - STEP_STORE, access - STEP_STORE + len(_WORD)))
        elif access in due and access not in stored:
            return True
    return False


def _bytes(value: npt.NDArray[Any]) -> Bytes:
    return np.frombuffer(value.tobytes(), np.uint8)


def _form(value: object) -> object:
    return (value.shape, value.dtype) if isinstance(value, np.ndarray) else type(value)


def _trace(measurer: Any, counters: QemuCounters, name: str, call: Sequence[object]) -> Trace:  # noqa: ANN401
    """The trace of a call in which no interrupt was: the first that comes twice, so that what else differs
    from run to run is not taken for the input's doing."""
    seen: list[Trace] = []
    for _ in range(_TRIES):
        measurer(*call)
        trace = counters.last_trace()
        if any(np.array_equal(trace, before) for before in seen):
            return trace
        seen.append(trace)
    raise HarnessError(
        f"no two of {_TRIES} runs of {name} with the same input were equal",
        next_step="what it keeps from call to call must be the same each time",
    )


def difference(index: int, one: Trace, other: Trace, image: Image, lines: LineTable) -> Difference | None:
    """Where `other` parts from `one`; None where it does not."""
    length = min(len(one), len(other))
    unequal = np.flatnonzero(one[:length] != other[:length])
    if len(unequal) == 0:
        if len(one) == len(other):
            return None
        at = length
    else:
        at = int(unequal[0])
    here = at < length and one[at]["where"] == other[at]["where"]
    if here and not (int(one[at]["what"]) | int(other[at]["what"])) & STEP_JUMP:
        return Difference(index, "addresses", _place(int(one[at]["where"]), image, lines), at)
    # Up to there both went straight on from the same place: they part at the first jump of the two.
    jumps = [int(trace[at]["what"]) for trace in (one, other) if at < len(trace)]
    ends = [jump - STEP_JUMP for jump in jumps if jump & STEP_JUMP]
    return Difference(index, "path", _place(min(ends, default=0) - 1, image, lines), at)


def _place(address: int, image: Image, lines: LineTable) -> str:
    function, line = image.function_at(address), lines.at(address)
    name = function.name if function else f"0x{address:x}"
    return f"{name} at {line.file.rpartition('/')[2]}:{line.number}" if line else name
