# SPDX-License-Identifier: Apache-2.0
"""Today's TVM: its clients on a device, its generated code in a device.

Names are imported on first use, so that each part works without the other.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from minrpc.library.tvm_modules import HEADERS, TvmLibrary, load_module
    from minrpc.library.tvm_targets import float16_flags, llvm_target, tvm_package, uses_float16
    from minrpc.tvm.pipe import pipe_program
    from minrpc.tvm.served import session

__all__ = [
    "HEADERS",
    "TvmLibrary",
    "float16_flags",
    "llvm_target",
    "load_module",
    "pipe_program",
    "session",
    "tvm_package",
    "uses_float16",
]

_HOMES: Final = {
    **dict.fromkeys(("HEADERS", "TvmLibrary", "load_module"), "minrpc.library.tvm_modules"),
    "pipe_program": "minrpc.tvm.pipe",
    "session": "minrpc.tvm.served",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "minrpc.library.tvm_targets")), name)
