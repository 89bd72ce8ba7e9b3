# SPDX-License-Identifier: Apache-2.0
"""Today's TVM itself as a client of every device."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minrpc import ConfigurationError, Device, Firmware, ModuleError, RemoteError
from minrpc.library import firmware_of, program_facts, toolset_of
from minrpc.library.linking import firmware_symbols
from minrpc.library.tvm_targets import description
from minrpc.tvm import llvm_target, pipe_program, session

pytestmark = pytest.mark.extra("tvm")


@pytest.fixture
def room(need_memory: Callable[[int], None]) -> None:
    need_memory(24_000)


@pytest.fixture
def remote(device: Device) -> Iterator[Any]:
    with session(device) as opened:
        yield opened


@pytest.fixture
def can_load(device: Device) -> None:
    if not device.rpc.global_function("minrpc.code_load"):
        pytest.skip("its firmware can't load code")
    symbols = firmware_symbols(toolset_of(firmware_of(device))).read_bytes()
    if b"TVMBackendAllocWorkspace" not in symbols:
        pytest.skip("its image hides the functions that generated code calls")


def on_device(remote: Any, data: Any) -> Any:  # noqa: ANN401
    import tvm

    return tvm.runtime.tensor(data, remote.cpu(0))


def test_add(remote: Any) -> None:  # noqa: ANN401
    a = on_device(remote, np.array([2, 3], np.int8))
    b = on_device(remote, np.array([4], np.int8))
    c = on_device(remote, np.zeros(2, np.int8))
    remote.system_lib()["add"](a, b, c)
    assert c.numpy().tolist() == [6, 7]


def test_the_devices_own_session_goes_on_afterwards(device: Device) -> None:
    """The device starts a new session: its arrays are gone, and an error names the reason."""
    array = device.array(np.array([1, 2], np.int8))
    sessions = device.sessions
    with session(device) as remote:
        assert remote.system_lib()["inc"](1) == 2
    assert device.sessions > sessions
    with pytest.raises(ValueError, match="session"):
        array.numpy()
    assert device.system_lib()["inc"](1) == 2


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64", "bool"]
)
def test_tensors_come_back(remote: Any, dtype: str) -> None:  # noqa: ANN401
    data = np.arange(12).reshape(3, 4).astype(dtype)
    back = on_device(remote, data).numpy()
    assert back.dtype == data.dtype
    np.testing.assert_array_equal(back, data)


@pytest.mark.usefixtures("room")
def test_a_tensor_that_is_longer_than_a_packet(remote: Any) -> None:  # noqa: ANN401
    data = np.random.default_rng(1).standard_normal((60, 90)).astype(np.float32)
    np.testing.assert_array_equal(on_device(remote, data).numpy(), data)


def test_a_time_evaluator(remote: Any) -> None:  # noqa: ANN401
    arrays = [on_device(remote, np.zeros(64, np.float32)) for _ in range(3)]
    timed = remote.system_lib().time_evaluator("add", remote.cpu(0), number=5, repeat=4, min_repeat_ms=1)
    result = timed(*arrays)
    assert len(result.results) == 4
    assert all(item > 0 for item in result.results)


def test_errors(remote: Any) -> None:  # noqa: ANN401
    library = remote.system_lib()
    with pytest.raises(Exception, match="inc: argument 0: expected int, got str"):
        library["inc"]("text")
    with pytest.raises(AttributeError, match="no_such_function"):
        library["no_such_function"]
    assert library["inc"](41) == 42


def test_the_device_allocates_and_fills(remote: Any) -> None:  # noqa: ANN401
    import tvm

    tensor = tvm.runtime.empty((16,), "float32", remote.cpu(0))
    remote.get_function("tvm.contrib.random.random_fill_for_measure")(tensor)
    assert np.unique(tensor.numpy()).size > 8


def test_more_than_there_is(remote: Any) -> None:  # noqa: ANN401
    import tvm

    with pytest.raises(Exception, match="bytes"):
        tvm.runtime.empty((1 << 29,), "float32", remote.cpu(0))
    assert remote.system_lib()["inc"](1) == 2


def test_attributes_of_the_device(remote: Any) -> None:  # noqa: ANN401
    assert remote.cpu(0).exist


@pytest.fixture(scope="module")
def generated() -> Any:  # noqa: ANN401
    """`scaled(a, b)`: b = 2 * exp(a), sixteen floats, as `tvm.compile` gives it for C."""
    import tvm

    return compiled(tvm.target.Target("c"))


def compiled(target: Any) -> Any:  # noqa: ANN401
    import tvm
    from tvm import te

    a = te.placeholder((16,), "float32", name="a")
    b = te.compute((16,), lambda i: te.exp(a[i]) * 2.0, name="b")
    function = te.create_prim_func([a, b]).with_attr("global_symbol", "scaled")
    return tvm.compile(tvm.IRModule({"scaled": function}), target=target)


A = np.linspace(-1, 1, 16, dtype=np.float32)


def check_scaled(call: Any, made: Any) -> None:  # noqa: ANN401
    b = made(np.zeros(16, np.float32))
    call(made(A), b)
    np.testing.assert_allclose(b if isinstance(b, np.ndarray) else b.numpy(), 2 * np.exp(A), rtol=1e-6)


@pytest.mark.usefixtures("can_load")
def test_a_client_uploads_and_loads_what_tvm_generated(
    remote: Any,  # noqa: ANN401
    generated: Any,  # noqa: ANN401
    tmp_path: Path,
) -> None:
    generated.mod.write_to_file(str(tmp_path / "m.c"), "c")
    remote.upload(str(tmp_path / "m.c"))
    module = remote.load_module("m.c")
    check_scaled(module["scaled"], lambda data: on_device(remote, data))
    timed = module.time_evaluator("scaled", remote.cpu(0), number=3, repeat=2)
    assert all(result > 0 for result in timed(on_device(remote, A), on_device(remote, A)).results)
    with pytest.raises(Exception, match=r"Invalid b\.shape\[0\]"):
        module["scaled"](on_device(remote, A), on_device(remote, np.zeros(15, np.float32)))
    with pytest.raises(Exception, match=r"there is no file none\.c: upload it first"):
        remote.load_module("none.c")


@pytest.mark.usefixtures("can_load")
def test_a_module_is_loaded_from_python(device: Device, generated: Any) -> None:  # noqa: ANN401
    library = device.load_tvm(generated)
    assert "scaled" in library.functions
    check_scaled(library.scaled, lambda data: data)
    with pytest.raises(RemoteError, match=r"Invalid b\.shape\[0\]"):
        library.scaled(A, np.zeros(15, np.float32))
    with pytest.raises(AttributeError, match="no function 'other'; there is scaled"):
        library.other  # noqa: B018
    library.unload()


@pytest.mark.usefixtures("can_load")
def test_what_was_made_of_a_module_is_given_back_before_it(
    device: Device,
    generated: Any,  # noqa: ANN401
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The user may drop them in any order; nothing is logged."""
    device.system_lib()
    used = device.info().arena_used
    library = device.load_tvm(generated)
    scaled, packed = library.scaled, library.packed("scaled")
    timed = library.module.time_evaluator("scaled", number=1)
    arrays = device.array(A), device.array(A)
    timed(*arrays)
    library.unload()
    device.info()
    del timed, packed, arrays
    with pytest.raises(ValueError, match="has been freed"):
        scaled(A, A)
    assert device.info().arena_used == used
    kept = device.load_tvm(generated).module.time_evaluator("scaled", number=1)
    assert len(kept(device.array(A), device.array(A)).results) == 1
    assert "did not free" not in caplog.text


@pytest.mark.usefixtures("can_load")
def test_an_object_of_llvms(device: Device) -> None:
    """The object is for the device's core, with the core's options of the device's compiler."""
    check_scaled(device.load_tvm(compiled(llvm_target(device))).scaled, lambda data: data)


@pytest.mark.usefixtures("can_load", "room")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64"])
@pytest.mark.parametrize("kind", ["c", "llvm"])
def test_arithmetic_that_a_core_may_not_have(device: Device, dtype: str, kind: str) -> None:
    """Functions of the compiler's library compute it; they are called with the compiler's convention."""
    import tvm
    from tvm import te

    a, b = (te.placeholder((8,), dtype, name=name) for name in "ab")
    c = te.compute((8,), lambda i: a[i] * b[i] + a[i] - b[i], name="c")
    d = te.compute((8,), lambda i: tvm.tirx.Select(a[i] < b[i], a[i], b[i]).astype("int32"), name="d")
    function = te.create_prim_func([a, b, c, d]).with_attr("global_symbol", "mixed")
    target = llvm_target(device) if kind == "llvm" else tvm.target.Target("c")
    module = tvm.compile(tvm.IRModule({"mixed": function}), target=target)
    try:
        library = device.load_tvm(module)
    except ConfigurationError as error:
        assert dtype == "float16"
        assert program_facts(firmware_of(device).elf).machine == "EM_RISCV"
        pytest.skip(error.message)
    x, y = np.array([1, -2, 3, -4, 5, 6, -7, 8], dtype), np.array([-9, 8, 7, 6, -5, 4, 3, 2], dtype)
    result, least = np.zeros(8, dtype), np.zeros(8, np.int32)
    library.mixed(x, y, result, least)
    np.testing.assert_array_equal(result, x * y + x - y)
    np.testing.assert_array_equal(least, np.minimum(x, y).astype(np.int32))


@pytest.mark.usefixtures("can_load")
@pytest.mark.parametrize("kind", ["c", "llvm"])
def test_booleans(device: Device, kind: str) -> None:
    import tvm
    from tvm import te

    a = te.placeholder((4,), "bool", name="a")
    b = te.compute((4,), lambda i: tvm.tirx.Not(a[i]), name="b")
    function = te.create_prim_func([a, b]).with_attr("global_symbol", "inverted")
    target = llvm_target(device) if kind == "llvm" else tvm.target.Target("c")
    library = device.load_tvm(tvm.compile(tvm.IRModule({"inverted": function}), target=target))
    result = np.zeros(4, np.bool_)
    library.inverted(np.array([True, False, False, True]), result)
    assert result.tolist() == [False, True, True, False]


@pytest.mark.usefixtures("can_load")
def test_an_archive_for_another_processor(
    remote: Any,  # noqa: ANN401
    device: Device,
    tmp_path: Path,
) -> None:
    """An error names the processor, and the session goes on."""
    import tvm

    mine = description(toolset_of(firmware_of(device)))["mtriple"]
    other = "riscv32-unknown-elf" if not mine.startswith("riscv32") else "thumbv7m-none-eabi"
    module = compiled(tvm.target.Target({"kind": "llvm", "mtriple": other}))
    module.mod.write_to_file(str(tmp_path / "m.o"), "o")
    with tarfile.open(tmp_path / "m.tar", "w") as archive:
        archive.add(tmp_path / "m.o", "lib0.o")
    remote.upload(str(tmp_path / "m.tar"))
    with pytest.raises(Exception, match=r"m\.tar is code for \w+, \d\d bits; the device is \w+, \d\d bits"):
        remote.load_module("m.tar")
    assert remote.system_lib()["inc"](1) == 2


@pytest.mark.usefixtures("can_load")
def test_what_calls_tvms_runtime_is_refused(device: Device) -> None:
    """LLVM's code would call it through a pointer that stays NULL."""
    import tvm
    from tvm import topi

    a = tvm.te.placeholder((4,), "float32", name="a")
    function = tvm.te.create_prim_func([a, topi.sort(a)]).with_attr("global_symbol", "sorted")
    module = tvm.compile(tvm.IRModule({"sorted": function}), target=llvm_target(device))
    with pytest.raises(ModuleError, match=r"calls .*TVMFFIFunctionCall.*, which only TVM's own runtime has"):
        device.load_tvm(module)


def test_the_device_itself_waits_while_it_is_lent(device: Device) -> None:
    """No program would answer the device's own requests."""
    inc = device.system_lib()["inc"]
    with session(device) as remote:
        with pytest.raises(ConfigurationError, match="is lent to a session of TVM's"):
            device.system_lib()
        with pytest.raises(ConfigurationError, match="is lent to a session of TVM's"):
            inc(1)
        with pytest.raises(ConfigurationError, match="is lent to a session"), session(device):
            pass
        assert remote.system_lib()["inc"](41) == 42
    assert device.system_lib()["inc"](1) == 2


@pytest.mark.usefixtures("can_load")
def test_a_module_that_needs_what_nobody_has(remote: Any, tmp_path: Path) -> None:  # noqa: ANN401
    (tmp_path / "m.c").write_text(
        "int no_such(void);\nint __tvm_ffi_f(void *self, void *args, int count, void *result)\n"
        "{ return no_such(); }\n"
    )
    remote.upload(str(tmp_path / "m.c"))
    with pytest.raises(Exception, match=r"needs no_such, which neither"):
        remote.load_module("m.c")
    assert remote.system_lib()["inc"](1) == 2


def test_a_client_over_two_pipes(
    firmware: Firmware | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TVM ends the program by SIGKILL, and nothing is left."""
    import tvm

    if firmware is None or firmware.target.serial_port:
        pytest.skip("a device that was not started from here")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "m.c").write_text("int x;")
    session = tvm.rpc.client.PopenSession(pipe_program(firmware.target.name))
    a = on_device(session, np.array([2, 3], np.int8))
    session.system_lib()["add"](a, on_device(session, np.array([4], np.int8)), a)
    assert a.numpy().tolist() == [6, 7]
    session.upload(str(tmp_path / "m.c"))
    del a, session
    assert not list(tmp_path.glob("minrpc*"))


@pytest.mark.usefixtures("can_load")
def test_an_archive(device: Device, generated: Any, tmp_path: Path) -> None:  # noqa: ANN401
    generated.mod.write_to_file(str(tmp_path / "m.c"), "c")
    with tarfile.open(tmp_path / "m.tar", "w") as archive:
        archive.add(tmp_path / "m.c", "lib0.c")
    check_scaled(device.load_tvm(tmp_path / "m.tar").scaled, lambda data: data)
