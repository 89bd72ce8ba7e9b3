# SPDX-License-Identifier: Apache-2.0
"""Publishes a run's results: pages, other programs' formats, limits of a project."""

from minrpc.publish.run_record import RunRecord, run_of

__all__ = ["RunRecord", "run_of"]
