# SPDX-License-Identifier: Apache-2.0
"""Runs a model in a process of its own on this machine: `python -m minrpc_models.on_host DIRECTORY`.

DIRECTORY has model.json, a Relax module, and inputs.npz in the order of its parameters; the process writes
outputs.npz, or the failure to error.txt. It is a separate process because an index out of range, or an
integer division by zero, ends it by a signal.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from minrpc.tvm import tvm_package

from minrpc_models.reference import arrays_of
from minrpc_models.relax import entry_of, first_line


def main(directory: Path) -> int:
    """Run the model; returns 0, or 1 after writing error.txt."""
    try:
        package = tvm_package()
        module = package.ir.load_json((directory / "model.json").read_text())
        machine = package.relax.VirtualMachine(package.compile(module, "llvm"), package.cpu())
        arguments = [package.runtime.tensor(array) for array in arrays_of(directory / "inputs.npz")]
        result = machine[entry_of(module)](*arguments)
        results = [result] if hasattr(result, "numpy") else list(result)
        np.savez(directory / "outputs.npz", *(result.numpy() for result in results))
    except Exception as error:  # TVM raises any class: the parent reads the text.
        (directory / "error.txt").write_text(first_line(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
