# SPDX-License-Identifier: Apache-2.0
"""Today's TVM: a client of a device over TCP, a tracker, pipes or in Python; a compiler of models for it."""

from minrpc.tvm.models import export_library
from minrpc.tvm.pipe import pipe_program
from minrpc.tvm.served import session
from minrpc.tvm.targets import llvm_target

__all__ = ["export_library", "llvm_target", "pipe_program", "session"]
