# SPDX-License-Identifier: Apache-2.0
"""Counts of a run's instructions by function and line, profiles, coverage, and checks for constant time."""

from minrpc.counters.call_tree import CallTree
from minrpc.counters.image import Image
from minrpc.counters.plugin_build import step_after_refusal
from minrpc.counters.qemu_counters import Cache, Counts, QemuCounters, counters_for

__all__ = ["Cache", "CallTree", "Counts", "Image", "QemuCounters", "counters_for", "step_after_refusal"]
