# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: costs of this program, as ratios to a raw baseline that is measured in the same run.

A time holds for one machine on one day; the ratio of two times that were measured in turns holds on any
machine. The baseline is the same kind of link without any protocol (zephyr-app/bench), as an echo or in one
direction, or the same emulator with a program that prints one character. No number fails a run.
"""
