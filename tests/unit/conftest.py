# SPDX-License-Identifier: Apache-2.0
"""Settings of Hypothesis: the same examples in each run, so that no run fails by chance or on a slow machine.

`HYPOTHESIS_PROFILE=search pytest tests/unit/wire` tries other and far more examples each time.
"""

import os

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=5000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
