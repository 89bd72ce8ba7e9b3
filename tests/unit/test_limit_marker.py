# SPDX-License-Identifier: Apache-2.0
"""The limit of each test (tests/limit_marker.py), by running pytest on tests that hang."""

import signal

import pytest

from tests import limit_marker


def run(pytester: pytest.Pytester, test: str, *options: str) -> pytest.RunResult:
    pytester.makeconftest('pytest_plugins = ["tests.limit_marker"]')
    pytester.makepyfile(test)
    return pytester.runpytest(
        "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestUnknownMarkWarning", *options
    )


def test_a_hung_test_fails_with_the_stacks_of_all_threads(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import threading
        import pytest

        def waits(event):
            event.wait()

        @pytest.mark.limit(0.2)
        def test_hangs():
            event = threading.Event()
            threading.Thread(target=waits, args=(event,), name="the reader").start()
            try:
                threading.Event().wait()
            finally:
                event.set()

        def test_next():
            pass
        """,
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*the test ran for * s, and its limit is 0.2 s", "*the reader:", "*in waits"]
    )


def test_a_slow_test_has_a_longer_limit(request: pytest.FixtureRequest) -> None:
    assert limit_marker.limit_s(request.node) == limit_marker.LIMIT_S
    request.applymarker(pytest.mark.slow)
    assert limit_marker.limit_s(request.node) == limit_marker.SLOW_LIMIT_S


@pytest.mark.limit(500)
def test_a_limit_that_has_grown_and_that_of_a_test_around_it(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crowd() -> float:
        monkeypatch.setenv("ASKED", "1")
        return 1e6

    handler = signal.getsignal(signal.SIGALRM)
    monkeypatch.setattr(limit_marker, "crowd", crowd)
    result = run(
        pytester,
        """
        import os, time
        import pytest

        @pytest.mark.limit(0.01)
        def test_ends_later():
            while "ASKED" not in os.environ:
                time.sleep(0.01)
        """,
    )
    result.assert_outcomes(passed=1)
    assert signal.getsignal(signal.SIGALRM) is handler
    assert limit_marker.LIMIT_S < signal.getitimer(signal.ITIMER_REAL)[0] <= 500


def test_a_hung_device_shows_the_wire(users_cache: None, pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest

        def test_builds(device):
            pass

        @pytest.mark.limit(1)
        def test_hangs(device):
            device.system_lib()["testing.hang"]()

        def test_next(device):
            assert device.system_lib()["inc"](1) == 2
        """,
        "--platform",
        "posix",
    )
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        ["*and its limit is 1 s", "*minrpc-console:", "*-- posix: wire --*", "> call *"]
    )


def test_the_limit_grows_where_processes_wait_for_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {*range(10)})
    for load, times in ((0.0, 1.0), (10.0, 1.0), (25.0, 2.5), (100.0, 4.0)):
        monkeypatch.setattr("os.getloadavg", lambda load=load: (load, 0.0, 0.0))
        assert limit_marker.crowd() == times
