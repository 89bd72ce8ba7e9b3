# SPDX-License-Identifier: Apache-2.0
"""Runs a model by TVM on this machine, for comparison with a device's outputs."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from minrpc.extension import describe_status, output_tail, scratch, spawn, stop_group
from minrpc.tvm import tvm_package

from minrpc_models.errors import ModelError
from minrpc_models.relax import told_by_tvm

_AFTER_END_S: Final = 2.0
_BY_INPUTS: Final = (signal.SIGFPE, signal.SIGSEGV, signal.SIGBUS)
_OTHER_INPUTS: Final = (
    "give other inputs, --inputs FILE.npz: the model divided integers by zero, or used an index out of range"
)


def run_on_host(module: Any, inputs: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:  # noqa: ANN401
    """The outputs of a Relax module, computed by TVM on this machine.

    Raises ModelError if TVM can't run the module, or is ended by a signal; ConfigurationError if the cache
    can't be written.
    """
    with scratch() as directory:
        with told_by_tvm("TVM can't write the model for its run on this machine"):
            text = tvm_package().ir.save_json(module)
        (directory / "model.json").write_text(text)
        np.savez(directory / "inputs.npz", *inputs)
        process = spawn([sys.executable, "-P", "-m", "minrpc_models.on_host", str(directory)])
        output = output_tail(process, "host")
        try:
            status = process.wait()
        finally:
            stop_group(process)
            output.close(_AFTER_END_S)
        if status == 0:
            return arrays_of(directory / "outputs.npz")
        told = directory / "error.txt"
        if told.is_file():
            raise ModelError(f"TVM can't run the model on this machine: {told.read_text()}")
        raise ModelError(
            f"TVM's run of the model on this machine, to compare with, ended: {describe_status(status)}",
            details=output.text().splitlines()[-ModelError.most_details :],
            next_step=_OTHER_INPUTS if -status in _BY_INPUTS else "read its message",
        )


def arrays_of(path: Path) -> list[npt.NDArray[Any]]:
    """The unnamed arrays of a `numpy.savez` file, in order."""
    with np.load(path) as file:
        return [file[f"arr_{number}"] for number in range(len(file.files))]
