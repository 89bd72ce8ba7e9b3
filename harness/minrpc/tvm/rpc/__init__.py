# SPDX-License-Identifier: Apache-2.0
"""Devices for today's TVM clients: over TCP, by a tracker, over pipes, or in the same Python process."""
