# SPDX-License-Identifier: Apache-2.0
"""Linked code in a running posix device, called: the purpose of minrpc.code_alloc and minrpc.code_load."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from minrpc import Device, RemoteError, Target, build
from minrpc.client import RpcClient
from minrpc.transport import SocketTransport
from minrpc.wire.dtypes import parse_dtype
from minrpc.wire.requests import CopyToRemote, free_handle
from minrpc.wire.values import DLTensor, Function, Handle, Module, TypeCode

from tests.native import need_tools

APP = Path(__file__).parents[2] / "zephyr-app"

SOURCE = """
#include <tvm/runtime/crt/func_registry.h>

static int calls; /* in .bss: the image has zeros there */

static int triple(TVMValue *args, int *codes, int count, TVMValue *value, int *code, void *resource)
{
	(void)codes; (void)count; (void)resource;
	calls++;
	value->v_int64 = 3 * args[0].v_int64;
	*code = kTVMArgInt;
	return 0;
}

static int count_calls(TVMValue *args, int *codes, int count, TVMValue *value, int *code, void *resource)
{
	(void)args; (void)codes; (void)count; (void)resource;
	value->v_int64 = calls;
	*code = kTVMArgInt;
	return 0;
}

static const TVMBackendPackedCFunc functions[] = {triple, count_calls};
const TVMFuncRegistry registry __attribute__((section(".registry"))) = {
	"\\002\\000triple\\0calls\\0", functions,
};
"""

SCRIPT = """
SECTIONS {{
  . = {address:#x};
  .image : {{ *(.registry) *(.text*) *(.rodata*) *(.data*) *(.bss*) *(COMMON) }}
  /DISCARD/ : {{ *(.comment) *(.note*) *(.eh_frame*) }}
}}
"""


def linked_at(address: int, directory: Path) -> bytes:
    """The image of SOURCE for that address; its registry comes first."""
    need_tools("cc", "ld", "objcopy")
    source, script = directory / "triple.c", directory / "triple.ld"
    source.write_text(SOURCE)
    script.write_text(SCRIPT.format(address=address))
    include = f"-I{APP / 'runtime/include'}"
    options = ["-O1", "-ffreestanding", "-fno-pic", "-mcmodel=large", "-fcf-protection=none"]
    for command in (
        ["cc", *options, include, "-c", str(source), "-o", f"{directory}/triple.o"],
        ["ld", "-T", str(script), f"{directory}/triple.o", "-o", f"{directory}/triple.elf"],
        ["objcopy", "-O", "binary", f"{directory}/triple.elf", f"{directory}/triple.bin"],
    ):
        subprocess.run(command, check=True)
    return (directory / "triple.bin").read_bytes()


@pytest.fixture(scope="module")
def program() -> Path:
    """A posix device, which loads code."""
    need_tools("cmake", "ninja", "cc")
    return build(Target.named("posix")).elf


@pytest.fixture
def rpc(program: Path) -> Iterator[RpcClient]:
    """A session with the device, over a socket pair."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen([str(program), "--fd", str(theirs.fileno())], pass_fds=[theirs.fileno()])
    try:
        with Device(SocketTransport(ours, "code loading")) as device:
            device.connect()
            yield device.rpc
    finally:
        process.terminate()
        process.wait()


def load(rpc: RpcClient, directory: Path) -> Module:
    """The module of SOURCE in the device."""
    block = rpc.call(rpc.global_function("minrpc.code_alloc"), [4096], "allocate")
    assert isinstance(block, Handle)
    image = linked_at(block.value, directory)
    tensor = DLTensor(block.value, parse_dtype("int8"), (len(image),))
    rpc.syscall(CopyToRemote(tensor, image), "upload")
    module = rpc.call(rpc.global_function("minrpc.code_load"), [block, 0], "load")
    assert isinstance(module, Module)
    return module


def function(rpc: RpcClient, module: Module, name: str) -> int:
    get = rpc.global_function("tvm.rpc.server.ModuleGetFunction")
    found = rpc.call(get, [module, name, 0], "find")
    assert isinstance(found, Function)
    return found.handle


def test_machine_code_is_loaded_and_runs(rpc: RpcClient, tmp_path: Path) -> None:
    module = load(rpc, tmp_path)
    triple, calls = (function(rpc, module, name) for name in ("triple", "calls"))
    assert [rpc.call(triple, [value], "triple") for value in (1, 2, -5)] == [3, 6, -15]
    assert rpc.call(calls, [], "calls") == 3
    rpc.syscall(free_handle(module.handle, TypeCode.MODULE), "unload")
    with pytest.raises(RemoteError, match="no live function"):
        rpc.call(triple, [1], "triple")


def test_each_load_has_memory_of_its_own(rpc: RpcClient, tmp_path: Path) -> None:
    modules = [load(rpc, tmp_path) for _ in range(3)]
    for times, module in enumerate(modules, start=1):
        for _ in range(times):
            rpc.call(function(rpc, module, "triple"), [1], "triple")
    assert [rpc.call(function(rpc, module, "calls"), [], "calls") for module in modules] == [1, 2, 3]
