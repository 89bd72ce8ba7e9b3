# SPDX-License-Identifier: Apache-2.0
"""Conditions on parameters, "TI*TJ <= 8 and TI > 1": Python's arithmetic and comparisons, nothing else."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from typing import Final

from minrpc.errors import ConfigurationError

_ALLOWED: Final = (
    ast.Expression,
    ast.BoolOp,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.Name,
    ast.Load,
    ast.Constant,
    ast.boolop,
    ast.operator,
    ast.unaryop,
    ast.cmpop,
)


def condition(text: str, names: Collection[str]) -> Callable[[Mapping[str, str]], bool]:
    """The condition in a text as a function of the parameters' values; texts of numbers become numbers.

    Raises ConfigurationError for a text that is not a condition, or has names other than `names`; the
    function raises it for values for which the condition can't be computed.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError) as error:
        raise _refused(text, "it is not an expression") from error
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED) or isinstance(node, ast.Pow | ast.LShift):
            raise _refused(text, f"{ast.unparse(node)} is not allowed in it")
        if isinstance(node, ast.Name) and node.id not in names:
            raise _refused(text, f"there is no parameter {node.id}")
    code = compile(tree, "--where", "eval")

    def holds(values: Mapping[str, str]) -> bool:
        try:
            return bool(eval(code, {"__builtins__": {}}, {name: _value(values[name]) for name in values}))
        except (TypeError, ArithmeticError) as error:
            raise _refused(text, f"for {dict(values)}: {error}") from error

    return holds


def _value(text: str) -> int | float | str:
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _refused(text: str, why: str) -> ConfigurationError:
    return ConfigurationError(f"--where {text}: {why}", next_step='write "TI*TJ <= 8", of names of --param')
