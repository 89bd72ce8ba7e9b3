# SPDX-License-Identifier: Apache-2.0
"""A core's RTL as a program, made by Verilator."""

from minrpc.rtl.cycle_record import CallTrace, Recording
from minrpc.rtl.model import model_of, sources_of

__all__ = ["CallTrace", "Recording", "model_of", "sources_of"]
