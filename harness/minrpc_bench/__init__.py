# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: what this program costs, as ratios to a raw baseline that is measured in the same run.

A time says something about one machine on one day; the ratio of two times that were measured in turns holds
on any. The baseline is the same kind of link without any protocol (zephyr-app/bench), as an echo or one way,
the same emulator booting a program that prints one character, or the payload's own size.

`rows` is what a result looks like, `paired` how two things are measured in turns; each of the other modules
measures one thing. `run` puts them together for `minrpc bench`. Nothing here is a test: no number fails.
"""
