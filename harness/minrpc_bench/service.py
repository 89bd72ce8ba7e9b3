# SPDX-License-Identifier: Apache-2.0
"""The server for TVM's clients: costs of its sandbox, and good clients among clients that misbehave."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Final

from minrpc.errors import HarnessError
from minrpc.host import sandbox
from minrpc.host.process import run_compiler
from minrpc.library.toolset import toolset_of
from minrpc.pipeline import open_device
from minrpc.wire.requests import CallFunc
from minrpc.wire.values import Module

from minrpc_bench.paired import interleave
from minrpc_bench.peers import Peers
from minrpc_bench.rows import Goal, Row
from minrpc_bench.tvm_client import RefusedError, TvmClient

_GOOD: Final = 10
_BAD: Final = 40
_GOAL: Final = Goal("at most", 1.5)
_SANDBOX_GOAL: Final = Goal("at most", 30_000.0, "value")
# A device's limit for a call, and the server's for a client that says nothing.
_OPTIONS: Final = ("--call-timeout", "0.3", "--idle-timeout", "0.3", "--waiting", str(_GOOD + _BAD))
_SOURCE: Final = b"int __tvm_ffi_f(void *self, void *args, int count, void *result) { return %d; }\n"
_COMPILE_S: Final = 60.0


def measure(peers: Peers, rounds: int) -> list[Row]:
    """Rows of the sandbox; without an emulator also of clients, each good one with `rounds` sessions."""
    rows = _sandbox(peers, rounds) if not sandbox.why_not() else []
    return [*rows, _crowd(peers, rounds)] if peers.platform.starts == "process" else rows


def _sandbox(peers: Peers, rounds: int) -> list[Row]:
    """Times in the sandbox minus those outside."""
    compiler = toolset_of(peers.server).compiler
    note = "time in the sandbox minus time outside, by medians"
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "m.c").write_bytes(_SOURCE % 0)

        def compiles() -> None:
            status, output = run_compiler([compiler, "-c", "m.c"], directory, _COMPILE_S)
            if status:
                raise HarnessError(f"{compiler}: {output}")

        def starts() -> None:
            open_device(peers.server).close()

        rows = []
        for title, action in (("a compile", compiles), ("a device", starts)):
            (pair,) = interleave(_sandboxed(action), action, rounds=rounds, calls=1)
            cost = 1e6 * (pair.value - pair.baseline)
            name = f"sandbox of {title}"
            rows.append(Row("serve", name, peers.platform.name, "us", cost, goal=_SANDBOX_GOAL, note=note))
        return rows


def _sandboxed(action: Callable[[], None]) -> Callable[[], None]:
    def act() -> None:
        with sandbox.sandboxed():
            action()

    return act


def _crowd(peers: Peers, rounds: int) -> Row:
    """Sessions of the slowest good client, by its median, against those of a client that is alone."""
    with _server(peers.platform.name) as port:
        (alone,) = _medians([_Client(port, 0, 2 * rounds)])
    with _server(peers.platform.name) as port, _misbehaving(port) as misbehaved:
        slowest = max(_medians([_Client(port, place, rounds) for place in range(_GOOD)]))
    note = (
        f"the slowest of {_GOOD} good clients by the median of its {rounds} sessions, without its wait for "
        f"its turn; {_BAD} others crash, vanish and hang in {sum(misbehaved)} sessions; baseline: alone"
    )
    value, baseline = 1e6 * slowest, 1e6 * alone
    name = f"session among {_GOOD + _BAD} clients"
    return Row(
        "serve", name, peers.platform.name, "us", value, baseline, value / baseline, goal=_GOAL, note=note
    )


@contextmanager
def _server(platform: str) -> Iterator[int]:
    """The port of `minrpc serve` in a process of its own."""
    command = [sys.executable, "-m", "minrpc.cli", "serve", "--platform", platform, "--tvm-port", "0"]
    command += [*_OPTIONS, *(["--unsafe"] if sandbox.why_not() else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        matches = (re.search(r'connect\("127.0.0.1", (\d+)\)', line) for line in process.stdout)
        port = next((int(match[1]) for match in matches if match), None)
        if port is None:
            raise HarnessError("the server has ended")
        reader = threading.Thread(target=process.stdout.read)
        reader.start()
        try:
            yield port
        finally:
            ended = process.poll()
            process.terminate()
            reader.join()
    if ended is not None:
        raise HarnessError(f"the server has ended with status {ended}")


def _session(port: int, number: int) -> float:
    """Seconds of a good session from its turn on: a module is sent, compiled, loaded and called."""
    with TvmClient(port, True) as client:
        begin = time.perf_counter()
        if client.call(client.library_function("inc"), number) != number + 1:
            raise HarnessError(f"inc({number}) is wrong")
        client.call(client.function("tvm.rpc.server.upload"), "m.c", _SOURCE % number)
        module = client.call(client.function("tvm.rpc.server.load_module"), "m.c")
        assert isinstance(module, Module)
        client.free(module)
        return time.perf_counter() - begin


class _Client(threading.Thread):
    """A good client. times: seconds of its sessions. failure: the text of its error."""

    def __init__(self, port: int, place: int, rounds: int) -> None:
        super().__init__()
        self.times: list[float] = []
        self.failure = ""
        self._port = port
        self._numbers = range(place * rounds, (place + 1) * rounds)

    def run(self) -> None:
        """Have the sessions."""
        try:
            for number in self._numbers:
                self.times.append(_session(self._port, number))
        except Exception as error:  # `_medians` raises it again.
            self.failure = f"{type(error).__name__}: {error}"


def _medians(clients: Sequence[_Client]) -> Sequence[float]:
    """The median time of each client's sessions, in seconds. Raises HarnessError if one failed."""
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    if failed := [client.failure for client in clients if client.failure]:
        raise HarnessError(f"{len(failed)} of {len(clients)} good clients failed: {failed[0]}")
    return [median(client.times) for client in clients]


def _crash(client: TvmClient) -> None:
    client.call(client.library_function("testing.crash"))


def _hang(client: TvmClient) -> None:
    client.call(client.library_function("testing.hang"))


def _vanish(client: TvmClient) -> None:
    client.send(CallFunc(client.library_function("testing.hang"), ()))


def _say_nothing(client: TvmClient) -> None:
    client.answer()


def _send_half(client: TvmClient) -> None:
    client.connection.sendall(b"\x20" + bytes(9))


_DEEDS: Final = (_crash, _hang, _vanish, _say_nothing, _send_half)


@contextmanager
def _misbehaving(port: int) -> Iterator[list[int]]:
    """Clients that misbehave until the block's end; yields the number of sessions of each."""
    stop = threading.Event()
    counts = [0] * _BAD

    def misbehave(place: int) -> None:
        deeds = list(_DEEDS)
        random.Random(place).shuffle(deeds)
        for deed in cycle(deeds):
            if stop.is_set():
                return
            with suppress(RefusedError, OSError), TvmClient(port, True) as client:
                deed(client)
            counts[place] += 1

    threads = [threading.Thread(target=misbehave, args=(place,)) for place in range(_BAD)]
    for thread in threads:
        thread.start()
    try:
        yield counts
    finally:
        stop.set()
        for thread in threads:
            thread.join()
