# SPDX-License-Identifier: Apache-2.0
"""The time evaluator's options and results."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest
from minrpc import DialectError, RemoteError, TimeEvaluator, TimerError, TimingResult
from minrpc.client import EvaluatorOptions
from minrpc.wire.requests import CallFunc, encode_request
from minrpc.wire.values import Dialect, Module

from tests.unit.client.conftest import Bench
from tests.vectors import rows, to_bytes


def test_statistics_are_numpys() -> None:
    samples = (3e-6, 1e-6, 2e-6, 10e-6)
    result = TimingResult(samples)
    assert result.results == samples
    assert math.isclose(result.mean, np.mean(samples))
    assert math.isclose(result.median, float(np.median(samples)))
    assert math.isclose(result.std, np.std(samples))
    assert (result.min, result.max) == (1e-6, 10e-6)
    assert str(result).startswith("mean 4.000e-06 s, median 2.500e-06 s, min 1.000e-06 s")


def test_one_repeat_has_no_deviation() -> None:
    assert TimingResult((1e-6,)).std == 0.0


@pytest.mark.parametrize("arity", [8, 10, 11, 12])
def test_arguments_are_those_of_the_table(arity: int) -> None:
    options = EvaluatorOptions(number=20, repeat=3, min_repeat_ms=40)
    request = CallFunc(0x80028001, options.arguments(arity, Module(0x8000), "add"))
    row = next(row for row in rows("request") if row.name == f"evaluator_{arity}")
    assert encode_request(request, Dialect.V0_8_0) == to_bytes(row.fields[2])


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("number", 0),
        ("repeat", 0),
        ("min_repeat_ms", -1),
        ("cooldown_interval_ms", -1),
        ("repeats_to_cooldown", 0),
    ],
)
def test_options_that_make_no_sense_are_refused(bench: Bench, option: str, value: int) -> None:
    library = bench.device.system_lib()
    sent = len(bench.transport.written)
    with pytest.raises(ValueError, match=f"{option} is at least"):
        library.time_evaluator("inc", **{option: value})
    assert len(bench.transport.written) == sent


def test_the_limit_grows_with_what_is_asked_for() -> None:
    options = EvaluatorOptions(repeat=3, min_repeat_ms=1000, cooldown_interval_ms=500)
    assert options.timeout_s(60.0) == 60.0 + 13.5


def test_an_evaluator_measures_again_and_an_error_of_the_function_comes_through(bench: Bench) -> None:
    evaluator = bench.device.system_lib().time_evaluator("inc", repeat=2)
    assert evaluator(1).results == evaluator(1).results == (1e-6, 2e-6)
    with pytest.raises(RemoteError, match="inc: expected an int"):
        evaluator("text")
    assert len(evaluator(1).results) == 2


def test_anything_but_times_is_an_error(bench: Bench) -> None:
    library = bench.device.system_lib()
    evaluator = library.time_evaluator("inc", repeat=2)
    bench.model.evaluators = {handle: (name, 3) for handle, (name, _) in bench.model.evaluators.items()}
    with pytest.raises(DialectError, match="gave 24 bytes instead of 2 times"):
        evaluator(1)


@pytest.mark.parametrize(
    ("times", "min_repeat_ms", "text"),
    [
        pytest.param((1e-6, -2e-6), 0, "timer went back: 1e-06, -2e-06 s", id="back"),
        pytest.param((1e-6, math.nan), 0, "timer went back", id="no number"),
        pytest.param(
            (0.0, 0.0), 40, "does not advance: batches grew to take 40 ms and took 0 s", id="stands"
        ),
    ],
)
def test_a_timer_that_is_at_fault(times: tuple[float, ...], min_repeat_ms: int, text: str) -> None:
    options = EvaluatorOptions(repeat=len(times), min_repeat_ms=min_repeat_ms)
    evaluator = TimeEvaluator(lambda: struct.pack("<2d", *times), "add", options)
    with pytest.raises(TimerError, match=text) as caught:
        evaluator()
    assert "--timing exact" in str(caught.value)


def test_a_function_too_short_for_the_timer_takes_no_time() -> None:
    evaluator = TimeEvaluator(lambda: bytes(16), "add", EvaluatorOptions(repeat=2))
    assert evaluator().results == (0.0, 0.0)


def test_what_is_not_said_is_as_tvm_has_it() -> None:
    """The defaults are the same as in TVM v0.18's time_evaluator: ten calls, one repeat."""
    assert EvaluatorOptions() == EvaluatorOptions(
        number=10,
        repeat=1,
        min_repeat_ms=0,
        limit_zero_time_iterations=100,
        cooldown_interval_ms=0,
        repeats_to_cooldown=1,
    )


def test_an_option_that_there_is_not() -> None:
    with pytest.raises(TypeError, match="a measurement has no option 'numbr'; did you mean number"):
        EvaluatorOptions.of({"numbr": 3})


@pytest.mark.parametrize("value", ["x", 1.5, None, True])
@pytest.mark.parametrize("name", ["number", "repeat", "min_repeat_ms"])
def test_an_option_is_a_whole_number(name: str, value: Any) -> None:  # noqa: ANN401 - also values of wrong types
    with pytest.raises(TypeError, match=f"{name} is a whole number, not "):
        EvaluatorOptions.of({name: value})
