# SPDX-License-Identifier: Apache-2.0
"""One recorded call, and judges that read the record."""

from minrpc.replay.memory_check import Found, MemoryCheck, check_for
from minrpc.replay.memory_judge import Extent

__all__ = ["Extent", "Found", "MemoryCheck", "check_for"]
