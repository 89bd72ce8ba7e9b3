# SPDX-License-Identifier: Apache-2.0
"""numpy can be loaded only once in a process, and pytester removes modules that a run inside a test has
loaded."""

import numpy as np  # noqa: F401
