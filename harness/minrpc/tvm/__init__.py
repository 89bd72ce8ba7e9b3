# SPDX-License-Identifier: Apache-2.0
"""Today's TVM: a client of a device over TCP, a tracker or in Python, and a compiler of models for it."""

from minrpc.tvm.pipe import pipe_program
from minrpc.tvm.served import session
from minrpc.tvm.targets import llvm_target

__all__ = ["llvm_target", "pipe_program", "session"]
