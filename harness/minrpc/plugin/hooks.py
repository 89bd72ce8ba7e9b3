# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin `minrpc`: options, fixtures, the report's header and the sections of a failed test.

A test that uses the `device` fixture runs once for each platform:

    def test_add(device):
        a, b = device.array(np.int8([2, 3])), device.array(np.int8([4]))
        c = device.empty((2,), np.int8)
        device.system_lib()["add"](a, b, c)
        assert c.numpy().tolist() == [6, 7]
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

import pytest

from minrpc.client import Device, TimingResult
from minrpc.errors import HarnessError
from minrpc.firmware import Firmware
from minrpc.host.deadline import Deadline
from minrpc.pipeline import select
from minrpc.plugin.report import header, progress_line, short_traceback
from minrpc.plugin.shared import SharedDevice
from minrpc.plugin.timing import TimingCheck
from minrpc.plugin.workers import Worker, check_one_board, received_clocks, send_clocks
from minrpc.running import RunningDevice
from minrpc.targets import Target
from minrpc.targets.options import Options, add_device_options, options_from
from minrpc.timing import DeviceClock

_SHARED = pytest.StashKey[SharedDevice]()
_FAILED = pytest.StashKey[bool]()
_RUN = pytest.StashKey["Run"]()


class Run:
    """What one pytest run has: its options, its total deadline, and the devices that it selected."""

    def __init__(self, options: Options, config: pytest.Config) -> None:
        self.options = options
        self.selection = select(options)
        self.total = Deadline("test run", options.total_s)
        self.clocks: dict[str, DeviceClock | None] = {}
        self._config = config

    def shared_device(self, target: Target) -> SharedDevice:
        """For the tests of `target`."""
        return SharedDevice(target, self.total, lambda text: progress_line(self._config, text))


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("minrpc", "devices to test (minrpc)")
    add_device_options(group.addoption)
    text = "fail on a wrong time that is not exact, too: by the host's clock, or of a board"
    group.addoption("--strict-timing", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Check options and platforms before anything is collected."""
    try:
        options = options_from(vars(config.option))
        config.stash[_RUN] = Run(options, config)
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from error
    check_one_board(config, options)


def pytest_report_header(config: pytest.Config) -> list[str]:
    return header(config.stash[_RUN].selection)


def pytest_sessionfinish(session: pytest.Session) -> None:
    send_clocks(session.config, session.config.stash[_RUN].clocks)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Worker) -> None:
    """A worker of pytest-xdist has ended."""
    node.config.stash[_RUN].clocks.update(received_clocks(node))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """By which clock each device's times were taken."""
    for name, clock in config.stash[_RUN].clocks.items():
        if clock is not None:
            terminalreporter.write_line(f"minrpc: {name}: times are {clock}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each target."""
    if "minrpc_shared" not in metafunc.fixturenames:
        return
    selection = metafunc.config.stash[_RUN].selection
    reason = f"no platform can run here: {dict(selection.left_out)}"
    targets = [pytest.param(target, id=target.name) for target in selection.targets]
    none = pytest.param(None, id="no-platform", marks=pytest.mark.skip(reason=reason))
    metafunc.parametrize("minrpc_shared", targets or [none], indirect=True, scope="session")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shorten the harness's own frames, remember failures, and show console and wire."""
    if call.excinfo is not None and not item.config.getoption("fulltrace"):
        short_traceback(call.excinfo)
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
        if _SHARED in item.stash:
            report.sections += item.stash[_SHARED].sections()
        run = item.config.stash[_RUN]
        if run.total.expired():
            limit = f"{run.options.total_s:g} s"
            item.session.shouldfail = f"the total limit of {limit} has passed (--total-timeout)"
    return report


@pytest.fixture(scope="session")
def minrpc_shared(request: pytest.FixtureRequest) -> Iterator[SharedDevice]:
    """What the tests of one target share. Tests use `device`, `running_device` and `firmware`."""
    shared = request.config.stash[_RUN].shared_device(request.param)
    yield shared
    shared.discard()


@pytest.fixture
def running_device(
    request: pytest.FixtureRequest,
    minrpc_shared: SharedDevice,
    record_property: Callable[[str, object], None],
) -> Iterator[RunningDevice]:
    """The started device: process, console, timing mode. Its link belongs to `device`."""
    node = request.node
    total = request.config.stash[_RUN].total
    if total.expired():  # A device that is quick enough would never be waited for.
        raise Deadline(node.name, 0.0, total=total).error("the test's turn")
    if minrpc_shared.unusable:
        # The first test has failed with the whole report, and so does the run.
        pytest.skip(f"{minrpc_shared.name} could not be used: {minrpc_shared.unusable}")
    node.stash[_SHARED] = minrpc_shared
    running = minrpc_shared.running
    for name, value in minrpc_shared.properties().items():
        record_property(name, value)
    yield running
    if node.stash.get(_FAILED, False):
        minrpc_shared.discard()
    else:
        minrpc_shared.check()


@pytest.fixture
def device(
    request: pytest.FixtureRequest, running_device: RunningDevice, minrpc_shared: SharedDevice
) -> Iterator[Device]:
    """The device under test, in a session of its own: nothing is left of the test before.

    A device that died, or that a failed test may have spoiled, is started anew before the next test.
    """
    clocks = request.config.stash[_RUN].clocks
    with minrpc_shared.open() as opened:
        if minrpc_shared.name not in clocks:
            clocks[minrpc_shared.name] = opened.clock()
        yield opened


@pytest.fixture
def firmware(minrpc_shared: SharedDevice) -> Firmware | None:
    """What was built for the device; None for a board, whose firmware is its own."""
    return minrpc_shared.firmware


@pytest.fixture
def timing_check(request: pytest.FixtureRequest, running_device: RunningDevice) -> TimingCheck:
    """Fails on a wrong time where times are exact, or with --strict-timing; warns elsewhere."""
    return TimingCheck(
        exact=running_device.timing == "exact",
        strict=request.config.getoption("strict_timing"),
        platform=running_device.platform,
    )


@pytest.fixture
def record_timing(record_property: Callable[[str, object], None]) -> Callable[[str, TimingResult], None]:
    """Writes a measurement into the JUnit report, seconds per call: `record_timing("add", timing)`."""

    def record(name: str, timing: TimingResult) -> None:
        for statistic in ("mean", "median", "min", "max", "std"):
            record_property(f"{name}.{statistic}_s", getattr(timing, statistic))

    return record
