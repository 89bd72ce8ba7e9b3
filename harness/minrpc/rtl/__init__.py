# SPDX-License-Identifier: Apache-2.0
"""A core's RTL as a program, made by Verilator."""

from minrpc.rtl.model import model_of, sources_of
from minrpc.rtl.recording import CallTrace, Recording

__all__ = ["CallTrace", "Recording", "model_of", "sources_of"]
