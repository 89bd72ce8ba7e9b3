# SPDX-License-Identifier: Apache-2.0
"""Today's TVM: a client of a device over TCP, a tracker or in Python, and a compiler of models for it."""

from minrpc.tvm.served import session

__all__ = ["session"]
