# SPDX-License-Identifier: Apache-2.0
"""Today's TVM: its clients on a device (`rpc`), its generated code and models on a device (`code`).

Names are imported on first use, so that each package works without the other.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from minrpc.tvm.code.models import export_library, load_model, model_of
    from minrpc.tvm.code.targets import llvm_target
    from minrpc.tvm.rpc.pipe import pipe_program
    from minrpc.tvm.rpc.served import session

__all__ = ["export_library", "llvm_target", "load_model", "model_of", "pipe_program", "session"]

_HOMES: Final = {
    "export_library": "minrpc.tvm.code.models",
    **dict.fromkeys(("load_model", "model_of"), "minrpc.tvm.code.models"),
    "llvm_target": "minrpc.tvm.code.targets",
    "pipe_program": "minrpc.tvm.rpc.pipe",
    "session": "minrpc.tvm.rpc.served",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
