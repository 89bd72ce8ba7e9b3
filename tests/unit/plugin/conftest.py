# SPDX-License-Identifier: Apache-2.0
"""numpy can be loaded once in a process only, and pytester forgets what a run inside a test has loaded."""

import numpy as np  # noqa: F401
