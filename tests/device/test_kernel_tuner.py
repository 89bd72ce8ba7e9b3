# SPDX-License-Identifier: Apache-2.0
"""Kernel Tuner's strategies on devices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from minrpc import Firmware
from minrpc.host import sandbox
from minrpc.tuning.kernel_tuner_backend import on_devices

SOURCE = """
#include <stdint.h>
#if UNROLL == 3 && !__has_include("/etc/passwd") // Only the sandbox hides it.
#error does not compile
#endif
void scale(const int16_t *x, int16_t *y, int32_t n)
{
#if UNROLL == 5
	*(volatile int32_t *)UINTPTR_MAX = 1;
	__builtin_trap();
#endif
	for (int32_t i = 0; i < n; i += UNROLL) {
		for (int32_t j = 0; j < UNROLL; j++) {
			y[i + j] = (int16_t)(3 * x[i + j]);
		}
	}
}
"""


@pytest.mark.extra("kernel-tuner")
@pytest.mark.parametrize("strategy", ["brute_force", "greedy_ils"])
def test_its_strategies_find_the_best_on_a_device(
    firmware: Firmware | None, load: object, tmp_path: Path, strategy: str
) -> None:
    import kernel_tuner

    assert firmware is not None
    source = tmp_path / "scale.c"
    source.write_text(SOURCE)
    x = np.arange(64, dtype=np.int16)
    with on_devices(firmware, call_timeout_s=5.0, sandbox=not sandbox.why_not()):
        results, env = kernel_tuner.tune_kernel(
            "scale",
            str(source),
            64,
            [x, np.zeros(64, np.int16), np.int32(64)],
            {"UNROLL": [1, 2, 3, 4, 5, 8]},
            lang="C",
            compiler_options=["-O2"],
            answer=[None, 3 * x, None],
            strategy=strategy,
            iterations=2,
            quiet=True,
        )
    assert env["platform"] == firmware.platform.name
    by_unroll = {result["UNROLL"]: result for result in results}
    if strategy == "brute_force":
        assert [item for item in by_unroll if "__error__" in by_unroll[item]] == ([3, 5] if sandbox else [5])
    right = [result for result in results if "__error__" not in result]
    assert right
    for item in right:
        assert item["ticks"] > 0
        assert item["code_bytes"] > 0
