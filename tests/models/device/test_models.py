# SPDX-License-Identifier: Apache-2.0
"""Trained networks on every device that can load code: right results, times by operator, equal to exported
C."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minrpc import ConfigurationError, Device, DeviceMemoryError, Firmware, RemoteError, build, open_device
from minrpc.library import firmware_of, program_facts
from minrpc.sizes import program_sizes
from minrpc_models import export

from tests.models import mobile_net, waveforms
from tests.models.onnx_model import write_kinds, write_nodes, write_onnx

pytestmark = pytest.mark.extra("tvm")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:  # noqa: ANN401
    from minrpc_models import model_of

    return model_of(write_onnx(tmp_path_factory.mktemp("model") / "net.onnx"))


@pytest.fixture
def can_load(device: Device, need_memory: Callable[[int], None]) -> None:
    if not device.rpc.global_function("minrpc.code_load"):
        pytest.skip("its firmware can't load code")
    need_memory(64_000)


@pytest.fixture
def loaded(device: Device, model: Any, can_load: None) -> Any:  # noqa: ANN401
    from minrpc_models import load_model

    return load_model(device, model.plan)


def test_outputs_are_tvms(loaded: Any, model: Any) -> None:  # noqa: ANN401
    inputs = model.random_inputs(1)
    expected = model.on_host(inputs)
    for name, array in loaded.run(inputs).items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("can_load")
def test_float16_and_booleans(device: Device, tmp_path: Path) -> None:
    """Results equal the host's; a device whose compiler lacks float16 is refused with the reason."""
    from minrpc_models import load_model, model_of

    model = model_of(write_kinds(tmp_path / "kinds.onnx"))
    x = np.linspace(-4, 3.5, 16).astype(np.float16).reshape(1, 16)
    try:
        loaded = load_model(device, model.plan)
    except ConfigurationError as error:
        assert program_facts(firmware_of(device).elf).machine == "EM_RISCV"
        pytest.skip(error.message)
    outputs = loaded.run({"x": x})
    expected = model.on_host({"x": x})
    np.testing.assert_allclose(outputs["output0"], expected["output0"], rtol=2e-3)
    np.testing.assert_allclose(outputs["output0"], np.where(x < 1, x, x * x + x), rtol=2e-3)
    assert outputs["output1"].dtype == np.bool_
    np.testing.assert_array_equal(outputs["output1"], x >= 1)
    assert "-mfp16-format=ieee" in export.sources(model.plan)["CMakeLists.txt"]


def test_one_call_and_a_call_for_each_operator_give_the_same_bits(loaded: Any, model: Any) -> None:  # noqa: ANN401
    inputs = model.random_inputs(2)
    assert same_bits(loaded.run(inputs), loaded.step_by_step(inputs))


def test_an_operator_that_fails_is_told(device: Device, model: Any, can_load: None) -> None:  # noqa: ANN401
    """An operator fails, for instance, if it has too little workspace."""
    from minrpc_models import load_model

    inputs = model.random_inputs()
    operators = tuple(replace(operator, workspace=0) for operator in model.plan.operators)
    with load_model(device, replace(model.plan, operators=operators)) as loaded:
        with pytest.raises(ConfigurationError, match="net: an operator failed with -1"):
            loaded.run(inputs)
        with pytest.raises(ConfigurationError, match="an operator failed with -1"):
            loaded.measure(inputs)
        with pytest.raises(ConfigurationError, match=r"net: \w+ failed with -1"):
            loaded.step_by_step(inputs)


def test_operators_make_up_the_whole(loaded: Any, model: Any, image: Firmware) -> None:  # noqa: ANN401
    """The law for exact times: the sum of the operators' times is the time of a run, to one per cent."""
    assert image
    run = loaded.measure(model.random_inputs(), repeat=2)
    assert len(run.operators) == len(model.plan.operators)
    assert abs(sum(operator.ticks for operator in run.operators) / run.ticks - 1) < 0.01
    assert run.weight_bytes == model.plan.constant_bytes


@pytest.mark.slow
def test_core_cycles_of_operators_make_up_those_of_the_whole(model: Any, image: Firmware) -> None:  # noqa: ANN401
    """The same law for the cycles of a modelled core; wait states make each operator slower."""
    from minrpc_models import load_model

    if image.target.platform.core not in ("cortex-m3", "cortex-m4", "cv32e40p"):
        pytest.skip("no core with a table stands for this platform, or it has no room")
    of_operators = []
    for wait_states in (0, 5):
        with (
            open_device(image.changed(counters=True, flash_wait_states=wait_states)) as device,
            load_model(device, model.plan) as loaded,
        ):
            run = loaded.measure(model.random_inputs(), repeat=1, counters=["cycles"])
        each = [operator.measurement.counter_per_call("cycles") for operator in run.operators]
        assert abs(sum(each) / run.whole.counter_per_call("cycles") - 1) < 0.02
        assert run.whole.estimate.startswith("estimate: ")
        of_operators.append(each)
    assert all(less < more for less, more in zip(*of_operators, strict=True))


@pytest.mark.parametrize("count", [1, 2, 5])
def test_operators_make_up_the_whole_of_a_small_model(
    count: int, device: Device, can_load: None, image: Firmware, tmp_path: Path
) -> None:
    """The rest is the loop that calls the operators: a fixed number of instructions for each."""
    from minrpc_models import load_model, model_of

    assert image
    kinds = ["Relu", "MatMul", "Sigmoid", "MatMul", "Tanh"][:count]
    nodes = [
        (kind, [("x", "float32", [4, 4])] if not number else [("w", "float32", [4, 4])] * (kind == "MatMul"))
        for number, kind in enumerate(kinds)
    ]
    weights = {"w": np.eye(4, dtype=np.float32)} if count > 1 else {}
    model = model_of(write_nodes(tmp_path / "small.onnx", *nodes, constants=weights))
    with load_model(device, model.plan) as loaded:
        run = loaded.measure(model.random_inputs(), repeat=2)
    each = run.whole.clock.ticks_per_instruction
    assert each is not None
    assert -1 < run.between_ticks / float(each) / len(run.operators) < 24


def test_a_device_without_room_says_how_much_is_missing(
    loaded: Any,  # noqa: ANN401
    model: Any,  # noqa: ANN401
    device: Device,
) -> None:
    from minrpc_models import load_model

    fillings = []
    while (free := device.info().arena_largest_free) > 3000:
        fillings.append(device.empty((free - 1000,), np.int8))
    with pytest.raises(DeviceMemoryError, match=r"are free: [\d,]+ are missing") as caught:
        load_model(device, model.plan)
    assert "workspace: " in str(caught.value)
    for filling in fillings:
        filling.free()
    assert loaded.run(model.random_inputs())


def test_weights_that_are_too_large_are_refused_before_they_are_compiled(
    device: Device,
    can_load: None,
    model: Any,  # noqa: ANN401
) -> None:
    """They are refused also if code has its own memory. Weights in the image are not proposed if the flash is
    too small."""
    from minrpc_models import load_model

    info = device.info()
    flash = max((region.size for region in info.regions if region.kind == "read_only"), default=None)
    room = max(
        (region.size for region in info.regions if region.kind == "code"), default=info.arena_largest_free
    )
    stages: list[str] = []
    plan = replace(model.plan, constants=(*model.plan.constants, np.zeros(room, np.uint8)))
    with pytest.raises(DeviceMemoryError, match=r"[\d,]+ are missing") as caught:
        load_model(device, plan, begins=stages.append)
    assert f"weights: {plan.constant_bytes:,} bytes" in str(caught.value)
    target = device.owner.target
    process = target is not None and target.platform.starts == "process"
    fits = process or flash is None or plan.constant_bytes <= flash
    assert ("--weights image" in caught.value.next_step) is fits
    assert not stages
    load_model(device, model.plan, begins=stages.append).library.unload()
    assert stages == ["compile", "load"]


def test_weights_in_the_image(firmware: Firmware, loaded: Any, model: Any) -> None:  # noqa: ANN401
    """Only code is loaded, and all results are the same."""
    from minrpc_models import load_model
    from minrpc_models.models import with_weights

    if firmware.target.serial_port:
        pytest.skip("a device that was not started from here")
    inputs = model.random_inputs(3)
    with open_device(with_weights(firmware.target, model.plan)) as device:
        again = load_model(device, model.plan, weights="image")
        run = again.measure(inputs, repeat=1)
        assert same_bits(dict(run.outputs), loaded.run(inputs))
        assert again.library.device_bytes < loaded.library.device_bytes - model.plan.constant_bytes + 64
        assert abs(run.code_bytes - loaded.measure(inputs, repeat=1).code_bytes) < 256
        weight = device.system_lib()["tvmgen_net_weight"]
        count = len(model.plan.constants)
        assert len({weight(number) for number in range(count)}) == count
        for number in (-1, count):
            with pytest.raises(RemoteError, match="expected the number of a weight"):
                weight(number)


def test_the_exported_library_in_a_firmware(
    firmware: Firmware,
    device: Device,
    loaded: Any,  # noqa: ANN401
    model: Any,  # noqa: ANN401
    tmp_path: Path,
) -> None:
    """The library uses its own memory, has its weights in a named section, and is a module in Zephyr."""
    if firmware.target.serial_port:
        pytest.skip("a device that was not started from here")
    files = export.write(model.plan, tmp_path / "net")
    given: dict[str, Any] = {"sources": [file for file in files if file.parent.name == "rpc"]}
    if firmware.platform.port == "zephyr":
        given["cmake_options"] = [f"-DEXTRA_ZEPHYR_MODULES={tmp_path / 'net'}"]
    else:
        given["sources"] += [file for file in files if file.suffix == ".c" and file.parent.name == "src"]
        if firmware.platform.name.startswith("bare_rv"):  # Relaxation shortens calls in programs only.
            given["cmake_options"] = ["-DCMAKE_EXE_LINKER_FLAGS=-Wl,--no-relax"]
        given["defines"] = {"TVMGEN_WEIGHTS": '__attribute__((section(".rodata.weights")))'}
    given["include_dirs"] = [tmp_path / "net" / "include"]
    target = firmware.target.changed(**given)
    inputs = model.random_inputs(4)
    with open_device(target) as started:
        x, y = started.array(inputs["x"]), started.empty((1, 5), np.float32)
        run = started.system_lib()["net"]
        run(x, y)
        assert same_bits({"output0": y.numpy()}, loaded.step_by_step(inputs))
        with pytest.raises(RemoteError, match="net: expected 2 arrays, inputs first"):
            run(x)
        with pytest.raises(RemoteError, match="net: output0 is an array of 20 bytes"):
            run(x, x)
    check_sizes(build(target).elf, loaded, device)


def check_sizes(elf: Path, loaded: Any, device: Device) -> None:  # noqa: ANN401
    """A model's stated size is its size in a program that is compiled with the same flags."""
    from minrpc_models import load_model

    library = [
        piece for piece in program_sizes(elf).pieces if "/net/src/" in piece.file and piece.section != ".init"
    ]

    def sums(memory: str, *names: str) -> int:
        return sum(
            item.size
            for item in library
            if item.memory == memory and any(map(item.symbol.__contains__, names))
        )

    assert sums("flash", "_weight") == loaded.plan.constant_bytes
    assert sums("ram", "static_workspace") == loaded.plan.workspace_bytes
    loaded.library.unload()
    again = load_model(device, loaded.plan, flags=[])
    # The entry with static memory is not loaded; padding between functions belongs to no function.
    code = (
        sums("flash", "") - sums("flash", "_weight") - sums("flash", "net_run") + sums("flash", "net_run_in")
    )
    # Measured: 0 bytes on a Cortex-M3, 100 on x86-64, where flags of programs and of loaded code differ more.
    assert abs(code - again.sizes.code) < 128, (library, again.sizes)
    # A process keeps unused objects, such as a pointer that TVM declares.
    assert sums("ram", "") - sums("ram", "static_workspace", "_library_ctx") == again.sizes.data


def same_bits(given: dict[str, Any], expected: dict[str, Any]) -> bool:
    return {name: array.tobytes() for name, array in given.items()} == {
        name: array.tobytes() for name, array in expected.items()
    }


def test_a_trained_network(device: Device, can_load: None) -> None:
    """Scores are right to 1e-5 of the largest, and so the answers are the same."""
    from minrpc_models import load_model, model_of

    network = waveforms.trained()
    signals, kinds = waveforms.waveforms(20, 5)
    expected = network.scores(signals)
    assert (expected.argmax(1) == kinds).mean() > 0.9
    with load_model(device, model_of(waveforms.float_module(network), "waves").plan) as loaded:
        scores = np.concatenate([loaded.run({"x": signal[np.newaxis]})["output0"] for signal in signals])
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    assert (scores.argmax(1) == expected.argmax(1)).all()


def test_an_integer_network_is_exact(device: Device, can_load: None) -> None:
    from minrpc_models import load_model, model_of

    network = waveforms.quantized(waveforms.trained())
    signals, kinds = waveforms.waveforms(20, 6)
    inputs = waveforms.as_int8(signals)
    expected = network.scores(inputs)
    assert (expected.argmax(1) == kinds).mean() > 0.9
    with load_model(device, model_of(waveforms.int8_module(network), "waves8").plan) as loaded:
        for item, scores in zip(inputs, expected, strict=True):
            np.testing.assert_array_equal(loaded.run({"x": item[np.newaxis]})["output0"][0], scores)


def test_a_network_of_twenty_layers(device: Device, can_load: None, image: Firmware, tmp_path: Path) -> None:
    """Results are right to 1e-5 of the largest; the operators' sum is the whole to one per cent; shared code
    is counted."""
    from minrpc_models import load_model, model_of

    assert image
    net = mobile_net.layers(np.float32)
    x = np.random.default_rng(5).uniform(-1, 1, mobile_net.SHAPE).astype(np.float32)
    with load_model(device, model_of(mobile_net.write_onnx(tmp_path / "mobile.onnx", net)).plan) as loaded:
        run = loaded.measure({"x": x}, repeat=1)
    scores = mobile_net.expected(x, net)
    np.testing.assert_allclose(run.outputs["output0"], scores, rtol=0, atol=1e-5 * np.abs(scores).max())
    assert len(run.operators) > len(net)
    assert abs(sum(operator.ticks for operator in run.operators) / run.ticks - 1) < 0.01
    assert max(map(len, run.by_function().values())) >= mobile_net.BLOCKS - 1


def test_an_integer_network_of_twenty_layers(device: Device, can_load: None) -> None:
    from minrpc_models import load_model, model_of

    net = mobile_net.layers(np.int8)
    x = np.random.default_rng(6).integers(-128, 128, mobile_net.SHAPE).astype(np.int8)
    with load_model(device, model_of(mobile_net.int8_module(net), "mobile8").plan) as loaded:
        assert len(loaded.plan.operators) >= len(net)
        given = loaded.run({"x": x})["output0"]
    scores = mobile_net.expected(x, net)
    assert np.unique(scores).size > 8
    np.testing.assert_array_equal(given, scores)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({}, "takes x, not nothing"),
        ({"x": np.zeros((1, 8, 8), np.float32)}, r"x is float32\[1, 1, 16, 16\], not float32\[1, 8, 8\]"),
        ({"x": np.zeros((1, 1, 16, 16), np.int8)}, "not int8"),
    ],
)
def test_inputs_that_do_not_fit(loaded: Any, wrong: dict[str, Any], text: str) -> None:  # noqa: ANN401
    with pytest.raises(ConfigurationError, match=text):
        loaded.run(wrong)


def test_what_is_no_model(tmp_path: Path) -> None:
    from minrpc_models import model_of

    (tmp_path / "m.onnx").write_bytes(b"text")
    with pytest.raises(ConfigurationError, match="is no ONNX model"):
        model_of(tmp_path / "m.onnx")
    with pytest.raises(ConfigurationError, match="there is no file"):
        model_of(tmp_path / "none.onnx")
    with pytest.raises(ConfigurationError, match="models of this kind"):
        model_of(tmp_path / "m.h5")
