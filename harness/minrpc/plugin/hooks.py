# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin `minrpc`: options, fixtures, the report's lines and the sections of a failed test.

A test that uses the `device` fixture runs once for each platform:

    def test_add(device):
        a, b = device.array(np.int8([2, 3])), device.array(np.int8([4]))
        c = device.empty((2,), np.int8)
        device.system_lib()["add"](a, b, c)
        assert c.numpy().tolist() == [6, 7]

This module is loaded in every run of pytest where the package is installed. So it loads the rest, and looks
at platforms and files, only when a test needs a device.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import pytest

from minrpc.plugin import option_names, workers

if TYPE_CHECKING:
    from minrpc.client import TimingResult
    from minrpc.firmware import Firmware
    from minrpc.library import CFunctions, Load
    from minrpc.library.linked import LoadFields
    from minrpc.pipeline import Device
    from minrpc.plugin.pytest_run import PytestRun
    from minrpc.plugin.shared import SharedDevice
    from minrpc.plugin.time_checks import TimingCheck
    from minrpc.running import RunningDevice
    from minrpc.targets import Target
    from minrpc.timing import Measurement

_USED = pytest.StashKey["list[SharedDevice]"]()
_FAILED = pytest.StashKey[bool]()
_RUN = pytest.StashKey["PytestRun"]()
_PARAMETER = "minrpc_shared"


def pytest_addoption(parser: pytest.Parser) -> None:
    option_names.add_long(parser)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None]:
    """Adds the short names of options once all other names are known."""
    option_names.look_past_short_names(early_config, parser, args)
    yield
    option_names.add_short(early_config, parser)
    option_names.refuse_former_names(parser, args)


def pytest_configure(config: pytest.Config) -> None:
    text = "call_timeout(seconds): limit for each call of the test's devices, of time that they could use"
    config.addinivalue_line("markers", text)
    if config.getoption("--twister-harness", None):
        from minrpc.plugin.twister import ReportForTwister

        config.pluginmanager.register(ReportForTwister(config))
    if not workers.is_worker(config):
        option_names.refuse_values_as_paths(config)
    coverage = option_names.option_of(config, "coverage")
    if coverage and not workers.is_worker(config) and not config.getoption("collectonly"):
        start_coverage(Path(coverage))
    page = option_names.option_of(config, "report")
    if page and not workers.is_worker(config):
        from minrpc.plugin.run_page import check_page

        check_page(Path(page))
    if workers.has_workers(config) and option_names.given(config):
        # Workers can't end a run, and only one process can use a board.
        if option_names.option_of(config, "serial-port") is not None:
            raise pytest.UsageError("--serial-port leads to one device, for one process: leave -n out")
        _refuse_misuse(_run(config))
        if option_names.option_of(config, "hardware-map") is not None:
            workers.share_boards(config)


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """With -n auto and a hardware map: a worker for each free board of the kind."""
    if option_names.option_of(config, "hardware-map") is None:
        return None
    return workers.free_boards(_run(config).selection.targets)


def start_coverage(file: Path) -> None:
    """Empty the file, to which each device adds its lines when it is stopped."""
    from minrpc.errors import ConfigurationError
    from minrpc.host.files import check_writable, is_special

    try:
        check_writable(file)
    except ConfigurationError as error:
        raise pytest.UsageError(str(error)) from error
    if not is_special(file):
        file.unlink(missing_ok=True)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each target; without a target, a single test, whose fixture gives the reason."""
    if _PARAMETER not in metafunc.fixturenames:
        return
    targets = _run(metafunc.config).selection.targets
    parameters = [pytest.param(target, id=target.name) for target in targets]
    none = pytest.param(None, id="no-platform")
    metafunc.parametrize(_PARAMETER, parameters or [none], indirect=True, scope="session")


def pytest_collection_modifyitems(config: pytest.Config) -> None:
    run = _run_so_far(config)
    if run is not None and not workers.is_worker(config):
        _refuse_misuse(run)


def _refuse_misuse(run: PytestRun) -> None:
    """Raise an error if a named platform can't run here: then no test runs."""
    if run.misused is not None:
        raise pytest.UsageError(str(run.misused)) from run.misused


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Every tested device, and every untested default platform with the reason."""
    run = _run_so_far(config)
    if run is None:
        return []
    from minrpc.plugin.output import header

    return header(run.selection)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.exitstatus == pytest.ExitCode.OK and option_names.lacks_coverage(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    run = _run_so_far(session.config)
    if run is None:
        if session.exitstatus == pytest.ExitCode.OK and option_names.wants_page(session.config):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return
    if workers.is_worker(session.config):
        workers.send(session.config, run.tally.to_json())
        return
    from minrpc.plugin.output import none_ran, note_quarantine, tell_junit

    note_quarantine(run.selection, run.tally)
    tell_junit(session.config, run.tally)
    if option_names.wants_page(session.config):
        from minrpc.errors import ConfigurationError
        from minrpc.plugin.run_page import write_page

        try:
            write_page(Path(option_names.option_of(session.config, "report")), run.tally)
        except ConfigurationError as error:
            pytest.exit(str(error), returncode=pytest.ExitCode.INTERNAL_ERROR)
    if none_ran(session.config, run.tally) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: workers.Worker) -> None:
    """A worker of pytest-xdist has ended."""
    sent = workers.received(node)
    if sent is not None:
        from minrpc.plugin.tally import Tally

        _run(node.config).tally.add(Tally.from_json(sent))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show the clock of each device's times, and the platforms that were left out."""
    run = _run_so_far(config)
    if run is not None:
        from minrpc.plugin.output import summary

        for line, markup in summary(config, run.tally):
            terminalreporter.write_line(f"minrpc: {line}", **markup)
    elif option_names.wants_page(config):
        text = "was not written: no test used a device"
        terminalreporter.write_line(f"minrpc: {option_names.option_of(config, 'report')} {text}", red=True)
    if option_names.lacks_coverage(config):
        text = "was not written: no device ran under QEMU, where lines are counted"
        terminalreporter.write_line(f"minrpc: {option_names.option_of(config, 'coverage')} {text}", red=True)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Notes that the test needs a device, unless a mark has skipped it: pytest tries the marks first."""
    if _PARAMETER in getattr(item, "fixturenames", ()):
        _run(item.config).tally.wanted.add(item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shorten the harness's own frames, remember failures, and show console and wire."""
    run = _run_so_far(item.config)
    # Without the client, the error is not this package's.
    if call.excinfo is not None and "minrpc.client" in sys.modules:
        from minrpc.plugin.output import advise, short_traceback

        advise(item.config, call.excinfo.value)
        if not item.config.getoption("fulltrace"):
            short_traceback(call.excinfo)
    report = yield
    if run is not None and option_names.option_of(item.config, "report"):
        from minrpc.plugin.run_page import note_phase

        if _PARAMETER in getattr(item, "fixturenames", ()) or item.stash.get(_USED, []):
            names = ", ".join(shared.name for shared in item.stash.get(_USED, []))
            note_phase(run.tally, report, call, names)
    if run is not None and report.failed:
        item.stash[_FAILED] = True
        if not _refused(call):
            for shared in item.stash.get(_USED, []):
                report.sections += shared.sections(call.excinfo.value if call.excinfo else None)
        if run.total.expired():
            limit = f"{run.options.total_timeout_s:g} s"
            option = option_names.spelled(item.config, "total-timeout")
            item.session.shouldfail = f"the total limit of {limit} has passed ({option})"
    return report


def _refused(call: pytest.CallInfo[None]) -> bool:
    """True if the test failed by a refused argument: nothing was sent, so the wire's log does not help."""
    from minrpc.plugin.output import wrong_argument

    return call.excinfo is not None and wrong_argument(call.excinfo.value)


def _run(config: pytest.Config) -> PytestRun:
    """The run's `PytestRun`, created at first use."""
    if _RUN not in config.stash:
        from minrpc.plugin.pytest_run import PytestRun

        config.stash[_RUN] = PytestRun(config)
    return config.stash[_RUN]


def _run_so_far(config: pytest.Config) -> PytestRun | None:
    return config.stash.get(_RUN, None)


@pytest.fixture(scope="session")
def minrpc_shared(request: pytest.FixtureRequest) -> Iterator[SharedDevice]:
    """The device shared by the tests of a target. Tests use `device`, `running_device` and `firmware`."""
    run = _run(request.config)
    if run.failure is not None:
        raise run.failure
    # pytest can't run a unittest.TestCase, or a caller of request.getfixturevalue, once for each target.
    target = getattr(request, "param", None) or next(iter(run.selection.targets), None)
    if target is None:
        run.tally.wanted.add("a test")
        pytest.skip(f"no platform can run here: {dict(run.selection.left_out)}")
    shared = run.shared_device(target)
    yield shared
    shared.close()


@pytest.fixture
def running_device(
    request: pytest.FixtureRequest,
    minrpc_shared: SharedDevice,
    record_property: Callable[[str, object], None],
) -> Iterator[RunningDevice]:
    """The started device: process, console, timing mode. Its link belongs to `device`."""
    node, run, shared = request.node, _run(request.config), minrpc_shared
    run.await_turn(node.name)
    if shared.unusable:
        # The first test has failed with the whole report, and so the run has failed.
        pytest.skip(f"{shared.name} could not be used: {shared.unusable}")
    node.stash[_USED] = [shared]
    running = shared.running
    run.has_device(node, shared.name)
    for name, value in shared.properties().items():
        record_property(name, value)
    yield running
    if node.stash.get(_FAILED, False):
        shared.discard()
    else:
        shared.check()


def _limit_calls(device: Device, test: pytest.Item) -> None:
    """Applies the test's mark `call_timeout`. Raises UsageError for a mark that is no limit."""
    mark = test.get_closest_marker("call_timeout")
    if mark is not None:
        try:
            device.call_timeout_s = _seconds(*mark.args, **mark.kwargs)
        except (TypeError, ValueError) as error:
            text = "call_timeout takes a number of seconds above 0, e.g. @pytest.mark.call_timeout(5)"
            raise pytest.UsageError(text) from error


def _seconds(seconds: float) -> float:
    return float(seconds)


@pytest.fixture
def device(
    request: pytest.FixtureRequest, running_device: RunningDevice, minrpc_shared: SharedDevice
) -> Iterator[Device]:
    """The device under test, in a new session: no array or function of the previous test is left.

    Values that a test wrote into variables of the firmware, and of libraries linked into it, stay.

    A device that died, or that a failed test may have spoiled, is started again before the next test.
    """
    clocks = _run(request.config).tally.clocks
    with minrpc_shared.open() as opened:
        _limit_calls(opened, request.node)
        if minrpc_shared.name not in clocks:
            clocks[minrpc_shared.name] = opened.clock()
        if option_names.option_of(request.config, "report"):
            from minrpc.plugin.run_page import note_firmware

            tally = _run(request.config).tally
            note_firmware(tally, minrpc_shared.name, minrpc_shared.firmware, clocks[minrpc_shared.name])
        yield opened


@pytest.fixture
def devices(request: pytest.FixtureRequest) -> Iterator[Callable[..., Sequence[Device]]]:
    """Opens several devices in one test, each its own, and closes them at its end.

        def test_two(devices):
            posix, arm = devices("posix", "bare_mps2_an385")

    It takes names of platforms and `Target`s. The test is skipped if any of them can't run here. Each device
    is started for this test, so its `console` begins at the boot.
    """
    run = _run(request.config)
    used = request.node.stash[_USED] = []

    def open_all(*what: str | Target) -> Sequence[Device]:
        run.tally.wanted.add(request.node.nodeid)
        if run.failure is not None:
            raise run.failure
        targets = [run.target(name) for name in what]
        run.await_turn(request.node.name)
        opened = []
        for target in targets:
            used.append(run.shared_device(target))
            opened.append(used[-1].open(from_boot=True))
            _limit_calls(opened[-1], request.node)
        run.has_device(request.node)
        return opened

    yield open_all
    with ExitStack() as stack:
        for shared in used:
            stack.callback(shared.close)


@pytest.fixture
def load(request: pytest.FixtureRequest, device: Device) -> Load:
    """`load("fir.c", flags=["-O3"])` gives the functions of C files; paths start at the test.

    They are compiled and loaded as by Device.load. If minrpc.toml has a library of exactly these files,
    flags, ..., the library is linked into the firmware or loaded, as minrpc.toml or --minrpc-libraries-as
    says. `load("dsp")` names such a library.
    """
    from minrpc.library import CFunctions, load_or_find

    def loaded(*sources: str | PathLike[str], **given: Unpack[LoadFields]) -> CFunctions:
        library = load_or_find(device, request.path.parent, sources, given)
        if option_names.option_of(request.config, "report"):
            from minrpc.plugin.run_page import note_library

            name = request.getfixturevalue("minrpc_shared").name
            note_library(_run(request.config).tally, name, library)
        return CFunctions(library)

    return loaded


@pytest.fixture
def firmware(request: pytest.FixtureRequest, minrpc_shared: SharedDevice) -> Firmware | None:
    """The firmware that was built for the device; None for a board that runs other firmware."""
    run = _run(request.config)
    built = minrpc_shared.firmware
    run.has_device(request.node, minrpc_shared.name)
    return built


@pytest.fixture
def timing_check(request: pytest.FixtureRequest, running_device: RunningDevice) -> TimingCheck:
    """Fails on a wrong time where times are exact, or with --minrpc-strict-timing; warns elsewhere."""
    from minrpc.plugin.time_checks import TimingCheck

    return TimingCheck(
        exact=running_device.timing == "exact",
        strict=option_names.option_of(request.config, "strict-timing"),
        platform=running_device.platform,
    )


@pytest.fixture
def record_timing(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Callable[[str, TimingResult | Measurement], None]:
    """Writes a measurement into the JUnit report, seconds per call: `record_timing("add", timing)`.

    Results of `measure` go onto the page of --minrpc-report, too, with their counters.
    """
    from minrpc.timing import Measurement

    def record(name: str, timing: TimingResult | Measurement) -> None:
        for statistic in ("mean", "median", "min", "max", "std"):
            if isinstance(timing, Measurement):
                seconds = timing.clock.seconds(getattr(timing.summary, statistic))
            else:
                seconds = getattr(timing, statistic)
            record_property(f"{name}.{statistic}_s", seconds)
        if isinstance(timing, Measurement) and option_names.option_of(request.config, "report"):
            from minrpc.plugin.run_page import note_measurement

            shared = request.getfixturevalue("minrpc_shared")
            tally, test = _run(request.config).tally, request.node.nodeid
            note_measurement(tally, test, name, shared.name, shared.firmware, timing)

    return record
