# SPDX-License-Identifier: Apache-2.0
"""The pipeline: each of its values is a possible start, and closing ends only the processes started for
it."""

from __future__ import annotations

import dataclasses
import subprocess
import threading
from pathlib import Path
from typing import get_type_hints

import pytest
from minrpc import (
    PLATFORMS,
    ConfigurationError,
    Device,
    Firmware,
    LinkClosedError,
    NothingHeardError,
    Platform,
    RunningDevice,
    Target,
    build,
    connect,
    open_device,
    open_devices,
    start,
)
from minrpc.targets import TargetFields

SCALE = """
#include <dlpack/dlpack.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/crt/module.h>
#include "scale.h"

int twice(int value);

static int scale(TVMValue *args, int *codes, int count, TVMValue *result, int *result_code, void *resource)
{
	(void)codes; (void)count; (void)resource;
	result->v_int64 = SCALE * OFFSET_MACRO(twice((int)args[0].v_int64));
	*result_code = kTVMArgInt;
	return 0;
}

static const TVMBackendPackedCFunc functions[] = {scale};
static const TVMFuncRegistry registry = {"\\001\\000scale\\0", functions};
static const TVMModule module = {&registry};

const TVMModule *TVMSystemLibEntryPoint(void)
{
	return &module;
}
"""


@pytest.fixture(scope="module")
def posix() -> Firmware:
    return build(Target.named("posix"))


def inc(device: Device) -> object:
    return device.system_lib()["inc"](1)


def process_of(device: Device) -> subprocess.Popen[bytes]:
    assert isinstance(device.owner, RunningDevice)
    assert device.owner.process is not None
    return device.owner.process


def test_from_a_name() -> None:
    with open_device("posix") as device:
        assert inc(device) == 2
        process = process_of(device)
    assert process.returncode is not None


def test_from_a_target() -> None:
    with open_device(Target.named("posix", link="socket")) as device:
        assert inc(device) == 2
        assert "socket" in device.name


def test_from_a_firmware(posix: Firmware) -> None:
    with open_device(posix, link="socket", call_timeout_s=5.0) as device:
        assert (inc(device), device.call_timeout_s) == (2, 5.0)
        assert isinstance(device.owner, RunningDevice)
        assert device.owner.firmware is not None
        assert device.owner.firmware.elf == posix.elf


def test_what_the_caller_started_goes_on(posix: Firmware) -> None:
    with start(posix) as running:
        for sessions in range(2):
            with open_device(running) as device:
                assert (inc(device), device.sessions) == (2, 1), sessions
                assert device.owner is running
        assert running.alive()
        with connect(running, call_timeout_s=7.0) as device:
            assert (device.in_session, device.call_timeout_s) == (False, 7.0)
            assert inc(device) == 2
            assert device.in_session
    assert not running.alive()


def test_a_device_that_is_closed_is_not_started_anew_by_another_layout(posix: Firmware) -> None:
    """No owner would end the started process."""
    with open_device(posix) as device:
        process = process_of(device)
    with start(posix) as running:
        with connect(running) as attached:
            assert inc(attached) == 2
        for closed in (device, attached):
            for layout in ({"link": "socket"}, {"arena": 16384}, {}):
                with pytest.raises(LinkClosedError, match="the device is closed"):
                    closed.relayout(**layout)
        assert attached.owner is running
    assert process_of(device) is process
    assert process.returncode is not None


def test_fields_that_come_too_late(posix: Firmware) -> None:
    with pytest.raises(TypeError, match="a built firmware can't be given 'sources'"):
        open_device(posix, sources=["x.c"])
    with start(posix) as running, pytest.raises(TypeError, match="a running device can't be given 'link'"):
        open_device(running, link="socket")
    with pytest.raises(TypeError, match="'colour'"):
        Target.named("posix", colour="red")  # type: ignore[call-arg]


def test_all_that_a_target_has_can_be_given() -> None:
    known = {field.name for field in dataclasses.fields(Platform)} | {
        field.name for field in dataclasses.fields(Target)
    }
    given = set(get_type_hints(TargetFields))
    assert given <= known | {"libraries_as"}
    # The board is chosen when a device starts.
    assert {field.name for field in dataclasses.fields(Target)} - given == {"platform", "board"}


def test_lists_are_added_to_and_the_rest_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    target = Target(PLATFORMS["posix"]).changed(
        sources=["a.c"], defines={"N": 3, "FAST": None}, link="socket"
    )
    more = target.changed(sources=[Path("b.c")], defines=["M=1"], cmake_options=["-DX=1"])
    assert more.platform.sources == (str(tmp_path / "a.c"), str(tmp_path / "b.c"))
    assert more.platform.defines == ("N=3", "FAST", "M=1")
    assert more.platform.cmake_options == (*PLATFORMS["posix"].cmake_options, "-DX=1")
    assert more.link == "socket"
    assert PLATFORMS["posix"].sources == ()


def test_one_word_where_a_list_is_due() -> None:
    with pytest.raises(ConfigurationError, match="sources is a list") as caught:
        Target.named("posix", sources="kernel.c")
    assert caught.value.next_step == "write sources=['kernel.c']"


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["posix", "bare_mps2_an385"])
def test_sources_headers_definitions_and_libraries_of_the_users(tmp_path: Path, platform: str) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "scale.h").write_text("#define OFFSET_MACRO(x) ((x) + 1)\n")
    (tmp_path / "scale.c").write_text(SCALE)
    (tmp_path / "twice.c").write_text("int twice(int value);\nint twice(int value) { return 2 * value; }\n")
    compiler = {"posix": ["cc"], "bare_mps2_an385": ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb"]}
    twice = tmp_path / "twice.o"
    subprocess.run([*compiler[platform], "-c", tmp_path / "twice.c", "-o", twice], check=True)
    with open_device(
        platform,
        sources=[tmp_path / "scale.c"],
        include_dirs=[tmp_path / "include"],
        defines={"SCALE": 10},
        libraries=[twice],
    ) as device:
        assert device.system_lib()["scale"](4) == 90


def test_several_devices_are_one_block() -> None:
    with open_devices(["posix", "posix", "posix"], call_timeout_s=9.0) as devices:
        assert [inc(device) for device in devices] == [2, 2, 2]
        assert len({process_of(device).pid for device in devices}) == 3
        assert {device.call_timeout_s for device in devices} == {9.0}
        processes = [process_of(device) for device in devices]
    assert all(process.returncode is not None for process in processes)


def test_when_one_of_several_fails_the_others_are_closed(posix: Firmware) -> None:
    before = threading.active_count()
    with pytest.raises(ConfigurationError, match="nope"), open_devices([posix, "nope", posix]):
        pytest.fail("not reached")
    assert threading.active_count() == before


def test_a_device_that_does_not_answer_is_stopped(posix: Firmware) -> None:
    deaf = dataclasses.replace(
        posix,
        target=dataclasses.replace(
            posix.target,
            platform=dataclasses.replace(posix.platform, arguments=("600",)),
            session_timeout_s=0.05,
            direct=False,
        ),
        elf=Path("/bin/sleep"),
    )
    before = threading.active_count()
    with pytest.raises(NothingHeardError):
        open_device(deaf)
    assert threading.active_count() == before
