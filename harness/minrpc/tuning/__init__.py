# SPDX-License-Identifier: Apache-2.0
"""Tunes a C kernel: candidates are built while the device measures, then loaded, checked, and timed."""

from minrpc.tuning.candidates import Candidate, CandidateResult, Space
from minrpc.tuning.kernel import Kernel
from minrpc.tuning.study import Study, study
from minrpc.tuning.tune import tune

__all__ = ["Candidate", "CandidateResult", "Kernel", "Space", "Study", "study", "tune"]
