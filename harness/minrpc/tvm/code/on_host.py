# SPDX-License-Identifier: Apache-2.0
"""A model in a process of its own on this machine: `python -m minrpc.tvm.code.on_host DIRECTORY`.

DIRECTORY has model.json, a Relax module, and inputs.npz in the order of its parameters; outputs.npz comes
there, or what failed as error.txt. A process of its own: an index out of range, or a division of integers
by zero, ends it by a signal.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from minrpc.tvm.code.reference import arrays_of
from minrpc.tvm.code.relax import entry_of, first_line, tvm


def main(directory: Path) -> int:
    """Run it: 0, or 1 with error.txt."""
    try:
        package = tvm()
        module = package.ir.load_json((directory / "model.json").read_text())
        machine = package.relax.VirtualMachine(package.compile(module, "llvm"), package.cpu())
        arguments = [package.runtime.tensor(array) for array in arrays_of(directory / "inputs.npz")]
        result = machine[entry_of(module)](*arguments)
        results = [result] if hasattr(result, "numpy") else list(result)
        np.savez(directory / "outputs.npz", *(result.numpy() for result in results))
    except Exception as error:  # TVM's, of any class: whoever waits for it gets its text.
        (directory / "error.txt").write_text(first_line(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
