# SPDX-License-Identifier: Apache-2.0
"""The exponential function on the device, against numpy's result in double precision.

An error is given in ULPs: units in the last place of the float32 nearest to the right result.
"""

import numpy as np
import numpy.typing as npt
import pytest
from minrpc import Device

Float32s = npt.NDArray[np.float32]

# The precision that C libraries promise for expf: glibc and picolibc (newlib) both stay below one ULP.
MAX_ULPS = 1.0
NAMES = ["exp", "myexpf"]


def exp_on(device: Device, x: Float32s, name: str = "exp") -> Float32s:
    """e ** x, computed on the device."""
    with device.array(x) as on_device, device.empty(x.shape, np.float32) as result:
        device.system_lib()[name](on_device, result)
        return result.numpy()


def ulps(got: Float32s, exact: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The errors of finite results."""
    spacing = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    return np.abs(got.astype(np.float64) - exact) / spacing


def check(device: Device, x: Float32s, name: str = "exp") -> None:
    """Assert that every result is finite and right."""
    errors = ulps(exp_on(device, x, name), np.exp(x.astype(np.float64)))
    worst = int(np.argmax(errors))
    assert errors[worst] <= MAX_ULPS, f"exp({x[worst]!r}) is {errors[worst]:.2f} ULPs off"


@pytest.mark.parametrize("name", NAMES)
def test_random_arguments(device: Device, name: str) -> None:
    random = np.random.default_rng(3)
    check(device, random.uniform(-87.3, 88.7, 500).astype(np.float32), name)


def test_arguments_around_zero(device: Device) -> None:
    tiny = np.logspace(-44, 0, 89, dtype=np.float32)
    check(device, np.concatenate([tiny, -tiny]))


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([0.0, -0.0], 1.0),
        ([1e-45, -1e-45, 1.1e-38, -1.1e-38], 1.0),  # denormals
        ([np.inf, 88.73, 1000, 3e38], np.inf),
        ([-np.inf, -104, -1000, -3e38], 0.0),
        ([np.nan], np.nan),
    ],
    ids=str,
)
def test_exact_values(device: Device, x: list[float], expected: float) -> None:
    found = exp_on(device, np.array(x, np.float32))
    np.testing.assert_array_equal(found, np.full(len(x), expected, np.float32))


def test_denormal_results(device: Device) -> None:
    check(device, np.linspace(-103.2, -87.4, 80, dtype=np.float32))


def test_largest_finite_result(device: Device) -> None:
    check(device, np.array([88.72283], np.float32))


def test_both_names_are_one_function(device: Device) -> None:
    x = np.linspace(-20, 20, 101, dtype=np.float32)
    np.testing.assert_array_equal(exp_on(device, x, "exp"), exp_on(device, x, "myexpf"))
