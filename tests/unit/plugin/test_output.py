# SPDX-License-Identifier: Apache-2.0
"""The traceback of a failed test."""

from __future__ import annotations

from pathlib import Path

import pytest
from minrpc import ConfigurationError, Target
from minrpc.client.array import tensor_of
from minrpc.plugin.output import short_traceback, wrong_argument
from minrpc.timing.units import parse_percent


def files(caught: pytest.ExceptionInfo[BaseException]) -> list[str]:
    return [Path(entry.path).name for entry in caught.traceback]


def test_a_refused_argument_is_the_tests_own_line() -> None:
    with pytest.raises(ValueError, match="x") as caught:
        parse_percent("x")
    assert wrong_argument(caught.value)
    short_traceback(caught)
    assert files(caught) == ["test_output.py"]


def test_so_is_an_error_of_ours() -> None:
    with pytest.raises(ConfigurationError) as caught:
        Target.named("posix", sources="a.c")
    assert not wrong_argument(caught.value)
    short_traceback(caught)
    assert files(caught) == ["test_output.py"]


def test_a_mistake_inside_is_shown_whole() -> None:
    """The error does not come from a `raise` of this package."""
    with pytest.raises(TypeError) as caught:
        parse_percent(5)  # type: ignore[arg-type]
    assert not wrong_argument(caught.value)
    short_traceback(caught)
    assert files(caught)[:2] == ["test_output.py", "units.py"]


def test_what_a_test_raises_in_a_callback_of_ours_is_shown_whole() -> None:
    def sizes() -> int:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught:
        tensor_of((size() for size in [sizes]), "int8")  # type: ignore[arg-type]
    assert not wrong_argument(caught.value)
    short_traceback(caught)
    assert files(caught)[0] == files(caught)[-1] == "test_output.py"
