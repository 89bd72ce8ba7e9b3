# SPDX-License-Identifier: Apache-2.0
"""Models of today's TVM become plans, and give the results of TVM on the host."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from minrpc_models import relax as models
from minrpc_models.errors import ModelError
from minrpc_models.plan import ModelPlan

from tests.models.test_export import compiled

pytestmark = pytest.mark.extra("tvm")


def network(rng: np.random.Generator) -> Any:  # noqa: ANN401
    """Convolution, relu, linear, softmax on an 8x8 picture."""
    import tvm
    from tvm.relax.frontend import nn

    class Net(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            self.conv = nn.Conv2D(1, 4, 3, padding=1, bias=True)
            self.relu = nn.ReLU()
            self.linear = nn.Linear(256, 5)

        def forward(self, x: Any) -> Any:  # noqa: ANN401
            hidden = nn.op.reshape(self.relu(self.conv(x)), (1, 256))
            return nn.op.softmax(self.linear(hidden))

    module, params = Net().export_tvm({"forward": {"x": nn.spec.Tensor((1, 1, 8, 8), "float32")}})
    weights = {
        name: tvm.runtime.tensor(
            rng.standard_normal([int(extent) for extent in param.shape]).astype("float32")
        )
        for name, param in params
    }
    return tvm.relax.transform.BindParams("forward", weights)(module)


def on_host(module: Any, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:  # noqa: ANN401
    import tvm

    machine = tvm.relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())
    result: npt.NDArray[np.float32] = machine["forward"](tvm.runtime.tensor(x)).numpy()
    return result


def as_c(plan: ModelPlan, directory: Path, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    library = compiled(directory, plan)
    ((_, output),) = plan.outputs
    out = np.zeros(output.shape, np.float32)
    inputs, outputs = (ctypes.c_void_p * 1)(x.ctypes.data), (ctypes.c_void_p * 1)(out.ctypes.data)
    assert library.tvmgen_net_run(inputs, outputs) == 0
    return out


def test_a_network_gives_what_tvm_gives(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    module = network(rng)
    plan = models.plan(models.lower(module), "net")
    x = rng.standard_normal((1, 1, 8, 8)).astype(np.float32)
    np.testing.assert_allclose(as_c(plan, tmp_path, x), on_host(module, x), rtol=1e-5, atol=1e-7)
    assert [name for name, _ in plan.inputs] == ["x"]
    assert plan.constant_bytes == 4 * (4 * 9 + 4 + 256 * 5 + 5)
    assert max(operator.workspace for operator in plan.operators) == 1024


def test_outputs_between_other_tensors(tmp_path: Path) -> None:
    """The first output is computed before the operators in between: each has memory of its own."""
    from tvm import relax

    rng = np.random.default_rng(2)
    w1, w2, w3 = (rng.standard_normal((8, 8)).astype(np.float32) for _ in range(3))
    builder = relax.BlockBuilder()
    x = relax.Var("x", (getattr(relax, "TensorStructInfo", None) or relax.TensorType)((1, 8), "float32"))
    with builder.function("forward", [x]):
        first = builder.emit(relax.op.matmul(x, relax.const(w1)))
        between = builder.emit(relax.op.matmul(first, relax.const(w2)))
        further = builder.emit(relax.op.matmul(between, relax.const(w3)))
        last = builder.emit(relax.op.matmul(further, relax.const(w1)))
        builder.emit_func_output(relax.Tuple([first, last]))
    plan = models.plan(models.lower(builder.finalize()), "net")
    assert [name for name, _ in plan.outputs] == ["output0", "output1"]
    assert plan.storages == (32, 32)
    given = rng.standard_normal((1, 8)).astype(np.float32)
    out = [np.zeros((1, 8), np.float32) for _ in plan.outputs]
    library = compiled(tmp_path, plan)
    outputs = (ctypes.c_void_p * 2)(*(item.ctypes.data for item in out))
    assert library.tvmgen_net_run((ctypes.c_void_p * 1)(given.ctypes.data), outputs) == 0
    np.testing.assert_allclose(out[0], given @ w1, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(out[1], given @ w1 @ w2 @ w3 @ w1, rtol=1e-4, atol=1e-3)


def test_a_shape_that_is_not_known_is_refused() -> None:
    import tvm

    with pytest.raises(ModelError, match="is not known before the model runs"):
        models._shape([tvm.tirx.Var("n", "int64") if hasattr(tvm, "tirx") else tvm.tir.Var("n", "int64")])


def test_workspaces_are_read_from_the_code() -> None:
    source = """
int32_t __tvm_ffi_f(void* self_handle, void* args, int32_t num_args, void* result) {
  float* a = ((float*)((float*)TVMBackendAllocWorkspace(1, dev_id, (uint64_t)1000ULL, 2, 32)));
  float* b = ((float*)((float*)TVMBackendAllocWorkspace(1, dev_id, (uint64_t)4, 2, 32)));
}
int32_t __tvm_ffi_g(void* self_handle, void* args, int32_t num_args, void* result) {
}
"""
    assert models.workspaces(source) == {"f": 1008 + 16, "g": 0}
    with pytest.raises(ModelError, match="the workspace of f has no fixed size"):
        models.workspaces(source.replace("(uint64_t)1000ULL", "(uint64_t)(n * 4)"))


def test_one_function_of_loops_becomes_a_library(tmp_path: Path) -> None:
    """The tuner's best schedule is such a function; its vectors become loops."""
    import tvm
    from tvm import te

    a = te.placeholder((4, 8), "float32", name="a")
    b = te.compute((4, 8), lambda i, j: a[i, j] * 2.0, name="b")
    module = tvm.IRModule({"main": te.create_prim_func([a, b])})
    schedule = getattr(tvm, "s_tir", None) or tvm.tir
    made = schedule.Schedule(module)
    made.vectorize(made.get_loops(made.get_sblock("b"))[1])
    plan = models.function_plan(made.mod, "twice")
    assert [name for name, _ in plan.inputs] == ["a"]
    assert [(name, tensor.shape) for name, tensor in plan.outputs] == [("b", (4, 8))]
    library = compiled(tmp_path, plan)
    x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    inputs, outputs = (ctypes.c_void_p * 1)(x.ctypes.data), (ctypes.c_void_p * 1)(y.ctypes.data)
    assert library.tvmgen_twice_run(inputs, outputs) == 0
    np.testing.assert_array_equal(y, 2 * x)
    with pytest.raises(ModelError, match="the module has 2 functions of loops"):
        models.function_plan(tvm.IRModule({"f": module["main"], "g": module["main"]}), "two")


def test_what_tvm_has_no_c_for_is_named() -> None:
    import tvm
    from tvm import te

    twice = te.compute((4,), lambda i: i.astype("float32") * 2.0, name="b")
    strange = te.compute((4,), lambda i: i.astype("int4"), name="b")
    module = tvm.IRModule({"fine": te.create_prim_func([twice]), "strange": te.create_prim_func([strange])})
    assert "fine" in models.c_source(tvm.IRModule({"fine": module["fine"]}))
    with pytest.raises(ModelError, match=r"^TVM has no C for the operator strange: \S"):
        models.c_source(module)


def test_of_tvms_errors_one_line_is_told() -> None:
    for text, told in [
        ("Traceback (most recent call last):\n  File x, line 1\nNo: loops\nmore", "No: loops"),
        ("one\n\ntwo", "one"),
        ("", "KeyError"),
    ]:
        with pytest.raises(ModelError) as caught, models.told_by_tvm("it"):
            raise KeyError if not text else RuntimeError(text)
        assert caught.value.message == f"it: {told}"
    with pytest.raises(ModelError, match="ours"), models.told_by_tvm("it"):
        raise ModelError("ours")
