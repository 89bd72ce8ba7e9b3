# SPDX-License-Identifier: Apache-2.0
"""ONNX models before TVM imports them: shapes, constants, branches, and operators that TVM lacks.

onnxruntime is the witness: it computes the same from the original model and from the prepared model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from minrpc import ConfigurationError
from minrpc_models.errors import ModelError

pytestmark = pytest.mark.extra("tvm")

RNG = np.random.default_rng(7)


def model_with(
    nodes: Sequence[Any],
    inputs: dict[str, tuple[Any, ...]],
    outputs: Sequence[str],
    **constants: npt.ArrayLike,
) -> Any:  # noqa: ANN401
    """A model of these nodes. inputs: shapes; an extent can have a name, or be None."""
    from onnx import TensorProto, helper, numpy_helper

    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(list(nodes), "net", given, results, weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def node(operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> Any:  # noqa: ANN401
    from onnx import helper

    return helper.make_node(operator, inputs, outputs, **attributes)


def floats(*shape: int) -> npt.NDArray[np.float32]:
    return RNG.standard_normal(shape).astype(np.float32)


def check(model: Any, inputs: dict[str, npt.NDArray[Any]], **further: Any) -> list[str]:  # noqa: ANN401
    """The operators of the prepared model, which computes the same as the model."""
    from minrpc_models.formats.onnx_files import REWRITTEN, fixed, prepared
    from minrpc_models.formats.onnx_runtime import outputs_of

    shapes = {name: value.shape for name, value in inputs.items()}
    given = fixed(model, shapes, further.get("constants", {}))
    made, why = prepared(given)
    assert not why
    expected, found = outputs_of(given, inputs), outputs_of(made, inputs)
    assert expected
    for due, array in zip(expected, found, strict=True):
        if np.asarray(due).dtype.kind not in "OSU":
            np.testing.assert_allclose(array, due, rtol=1e-5, atol=1e-6)
    operators = [item.op_type for item in made.graph.node]
    assert not set(operators) & set(REWRITTEN) - {"Expand", "Slice"}
    return operators


def shapes_of(model: Any) -> dict[str, list[int]]:  # noqa: ANN401
    return {
        item.name: [extent.dim_value for extent in item.type.tensor_type.shape.dim]
        for item in model.graph.input
    }


ADD = {"x": ("batch", 3, "w"), "y": ("batch", 3, "w")}


def test_shapes_come_from_the_option_by_name_and_a_batch_is_1() -> None:
    from minrpc_models.formats.onnx_files import fixed

    model = model_with([node("Add", ["x", "y"], ["z"])], ADD, ["z"])
    assert shapes_of(fixed(model, {"x": (2, 3, 5)}, {})) == {"x": [2, 3, 5], "y": [2, 3, 5]}
    assert shapes_of(fixed(model, {"w": (4,)}, {})) == {"x": [1, 3, 4], "y": [1, 3, 4]}
    assert shapes_of(fixed(model, {"w": (4,), "batch": (6,)}, {})) == {"x": [6, 3, 4], "y": [6, 3, 4]}
    assert shapes_of(model)["x"] == [0, 3, 0]


@pytest.mark.parametrize(
    ("shapes", "text", "then"),
    [
        ({}, r"the shape of the input x is not known .*: \[batch, 3, w\]", r"--shape x=1,3,N2"),
        ({"x": (1, 4, 5)}, "the input x is .*: dimension 1 can't be 4", "correct --shape"),
        ({"x": (1, 3)}, "the input x has 3 dimensions, .*, not 2", "give 3 numbers"),
        ({"q": (1, 3)}, "the model has no input q, but x, y", "correct the name"),
    ],
)
def test_shapes_that_do_not_fit(shapes: dict[str, tuple[int, ...]], text: str, then: str) -> None:
    from minrpc_models.formats.onnx_files import fixed

    model = model_with([node("Add", ["x", "y"], ["z"])], ADD, ["z"])
    with pytest.raises(ConfigurationError, match=text) as caught:
        fixed(model, shapes, {})
    assert then in caught.value.next_step


def branching(rate: int = 16000) -> Any:  # noqa: ANN401
    """y = 2 * w * x at the rate 16000, else x; 2 * w is of the outer graph, and an inner branch uses it."""
    from onnx import TensorProto, helper

    def branch(nodes: list[Any], output: str) -> Any:  # noqa: ANN401
        return helper.make_graph(nodes, "branch", [], [helper.make_tensor_value_info(output, 1, None)])

    inner = branch([node("Mul", ["x", "twice"], ["inner"])], "inner")
    other = branch([node("Neg", ["x"], ["minus"])], "minus")
    outer = branch(
        [
            node("Add", ["w", "w"], ["twice"]),
            node("Shape", ["x"], ["extents"]),
            node("Size", ["extents"], ["rank"]),
            node("Equal", ["rank", "two"], ["flat"]),
            node("If", ["flat"], ["chosen"], then_branch=inner, else_branch=other),
        ],
        "chosen",
    )
    same = branch([node("Identity", ["x"], ["same"])], "same")
    nodes = [
        node("Equal", ["sr", "rate"], ["fast"]),
        node("If", ["fast"], ["y"], then_branch=outer, else_branch=same),
    ]
    model = model_with(nodes, {"x": (1, 4)}, ["y"], w=floats(4), rate=np.int64(rate), two=np.int64(2))
    model.graph.input.append(helper.make_tensor_value_info("sr", TensorProto.INT64, []))
    return model


def test_a_constant_decides_branches() -> None:
    x = {"x": floats(1, 4)}
    assert check(branching(), x, constants={"sr": np.array(16000)}) == ["Mul"]
    assert check(branching(), x, constants={"sr": np.array([8000])}) in ([], ["Identity"])


@pytest.mark.parametrize("value", [np.array([1, 2]), np.array(0.5)])
def test_constants_that_do_not_fit(value: npt.NDArray[Any]) -> None:
    from minrpc_models.formats.onnx_files import fixed

    with pytest.raises(ConfigurationError, match="the constant sr is int64"):
        fixed(branching(), {}, {"sr": value})


def test_a_branch_that_an_input_decides_is_told() -> None:
    from minrpc_models.formats.onnx_files import prepared, way_round

    model, why = prepared(branching())
    assert way_round(model, why).startswith("--constant sr=VALUE: If ")
    assert way_round(model, "onnxruntime is not installed").startswith("pip install onnxruntime")


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("operator", "gates", "further"),
    [("LSTM", 4, {}), ("GRU", 3, {}), ("GRU", 3, {"linear_before_reset": 1}), ("RNN", 1, {})],
)
def test_recurrent_layers(operator: str, gates: int, further: dict[str, Any], direction: str) -> None:
    directions, hidden, width = (2 if direction == "bidirectional" else 1), 5, 4
    outputs = ["y", "h", "c"] if operator == "LSTM" else ["y", "h"]
    layer = node(
        operator,
        ["x", "w", "r", "b", "", "h0"],
        outputs,
        hidden_size=hidden,
        direction=direction,
        **further,
    )
    weights = {
        "w": floats(directions, gates * hidden, width),
        "r": floats(directions, gates * hidden, hidden),
        "b": floats(directions, 2 * gates * hidden),
    }
    model = model_with([layer], {"x": (3, 2, width), "h0": (directions, 2, hidden)}, outputs, **weights)
    check(model, {"x": floats(3, 2, width), "h0": floats(directions, 2, hidden)})


def test_recurrent_layers_that_stay() -> None:
    from minrpc_models.formats.onnx_files import prepared

    weights = {"w": floats(1, 4, 2), "r": floats(1, 4, 1)}
    variants: list[tuple[dict[str, Any], str]] = [
        ({"clip": 1.0}, "clips its gates"),
        ({"activations": ["Elu"] * 3}, "Elu"),
    ]
    for further, text in variants:
        layer = node("LSTM", ["x", "w", "r"], ["y"], hidden_size=1, **further)
        with pytest.raises(ModelError, match=text):
            prepared(model_with([layer], {"x": (2, 1, 2)}, ["y"], **weights))
    layer = node("LSTM", ["x", "w", "r"], ["y"], hidden_size=1)
    with pytest.raises(ModelError, match="513 steps, and 512 are the most"):
        prepared(model_with([layer], {"x": (513, 1, 2)}, ["y"], **weights))


def test_the_top_and_what_is_not_zero() -> None:
    x = floats(2, 9)
    for largest, axis in ((1, 1), (0, 1), (1, 0)):
        top = node("TopK", ["x", "k"], ["v", "i"], axis=axis, largest=largest)
        check(model_with([top], {"x": (2, 9)}, ["v", "i"], k=np.array([2])), {"x": x})
    nodes = [
        node("NonZero", ["mask"], ["at"]),
        node("Cast", ["at"], ["real"], to=1),
        node("Add", ["real", "x"], ["y"]),
    ]
    mask = np.array([0, 1, 0, 1], np.float32)
    assert check(model_with(nodes, {"x": (1, 1)}, ["y"], mask=mask), {"x": floats(1, 1)}) == ["Add"]
    from minrpc_models.formats.onnx_files import prepared

    with pytest.raises(ModelError, match="size depends on the inputs' values"):
        prepared(model_with([node("NonZero", ["x"], ["at"])], {"x": (1, 4)}, ["at"]))


def test_inputs_that_tvm_does_not_take() -> None:
    sliced = node("Slice", ["x", "begin", "end", "", "step"], ["y"])
    by = {"begin": np.array([0, 1]), "end": np.array([2, 9]), "step": np.array([1, 3])}
    assert check(model_with([sliced], {"x": (2, 9)}, ["y"], **by), {"x": floats(2, 9)}) == ["Slice"]
    bent = node("PRelu", ["x", "slope"], ["y"])
    check(model_with([bent], {"x": (2, 3, 4)}, ["y"], slope=floats(3, 1)), {"x": floats(2, 3, 4)})
    wide = model_with([node("Expand", ["x", "to"], ["y"])], {"x": (2, 1, 3)}, ["y"], to=np.array([5, 1]))
    check(wide, {"x": floats(2, 1, 3)})


def test_sequences_of_tensors() -> None:
    from minrpc_models.formats.onnx_files import prepared

    nodes = [
        node("SequenceConstruct", ["x", "z"], ["two"]),
        node("SequenceInsert", ["two", "z", "second"], ["three"]),
        node("SequenceErase", ["three"], ["left"]),
        node("SequenceInsert", ["left", "x", "last"], ["before"]),
        node("SequenceAt", ["before", "second"], ["inserted"]),
        node("SequenceAt", ["left", "last"], ["y"]),
        node("SplitToSequence", ["x", "three_each"], ["parts"], axis=1),
        node("ConcatFromSequence", ["left"], ["piled"], axis=-1, new_axis=1),
        node("SequenceLength", ["parts"], ["count"]),
    ]
    constants = {"second": np.int64(1), "last": np.int64(-1), "three_each": np.int64(3)}
    shapes = {"x": (2, 8), "z": (2, 8)}
    x = {"x": floats(2, 8), "z": floats(2, 8)}
    check(model_with(nodes, shapes, ["y", "piled", "count", "inserted"], **constants), x)
    del constants["last"]
    with pytest.raises(ModelError, match="takes the position last") as caught:
        prepared(model_with(nodes, {**shapes, "last": ()}, ["y"], **constants))
    assert "--constant last=N" in caught.value.next_step


def test_an_initial_value_is_a_constant() -> None:
    """A caller could replace it if it were an input, so that nothing would be folded."""
    from onnx import helper

    model = model_with([node("Expand", ["x", "to"], ["y"])], {"x": (1, 3)}, ["y"], to=np.array([2, 1]))
    model.graph.input.append(helper.make_tensor_value_info("to", 7, [2]))
    check(model, {"x": floats(1, 3)})


def trees(count: int, features: int, mode: str) -> dict[str, Any]:
    """The attributes of random trees: complete ones, of depths 0, 1, 2, 3, 0, ..."""
    found: dict[str, list[Any]] = {
        name: []
        for name in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    }
    for tree in range(count):
        inner = 2 ** (tree % 4) - 1
        for number in range(2 * inner + 1):
            leaf = number >= inner
            row = (tree, number, int(RNG.integers(features)), float(np.float32(RNG.standard_normal())))
            children = (0, 0) if leaf else (2 * number + 1, 2 * number + 2)
            for name, value in zip(found, (*row, "LEAF" if leaf else mode, *children), strict=True):
                found[name].append(value)
    return {f"nodes_{name}": values for name, values in found.items()}


def leaves(given: dict[str, Any], kind: str, scores: Sequence[int], least: float = -1.0) -> dict[str, Any]:
    nodes = zip(given["nodes_treeids"], given["nodes_nodeids"], given["nodes_modes"], strict=True)
    rows = [(tree, number, score) for tree, number, mode in nodes if mode == "LEAF" for score in scores]
    weights = RNG.uniform(least, 1, len(rows)).astype(np.float32).tolist()
    names = (f"{kind}_treeids", f"{kind}_nodeids", f"{kind}_ids")
    columns = (list(column) for column in zip(*rows, strict=True))
    return {**given, **dict(zip(names, columns, strict=True)), f"{kind}_weights": weights}


@pytest.mark.parametrize("mode", ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE"])
def test_trees_of_numbers(mode: str) -> None:
    """Thresholds are among the inputs, so that equal values count."""
    given = leaves(trees(6, 3, mode), "target", [0, 1])
    layer = node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        n_targets=2,
        base_values=[1.0, 2.0],
        **given,
    )
    x = np.array(RNG.choice(given["nodes_values"], (20, 3)), np.float32)
    check(model_with([layer], {"x": ("n", 3)}, ["y"]), {"x": x})


@pytest.mark.parametrize(
    ("scores", "least", "labels", "post"),
    [
        ([0, 1, 2], -1.0, [0, 1, 2], "SOFTMAX"),
        ([0, 1, 2], 0.0, [7, 3, 9], "NONE"),
        ([0], 0.0, [0, 1], "NONE"),
        ([0], -1.0, [0, 1], "LOGISTIC"),
        ([1], -1.0, [5, 8], "NONE"),
    ],
)
def test_trees_of_classes(scores: list[int], least: float, labels: list[int], post: str) -> None:
    given = leaves(trees(8, 4, "BRANCH_LEQ"), "class", scores, least)
    if scores == [0] and least == 0.0:
        given["class_weights"] = [weight / 8 for weight in given["class_weights"]]
    layer = node(
        "TreeEnsembleClassifier",
        ["x"],
        ["label", "scores"],
        domain="ai.onnx.ml",
        post_transform=post,
        classlabels_int64s=labels,
        **given,
    )
    zipped = node("ZipMap", ["scores"], ["named"], domain="ai.onnx.ml", classlabels_int64s=labels)
    check(model_with([layer], {"x": (12, 4)}, ["label", "scores"]), {"x": floats(12, 4)})
    model = model_with([layer, zipped], {"x": (12, 4)}, ["label", "named"])
    check(model, {"x": floats(12, 4)})


def test_linear_models_and_what_comes_before_them() -> None:
    ml = {"domain": "ai.onnx.ml"}
    before = [
        node("Scaler", ["x"], ["scaled"], offset=[0.5, 1.0, -1.0], scale=[2.0, 0.5, 1.0], **ml),
        node("Normalizer", ["scaled"], ["unit"], norm="L2", **ml),
        node("Binarizer", ["x"], ["bits"], threshold=0.1, **ml),
        node("Add", ["unit", "bits"], ["features"]),
    ]
    linear = {"coefficients": floats(6).tolist(), "intercepts": [0.1, -0.2], **ml}
    three = {"coefficients": floats(9).tolist(), "intercepts": [0.1, -0.2, 0.3], **ml}
    after = [
        node("LinearRegressor", ["features"], ["y"], targets=2, **linear),
        node(
            "LinearClassifier",
            ["features"],
            ["label", "scores"],
            classlabels_ints=[4, 5, 9],
            post_transform="SOFTMAX",
            multi_class=1,
            **three,
        ),
        node("ArrayFeatureExtractor", ["labels", "label"], ["named"], **ml),
    ]
    model = model_with(
        [*before, *after], {"x": ("n", 3)}, ["y", "label", "scores", "named"], labels=np.arange(10, 20)
    )
    check(model, {"x": floats(7, 3)})


def test_labels_that_are_text_are_numbers_and_not_compared() -> None:
    from minrpc.wire.dtypes import to_dtype
    from minrpc_models.formats.onnx_files import prepared
    from minrpc_models.formats.onnx_runtime import outputs_of
    from minrpc_models.models import Model
    from minrpc_models.plan import ModelPlan, Tensor

    layer = node(
        "LinearClassifier",
        ["x"],
        ["label", "scores"],
        domain="ai.onnx.ml",
        coefficients=[1.0, 0.0, 0.0, 1.0],
        intercepts=[0.0, 0.0],
        classlabels_strings=["left", "right"],
    )
    model, x = model_with([layer], {"x": (1, 2)}, ["label", "scores"]), {"x": np.array([[1, 3]], np.float32)}
    assert outputs_of(prepared(model)[0], x)[0].tolist() == [1]
    given = Tensor(to_dtype("float32"), (1, 2), "input", 0)
    outputs = (
        ("output0", Tensor(to_dtype("int64"), (1,), "output", 0)),
        ("output1", Tensor(to_dtype("float32"), (1, 2), "output", 1)),
    )
    plan = ModelPlan("net", (("x", given),), outputs, (), (), (), "")
    assert list(Model(None, plan, model).by_onnxruntime(x)) == ["output1"]
    short = (outputs[0], ("output1", Tensor(to_dtype("float32"), (1, 3), "output", 1)))
    plan = ModelPlan("net", (("x", given),), short, (), (), (), "")
    with pytest.raises(ModelError, match=r"\[1, 3\] by TVM, \[1, 2\] by onnxruntime"):
        Model(None, plan, model).by_onnxruntime(x)
