# SPDX-License-Identifier: Apache-2.0
"""Modules that a process can load only once: pytester removes modules that a run inside a test has loaded."""

import numpy as np  # noqa: F401
import yaml  # noqa: F401 - loaded twice: "could not determine a constructor for the tag None"
