# SPDX-License-Identifier: Apache-2.0
"""A board that is unplugged in a run and plugged in again: the firmware of this machine behind terminals."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import serial
from minrpc import Target, build
from minrpc.host.owned_lock import DIRECTORY_VARIABLE
from minrpc.transport import set_raw

# The tests of a run, and the test in which the board goes.
COUNT = 14
CUT = 3
TESTS = """
    import minrpc
    import pytest

    SOURCE = "int other(int x); int fir(int x) { return x + 1; } int asks(int x) { return other(x); }"

    @pytest.fixture(autouse=True)
    def _between(request, cut):
        yield
        cut("between", request.node.callspec.params["number"])

    @pytest.fixture(scope="module")
    def kept():
        return []

    @pytest.fixture(scope="module")
    def source(tmp_path_factory):
        path = tmp_path_factory.mktemp("source") / "fir.c"
        path.write_text(SOURCE)
        return path

    @pytest.mark.parametrize("number", range(14))
    def test_all(_between, cut, load, device, kept, source, number):

        def fake(value):
            cut("fake", number)
            return value

        for library in kept:
            with pytest.raises(minrpc.HarnessError, match="this device was closed"):
                library.fir(1)
        cut("load", number)
        library = load(source, fakes={"other": fake})
        kept[:] = [library]
        cut("call", number)
        assert library.fir(number) == number + 1
        assert library.asks(number) == number
        if number == 3:
            cut("measure", number)
            minrpc.measure(library, "fir")(1)
"""


class Bench:
    """The boards b0, b1, ... behind paths that lead to terminals."""

    def __init__(self, directory: Path) -> None:
        self._elf = str(build(Target.named("posix")).elf)
        self._directory = directory
        self._plugged: dict[int, tuple[subprocess.Popen[bytes], int]] = {}

    def path(self, number: int) -> Path:
        return self._directory / f"tty{number}"

    def plug(self, number: int = 0) -> None:
        """Plug the board in: new firmware behind a new terminal."""
        master, slave = os.openpty()
        set_raw(slave)
        process = subprocess.Popen([self._elf, "--fd", "0"], stdin=master, stdout=subprocess.DEVNULL)
        os.close(master)
        self._plugged[number] = (process, slave)
        self.path(number).symlink_to(os.ttyname(slave))

    def unplug(self, number: int = 0) -> None:
        """The path vanishes, and the terminal hangs up."""
        self.path(number).unlink()
        process, slave = self._plugged.pop(number)
        process.kill()
        process.wait()
        os.close(slave)

    def close(self) -> None:
        for number in list(self._plugged):
            self.unplug(number)


class Cutting:
    """A plugin of a run: `cut(when, number)` unplugs board 0 at one place of one test."""

    def __init__(self, bench: Bench, when: str) -> None:
        self._bench, self._when = bench, when

    @pytest.fixture
    def cut(self) -> Callable[[str, int], None]:
        return self._cut

    def _cut(self, when: str, number: int) -> None:
        if (when, number) == (self._when, CUT):
            self._bench.unplug()


@pytest.fixture
def bench(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A bench with board 0, and a program that looks for a port without a pause."""
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(pytester.path / "locks"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(pytester.path))
    bench = Bench(pytester.path)
    bench.plug()
    yield bench
    bench.close()


def run(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    bench: Bench,
    when: str,
    *,
    boards: int = 0,
    look: Callable[[], None] | None = None,
) -> pytest.RunResult:
    """A run of the tests, at the port of board 0 or, with `boards`, with a map of so many.

    look: called between two looks for the port; by default it plugs the board in.
    """
    sleeping = SimpleNamespace(sleep=lambda seconds: (look or bench.plug)())
    monkeypatch.setattr("minrpc.running.board.time", sleeping)
    entry = "- {{connected: true, id: b{0}, platform: posix, product: x, runner: unknown, serial: {1}}}\n"
    (pytester.path / "map.yml").write_text("".join(entry.format(at, bench.path(at)) for at in range(boards)))
    link = ["--minrpc-hardware-map", "map.yml"] if boards else ["--minrpc-serial-port", str(bench.path(0))]
    pytester.makepyfile(TESTS)
    words = ("-p", "no:cacheprovider", "-p", "no:xdist", "-rs", "--minrpc-platform", "posix", *link)
    return pytester.runpytest(*words, plugins=[Cutting(bench, when)])


@pytest.mark.parametrize("boards", [0, 1])
@pytest.mark.parametrize("when", ["call", "load", "fake", "measure"])
def test_only_the_test_that_was_cut_fails(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, bench: Bench, boards: int, when: str
) -> None:
    result = run(pytester, monkeypatch, bench, when, boards=boards)
    result.assert_outcomes(passed=COUNT - 1, failed=1)
    result.stdout.fnmatch_lines(["minrpc: posix: waits up to 30 s for its port: */tty0 is not there: *"])
    result.stdout.fnmatch_lines(["E *PortGoneError: */tty0: the far end is gone*"])


@pytest.mark.parametrize("boards", [0, 1])
def test_between_two_tests_none_fails(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, bench: Bench, boards: int
) -> None:
    run(pytester, monkeypatch, bench, "between", boards=boards).assert_outcomes(passed=COUNT)


def test_a_board_that_stays_away_is_waited_for_once(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, bench: Bench
) -> None:
    monkeypatch.setattr("minrpc.running.board._PLUG_IN_S", 0.0)
    result = run(pytester, monkeypatch, bench, "call", look=lambda: None)
    result.assert_outcomes(passed=CUT, failed=1, errors=1, skipped=COUNT - CUT - 2)
    result.stdout.fnmatch_lines(["SKIPPED*posix could not be used: */tty0 is not there*waited 0 s for it*"])


def test_another_board_takes_the_place_of_one_that_stays_away(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, bench: Bench
) -> None:
    bench.plug(1)
    monkeypatch.setattr("minrpc.running.board._PLUG_IN_S", 0.0)
    result = run(pytester, monkeypatch, bench, "call", boards=2, look=lambda: None)
    result.assert_outcomes(passed=COUNT - 1, failed=1)
    result.stdout.fnmatch_lines(["minrpc: posix: b0 * in quarantine: */tty0 is not there*"])
    result.stdout.fnmatch_lines(["minrpc: posix: b1 *"])


@pytest.mark.parametrize("number", [errno.EACCES, errno.EBUSY, errno.EIO])
def test_a_port_that_can_not_be_opened_for_a_moment_is_looked_at_again(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, bench: Bench, number: int
) -> None:
    """udev sets a new port's owner after it has made the port, and modem managers open new ports."""
    failures: list[int] = []
    opened = serial.Serial.open

    def fails(port: serial.Serial) -> None:
        if failures:
            raise serial.SerialException(failures.pop(), f"could not open port {port.port}")
        opened(port)

    def look() -> None:
        if not bench.path(0).exists():
            bench.plug()
            failures.extend([number] * 3)

    monkeypatch.setattr(serial.Serial, "open", fails)
    result = run(pytester, monkeypatch, bench, "call", look=look)
    result.assert_outcomes(passed=COUNT - 1, failed=1)
    assert not failures
