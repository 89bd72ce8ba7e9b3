# SPDX-License-Identifier: Apache-2.0
"""The fixtures of tests on devices."""

from tests.device.conftest import amount, image, lib, load, need_memory, own_shift

__all__ = ["amount", "image", "lib", "load", "need_memory", "own_shift"]
