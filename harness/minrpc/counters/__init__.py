# SPDX-License-Identifier: Apache-2.0
"""What a run is made of, beside its time: counts of instructions by function and line."""

from minrpc.counters.call_tree import CallTree
from minrpc.counters.image import Image
from minrpc.counters.qemu_counters import Cache, Counts, QemuCounters, counters_for

__all__ = ["Cache", "CallTree", "Counts", "Image", "QemuCounters", "counters_for"]
