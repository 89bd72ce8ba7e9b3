# SPDX-License-Identifier: Apache-2.0
"""Kernel Tuner (https://kerneltuner.github.io) on devices: its strategies, its restrictions, its results.

    with on_devices(build(Target.named("bare_mps2_an385"))):
        results, _ = kernel_tuner.tune_kernel("scale", "scale.c", 256, [x, y], {"UNROLL": [1, 2, 4]},
                                              lang="C", answer=[None, expected], strategy="greedy_ils")

Kernel Tuner's C backend compiles and runs on this machine; inside the block, this module's backend replaces
it, and compiles for the device, loads, and times there, in a sandbox. Kernel Tuner is an extra:
`pip install 'minrpc-harness[kernel-tuner]'`.
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
from minrpc.host.sandbox import sandboxed
from minrpc.library import LoadedLibrary, Sources, compile_sources
from minrpc.library.loading import load_compiled
from minrpc.library.toolset import toolset_of
from minrpc.pipeline import Device, open_device
from minrpc.tuning.judging import CANDIDATE_TIMEOUT_S

# For an error with this text, Kernel Tuner skips the configuration; other errors end its run.
_SKIP: Final = "too many resources requested for launch"


@contextmanager
def on_devices(
    firmware: Firmware, *, call_timeout_s: float = CANDIDATE_TIMEOUT_S, sandbox: bool = True
) -> Iterator[None]:
    """Makes `tune_kernel(..., lang="C")` and `run_kernel` use a device of `firmware` inside the block.

    sandbox: False for candidates with the rights of this process.
    Results have `time` in ms, and also `ticks`, `code_bytes` and `frame_bytes`, for `objective=`.
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
        """Reports the last benchmark's measurement."""

        def __init__(self, backend: _Backend) -> None:
            self._backend = backend

        def after_finish(self) -> None:
            """No-op: the backend has the results already."""

        def get_results(self) -> dict[str, Any]:
            return self._backend.take_results()

    class Backend(_Backend, module.CompilerBackend):  # type: ignore[misc]
        """The backend with the options that `DeviceInterface` passes."""

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
        with sandboxed("or on_devices(..., sandbox=False): candidates have your rights", wanted=sandbox):
            yield
    finally:
        module.CompilerFunctions = before
        for backend in made:
            backend.close()


class _Backend:
    """A device, and the library of the last compiled configuration."""

    max_threads = 1024

    def __init__(self, firmware: Firmware, options: Sequence[str], call_timeout_s: float) -> None:
        self.name = firmware.platform.name
        self.units = {"time": "ms", "ticks": "ticks", "code_bytes": "bytes", "frame_bytes": "bytes"}
        self.env: dict[str, Any] = {"platform": self.name, "compiler_options": list(options)}
        self.last_result = None
        self._firmware = firmware
        self._options = tuple(options)
        self._call_timeout_s = call_timeout_s
        self._toolset = toolset_of(firmware)
        self._device: Device | None = None
        self._library: LoadedLibrary | None = None
        self._timing = False
        self._ticks: list[float] = []
        self._seconds: list[float] = []

    def close(self) -> None:
        """End the device."""
        device, self._device, self._library = self._device, None, None
        if device is not None:
            device.close()

    def take_results(self) -> dict[str, Any]:
        """Times of all runs since the last call, the fastest as `time`, and sizes of the code."""
        seconds, ticks = self._seconds, self._ticks
        self._seconds, self._ticks = [], []
        library = self._library
        assert library is not None
        return {
            "time": min(seconds) * 1e3,
            "times": [duration * 1e3 for duration in seconds],
            "ticks": min(ticks),
            "code_bytes": library.device_bytes,
            "frame_bytes": max(library.compiled.stack_use.values(), default=0),
        }

    # ------------------------------------------------------- methods that Kernel Tuner calls

    def ready_argument_list(self, arguments: Sequence[Any]) -> list[Any]:
        """The arguments stay on the host, and are sent with each call."""
        return [argument.copy() if isinstance(argument, np.ndarray) else argument for argument in arguments]

    def compile(self, kernel_instance: Any) -> str | None:  # noqa: ANN401 - kernel_tuner's KernelInstance
        """The function's name; None if it does not compile or link, which skips the configuration."""
        self.cleanup_lib()
        self._timing = False  # A failed run has not reached its second event.
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
        """Time the function between the two events; else call it, so that its outputs are read back."""
        del threads, grid, stream
        if self._library is None:  # The function crashed when it was checked.
            raise RuntimeError(f"{_SKIP}: {func} has spoiled its device")
        try:
            if not self._timing:
                self._library[func](*gpu_args)
                return
            measured = self._library.measure(func, number=1, repeat=1)(*gpu_args)
        except HarnessError as error:
            self.close()
            raise RuntimeError(f"{_SKIP}: {error.message}") from error
        self._ticks.append(measured.ticks_per_call[0])
        self._seconds.append(measured.seconds_per_call[0])

    def start_event(self) -> None:
        """Time the next runs."""
        self._timing = True

    def stop_event(self) -> None:
        """Stop timing runs."""
        self._timing = False

    def kernel_finished(self) -> bool:
        """Returns True: a call returns only when the kernel has finished."""
        return True

    def synchronize(self) -> None:
        """No-op: nothing runs in parallel."""

    def memset(self, allocation: Any, value: int, size: int) -> None:  # noqa: ANN401 - numpy arrays
        """Fill an argument's first bytes."""
        allocation.reshape(-1).view(np.uint8)[:size] = value

    def memcpy_dtoh(self, dest: Any, src: Any) -> None:  # noqa: ANN401
        """Copy between arrays: both are on the host."""
        if isinstance(dest, np.ndarray):
            dest[...] = src

    def memcpy_htod(self, dest: Any, src: Any) -> None:  # noqa: ANN401
        """Copy between arrays: both are on the host."""
        self.memcpy_dtoh(dest, src)

    def refresh_memory(
        self, device_memory: Sequence[Any], host_arguments: Sequence[Any], should_sync: Sequence[bool]
    ) -> None:
        """Reset the arguments to their initial values."""
        for mine, host, sync in zip(device_memory, host_arguments, should_sync, strict=False):
            if sync:
                self.memcpy_dtoh(mine, host)

    def cleanup_lib(self) -> None:
        """Free the last configuration's memory on the device."""
        library, self._library = self._library, None
        if library is not None:
            library.unload()
