# SPDX-License-Identifier: Apache-2.0
"""`tune_conv2d.py DIR N`: tunes an int8 convolution by N candidates, four of which are made to fail.

TVM's environment variables name the tracker. The last line printed is a JSON list: the error of TVM's
runner for each candidate, "" for a measured candidate.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import minrpc.tvm
import tvm
from tvm import te
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule as ms

CHANNELS, SIZE, FILTERS, KERNEL = 4, 10, 8, 3

_BEGIN = "int __tvm_ffi_main(void *self, void *args, int count, void *result) {"
# A crash, a hang, no computation, an undefined symbol.
FAILING = (
    f"{_BEGIN} __builtin_trap(); }}",
    f"{_BEGIN} for (;;) {{ }} }}",
    f"{_BEGIN} return 0; }}",
    f"extern int no_such_function(void); {_BEGIN} return no_such_function(); }}",
)


def convolution() -> Any:  # noqa: ANN401
    """c[f, y, x] = sum of x[i, y + v, x + u] * w[f, i, v, u], int8 to int32."""
    x = te.placeholder((CHANNELS, SIZE, SIZE), "int8", "x")
    w = te.placeholder((FILTERS, CHANNELS, KERNEL, KERNEL), "int8", "w")
    i, v, u = (te.reduce_axis((0, n), name) for n, name in ((CHANNELS, "i"), (KERNEL, "v"), (KERNEL, "u")))
    shape = (FILTERS, SIZE - KERNEL + 1, SIZE - KERNEL + 1)

    def item(f: Any, row: Any, column: Any) -> Any:  # noqa: ANN401
        taken = x[i, row + v, column + u].astype("int32")
        return te.sum(taken * w[f, i, v, u].astype("int32"), (i, v, u))

    return tvm.IRModule({"main": te.create_prim_func([x, w, te.compute(shape, item, "c")])})


@derived_object
class Builder(ms.builder.PyBuilder):  # type: ignore[misc]
    """Builds in this process; the first candidates are replaced by failing candidates."""

    def build(self, build_inputs: Any) -> Any:  # noqa: ANN401
        return [
            ms.builder.BuilderResult(self._file(number, build_input), None)
            for number, build_input in enumerate(build_inputs)
        ]

    def _file(self, number: int, item: Any) -> str:  # noqa: ANN401
        if number < len(FAILING):
            path = Path(mkdtemp(dir=sys.argv[1])) / "candidate.c"
            path.write_text(FAILING[number])
            return str(path)
        module = ms.builder.local_builder.default_build(item.mod, item.target, None)
        return str(ms.builder.local_builder.default_export(module))


def checked(session: Any, module: Any, device: Any, config: Any, repeated: Any) -> Any:  # noqa: ANN401
    """Runs a candidate as TVM does, and then compares its result with numpy."""
    import numpy as np
    from tvm.s_tir.meta_schedule.runner.utils import run_evaluator_common

    costs = run_evaluator_common(module, device, config, repeated)
    x, w, c = (item.numpy() for item in repeated[0])
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.int32), w.shape[2:], axis=(1, 2))
    np.testing.assert_array_equal(c, np.einsum("iyxvu,fivu->fyx", windows, w.astype(np.int32)))
    return costs


@derived_object
class Errors(ms.measure_callback.PyMeasureCallback):  # type: ignore[misc]
    """Keeps the runner's messages."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def apply(self, scheduler: Any, task: Any, candidates: Any, built: Any, ran: Any) -> None:  # noqa: ANN401
        found.extend(str(item.error_msg or "") for item in ran)


found: list[str] = []

if __name__ == "__main__":
    trials = int(sys.argv[2])
    ms.tune_tir(
        convolution(),
        minrpc.tvm.llvm_target(os.environ["TVM_TRACKER_KEY"]),
        sys.argv[1],
        max_trials_global=trials,
        num_trials_per_iter=trials,
        builder=Builder(),
        runner=ms.runner.RPCRunner(
            ms.runner.RPCConfig(session_timeout_sec=600),
            ms.runner.EvaluatorConfig(number=1, min_repeat_ms=0),
            f_run_evaluator=checked,
        ),
        measure_callbacks=[*ms.measure_callback.MeasureCallback.create("default"), Errors()],
        strategy="replay-trace",
        cost_model="random",
        num_tuning_cores=1,
        seed=1,
    )
    print(json.dumps(found))
