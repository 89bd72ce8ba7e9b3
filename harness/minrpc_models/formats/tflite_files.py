# SPDX-License-Identifier: Apache-2.0
"""TFLite files as TVM's importer can read them: the variables of streaming models become inputs and outputs.

Such a model keeps tensors between its runs. Here each is a further input, which takes an output of the run
before, and has a number as its first value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import tflite

from minrpc_models.errors import ModelError

_NAMES: Final = {
    number: name for name, number in vars(tflite.BuiltinOperator).items() if isinstance(number, int)
}
# The custom operator that TVM's importer has.
_CUSTOM: Final = ("TFLite_Detection_PostProcess",)
_TYPES: Final = {0: np.float32, 2: np.int32, 3: np.uint8, 4: np.int64, 9: np.int8}


class Stateless(tflite.Model):  # type: ignore[misc]
    """A model whose first subgraph has no variables.

    states: for each variable, the numbers of its input and of its output, and its first value, the same for
    all elements. names: the file's names of all inputs.
    """

    def __init__(self, data: bytes, named: Callable[[Sequence[str]], Sequence[str]]) -> None:
        """named: names of inputs by the file's names, for the importer, which puts them unchanged into C.

        Raises ModelError for variables that can't be inputs and outputs.
        """
        root = tflite.Model.GetRootAsModel(data, 0)
        self.Init(root._tab.Bytes, root._tab.Pos)
        self._root = root
        self._main = _Stateless(root)
        self.states = self._main.states
        self.names = self._main.rename(named)

    def Subgraphs(self, j: int) -> Any:  # noqa: N802, ANN401 - tflite's name
        return self._main if j == 0 else self._root.Subgraphs(j)


class _Stateless(tflite.SubGraph):  # type: ignore[misc]
    def __init__(self, model: Any) -> None:  # noqa: ANN401
        main = model.Subgraphs(0)
        self.Init(main._tab.Bytes, main._tab.Pos)
        kept, read, assigned = [], dict[str, int](), dict[str, int]()
        for operator, name, handle in _operators(model, main):
            if name == "READ_VARIABLE":
                if handle in read or handle in assigned:
                    raise ModelError(f"the variable {handle} is read twice in a run, or after it is assigned")
                read[handle] = int(operator.Outputs(0))
            elif name == "ASSIGN_VARIABLE":
                assigned[handle] = int(operator.Inputs(1))
            elif name == "CUSTOM" and handle not in _CUSTOM:
                raise ModelError(
                    f"{handle} is a custom operator, and TVM's importer has none of that name",
                    next_step="convert the model without it: its result, as a spectrogram, is then an input",
                )
            elif name not in ("CALL_ONCE", "VAR_HANDLE"):
                kept.append(operator)
        if set(assigned) != set(read):
            raise ModelError(
                f"of the variables {', '.join({**read, **assigned})} some are only read or written"
            )
        first = _first_values(model) if read else {}
        inputs, outputs = _numbers(main.InputsAsNumpy()), _numbers(main.OutputsAsNumpy())
        self.states = [
            (len(inputs) + number, len(outputs) + number, _uniform(handle, first.get(handle)))
            for number, handle in enumerate(read)
        ]
        self._kept = kept
        self._names: dict[int, str] = {}
        self._inputs = np.array([*inputs, *read.values()], np.int32)
        self._outputs = np.array([*outputs, *(assigned[handle] for handle in read)], np.int32)

    def rename(self, named: Callable[[Sequence[str]], Sequence[str]]) -> list[str]:
        """Give the inputs other names; returns the names that they had."""
        names = [(self.Tensors(number).Name() or b"input").decode() for number in self._inputs]
        self._names = dict(zip(self._inputs.tolist(), named(names), strict=True))
        return names

    def Tensors(self, j: int) -> Any:  # noqa: N802, ANN401
        tensor = super().Tensors(j)
        if int(j) not in self._names:
            return tensor
        renamed = _Renamed(self._names[int(j)])
        renamed.Init(tensor._tab.Bytes, tensor._tab.Pos)
        return renamed

    def InputsAsNumpy(self) -> npt.NDArray[np.int32]:  # noqa: N802
        return self._inputs

    def InputsLength(self) -> int:  # noqa: N802
        return len(self._inputs)

    def Inputs(self, j: int) -> int:  # noqa: N802
        return int(self._inputs[j])

    def OutputsAsNumpy(self) -> npt.NDArray[np.int32]:  # noqa: N802
        return self._outputs

    def OutputsLength(self) -> int:  # noqa: N802
        return len(self._outputs)

    def Outputs(self, j: int) -> int:  # noqa: N802
        return int(self._outputs[j])

    def OperatorsLength(self) -> int:  # noqa: N802
        return len(self._kept)

    def Operators(self, j: int) -> Any:  # noqa: N802, ANN401
        return self._kept[j]


class _Renamed(tflite.Tensor):  # type: ignore[misc]
    def __init__(self, name: str) -> None:
        self._name = name

    def Name(self) -> bytes:  # noqa: N802
        return self._name.encode()


def _numbers(array: Any) -> list[int]:  # noqa: ANN401 - tflite gives 0 for no numbers
    return [int(number) for number in np.atleast_1d(array)] if not isinstance(array, int) else []


def _operators(model: Any, graph: Any) -> Iterator[tuple[Any, str, str]]:  # noqa: ANN401
    """Each operator, its name, and the name of its variable or custom operator, "" for another operator."""
    handles: dict[int, str] = {}
    for number in range(graph.OperatorsLength()):
        operator = graph.Operators(number)
        code = model.OperatorCodes(operator.OpcodeIndex())
        name = _NAMES.get(max(code.BuiltinCode(), code.DeprecatedBuiltinCode()), "")
        if name == "VAR_HANDLE":
            handles[int(operator.Outputs(0))] = _handle(operator)
        about = handles.get(int(operator.Inputs(0)), "") if name.endswith("_VARIABLE") else ""
        if name == "CUSTOM":
            about = (code.CustomCode() or b"").decode(errors="replace")
        yield operator, name, about


def _handle(operator: Any) -> str:  # noqa: ANN401
    options, given = tflite.VarHandleOptions(), operator.BuiltinOptions()
    options.Init(given.Bytes, given.Pos)
    return f"{(options.Container() or b'').decode()}/{(options.SharedName() or b'').decode()}".lstrip("/")


def _first_values(model: Any) -> dict[str, npt.NDArray[Any]]:  # noqa: ANN401
    """The constants that subgraphs for the start assign."""
    constants = {}
    for number in range(1, model.SubgraphsLength()):
        graph = model.Subgraphs(number)
        for operator, name, handle in _operators(model, graph):
            if name == "ASSIGN_VARIABLE":
                tensor = graph.Tensors(operator.Inputs(1))
                data = model.Buffers(tensor.Buffer()).DataAsNumpy()
                if not isinstance(data, int) and tensor.Type() in _TYPES:
                    constants[handle] = np.frombuffer(data.tobytes(), _TYPES[tensor.Type()])
    return constants


def _uniform(handle: str, values: npt.NDArray[Any] | None) -> int | float:
    if values is None or not values.size or (values != values[0]).any():
        raise ModelError(f"the variable {handle} does not begin with the same known number in each element")
    number: int | float = values[0].item()
    return number
