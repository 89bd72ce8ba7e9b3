# SPDX-License-Identifier: Apache-2.0
"""Cycles of a real core: its timing table, machine code, how often each way was taken."""

from minrpc.cycles.core import Core, Span, core_names, core_or_reason, load_core

__all__ = ["Core", "Span", "core_names", "core_or_reason", "load_core"]
