# SPDX-License-Identifier: Apache-2.0
"""numpy can be loaded once in a process only, and pytester forgets the modules of a run inside a test."""

import numpy as np  # noqa: F401
