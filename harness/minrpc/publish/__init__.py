# SPDX-License-Identifier: Apache-2.0
"""Publishes a run's results: pages, other programs' formats, limits of a project."""
