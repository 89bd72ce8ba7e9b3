# SPDX-License-Identifier: Apache-2.0
"""The fuzz targets and how they are run."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent

# Bytes of the longest input: longer ones find no more, and take longer.
MAX_LENGTH = {"deframe": 256, "packets": 400, "requests": 1024}

# The sanitizer's own bookkeeping costs more than the runtime: no stack of each malloc, a small quarantine,
# no filling, and leaks are looked for at the end only.
SANITIZER = {
    "ASAN_OPTIONS": "malloc_context_size=0:quarantine_size_mb=1:thread_local_quarantine_size_kb=64"
    ":max_malloc_fill_size=0"
}


def command(programs: Path, target: str, runs: int, corpus: Path, findings: Path, seed: int = 0) -> list[str]:
    """The command that runs `runs` inputs. New interesting inputs go to `corpus`, a finding to `findings`."""
    return [
        str(programs / f"fuzz_{target}"),
        f"-runs={runs}",
        f"-seed={seed}",
        f"-max_len={MAX_LENGTH[target]}",
        f"-dict={HERE / 'fuzz.dict'}",
        f"-artifact_prefix={findings}/",
        str(corpus),
        str(HERE / "corpus" / target),
    ]
