# SPDX-License-Identifier: Apache-2.0
"""A model tuned on every device that can load code: the same integers in fewer instructions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from minrpc import Device, Firmware, HarnessError, open_device
from minrpc.library import firmware_of
from minrpc.library.toolset import toolset_of

from tests.device.conftest import Amount
from tests.models import mobile_net

pytestmark = pytest.mark.extra("tvm")

_BEGIN = """
#include "tvm/ffi/c_api.h"
int __tvm_ffi_main(void *self, void *args, int count, void *result) {
    TVMFFIAny *given = args;
    int *x = ((DLTensor *)given[0].v_ptr)->data, *y = ((DLTensor *)given[1].v_ptr)->data;
"""
TWICE = f"{_BEGIN} for (int i = 0; i < 4; i++) y[i] = 2 * x[i]; return 0; }}"


@pytest.fixture
def started(firmware: Firmware | None, device: Device) -> Firmware:
    if firmware is None or firmware.target.serial_port:
        pytest.skip("a device that was not started from here")
    if not device.rpc.global_function("minrpc.code_load"):
        pytest.skip("its firmware can't load code")
    return firmware


def test_a_tuned_network_gives_the_same_integers(
    device: Device, started: Firmware, tmp_path: Path, amount: Amount
) -> None:
    """The expected integers are numpy's; the fastest schedule is not slower than TVM's own loops."""
    from minrpc_models import load_model, model_of
    from minrpc_models.schedules import Schedules, built_for
    from minrpc_models.tuner import Bench, functions_to_tune, tune

    net = mobile_net.layers(np.int8)[:1]
    model = model_of(mobile_net.int8_module(net), "mobile8")
    inputs = {"x": np.random.default_rng(6).integers(-128, 128, mobile_net.SHAPE).astype(np.int8)}
    with load_model(device, model.plan) as loaded:
        untuned = loaded.measure(inputs, repeat=1)
        chosen = functions_to_tune(model, untuned)
        operands = loaded.operands(inputs, {numbers[0] for numbers in chosen.values()})
    assert chosen
    schedules = Schedules(
        tmp_path / "found", built_for(toolset_of(firmware_of(device)), ["-O2"]), create=True
    )
    with Bench(lambda: open_device(started), ["-O2"]) as bench:
        arrays = {name: operands[numbers[0]] for name, numbers in chosen.items()}
        results = list(tune(model, arrays, bench, schedules, amount(2, 32)))
    assert [item.function for item in results] == list(chosen)
    assert all(item.tried and not item.failed for item in results)
    plan, functions = model.scheduled(schedules)
    assert set(functions) == set(chosen)
    with load_model(device, plan) as loaded:
        run = loaded.measure(inputs, repeat=1)
    np.testing.assert_array_equal(run.outputs["output0"], mobile_net.expected(inputs["x"], net))
    if untuned.whole.clock.exact:
        assert run.ticks < 1.02 * untuned.ticks


def test_a_schedule_that_fails_does_not_end_the_tuning(started: Firmware) -> None:
    from minrpc_models.tuner import Bench

    x = np.arange(4, dtype=np.int32)
    with Bench(lambda: open_device(started), ["-O2"]) as bench:
        bench.place([x, 2 * x])
        for failing, told in (
            (f"{_BEGIN} __builtin_trap(); }}", "ended|restarted|fault|trap"),
            (f"{_BEGIN} return 0; }}", "f: WRONG, .* of the largest value"),
            (f"{_BEGIN} extern int absent(void); return absent(); }}", "absent"),
        ):
            assert bench.measured("f", TWICE)[0] > 0
            with pytest.raises(HarnessError, match=told) as caught:
                bench.measured("f", failing)
            bench.recover(caught.value)
        assert bench.measured("f", TWICE)[1] > 0
