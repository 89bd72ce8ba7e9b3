# SPDX-License-Identifier: Apache-2.0
"""Libraries of minrpc.toml that are part of the firmware: the same tests as for loaded code."""

from __future__ import annotations

from pathlib import Path

import pytest
from minrpc import (
    ConfigurationError,
    LoadedLibrary,
    LoadError,
    RunningDevice,
    Target,
    build,
    connect,
    counters_for,
    library_of,
    open_device,
    profile_call,
    start,
)
from minrpc.library import LinkedLibrary

from tests.device.other_firmware import require_passed
from tests.native import need_builtin

HERE = Path(__file__).parent
FILE = HERE / "linked.toml"
SAME = ("test_c_functions.py", "test_c_library.py", "test_fakes_witness.py", "test_partner.py")
# No function in Python was given before C waits, which brings spares.
LOADED_ONLY = "test_functions_in_python_are_stored"


@pytest.fixture
def platform(running_device: RunningDevice) -> str:
    """The platform's name; skips a board, which has its firmware."""
    target = running_device.target
    if target.serial_port is not None or target.build_dir is not None:
        pytest.skip("a firmware is built for this test")
    need_builtin(running_device.name)
    return running_device.name


@pytest.mark.slow
def test_what_holds_for_loaded_code_holds_for_linked_in(platform: str) -> None:
    require_passed(SAME, platform, FILE, "-k", f"(kinds or not loaded) and not {LOADED_ONLY}")


@pytest.mark.slow
@pytest.mark.once
def test_either_way_by_name(platform: str) -> None:
    target = Target.named(platform, platforms_file=FILE)
    with open_device(target) as device:
        linked = library_of(device.library("kinds"))
        loaded = library_of(device.library("kinds", linked=False))
        assert (type(linked), type(loaded)) == (LinkedLibrary, LoadedLibrary)
        assert [repr(function) for function in linked.functions.values()] == [
            repr(function) for function in loaded.functions.values()
        ]
        assert (
            linked["product"](3, 5) == loaded["product"](3, 5) == device.system_lib()["kinds.product"](3, 5)
        )
        kept = target.platform.port == "zephyr"  # Its Kconfig names the standard of all C.
        assert linked["standard"]() == loaded["standard"]() or kept
        with pytest.raises(ConfigurationError, match="there is no library 'kind'") as caught:
            device.library("kind")
        assert "known are kinds" in str(caught.value)


@pytest.mark.slow
@pytest.mark.once
def test_a_functions_figures_are_its_own_either_way(platform: str) -> None:
    """Linked in, loaded, or named as a function of the firmware: without the thunk that calls it."""
    firmware = build(Target.named(platform, platforms_file=FILE))
    if firmware.platform.starts != "qemu":
        pytest.skip("nothing counts there")
    with (
        counters_for(firmware.elf, flow=True, memory=True) as counters,
        start(firmware, counters=counters) as running,
        connect(running) as device,
    ):
        packed = device.system_lib().measure("kinds.product", repeat=1, counters=["instructions"])
        whole = packed(3, 5).inclusive["instructions"]
        figures = []
        for lib in (device.library("kinds"), device.library("kinds", linked=False), device.firmware):
            library = library_of(lib)
            profile = profile_call(library, counters, "product", [3, 5])
            timed = library.measure("product", number=1, repeat=5, counters="all")(3, 5)
            figures.append((profile.inclusive, timed.inclusive, min(timed.counters["stack_bytes"])))
        # So is the packed function that calls it, before and after the C function was measured.
        assert whole == packed(3, 5).inclusive["instructions"] == figures[0][0]
    assert figures[0] == figures[1] == figures[2]
    assert figures[0][1]["instructions"] == figures[0][0] < 20


@pytest.mark.slow
def test_fakes_of_a_part_of_the_firmware(platform: str) -> None:
    with open_device(Target.named(platform, platforms_file=FILE)) as device:
        hal = library_of(device.library("hal"))
        assert type(hal) is LinkedLibrary
        with pytest.raises(ConfigurationError, match=r'(?s)hal called hal_millis.*fakes=\{"hal_millis"'):
            hal["elapsed"](0)
        hal = library_of(device.library("hal", fakes={"hal_millis": lambda: 44, "*": "zero"}))
        assert [hal["elapsed"](2), hal["polled"](3)] == [42, 3]
        assert len(hal.fakes.hal_is_ready.calls) == 3
        with pytest.raises(
            ConfigurationError, match="hal is linked into the firmware without a fake of hal_x"
        ):
            device.library("hal", fakes={"hal_x": "zero"})
        loaded = library_of(device.library("hal", linked=False, fakes={"hal_millis": lambda: 5}))
        assert [loaded["elapsed"](1), hal["elapsed"](2)] == [4, 42]
        with pytest.raises(ConfigurationError, match="hal called hal_is_ready, which has no answer"):
            loaded["polled"](1)


@pytest.mark.once
def test_not_in_the_firmware(platform: str) -> None:
    libraries = [
        named_library._replace(linked=False)
        for named_library in Target.named(platform, platforms_file=FILE).platform.named_libraries
    ]
    with open_device(Target.named(platform, named_libraries=libraries)) as device:
        with pytest.raises(LoadError, match="the library kinds is not in the firmware"):
            device.library("kinds", linked=True)
        assert device.library("kinds").product(3, 5) == 15


TWO = """
[libraries.one]
sources = ["one.c"]
fakes = ["hal_get"]
[libraries.two]
sources = ["two.c"]
fakes = ["hal_get"]
[libraries.pairs]
sources = ["pairs.c"]
flags = ["-fpcc-struct-return"]
"""


@pytest.mark.slow
@pytest.mark.once
def test_what_two_libraries_of_a_firmware_can_t_have_is_refused(tmp_path: Path, platform: str) -> None:
    for name in ("one", "two"):
        text = f"int hal_get(int x); int {name}_use(int x) {{ return hal_get(x); }}"
        (tmp_path / f"{name}.c").write_text(text)
    (tmp_path / "pairs.c").write_text(
        "struct p { short x, y; }; struct p make(int x) { return (struct p){x, x + 1}; }"
    )
    (tmp_path / "two.toml").write_text(TWO)
    target = Target.named(platform, platforms_file=tmp_path / "two.toml")
    with open_device(target) as device:
        one = device.library("one", fakes={"hal_get": lambda x: x + 1})
        silent = device.library("two")
        with pytest.raises(ConfigurationError, match=r"one and two are linked .* which has one hal_get"):
            device.library("two", fakes={"hal_get": lambda x: x + 1000})
        assert (one.one_use(1), silent.two_use(1)) == (2, 2)
        one = device.library("one", fakes={"hal_get": lambda x: x + 10})
        assert one.one_use(1) == 11
        del one
        assert device.library("two", fakes={"hal_get": lambda x: x + 1000}).two_use(1) == 1001
        with pytest.raises(ConfigurationError, match="pairs is compiled with -fpcc-struct-return"):
            device.library("pairs")
        assert device.library("pairs", linked=False).make(3).y == 4
