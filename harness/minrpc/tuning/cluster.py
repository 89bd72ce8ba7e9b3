# SPDX-License-Identifier: Apache-2.0
"""Judges candidates by the workers of a Dask cluster; each thread of a worker has its own device.

A worker builds the firmware from its own checkout; it compiles and runs candidates there, in a sandbox. The
kernel's files must have the same paths as here. Dask is an extra: `pip install 'minrpc-harness[dask]'`.
"""

from __future__ import annotations

import queue
import sys
import threading
from importlib import import_module
from typing import Any, Final

from minrpc.errors import ConfigurationError
from minrpc.firmware import build
from minrpc.host.sandbox import sandboxed
from minrpc.library.loading import likely_base
from minrpc.library.toolset import toolset_of
from minrpc.targets import Target
from minrpc.tuning.candidates import Candidate, CandidateResult
from minrpc.tuning.compilers import built
from minrpc.tuning.judging import Bench
from minrpc.tuning.kernel import Kernel

_CONNECT_S: Final = 30.0


class DaskWorkers:
    """The cluster whose scheduler is at `address`. A context manager: it ends the workers' devices.

    sandbox: False for candidates with the rights of the workers.
    """

    def __init__(self, address: str, kernel: Kernel, target: Target, *, sandbox: bool = True) -> None:
        try:
            self._dask: Any = import_module("distributed")
            pickle: Any = import_module("cloudpickle")
        except ImportError as error:
            raise ConfigurationError(
                "--dask needs dask.distributed", next_step="pip install 'minrpc-harness[dask]'"
            ) from error
        # The check may be a function from a file that workers can't import: its code is sent.
        module = sys.modules.get(getattr(kernel.check, "__module__", ""))
        if module is not None and module.__name__.partition(".")[0] not in ("builtins", "minrpc", "numpy"):
            pickle.register_pickle_by_value(module)
        try:
            self._client = self._dask.Client(address, timeout=_CONNECT_S)
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"no Dask scheduler answers at {address}: {error}",
                next_step="start a scheduler: dask scheduler",
            ) from error
        threads = self._client.nthreads()
        if not threads:
            self._client.close()
            raise ConfigurationError(
                f"the Dask scheduler at {address} has no workers",
                next_step=f"start a worker: dask worker {address}",
            )
        self.ahead = 2 * sum(threads.values())
        self._kernel = kernel
        self._target = target
        self._shared = self._client.scatter((kernel, target, sandbox), broadcast=True)
        self._results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._pending: set[Any] = set()

    def __enter__(self) -> DaskWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._client.cancel(list(self._pending))
            self._client.run(end_devices)
        finally:
            self._client.close()

    def put(self, candidate: Candidate, *, check: bool | None = None) -> None:
        """Does the same as `Workers`."""
        judging = self._client.submit(judge, self._shared, candidate, check, pure=False)
        self._pending.add(judging)
        judging.add_done_callback(self._results.put)

    def get(self) -> CandidateResult:
        """Does the same as `Workers`. Raises the worker's error, also if more workers were lost than Dask
        allows."""
        done = self._results.get()
        self._pending.discard(done)
        result: CandidateResult = done.result()
        return result


# By thread, and whether the device is in a sandbox.
_benches: dict[tuple[int, bool], Bench] = {}
_lock = threading.Lock()


def judge(shared: tuple[Kernel, Target, bool], candidate: Candidate, check: bool | None) -> CandidateResult:
    """The result of a candidate on the device of this worker's thread."""
    kernel, target, sandbox = shared
    place = threading.get_ident(), sandbox
    with _lock:
        bench = _benches.get(place)
        if bench is None or bench.firmware.target != target:
            if bench is not None:
                bench.close()
            firmware = build(target)
            bench = Bench(kernel, firmware, toolset_of(firmware))
            _benches[place] = bench
        bench.kernel = kernel
    with sandboxed("or --no-sandbox: candidates then have the worker's rights", wanted=sandbox):
        done = built(kernel.sources(candidate), bench.toolset, likely_base(bench.toolset))
        return bench.judge(candidate, done, check=check)


def end_devices() -> None:
    """End this worker's devices after its last candidate."""
    with _lock:
        while _benches:
            _benches.popitem()[1].close()
