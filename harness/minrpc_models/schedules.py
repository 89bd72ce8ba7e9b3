# SPDX-License-Identifier: Apache-2.0
"""Schedules of a model's operators that were measured on a device: TVM's database of them, and its use.

The database is a directory with the two JSON files of MetaSchedule's JSONDatabase. Each record's target is
TVM's "c" with the processor's options and the compiler flags as its `model`: records of several processors
can be in one directory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from math import inf
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from minrpc.errors import ConfigurationError
from minrpc.library import Toolset, program_facts
from minrpc.tvm import tvm_package

from minrpc_models.relax import is_relax, told_by_tvm

WORKLOADS: Final = "database_workload.json"
RECORDS: Final = "database_tuning_record.json"

_PROCESSOR: Final = re.compile(r"-m(cpu|arch|fpu|float-abi|abi)=.*")


def built_for(toolset: Toolset, flags: Sequence[str]) -> str:
    """The processor's options and the compiler flags, which decide on the fastest schedule."""
    machine = program_facts(toolset.elf).machine.removeprefix("EM_")
    processor = [flag for flag in toolset.flags if _PROCESSOR.fullmatch(flag)]
    return " ".join([machine, *processor, *flags])


def workload(function: Any) -> Any:  # noqa: ANN401 - TVM has no types
    """The module by which the database knows a PrimFunc."""
    named = function.with_attr("global_symbol", "main").without_attr("op_pattern")
    return tvm_package().IRModule({"main": named})


class Schedules:
    """TVM's database in `directory`, for one processor and its compiler flags.

    Raises ConfigurationError if the directory can't be read, or has no database unless `create`.
    """

    def __init__(self, directory: Path, model: str = "", *, create: bool = False) -> None:
        self.directory = directory
        self._database = _opened(directory, create=create)
        with _read(directory):
            known = {_model_of(record) for record in self._database.get_all_tuning_records()}
        self.model = model or _only(directory, known)
        self._known = known - {""}

    def record(self, function: Any, schedule: Any, seconds: float) -> None:  # noqa: ANN401
        """Add a measured schedule of a PrimFunc. Raises ConfigurationError if it can't be written."""
        schedules = meta_schedule()
        with _written(self.directory):
            committed = self._database.commit_workload(workload(function))
            target = tvm_package().target.Target({"kind": "c", "model": self.model})
            database = schedules.database
            self._database.commit_tuning_record(
                database.TuningRecord(schedule.trace, committed, [seconds], target, None)
            )

    def best(self, function: Any) -> Any | None:  # noqa: ANN401
        """The fastest schedule of a PrimFunc, None if it was not tuned for this processor."""
        with _read(self.directory):
            module = workload(function)
            if not self._database.has_workload(module):
                return None
            records = self._database.get_top_k(self._database.commit_workload(module), len(self._database))
            record = next((item for item in records if _model_of(item) == self.model), None)
            if record is None:
                return None
            schedule = import_module("tvm.s_tir").Schedule(record.workload.mod)
            record.trace.apply_to_schedule(schedule, remove_postproc=False)
            return schedule

    def applied(self, lowered: Any, name: str) -> tuple[Any, dict[str, bool]]:  # noqa: ANN401
        """The lowered module with the fastest schedules, and its tuned functions: True if its loops differ.

        Raises ConfigurationError if no function was tuned for this processor.
        """
        if self._known and self.model not in self._known:
            known = " and ".join(sorted(self._known))
            raise ConfigurationError(
                f"{self.directory} has no schedules for {self.model}, only for {known}",
                next_step=f"tune on this platform, with these flags: --tune 64 --tuned {self.directory}",
            )
        functions, tuned = {}, {}
        for var, function in lowered.functions.items():
            schedule = None if is_relax(function) else self.best(function)
            functions[var] = function if schedule is None else schedule.mod["main"]
            if schedule is not None:
                tuned[str(var.name_hint)] = len(schedule.trace.insts) > 0
        if not tuned:
            raise ConfigurationError(
                f"{self.directory} has no schedule for any operator of {name}: another model was tuned, or "
                "another TVM has written them",
                next_step=f"tune this model: --tune 64 --tuned {self.directory}",
            )
        return tvm_package().IRModule(functions, attrs=lowered.attrs), tuned


def meta_schedule() -> ModuleType:
    """TVM's MetaSchedule. Raises ConfigurationError if this TVM has none."""
    tvm_package()
    try:
        return import_module("tvm.s_tir.meta_schedule")
    except ImportError as error:
        raise ConfigurationError(
            f"this TVM has no MetaSchedule: {error}", next_step="pip install 'minrpc-harness[tvm]'"
        ) from error


def require_database(directory: Path) -> None:
    """Raise ConfigurationError if the directory has no database."""
    missing = [name for name in (WORKLOADS, RECORDS) if not (directory / name).is_file()]
    if missing:
        raise ConfigurationError(
            f"{directory} is no database of schedules: it has no {' and no '.join(missing)}",
            next_step=f"make one in an empty directory: --tune 64 --tuned {directory}",
        )


def _opened(directory: Path, *, create: bool) -> Any:  # noqa: ANN401
    files = [directory / WORKLOADS, directory / RECORDS]
    if create:
        with _written(directory):
            directory.mkdir(parents=True, exist_ok=True)
    if not create or any(path.exists() for path in files):
        require_database(directory)
    database = meta_schedule().database
    with _read(directory):
        return database.JSONDatabase(*map(str, files))


def _model_of(record: Any) -> str:  # noqa: ANN401
    target = record.target
    attributes = dict(target.attrs) if target is not None else {}
    seconds = list(record.run_secs or [])
    usable = (
        target is not None and str(target.kind.name) == "c" and seconds and max(map(float, seconds)) < inf
    )
    return str(attributes.get("model", "")) if usable else ""


def _only(directory: Path, known: set[str]) -> str:
    """The only processor of a database, for an export. Raises ConfigurationError for another number."""
    named = sorted(known - {""})
    if len(named) != 1:
        raise ConfigurationError(
            f"{directory} has schedules for {' and '.join(named) or 'no processor'}: an export is for one",
            next_step="tune in a directory for each processor",
        )
    return named[0]


def _read(directory: Path) -> AbstractContextManager[None]:
    """Context of reading: turns TVM's errors into ConfigurationError."""
    what = f"TVM {tvm_package().__version__} can't read {directory}"
    return told_by_tvm(what, ConfigurationError, "remove it, and tune again")


def _written(directory: Path) -> AbstractContextManager[None]:
    return told_by_tvm(f"{directory} can't be written", ConfigurationError, "name another directory")
