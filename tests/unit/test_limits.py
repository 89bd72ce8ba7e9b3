# SPDX-License-Identifier: Apache-2.0
"""The limit of each test (tests/limits.py), by running pytest on tests that hang."""

import pytest

from tests import limits


def run(pytester: pytest.Pytester, test: str, *options: str) -> pytest.RunResult:
    pytester.makeconftest('pytest_plugins = ["tests.limits"]')
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
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    for load, times in ((0.0, 1.0), (2.0, 1.0), (5.0, 2.5), (100.0, 4.0)):
        monkeypatch.setattr("os.getloadavg", lambda load=load: (load, 0.0, 0.0))
        assert limits.crowd() == times
