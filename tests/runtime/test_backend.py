# SPDX-License-Identifier: Apache-2.0
"""TVM's C ABI as generated code calls it: workspace, functions by name, errors, parallel launch."""

from __future__ import annotations

import pytest
from minrpc.wire.values import TypeCode

from tests.runtime.host import Host

U32_MAX, U64_MAX = (1 << 32) - 1, (1 << 64) - 1


def last_error(host: Host) -> str:
    """TVM's last error, which is the text of the exception."""
    door = host.door
    text = door.read(door.call("TVMGetLastError", result="P"), len(host.server.error.content()))
    assert text == host.server.error.content()
    return text.split(b"\0")[0].decode()


def workspace(host: Host, size: int) -> int:
    return int(host.door.call("TVMBackendAllocWorkspace", 1, 0, *host.door.wide(size), 0, 8, result="P"))


def test_the_last_error_is_the_text_of_the_exception(host: Host) -> None:
    host.door.call("TVMAPISetLastError", host.door.memory(b"out of luck\0"))
    assert last_error(host) == "out of luck"


@pytest.mark.parametrize("size", [100000, U32_MAX, 1 << 32, (1 << 32) + 16, U64_MAX])
def test_workspace_that_no_memory_holds(host: Host, size: int) -> None:
    assert workspace(host, size) == 0
    assert "out of device memory" in last_error(host)


@pytest.mark.parametrize(("beside", "where"), [(-1, "before"), (-4, "before"), (16, "past"), (23, "past")])
def test_writes_beside_workspace_are_told_when_it_is_given_back(host: Host, beside: int, where: str) -> None:
    door = host.door
    top = host.arena.top
    block = workspace(host, 16)
    assert block
    door.write(block + beside, bytes([door.read(block + beside, 1)[0] ^ 1]))
    assert door.call("TVMBackendFreeWorkspace", 1, 0, block) == -1
    assert last_error(host) == f"the function wrote {where} its workspace"
    # Workspace that a call leaves is given back when it returns.
    host.arena.top = top
    assert door.call("TVMBackendFreeWorkspace", 1, 0, door.memory(8)) == -1
    assert "not its newest workspace" in last_error(host)


def test_functions_are_named_and_called(host: Host) -> None:
    door = host.door
    found, argument, value = (door.new("TVMValue") for _ in range(3))
    code, result = door.memory(b"\0" * 4), door.memory(b"\x0b\0\0\0")
    argument.v_int64 = 41

    def called(function: int, count: int) -> int:
        return int(door.call("TVMFuncCall", function, argument, code, count, value, result))

    def global_function(name: bytes) -> int:
        return int(door.call("TVMFuncGetGlobal", door.memory(name), found))

    assert global_function(b"inc\0") == 0
    inc = found.v_handle
    assert inc
    assert called(inc, 1) == 0
    assert value.v_int64 == 42
    assert door.read(result, 4)[0] == TypeCode.INT
    assert door.call("TVMFuncFree", inc) == 0
    assert called(inc, 0) == -1
    assert last_error(host) == "inc: expected 1 argument, got 0"
    for bad in (0, 1000, U32_MAX):
        assert called(bad, 1) == -1
        assert "names no function" in last_error(host)
    assert global_function(b"nobody\0") == -1
    assert found.v_handle == 0
    assert "nobody" in last_error(host)
    assert door.call("TVMBackendRegisterSystemLibSymbol", door.memory(b"late\0"), 0) == -1
    assert "TVMFuncRegistry" in last_error(host)


def test_parallel_tasks_run_in_turn(host: Host) -> None:
    """One core runs them one after another, one task for each core, and stops at the first failing task."""
    door = host.door
    tasks: list[tuple[int, int]] = []
    fails_at = [-1]

    def task(number: int, group: int, *_: int) -> int:
        tasks.append((number & U32_MAX, door.at(group, "TVMParallelGroupEnv").num_task))
        return -7 if number & U32_MAX == fails_at[0] else 0

    address = door.callback(task)
    for number, expected in [(3, 3), (0, 1), (-1, 1)]:
        tasks.clear()
        assert door.call("TVMBackendParallelLaunch", address, 0, number) == 0
        assert tasks == [(i, expected) for i in range(expected)]
    fails_at[0] = 1
    tasks.clear()
    assert door.call("TVMBackendParallelLaunch", address, 0, 3) == -7
    assert len(tasks) == 2
