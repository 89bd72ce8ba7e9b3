# SPDX-License-Identifier: Apache-2.0
"""Checks that a function takes the same path and accesses the same addresses for all values of its secrets.

The result holds for the tried inputs and this build of the code, by instructions and addresses. It is no
proof. Instructions whose own time depends on their operands are listed, not judged.
"""

from __future__ import annotations

import re
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
from minrpc.counters.variable_time import IT, variable_time_instructions
from minrpc.errors import ConfigurationError, HarnessError

Steps = npt.NDArray[np.void]
Bytes = npt.NDArray[np.uint8]


class Functions(Measures, Protocol):
    """A library or a module: measures and calls its functions by name."""

    def __getitem__(self, name: str, /) -> Callable[..., Any]: ...


# Runs of an input until two traces are equal: an interrupt changes a trace, unless interrupts are masked.
_TRIES: Final = 20
# Offsets of the bytes of the largest access: the trace has no sizes.
_WORD: Final = np.arange(8)
_SHOWN_BYTES: Final = 32

# Functions of libgcc that narrow a double, of cores without an FPU.
_NARROWING: Final = re.compile(r"(?:__truncdf[sh]f2|__aeabi_d2[fh])\b")


@dataclass(frozen=True, slots=True)
class TraceDifference:
    """The place where the run of input number `index` differs from the first input's run.

    what: "path" for other instructions, "addresses" for the same instructions that access other memory.
    place: function, file and line of the first instruction that differs: the branch, or the access.
    step: number of jumps and accesses before it.
    """

    index: int
    what: Literal["path", "addresses"]
    place: str
    step: int

    def __str__(self) -> str:
        return f"input {self.index} {self.description}, after {self.step:,} equal steps"

    @property
    def description(self) -> str:
        """The kind and place of the difference."""
        done = "took another path from" if self.what == "path" else "accessed another address in"
        return f"{done} {self.place}"


@dataclass(frozen=True, slots=True)
class ConstantTime:
    """The result of comparing the runs. As a bool: True if all were equal, and no IT was executed.

    inputs: number of inputs. steps: number of jumps and accesses of the first run.
    masked: True if no interrupt could come in a run; else only runs with the same trace twice count.
    tried: the inputs by kind, in words; "" if the caller made them.
    variable_time: executed instructions whose own time depends on their operands, and IT, which skips others,
        with function and line.
    """

    function: str
    inputs: int
    steps: int
    differences: tuple[TraceDifference, ...]
    masked: bool = True
    tried: str = ""
    variable_time: tuple[str, ...] = ()

    @property
    def perhaps(self) -> bool:
        """True if runs were equal, but IT may have skipped instructions for some inputs only."""
        return not self.differences and any(item.startswith(f"{IT} ") for item in self.variable_time)

    def __bool__(self) -> bool:
        return not self.differences and not self.perhaps

    def __str__(self) -> str:
        how = "" if self.masked else ", interrupts not masked"
        head = (
            f"{self.function} took the same path and the same addresses, {self.steps:,} steps, for these "
            f"{self.inputs} inputs{how}; this is no proof for other inputs"
        )
        if self.perhaps:
            head = f"perhaps: {head}, and IT may have skipped other instructions for each"
        if self.differences:
            head = f"{self.function} depends on its input, {self.inputs} were tried:"
        return "\n".join(
            [
                head,
                *(f"  {text}" for text in _by_place(self.differences)),
                *([f"  {self.tried}"] if self.tried else []),
                *(f"  warning: {instruction}: {_why(instruction)}" for instruction in self.variable_time),
            ]
        )


def _why(instruction: str) -> str:
    """The reason for a warning of an instruction."""
    if instruction.startswith(f"{IT} "):
        return "its condition may skip instructions, and the compared path does not have that"
    return "its own time may depend on its operands"


def check_constant_time(
    session: Session,
    counters: QemuCounters,
    name: str,
    inputs: SecretInputs | Sequence[Sequence[Any]],
    library: Functions | None = None,
) -> ConstantTime:
    """Calls `name` with each of `inputs`; compares executed instructions and memory accesses step by step.

    inputs: from `secret_inputs`, which makes them of one call's arguments; or the arguments of each call. An
        array of numpy is copied to the same address for each input, so all must have one shape and type;
        other arguments are passed unchanged.
    counters: with `trace=True`; the device was started with them.
    library: has the function, if it is not the firmware's own.

    Interrupts are masked meanwhile. If the firmware can't, two equal runs of an input are taken as free of
    interrupts. The traced call is not the first of an input: a function that overwrites its input would be
    traced with the changed input. Such a function is refused, unless a difference was found.

    Raises ConfigurationError for inputs that don't fit together, and for a function that overwrites its
    input; HarnessError if no two runs of an input are equal.
    """
    given = inputs.calls if isinstance(inputs, SecretInputs) else inputs
    arguments = _on_device(session, given)
    functions: Functions = library if library is not None else session.system_lib()
    masks = bool(device_counters(session.rpc))
    measurer = functions.measure(name, number=1, repeat=1, interrupts_masked=masks)
    tracer = _Tracer(lambda call: measurer(*_copied(arguments, call)), counters, name, given)
    before = counters.in_windows()
    first = tracer.trace(given[0])
    compared = [_compared(tracer, index, first, given[0], other) for index, other in enumerate(given[1:], 1)]
    differences = tuple(item for item in compared if item is not None)
    _require_unconverted(name, given, differences)
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


def _require_unconverted(
    name: str, given: Sequence[Sequence[Any]], differences: Sequence[TraceDifference]
) -> None:
    """Refuse a float by value where software narrows it from double, in steps that depend on it."""
    narrowed = [item for item in differences if _NARROWING.match(item.place)]
    if narrowed and any(isinstance(value, float) for value in given[0]):
        raise ConfigurationError(
            f"{name} takes a float that software narrows from double, in steps that depend on it: "
            f"{narrowed[0].place}",
            next_step="check a function that takes it by a pointer, const float *",
        )


def _by_place(differences: Sequence[TraceDifference]) -> Iterator[str]:
    """A line for each place at which inputs differ from the first input."""
    groups: dict[str, list[TraceDifference]] = {}
    for difference in differences:
        groups.setdefault(difference.description, []).append(difference)
    for group in groups.values():
        others = f" ({len(group) - 1} other inputs likewise)" if len(group) > 1 else ""
        yield f"{group[0]}{others}"


class _Tracer:
    """Traces runs of one function. run: calls it with one of `inputs`."""

    def __init__(
        self,
        run: Callable[[Sequence[Any]], object],
        counters: QemuCounters,
        name: str,
        inputs: Sequence[Sequence[Any]],
    ) -> None:
        self._run = run
        self._inputs = inputs
        self._counters = counters
        self._name = name

    @property
    def image(self) -> Image:
        """The image that the device runs."""
        return self._counters.image

    def trace(self, given: Sequence[Any], like: Trace | None = None, kept_from: int = 0) -> Trace:
        """The trace of a call: the first that equals `like` or an earlier trace of this call.

        So a difference between runs of one input, as by an interrupt, is not attributed to the input."""
        seen: list[Trace] = [] if like is None else [like]
        self._counters.keep_trace_from(kept_from)
        try:
            for _ in range(_TRIES):
                self._run_input(given)
                trace = self._counters.last_trace()
                if any(trace.equals(before) for before in seen):
                    return trace
                seen.append(trace)
        finally:
            self._counters.keep_trace_from(0)
        raise HarnessError(
            f"no two of {_TRIES} runs of {self._name} with the same input were equal",
            next_step="data that it keeps from call to call must be the same each time",
        )

    def _run_input(self, given: Sequence[Any]) -> None:
        """Run the function. A failure, such as a crash, names the input that led to it."""
        try:
            self._run(given)
        except HarnessError as error:
            index = next(index for index, other in enumerate(self._inputs) if other is given)
            shown = ", ".join(map(_shown, given))
            error.details = (f"input {index} of {len(self._inputs)}: {shown}", *error.details)
            raise

    def chunks(self, given: Sequence[Any], trace: Trace) -> Iterator[Steps]:
        """All steps of the call with this trace, in order; steps that were not kept come from new runs."""
        at = 0
        while at < trace.length:
            steps = (trace if at == 0 else self.trace(given, trace, at)).steps
            yield steps
            at += len(steps)


def _shown(value: object) -> str:
    """An argument in a failure: an array's first bytes, as they are in memory."""
    if not isinstance(value, np.ndarray):
        return repr(value)
    data = value.tobytes()
    more = f"... ({len(data):,} bytes)" if len(data) > _SHOWN_BYTES else ""
    return f"{value.dtype}[{','.join(map(str, value.shape))}] 0x{data[:_SHOWN_BYTES].hex()}{more}"


def _compared(
    tracer: _Tracer, index: int, first: Trace, first_given: Sequence[Any], given: Sequence[Any]
) -> TraceDifference | None:
    """The place where a run with `given` differs from the first input's; None if the runs are equal."""
    other = tracer.trace(given, first)
    if other.equals(first):
        return None
    at = first.equal_steps(other)
    steps = [
        tracer.trace(call, trace, at).steps if at else trace.steps
        for call, trace in ((first_given, first), (given, other))
    ]
    return difference(index, steps[0], steps[1], tracer.image, at)


def _on_device(session: Session, inputs: Sequence[Sequence[Any]]) -> list[RemoteArray | None]:
    """A device array for each argument that is an array; None for others."""
    if len(inputs) < 2:
        raise ConfigurationError("one input can't be compared", next_step="give two or more")
    forms = [[_form(value) for value in given] for given in inputs]
    if any(form != forms[0] for form in forms):
        raise ConfigurationError("inputs are not of the same shapes and types", next_step="make them so")
    return [
        session.empty(value.shape, value.dtype) if isinstance(value, np.ndarray) else None
        for value in inputs[0]
    ]


def _copied(arguments: Sequence[RemoteArray | None], given: Sequence[Any]) -> list[Any]:
    """The arguments of the call, with the given values copied into the device's arrays."""
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
    """Raise ConfigurationError if a call overwrites bytes of an input array that it has read.

    All inputs have the same trace, and so the same loads.
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
            f"{name} overwrites its input: the traced call finds an earlier call's output",
            stage="constant time",
            next_step=f"check a function that copies the input, and then calls {name} with the copy",
        )


def _loads_first(chunks: Iterable[Steps], written: Collection[int]) -> bool:
    """True if the first access to the 64-bit words around these bytes is a load."""
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
    """The place where `other` differs from `reference`. first: number of their first steps."""
    length = min(len(reference), len(other))
    unequal = np.flatnonzero(reference[:length] != other[:length])
    at = int(unequal[0]) if len(unequal) else length
    here = at < length and reference[at]["where"] == other[at]["where"]
    if here and not (int(reference[at]["what"]) | int(other[at]["what"])) & STEP_JUMP:
        return TraceDifference(index, "addresses", image.place_of(int(reference[at]["where"])), first + at)
    # Before this step both ran straight on from one place: they differ at the first instruction where only
    # one of them jumped or accessed memory, a branch or a conditional instruction.
    places = [_address_of(trace[at]) for trace in (reference, other) if at < len(trace)]
    return TraceDifference(index, "path", image.place_of(min(places)), first + at)


def _address_of(step: np.void) -> int:
    """Address of the last byte of the instruction that jumped, or of the first byte of the access."""
    what = int(step["what"])
    return what - STEP_JUMP - 1 if what & STEP_JUMP else int(step["where"])
