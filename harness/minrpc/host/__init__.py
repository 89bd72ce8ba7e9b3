# SPDX-License-Identifier: Apache-2.0
"""This machine: its processes, and how its time is charged. The lowest room: every other may use it."""
