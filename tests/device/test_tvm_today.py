# SPDX-License-Identifier: Apache-2.0
"""Today's TVM itself as a client of every device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from minrpc.client import Device
from minrpc.tvm import session

tvm = pytest.importorskip("tvm", reason="TVM is not installed: pip install 'minrpc-harness[tvm]'")


@pytest.fixture
def remote(device: Device) -> Iterator[Any]:
    with session(device) as opened:
        yield opened


def on_device(remote: Any, data: Any) -> Any:  # noqa: ANN401
    return tvm.runtime.tensor(data, remote.cpu(0))


def test_add(remote: Any) -> None:  # noqa: ANN401
    a = on_device(remote, np.array([2, 3], np.int8))
    b = on_device(remote, np.array([4], np.int8))
    c = on_device(remote, np.zeros(2, np.int8))
    remote.system_lib()["add"](a, b, c)
    assert c.numpy().tolist() == [6, 7]


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64", "bool"]
)
def test_tensors_come_back(remote: Any, dtype: str) -> None:  # noqa: ANN401
    data = np.arange(12).reshape(3, 4).astype(dtype)
    back = on_device(remote, data).numpy()
    assert back.dtype == data.dtype
    np.testing.assert_array_equal(back, data)


def test_a_tensor_that_is_longer_than_a_packet(remote: Any) -> None:  # noqa: ANN401
    data = np.random.default_rng(1).standard_normal((60, 90)).astype(np.float32)
    np.testing.assert_array_equal(on_device(remote, data).numpy(), data)


def test_a_time_evaluator(remote: Any) -> None:  # noqa: ANN401
    arrays = [on_device(remote, np.zeros(64, np.float32)) for _ in range(3)]
    timed = remote.system_lib().time_evaluator("add", remote.cpu(0), number=5, repeat=4, min_repeat_ms=1)
    result = timed(*arrays)
    assert len(result.results) == 4
    assert all(one > 0 for one in result.results)


def test_errors(remote: Any) -> None:  # noqa: ANN401
    library = remote.system_lib()
    with pytest.raises(Exception, match="inc: argument 0: expected int, got str"):
        library["inc"]("text")
    with pytest.raises(AttributeError, match="no_such_function"):
        library["no_such_function"]
    assert library["inc"](41) == 42


def test_the_device_allocates_and_fills(remote: Any) -> None:  # noqa: ANN401
    tensor = tvm.runtime.empty((16,), "float32", remote.cpu(0))
    remote.get_function("tvm.contrib.random.random_fill_for_measure")(tensor)
    assert np.unique(tensor.numpy()).size > 8


def test_more_than_there_is(remote: Any) -> None:  # noqa: ANN401
    with pytest.raises(Exception, match="bytes"):
        tvm.runtime.empty((1 << 29,), "float32", remote.cpu(0))
    assert remote.system_lib()["inc"](1) == 2


def test_attributes_of_the_device(remote: Any) -> None:  # noqa: ANN401
    assert remote.cpu(0).exist
