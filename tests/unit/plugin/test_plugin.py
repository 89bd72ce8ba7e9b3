# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin, by running pytest on small projects that use it, with the posix device."""

import os
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ET

import pytest
from minrpc import BuildError, Firmware, Target, build
from minrpc.firmware import toolchain
from minrpc.plugin import shared

WAIT_S = 300.0
ALONE_OR_NOT = [(), pytest.param(("-n", "1"), marks=pytest.mark.slow)]
ADD = """
    import numpy as np

    def test_add(device):
        a, b = device.array(np.int8([2, 3])), device.array(np.int8([4]))
        c = device.empty((2,), np.int8)
        device.system_lib()["add"](a, b, c)
        assert c.numpy().tolist() == [6, 7]
"""


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    """Pytest in `pytester`'s directory, with only the plugin under test."""
    return pytester.runpytest("-p", "no:cacheprovider", *options)


def test_another_projects_test_uses_the_device(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ADD)
    result = run(pytester, "--platform", "posix", "-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["minrpc: posix: the firmware as a process*", "*test_add?posix? PASSED*"])


def test_a_test_runs_on_every_platform_that_is_named(pytester: pytest.Pytester) -> None:
    pytester.makefile(".toml", minrpc='[platforms.second]\nextends = "posix"\n')
    pytester.makepyfile(ADD)
    result = run(pytester, "--platform", "posix,second", "-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*test_add?posix?*", "*test_add?second?*"])


def test_junit_report_has_platform_sizes_and_times(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_time(device, record_timing):
            lib = device.system_lib()
            record_timing("inc", lib.time_evaluator("inc", number=1000)(1))
        """
    )
    run(pytester, "--platform", "posix", "--junitxml=report.xml").assert_outcomes(passed=1)
    found = ET.parse(pytester.path / "report.xml").iter("property")
    properties = {item.attrib["name"]: item.attrib["value"] for item in found}
    assert properties["platform"] == "posix"
    assert properties["timing"] == "wall"
    assert int(properties["flash_bytes"]) > 1000
    assert int(properties["ram_bytes"]) > 1000
    assert float(properties["boot_s"]) > 0
    assert float(properties["inc.mean_s"]) > 0


def test_each_test_has_a_session_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import numpy as np
        import pytest

        kept = []

        @pytest.mark.parametrize("turn", [1, 2, 3])
        def test_memory_is_empty(device, turn):
            assert device.info().arena_used == 0
            kept.append(device.empty((1000,), np.int8))
            assert device.info().arena_used >= 1000
        """
    )
    run(pytester, "--platform", "posix").assert_outcomes(passed=3)


def test_a_device_that_died_is_replaced_and_the_failure_says_so(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_dies(device, running_device):
            running_device.process.kill()
            device.info()

        def test_next(device):
            assert device.system_lib()["inc"](1) == 2
        """
    )
    result = run(pytester, "--platform", "posix")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*posix ended by itself: killed by SIGKILL*", "*-- posix: wire --*"])


def test_the_test_after_an_expected_death_is_innocent(pytester: pytest.Pytester) -> None:
    """A hang, a crash that is expected, or told by xfail or skip, and an end between two tests."""
    pytester.makeconftest(
        """
        import os, pytest
        running = []

        @pytest.fixture(autouse=True)
        def note(running_device):
            running[:] = [running_device]

        def pytest_runtest_logfinish(nodeid):
            if "killed_after" in nodeid:
                running[0].process.kill()
                running[0].process.wait()
        """
    )
    pytester.makepyfile(
        """
        import pytest
        from minrpc import HarnessError

        def works(device):
            assert device.system_lib()["inc"](1) == 2

        @pytest.mark.parametrize("name", ["hang", "crash"])
        class TestEach:
            def test_expected(self, device, name):
                device.call_timeout_s = 0.2
                with pytest.raises(HarnessError):
                    device.system_lib()["testing." + name]()

            def test_after_expected(self, device, name):
                works(device)

            @pytest.mark.xfail(strict=True)
            def test_xfail(self, device, name):
                device.call_timeout_s = 0.2
                device.system_lib()["testing." + name]()

            def test_after_xfail(self, device, name):
                works(device)

            def test_skip(self, device, name):
                device.call_timeout_s = 0.2
                with pytest.raises(HarnessError):
                    device.system_lib()["testing." + name]()
                pytest.skip("it died")

            def test_after_skip(self, device, name):
                works(device)

        def test_is_killed_after(device):
            works(device)

        def test_next(device):
            works(device)
        """
    )
    result = run(pytester, "--platform", "posix")
    result.assert_outcomes(passed=10, xfailed=2, skipped=2)


def test_a_failure_shows_the_counts_of_both_sides_and_the_memory(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_damage(device, running_device):
            running_device.transport.write(bytes.fromhex("fffd01000000050000"), 1.0)
            array = device.empty((1000,), "int8")
            assert False

        def test_session_given_up(device):
            device.call_timeout_s = 0.2
            device.system_lib()["testing.hang"]()
        """
    )
    result = run(pytester, "--platform", "posix")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "*-- posix: link and memory --*",
            "the host's reader: frames * crc_errors 0,*",
            "the device, since it started: crc_errors 1,* rx_overruns 0",
            "arrays: 10?? of *",
            "*it was started again: arrays, functions and libraries are gone",
        ]
    )


def test_a_death_that_no_test_noticed_is_an_error(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_dies(device, running_device):
            running_device.process.kill()
            running_device.process.wait()

        def test_next(device):
            assert device.system_lib()["inc"](1) == 2
        """
    )
    result = run(pytester, "--platform", "posix")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*EmulatorExitedError: posix ended by itself*"])


def test_a_death_or_hang_that_a_test_expects_is_no_error(pytester: pytest.Pytester) -> None:
    """A device that a call has ended goes on, in the same test and in the next."""
    pytester.makepyfile(
        """
        import pytest
        from minrpc import HarnessError

        @pytest.mark.call_timeout(0.3)
        @pytest.mark.parametrize("name", ["testing.crash", "testing.hang"])
        @pytest.mark.parametrize("goes_on", [True, False])
        def test_dies(name, goes_on, device):
            with pytest.raises(HarnessError, match=f"call {name}"):
                device.system_lib()[name]()
            assert not goes_on or device.system_lib()["inc"](1) == 2
        """
    )
    result = run(pytester, "--platform", "posix,bare_mps2_an385")
    result.assert_outcomes(passed=8)


def test_a_failed_test_does_not_spoil_the_next(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        pids = []

        def test_fails(device, running_device):
            pids.append(running_device.process.pid)
            assert device.system_lib()["inc"](1) == 3

        def test_gets_another_device(device, running_device):
            assert running_device.process.pid not in pids
            assert device.system_lib()["inc"](1) == 2
        """
    )
    result = run(pytester, "--platform", "posix")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*-- posix: wire --*", "> call *(1)", "< returned 2"])


def test_remote_errors_show_the_test_and_not_the_harness(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_wrong(device):
            device.system_lib()["add"](1)
        """
    )
    result = run(pytester, "--platform", "posix")
    result.stdout.fnmatch_lines(["*RemoteError: add: expected 3 arguments, got 1*"])
    result.stdout.no_fnmatch_line("*rpc.py*")


def test_firmware_that_does_not_build_fails_once(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    def building(target: Target) -> Firmware:
        if target.name == "broken":
            raise BuildError("the firmware of broken did not build", details=["broken.c:1:2: error: no"])
        return build(target)

    monkeypatch.setattr(shared, "build", building)
    pytester.makefile(".toml", minrpc='[platforms.broken]\nextends = "posix"\n')
    pytester.makepyfile(ADD.replace("test_add", "test_one") + ADD.replace("test_add", "test_two"))
    result = run(pytester, "--platform", "broken,posix", "-rs")
    result.assert_outcomes(passed=2, errors=1, skipped=1)
    result.stdout.fnmatch_lines(["*BuildError: the firmware of broken did not build*", "*broken.c:1:*error*"])
    result.stdout.fnmatch_lines(["SKIPPED*broken could not be used: the firmware of broken did not build"])


def test_an_unknown_platform_is_a_usage_error(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ADD)
    result = run(pytester, "--platform", "posxi")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*there is no platform 'posxi'*", "*did you mean posix*"])


def test_a_platform_that_cannot_run_is_a_usage_error_when_named(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(pytester.mkdir("empty")))
    pytester.makepyfile(ADD)
    result = run(pytester, "--platform", "bare_mps2_an385")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*bare_mps2_an385 can't run here*", "*arm-none-eabi-gcc is not installed*", "*apt-get install*"]
    )


@pytest.mark.parametrize("workers", ALONE_OR_NOT, ids=["alone", "with workers"])
@pytest.mark.parametrize(
    "test",
    [
        ADD,
        pytest.param(
            'def test_later(request):\n    request.getfixturevalue("device")', marks=pytest.mark.slow
        ),
        pytest.param("def test_image(firmware): pass", marks=pytest.mark.slow),
    ],
    ids=["device", "getfixturevalue", "firmware"],
)
def test_a_run_in_which_no_device_test_ran_is_no_success(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, test: str, workers: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PATH", str(pytester.mkdir("empty")))
    pytester.makepyfile(test)
    result = run(pytester, "-q", "--junitxml=report.xml", *workers)
    result.assert_outcomes(skipped=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    why = "*gcc is not installed*(sudo apt-get install gcc*"
    lines = [f"minrpc: posix was left out: {why}", "minrpc: no test ran on a device*--minrpc-allow-no-device"]
    result.stdout.fnmatch_lines(lines)
    found = ET.parse(pytester.path / "report.xml").iter("property")
    left_out = {item.attrib["name"]: item.attrib["value"] for item in found}
    assert "gcc is not installed" in left_out["minrpc.left_out.posix"]
    assert run(pytester, "--minrpc-allow-no-device", *workers).ret == pytest.ExitCode.OK


@pytest.mark.parametrize("workers", ALONE_OR_NOT, ids=["alone", "with workers"])
@pytest.mark.parametrize("test", [ADD, "def test_trivial(): pass"], ids=["device", "no device"])
def test_a_run_whose_coverage_was_not_written_is_no_success(
    pytester: pytest.Pytester, test: str, workers: tuple[str, ...]
) -> None:
    pytester.makepyfile(test)
    result = run(pytester, "--platform", "posix", "--minrpc-coverage=lines.info", "-q", *workers)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["minrpc: lines.info was not written: no device ran under QEMU*"])


@pytest.mark.parametrize("workers", ALONE_OR_NOT, ids=["alone", "with workers"])
def test_a_run_whose_page_was_not_written_is_no_success(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    pytester.makepyfile("def test_trivial(): pass")
    result = run(pytester, "--minrpc-report=page.md", "-q", *workers)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["minrpc: page.md was not written: no test used a device"])


def test_what_was_left_out_is_named_when_the_rest_ran(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = toolchain.compiler_version
    monkeypatch.setattr(
        toolchain, "compiler_version", lambda name: None if name.startswith("arm-") else version(name)
    )
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)  # With a Zephyr there is one more platform.
    pytester.makepyfile(ADD)
    result = run(pytester, "-q")
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["minrpc: bare_mps2_an385 was left out: *arm-none-eabi-gcc is not installed*"]
    )


def test_a_run_that_wants_no_device_is_left_alone(pytester: pytest.Pytester) -> None:
    pytester.makefile(".toml", minrpc="this is no TOML\n")
    pytester.makepyfile("def test_trivial(): pass")
    code = (
        "import sys, pytest\n"
        "assert pytest.main(['-q', '-p', 'no:labgrid']) == 0\n"  # It imports pexpect.
        "heavy = {'numpy', 'serial', 'elftools', 'pexpect', 'minrpc.targets.table', 'minrpc.client'}\n"
        "assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.count("minrpc") == 0


def test_pytest_rewrites_none_of_the_packages_modules_for_its_assertions(pytester: pytest.Pytester) -> None:
    """It would do so in each process where PYTHONDONTWRITEBYTECODE is set, and read no bytecode of pip's."""
    pytester.makepyfile(ADD)
    code = (
        "import sys, pytest\n"
        "assert pytest.main(['-q', '--platform', 'posix']) == 0\n"
        "ours = {name: type(module.__loader__).__name__ for name, module in sys.modules.items()"
        " if name.startswith('minrpc')}\n"
        "rewritten = {name for name, loader in ours.items() if loader == 'AssertionRewritingHook'}\n"
        "assert 'minrpc.client.session' in ours\n"
        "assert rewritten <= {'minrpc', 'minrpc.plugin'}, (len(rewritten), rewritten)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("workers", ALONE_OR_NOT, ids=["alone", "with workers"])
def test_a_broken_file_fails_only_the_tests_that_need_it(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    pytester.makefile(".toml", minrpc="[platforms.mine]\ncolour = 1\n")
    pytester.makepyfile(ADD, test_other="def test_trivial(): pass")
    result = run(pytester, *workers)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*ConfigurationError: *minrpc.toml: platforms.mine.colour: unknown key*"])


def test_a_project_has_its_file_wherever_pytest_starts_and_a_named_file_wins(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = pytester.mkdir("project")
    for name, key in (("minrpc", "colour"), ("other", "shape")):
        (project / f"{name}.toml").write_text(f"[platforms.mine]\n{key} = 1\n")
    (project / "test_it.py").write_text("def test_it(device): pass\n")
    (project / "pytest.ini").touch()
    monkeypatch.chdir(pytester.mkdir("elsewhere"))
    run(pytester, str(project)).stdout.fnmatch_lines(["*minrpc.toml: platforms.mine.colour: unknown key*"])
    named = run(pytester, str(project), f"--minrpc-platforms-file={project / 'other.toml'}")
    named.stdout.fnmatch_lines(["*other.toml: platforms.mine.shape: unknown key*"])


def test_a_device_that_is_asked_for_at_run_time(pytester: pytest.Pytester) -> None:
    pytester.makefile(".toml", minrpc='[platforms.second]\nextends = "posix"\n')
    pytester.makepyfile(
        """
        import unittest
        import pytest

        def test_later(request):
            assert request.getfixturevalue("device").system_lib()["inc"](1) == 2

        class TestOld(unittest.TestCase):
            @pytest.fixture(autouse=True)
            def _with_device(self, device):
                self.device = device

            def test_inc(self):
                self.assertEqual(self.device.system_lib()["inc"](2), 3)

            def test_again(self):
                self.assertEqual(self.device.info().arena_used, 0)
        """
    )
    result = run(pytester, "--platform", "posix,second")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["minrpc: on one platform only, *::test_later*"])


def test_several_devices_in_one_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from minrpc import Target

        def test_two(devices):
            one, other = devices("posix", Target.named("posix", link="socket"))
            array = one.array([1.0, 2.0])
            other.array(array.numpy())
            assert (one.sessions, other.sessions) == (1, 1)
            assert one.owner.process.pid != other.owner.process.pid
            assert "socket" in other.name

        def test_fails(devices):
            (one,) = devices("posix")
            assert one.system_lib()["inc"](1) == 3
        """
    )
    result = run(pytester, "--platform", "posix")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*-- posix: wire --*", "< returned 2"])


def test_limits_of_calls(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        def test_option(device):
            assert device.call_timeout_s == 7.0

        @pytest.mark.call_timeout(0.2)
        def test_marker(device):
            device.system_lib()["testing.hang"]()

        def test_each_call(device):
            device.system_lib()["testing.hang"].with_timeout(0.1)()
        """
    )
    result = run(pytester, "--platform", "posix", "--minrpc-call-timeout", "7")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*stage 'call testing.hang' did not come to its end within 0.2 s",
            "*next: *: @pytest.mark.call_timeout(SECONDS) on the test, --minrpc-call-timeout SECONDS*",
            "*did not come to its end within 0.1 s",
        ]
    )


OTHERS = """
    def pytest_addoption(parser):
        group = parser.getgroup("other", "another plugin")
        group.addoption("--platform", default="theirs")
        group.addoption("--serial-port", type=int, default=1)
        parser.addoption("--link")
"""


@pytest.mark.parametrize("how", ["conftest", "-p", "-p after ours"])
def test_names_that_another_plugin_has_stay_its_own(pytester: pytest.Pytester, how: str) -> None:
    pytester.makepyfile(
        ADD
        + """
    def test_theirs(request):
        assert request.config.getoption("--platform") == "theirs"
        assert request.config.getoption("--serial-port") == 5
        """
    )
    loaded: list[str] = []
    if how == "conftest":
        pytester.makeconftest(OTHERS)
    else:
        pytester.makepyfile(other=OTHERS)
        pytester.syspathinsert()
        loaded = ["-p", "other"] if how == "-p" else ["-p", "minrpc", "-p", "other"]
    result = run(pytester, *loaded, "--serial-port", "5", "--minrpc-platform", "posix", "--link", "theirs")
    result.assert_outcomes(passed=2)
    result = run(pytester, *loaded, "--serial-port=5", "--minrpc-timing=wall", "-k", "test_theirs")
    result.assert_outcomes(passed=1)
    assert run(pytester, *loaded, "--help").ret == 0


def test_who_can_not_use_a_short_name_is_told(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(OTHERS)
    pytester.makepyfile(ADD)
    result = run(pytester, "--platform", "mine", "-k", "posix")
    result.stdout.fnmatch_lines(
        [
            f"minrpc: --{name} belongs to another plugin here; use --minrpc-{name}"
            for name in ("platform", "serial-port")
        ]
    )


@pytest.mark.parametrize("word", ["--link=socket", "--call-timeout", "--strict-timing"])
def test_a_name_that_was_short_once_is_told(pytester: pytest.Pytester, word: str) -> None:
    pytester.makepyfile(ADD)
    result = run(pytester, word, *(["7"] if word == "--call-timeout" else []))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    name = word.removeprefix("--").partition("=")[0]
    result.stderr.fnmatch_lines([f"ERROR: --{name} is not known here; the option is --minrpc-{name}"])


def test_a_short_name_does_not_hide_the_conftest_files(pytester: pytest.Pytester) -> None:
    """pytest looks for conftest files at the command line's paths; a platform's name is not a path."""
    pytester.makeini("[pytest]\ntestpaths = checks\n")
    pytester.mkdir("checks")
    (pytester.path / "checks" / "conftest.py").write_text(
        'def pytest_addoption(parser):\n    parser.addoption("--mine", action="store_true")\n'
    )
    (pytester.path / "checks" / "test_add.py").write_text(textwrap.dedent(ADD))
    run(pytester, "--platform", "posix", "--mine").assert_outcomes(passed=1)


def test_conftest_files_above_the_project_do_not_count(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They do not count without the plugin either: they belong to another project, and looking for them takes
    time."""
    pytester.makeconftest("raise RuntimeError('of another project')")
    project = pytester.mkdir("project")
    (project / "pytest.ini").write_text("[pytest]\n")
    (project / "test_one.py").write_text("def test_one(): pass\n")
    monkeypatch.chdir(project)
    run(pytester, "test_one.py").assert_outcomes(passed=1)


def test_a_port_that_is_not_there_is_reported_once(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ADD.replace("test_add", "test_one") + ADD.replace("test_add", "test_two"))
    result = run(pytester, "--serial-port", "/dev/no-such-port")
    result.assert_outcomes(errors=1, skipped=1)
    result.stdout.fnmatch_lines(["*PortGoneError: /dev/no-such-port is not there*"])
    result.stdout.no_fnmatch_line("*pluggy/*")


def test_the_total_limit_ends_the_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ADD.replace("test_add", "test_one") + ADD.replace("test_add", "test_two"))
    result = run(pytester, "--platform", "posix", "--minrpc-total-timeout", "0.000001")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["*the total time limit of 1e-06 s has passed*", "*(--minrpc-total-timeout)*"]
    )


def test_workers_of_xdist_have_devices_of_their_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ADD, test_more=ADD)
    result = run(pytester, "--platform", "posix", "-n", "2")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["minrpc: posix: times are wall: *"])


def test_a_port_is_not_taken_for_the_place_of_the_tests(pytester: pytest.Pytester) -> None:
    """pytest looks for its configuration at each word that is a path, before it knows a plugin's options."""
    ini = pytester.makeini("[pytest]\naddopts = -p no:labgrid")
    without = ("-p", "no:labgrid", "--serial-port")
    with pytest.raises(
        pytest.UsageError, match=r"takes /dev/null for .*, .* root is /dev: write --serial-port=/dev/null"
    ):
        pytester.parseconfigure(*without, os.devnull)
    assert pytester.parseconfigure(".", *without, os.devnull).inipath == ini
    assert pytester.parseconfig("--minrpc-serial-port=/dev/null").inipath == ini


def test_a_board_is_for_one_process(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ADD)
    result = run(pytester, "--serial-port", "/dev/ttyACM0", "-n", "2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*leads to one device, for one process: leave -n out"])


@pytest.mark.slow
def test_two_runs_at_once_in_one_project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an empty cache one run builds, and both get the same firmware."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytester.mkdir("cache")))
    pytester.makepyfile(ADD)
    words = [sys.executable, "-m", "pytest", "-q", "-rA", "--platform", "posix"]
    runs = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [run.communicate(timeout=WAIT_S)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert all("1 passed" in text for text in said)
    assert len(list((pytester.path / "cache" / "minrpc" / "firmware").glob("[!.]*"))) == 1


def test_a_mark_limits_the_calls_of_all_fixtures(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.call_timeout(5)
        def test_of_several(devices):
            assert devices("posix")[0].call_timeout_s == 5.0

        @pytest.mark.call_timeout(seconds=6)
        def test_named(device):
            assert device.call_timeout_s == 6.0

        @pytest.mark.parametrize("number", [
            pytest.param(mark, marks=pytest.mark.call_timeout(*args, **named))
            for mark, (args, named) in enumerate(
                [((), {}), ((1, 2), {}), (("x",), {}), ((0,), {}), ((), {"s": 1})]
            )
        ])
        def test_wrong(device, number):
            pass
        """
    )
    result = run(pytester, "--platform", "posix")
    result.assert_outcomes(passed=2, errors=5)
    line = "E *UsageError: call_timeout takes a number of seconds above 0, e.g. @pytest.mark.call_timeout(5)"
    result.stdout.fnmatch_lines([line] * 5)


@pytest.mark.parametrize("mark", ["skip", "skipif(True, reason='not now')"])
def test_a_test_that_a_mark_skips_needs_no_device(pytester: pytest.Pytester, mark: str) -> None:
    pytester.makepyfile(f"import pytest\n\n@pytest.mark.{mark}\ndef test_add(device):\n    pass\n")
    result = run(pytester, "--platform", "posix")
    result.assert_outcomes(skipped=1)
    assert result.ret == pytest.ExitCode.OK
