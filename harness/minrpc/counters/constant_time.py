# SPDX-License-Identifier: Apache-2.0
"""Whether a function takes the same path and touches the same addresses, whatever its secrets hold.

Equal means equal for the inputs that were tried, on this build of the code, by instructions and addresses. It
is no proof. Instructions whose own time depends on their operands are listed, not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

import numpy as np
import numpy.typing as npt

from minrpc.client import RemoteArray, Session
from minrpc.client.device_counters import device_counters
from minrpc.counters.image import Image
from minrpc.counters.profile import Measures
from minrpc.counters.qemu_counters import STEP_JUMP, STEP_STORE, QemuCounters, Trace
from minrpc.counters.secret_inputs import SecretInputs
from minrpc.counters.variable_time import variable_time_instructions
from minrpc.errors import ConfigurationError, HarnessError

Steps = npt.NDArray[np.void]
Bytes = npt.NDArray[np.uint8]


class Functions(Measures, Protocol):
    """A library or a module: measures and calls its functions by name."""

    def __getitem__(self, name: str, /) -> Callable[..., Any]: ...


# Where interrupts are not masked, one in a call changes its trace. Two traces of an input that are equal had
# none, or the same.
_TRIES: Final = 20
# The bytes that an access may reach, whose size is not known.
_WORD: Final = np.arange(8)


@dataclass(frozen=True, slots=True)
class TraceDifference:
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
        return f"input {self.index} {self.parting}, after {self.step:,} equal steps"

    @property
    def parting(self) -> str:
        """How the runs part, and where."""
        done = "took another path from" if self.what == "path" else "accessed another address in"
        return f"{done} {self.place}"


@dataclass(frozen=True, slots=True)
class ConstantTime:
    """The runs, compared. As a bool: whether all were equal.

    inputs: how many were tried. steps: jumps and accesses of the first run.
    masked: no interrupt could come in a run; else those runs count that came out the same twice.
    tried: the inputs by kind, in words; "" where the caller made them.
    variable_time: executed instructions whose own time depends on their operands, with function and line.
    """

    function: str
    inputs: int
    steps: int
    differences: tuple[TraceDifference, ...]
    masked: bool = True
    tried: str = ""
    variable_time: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        how = "" if self.masked else ", interrupts not masked"
        head = (
            f"{self.function} took the same path and the same addresses, {self.steps:,} steps, for these "
            f"{self.inputs} inputs{how}; that is no proof for others"
        )
        if self.differences:
            head = f"{self.function} depends on its input, {self.inputs} were tried:"
        return "\n".join(
            [
                head,
                *(f"  {text}" for text in _by_place(self.differences)),
                *([f"  {self.tried}"] if self.tried else []),
                *(
                    f"  warning: {instruction}: its own time may depend on its operands"
                    for instruction in self.variable_time
                ),
            ]
        )


def check_constant_time(
    device: Session,
    counters: QemuCounters,
    name: str,
    inputs: SecretInputs | Sequence[Sequence[Any]],
    library: Functions | None = None,
) -> ConstantTime:
    """Call `name` with each of `inputs`, and compare what it executed and accessed, step by step.

    inputs: `secret_inputs` makes them of one call's arguments; or the arguments of each call. Arrays of numpy
        are copied to the same addresses for each input, so all must be of one shape and type; other arguments
        go as they are.
    counters: with `trace=True`; the device was started with them.
    library: has the function, where it is not the firmware's own.

    Interrupts are masked meanwhile. Where the firmware can't, two runs of an input that are equal had none.
    The call that is traced is not the first of an input: a function that overwrites what it reads would be
    traced with what it has made of its input. Where that shows no difference, it is refused.

    Raises ConfigurationError for inputs that don't fit together, and for such a function, HarnessError where
    no two runs of an input are equal.
    """
    given = inputs.calls if isinstance(inputs, SecretInputs) else inputs
    arguments = _on_device(device, given)
    functions: Functions = library if library is not None else device.system_lib()
    masks = bool(device_counters(device.rpc))
    measurer = functions.measure(name, number=1, repeat=1, interrupts_masked=masks)
    tracer = _Tracer(lambda call: measurer(*_copied(arguments, call)), counters, name)
    before = counters.in_windows()
    first = tracer.trace(given[0])
    found = [_compared(tracer, index, first, given[0], other) for index, other in enumerate(given[1:], 1)]
    differences = tuple(item for item in found if item is not None)
    if not differences:
        _require_kept_input(functions[name], name, arguments, given, tracer, first)
    executed = (counters.in_windows() - before).by_address
    return ConstantTime(
        name,
        len(given),
        first.length,
        differences,
        masks,
        str(inputs) if isinstance(inputs, SecretInputs) else "",
        variable_time_instructions(counters.image, executed),
    )


def _by_place(differences: Sequence[TraceDifference]) -> Iterator[str]:
    """A line for each place where inputs part from the first."""
    groups: dict[str, list[TraceDifference]] = {}
    for difference in differences:
        groups.setdefault(difference.parting, []).append(difference)
    for group in groups.values():
        others = f" ({len(group) - 1} other inputs likewise)" if len(group) > 1 else ""
        yield f"{group[0]}{others}"


class _Tracer:
    """Traces runs of one function. run: calls it with an input."""

    def __init__(self, run: Callable[[Sequence[Any]], object], counters: QemuCounters, name: str) -> None:
        self._run = run
        self._counters = counters
        self._name = name

    @property
    def image(self) -> Image:
        """What the device runs."""
        return self._counters.image

    def trace(self, given: Sequence[Any], like: Trace | None = None, kept_from: int = 0) -> Trace:
        """The trace of a call: the first that equals `like`, or that comes twice, so that a difference from
        run to run, as an interrupt makes, is not taken for the input's doing."""
        seen: list[Trace] = [] if like is None else [like]
        self._counters.keep_trace_from(kept_from)
        try:
            for _ in range(_TRIES):
                self._run(given)
                trace = self._counters.last_trace()
                if any(trace.equals(before) for before in seen):
                    return trace
                seen.append(trace)
        finally:
            self._counters.keep_trace_from(0)
        raise HarnessError(
            f"no two of {_TRIES} runs of {self._name} with the same input were equal",
            next_step="what it keeps from call to call must be the same each time",
        )

    def chunks(self, given: Sequence[Any], trace: Trace) -> Iterator[Steps]:
        """All steps of the call with this trace, in order; those that were not kept come of new runs."""
        at = 0
        while at < trace.length:
            steps = (trace if at == 0 else self.trace(given, trace, at)).steps
            yield steps
            at += len(steps)


def _compared(
    tracer: _Tracer, index: int, first: Trace, first_given: Sequence[Any], given: Sequence[Any]
) -> TraceDifference | None:
    """The place where a run with `given` parts from the first input's; None where all is equal."""
    other = tracer.trace(given, first)
    if other.equals(first):
        return None
    at = first.equal_steps(other)
    steps = [
        tracer.trace(call, trace, at).steps if at else trace.steps
        for call, trace in ((first_given, first), (given, other))
    ]
    return difference(index, steps[0], steps[1], tracer.image, at)


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
    tracer: _Tracer,
    trace: Trace,
) -> None:
    """Raise ConfigurationError where a call overwrites what it has read of an array that is an input.

    The inputs have one trace, so its loads are those of all.
    """
    written: set[int] = set()
    for given in inputs:
        function(*_copied(arguments, given))
        for place, array in enumerate(arguments):
            if array is None or all(np.array_equal(other[place], given[place]) for other in inputs):
                continue
            changed = np.flatnonzero(_bytes(array.numpy()) != _bytes(given[place]))
            written.update((array.address + changed).tolist())
    if written and _loads_first(tracer.chunks(inputs[0], trace), written):
        raise ConfigurationError(
            f"{name} overwrites its input: the call that is traced finds what an earlier one left",
            stage="constant time",
            next_step=f"check a function that copies the input, and then calls {name} with the copy",
        )


def _loads_first(chunks: Iterable[Steps], written: Collection[int]) -> bool:
    """Whether the first access to something of the words of 64 bits around these bytes is a load."""
    words = np.unique(np.array(sorted(written), np.int64) // len(_WORD)) * len(_WORD)
    due = set((words[:, None] + _WORD).ravel().tolist())
    reaching = (words[:, None] + np.arange(1 - len(_WORD), len(_WORD))).ravel().astype(np.uint64)
    stored: set[int] = set()
    for steps in chunks:
        what = steps["what"]
        accesses = what[what & np.uint64(STEP_JUMP) == 0]
        for access in accesses[np.isin(accesses & ~np.uint64(STEP_STORE), reaching)].tolist():
            if access & STEP_STORE:
                stored.update(range(access - STEP_STORE, access - STEP_STORE + len(_WORD)))
            elif access in due and access not in stored:
                return True
    return False


def _bytes(value: npt.NDArray[Any]) -> Bytes:
    return np.frombuffer(value.tobytes(), np.uint8)


def _form(value: object) -> object:
    return (value.shape, value.dtype) if isinstance(value, np.ndarray) else type(value)


def difference(index: int, reference: Steps, other: Steps, image: Image, first: int = 0) -> TraceDifference:
    """The place where `other` parts from `reference`. first: number of their first steps."""
    length = min(len(reference), len(other))
    unequal = np.flatnonzero(reference[:length] != other[:length])
    at = int(unequal[0]) if len(unequal) else length
    here = at < length and reference[at]["where"] == other[at]["where"]
    if here and not (int(reference[at]["what"]) | int(other[at]["what"])) & STEP_JUMP:
        return TraceDifference(index, "addresses", image.place_of(int(reference[at]["where"])), first + at)
    # Up to there both went straight on from the same place: they part at the first instruction that one of
    # them jumped or accessed memory at, a branch or a conditional instruction.
    places = [_acting(trace[at]) for trace in (reference, other) if at < len(trace)]
    return TraceDifference(index, "path", image.place_of(min(places)), first + at)


def _acting(step: np.void) -> int:
    """The last byte of the instruction that jumped, or the first of the one that accessed memory."""
    what = int(step["what"])
    return what - STEP_JUMP - 1 if what & STEP_JUMP else int(step["where"])
