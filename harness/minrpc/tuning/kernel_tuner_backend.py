# SPDX-License-Identifier: Apache-2.0
"""Kernel Tuner (https://kerneltuner.github.io) on devices: its strategies, its restrictions, its results.

    with on_devices(build(Target.named("bare_mps2_an385"))):
        results, _ = kernel_tuner.tune_kernel("scale", "scale.c", 256, [x, y], {"UNROLL": [1, 2, 4]},
                                              lang="C", answer=[None, expected], strategy="greedy_ils")

Its backend for C compiles for this machine and runs here; inside the block it is one that compiles for the
device, loads, and times there. Kernel Tuner is an extra: `pip install 'minrpc-harness[kernel-tuner]'`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from minrpc.errors import BuildError, ConfigurationError, HarnessError, LinkerError
from minrpc.firmware import Firmware
from minrpc.library import LoadedLibrary, Sources, compile_sources
from minrpc.library.loading import load_compiled
from minrpc.library.toolset import toolset_of
from minrpc.pipeline import Device, open_device
from minrpc.tuning.judging import CANDIDATE_TIMEOUT_S

# With these words Kernel Tuner goes on to the next configuration; other errors end its run.
_SKIP: Final = "too many resources requested for launch"


@contextmanager
def on_devices(firmware: Firmware, *, call_timeout_s: float = CANDIDATE_TIMEOUT_S) -> Iterator[None]:
    """Inside the block `tune_kernel(..., lang="C")` and `run_kernel` use a device of `firmware`.

    Results have `time` in ms, and `cycles`, `code_bytes` and `stack_bytes` besides, for `objective=`.
    """
    try:
        module: Any = import_module("kernel_tuner.backends.compiler")
        observers: Any = import_module("kernel_tuner.observers.observer")
    except ImportError as error:
        raise ConfigurationError(
            "Kernel Tuner is not installed", next_step="pip install 'minrpc-harness[kernel-tuner]'"
        ) from error
    made: list[_Backend] = []

    class Observer(observers.BenchmarkObserver):  # type: ignore[misc]
        """Reports what the last benchmark measured."""

        def __init__(self, backend: _Backend) -> None:
            self._backend = backend

        def after_finish(self) -> None:
            """Nothing: the backend has it already."""

        def get_results(self) -> dict[str, Any]:
            return self._backend.take_results()

    class Backend(_Backend, module.CompilerBackend):  # type: ignore[misc]
        """As `DeviceInterface` makes it: with these options."""

        def __init__(
            self,
            iterations: int,
            compiler_options: Sequence[str] | None,
            compiler: str,
            observers: Sequence[object],
        ) -> None:
            super().__init__(firmware, compiler_options or (), call_timeout_s)
            self.observers = [*(observers or []), Observer(self)]
            self.env["iterations"] = iterations
            made.append(self)

    before = module.CompilerFunctions
    module.CompilerFunctions = Backend
    try:
        yield
    finally:
        module.CompilerFunctions = before
        for backend in made:
            backend.close()


class _Backend:
    """A device, and the library of the configuration that was compiled last."""

    max_threads = 1024

    def __init__(self, firmware: Firmware, options: Sequence[str], call_timeout_s: float) -> None:
        self.name = firmware.platform.name
        self.units = {"time": "ms", "cycles": "cycles", "code_bytes": "bytes", "stack_bytes": "bytes"}
        self.env: dict[str, Any] = {"platform": self.name, "compiler_options": list(options)}
        self.last_result = None
        self._firmware = firmware
        self._options = tuple(options)
        self._call_timeout_s = call_timeout_s
        self._toolset = toolset_of(firmware)
        self._device: Device | None = None
        self._library: LoadedLibrary | None = None
        self._timing = False
        self._cycles: list[float] = []
        self._seconds: list[float] = []

    def close(self) -> None:
        """End the device."""
        device, self._device, self._library = self._device, None, None
        if device is not None:
            device.close()

    def take_results(self) -> dict[str, Any]:
        """Of all runs since the last time, of which the quickest counts, and of the code that ran."""
        seconds, cycles = self._seconds, self._cycles
        self._seconds, self._cycles = [], []
        library = self._library
        assert library is not None
        return {
            "time": min(seconds) * 1e3,
            "times": [duration * 1e3 for duration in seconds],
            "cycles": min(cycles),
            "code_bytes": library.device_bytes,
            "stack_bytes": max(library.compiled.stack_use.values(), default=0),
        }

    # ------------------------------------------------------- what Kernel Tuner calls

    def ready_argument_list(self, arguments: Sequence[Any]) -> list[Any]:
        """They stay here, and go along with each call."""
        return [argument.copy() if isinstance(argument, np.ndarray) else argument for argument in arguments]

    def compile(self, kernel_instance: Any) -> str | None:  # noqa: ANN401 - kernel_tuner's KernelInstance
        """The function's name; None for what does not compile or link, which skips the configuration."""
        self.cleanup_lib()
        self._timing = False  # A run that failed has not come to its second event.
        with tempfile.TemporaryDirectory(prefix="minrpc-tune-") as directory:
            source = Path(directory) / "kernel.c"
            source.write_text(kernel_instance.kernel_string)
            try:
                compiled = compile_sources(Sources.of(source, flags=self._options), self._toolset)
                if self._device is None:
                    self._device = open_device(self._firmware, call_timeout_s=self._call_timeout_s)
                self._library = load_compiled(self._device, compiled, self._toolset)
            except (BuildError, LinkerError):
                return None
        return str(kernel_instance.name)

    def run_kernel(
        self,
        func: str,
        gpu_args: Sequence[Any],
        threads: object,
        grid: object,
        stream: object = None,
    ) -> None:
        """Between the two events it is timed, else called, so that what it writes comes back."""
        del threads, grid, stream
        if self._library is None:  # It has crashed when it was checked.
            raise RuntimeError(f"{_SKIP}: {func} has spoiled its device")
        try:
            if not self._timing:
                self._library[func](*gpu_args)
                return
            measured = self._library.measure(func, number=1, repeat=1)(*gpu_args)
        except HarnessError as error:
            self.close()
            raise RuntimeError(f"{_SKIP}: {error.message}") from error
        self._cycles.append(measured.cycles_per_call[0])
        self._seconds.append(measured.seconds_per_call[0])

    def start_event(self) -> None:
        """What runs next is timed."""
        self._timing = True

    def stop_event(self) -> None:
        """No more."""
        self._timing = False

    def kernel_finished(self) -> bool:
        """A call returns when it has."""
        return True

    def synchronize(self) -> None:
        """Nothing runs beside."""

    def memset(self, allocation: Any, value: int, size: int) -> None:  # noqa: ANN401 - numpy arrays
        """Of an argument's first bytes."""
        allocation.reshape(-1).view(np.uint8)[:size] = value

    def memcpy_dtoh(self, dest: Any, src: Any) -> None:  # noqa: ANN401
        """Both are here."""
        if isinstance(dest, np.ndarray):
            dest[...] = src

    def memcpy_htod(self, dest: Any, src: Any) -> None:  # noqa: ANN401
        """Both are here."""
        self.memcpy_dtoh(dest, src)

    def refresh_memory(
        self, device_memory: Sequence[Any], host_arguments: Sequence[Any], should_sync: Sequence[bool]
    ) -> None:
        """The arguments as they were at first."""
        for mine, host, sync in zip(device_memory, host_arguments, should_sync, strict=False):
            if sync:
                self.memcpy_dtoh(mine, host)

    def cleanup_lib(self) -> None:
        """Give the last configuration's memory back."""
        library, self._library = self._library, None
        if library is not None:
            library.unload()
