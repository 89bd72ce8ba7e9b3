# SPDX-License-Identifier: Apache-2.0
"""Tunes a model's operators on a device: TVM's MetaSchedule proposes schedules, the device measures them.

Each schedule is compiled as C with the flags of the model, as `minrpc model` and an export have it. It runs
on the tensors of a real run, and its result is compared with that of TVM's own loops.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from minrpc import RemoteArray, Session
from minrpc.errors import CompileError, DeviceMemoryError, HarnessError, LinkerError, RemoteError
from minrpc.tvm import TvmLibrary, load_module, tvm_package

from minrpc_models.compared import difference
from minrpc_models.errors import ModelError
from minrpc_models.models import Model, ModelRun
from minrpc_models.relax import c_source, is_relax, told_by_tvm
from minrpc_models.schedules import Schedules, meta_schedule, workload

SHARE: Final = 0.01
"""Operators that take less of a run are not tuned."""

_INTRINSICS: Final = "tvm.s_tir.tensor_intrin"
_SEED: Final = 1
_HARMLESS: Final = (CompileError, LinkerError, DeviceMemoryError, RemoteError, ModelError)
"""Errors after which a device goes on."""


@dataclass(frozen=True)
class Tuned:
    """The result for one function.

    untuned_ticks: of TVM's own loops. ticks: of the fastest schedule, which may be TVM's own loops. tried:
    number of schedules with different code. failed: of them; reason: of the last failure.
    """

    function: str
    untuned_ticks: float
    ticks: float
    tried: int
    failed: int
    reason: str = ""


def functions_to_tune(model: Model, run: ModelRun) -> dict[str, list[int]]:
    """TVM's functions that take `SHARE` of a run or more, the slowest first, and their operators' numbers."""
    own = {str(var.name_hint) for var, function in model.lowered.functions.items() if not is_relax(function)}
    numbers = {name: ops for name, ops in run.by_function().items() if name in own}
    shares = {name: sum(run.share(run.operators[at]) for at in ops) for name, ops in numbers.items()}
    slow = sorted((name for name in shares if shares[name] >= SHARE), key=lambda name: -shares[name])
    return {name: numbers[name] for name in slow}


def tune(
    model: Model,
    functions: Mapping[str, Sequence[npt.NDArray[Any]]],
    bench: Bench,
    schedules: Schedules,
    trials: int,
) -> Iterator[Tuned]:
    """Tune functions, and add each measured schedule to the database.

    functions: names, and the tensors of a real call, the last as the function leaves it. trials: schedules
        for each function, at random.

    Raises ModelError if TVM can't make schedules, and as opening a device does.
    """
    for name, operands in functions.items():
        bench.place(operands)
        yield _tuned(model, name, bench, schedules, trials)


def _tuned(model: Model, name: str, bench: Bench, schedules: Schedules, trials: int) -> Tuned:
    function = model.lowered[name]
    with told_by_tvm(f"TVM can't schedule {name}"):
        own = import_module("tvm.s_tir").Schedule(workload(function))
        proposed = _proposed(function, name, trials)
    ticks, seconds = bench.measured(name, c_source(own.mod))
    schedules.record(function, own, seconds)
    untuned = least = ticks
    tried: set[str] = set()
    failed, reason = 0, ""
    for schedule in proposed:
        source = c_source(schedule.mod)
        if source in tried:
            continue
        tried.add(source)
        try:
            ticks, seconds = bench.measured(name, source)
        except HarnessError as error:
            bench.recover(error)
            failed, reason = failed + 1, error.message
            continue
        schedules.record(function, schedule, seconds)
        least = min(least, ticks)
    return Tuned(name, untuned, least, len(tried), failed, reason)


def _proposed(function: Any, name: str, trials: int) -> list[Any]:  # noqa: ANN401 - TVM has no types
    """Schedules of a PrimFunc, drawn from MetaSchedule's space."""
    schedules = meta_schedule()
    with _without_intrinsics():
        context = schedules.TuneContext(
            workload(function),
            target=tvm_package().target.Target("c"),
            space_generator=_space(schedules),
            search_strategy="replay-trace",
            task_name=name,
            rand_state=_SEED,
            num_threads=1,
        )
    context.pre_tuning(max_trials=trials, num_trials_per_iter=trials)
    return [candidate.sch for candidate in context.generate_measure_candidates() or []]


def _space(schedules: ModuleType) -> Any:  # noqa: ANN401
    """MetaSchedule's rules for a processor, without threads and vectors, which C compilers make themselves.

    TVM has no default rules for the target "c".
    """
    rules, after = schedules.schedule_rule, schedules.postproc
    return schedules.space_generator.PostOrderApply(
        sch_rules=[
            rules.InlineConstantScalars(),
            rules.AutoInline(
                into_producer=False,
                into_consumer=True,
                inline_const_tensor=True,
                disallow_if_then_else=True,
                require_injective=True,
                require_ordered=True,
            ),
            rules.MultiLevelTiling(
                structure="SSRSRS",
                max_innermost_factor=64,
                reuse_write=rules.ReuseType(req="may", levels=[1, 2], scope="global"),
            ),
            rules.ParallelizeVectorizeUnroll(
                max_jobs_per_core=-1, max_vectorize_extent=-1, unroll_max_steps=[0, 4, 16, 64]
            ),
            rules.RandomComputeLocation(),
        ],
        postprocs=[
            after.DisallowDynamicLoop(),
            after.RewriteParallelVectorizeUnroll(),
            after.RewriteReductionBlock(),
        ],
        mutator_probs={},
    )


@contextmanager
def _without_intrinsics() -> Iterator[None]:
    """Keeps TVM from importing its tensor intrinsics, whose parsing takes 25 s: no rule here uses them."""
    if _INTRINSICS in sys.modules:
        yield
        return
    sys.modules[_INTRINSICS] = ModuleType(_INTRINSICS)
    try:
        yield
    finally:
        del sys.modules[_INTRINSICS]


def _unlike(expected: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array each of whose elements differs, so that a function that writes nothing is noticed."""
    if expected.dtype.kind == "b":
        return np.asarray(np.logical_not(expected))
    inverted = ~np.ascontiguousarray(expected).view(np.uint8)
    return np.asarray(inverted.view(expected.dtype).reshape(expected.shape))


class Bench:
    """A device on which schedules run one after another; opened anew after a schedule has ended it.

    opened: gives an open device, which its context closes. flags: of the compiler. A context manager, which
    closes the device.
    """

    def __init__(self, opened: Callable[[], AbstractContextManager[Session]], flags: Sequence[str]) -> None:
        self._opened = opened
        self._flags = flags
        self._operands: Sequence[npt.NDArray[Any]] = ()
        self._arrays: list[RemoteArray] = []
        self._device: Session | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    @property
    def device(self) -> Session:
        """The device, which is opened if it is not. Raises as opening it does."""
        if self._device is None:
            self._device = self._stack.enter_context(self._opened())
        return self._device

    def place(self, operands: Sequence[npt.NDArray[Any]]) -> None:
        """Take the arguments of the calls that follow, the last with the expected result."""
        for array in self._arrays:
            array.free()
        self._operands, self._arrays = operands, []

    def measured(self, name: str, source: str) -> tuple[float, float]:
        """Cycles and seconds of a call of the function "main" of generated C.

        name: of the function, for messages. Raises ModelError for a wrong result, and as loading, calling and
        measuring do.
        """
        library = load_module(self.device, f"{name}.c", source.encode(), flags=self._flags)
        try:
            if not self._arrays:
                self._arrays = [library.array(array) for array in self._operands]
            self._arrays[-1].copy_from(_unlike(self._operands[-1]))
            taken = self._time(library)
            deviation = difference(self._arrays[-1].numpy(), self._operands[-1])
            if not deviation.right:
                raise ModelError(f"{name}: {deviation.told('the result of its own loops')}")
            return taken
        finally:
            if self._device is not None:
                library.unload()

    def _time(self, library: TvmLibrary) -> tuple[float, float]:
        measured = library.module.measure("main", number=1, repeat=1)(*self._arrays)
        if measured.clock.mode != "exact":
            measured = library.module.measure("main", number=10, repeat=5)(*self._arrays)
        ticks = max(0.0, min(measured.net().ticks_per_call))
        return ticks, measured.clock.seconds(ticks)

    def recover(self, error: HarnessError) -> None:
        """End the device unless it goes on after such an error."""
        if not isinstance(error, _HARMLESS):
            self._end()

    def _end(self) -> None:
        self._device, self._arrays = None, []
        self._stack.close()
