# SPDX-License-Identifier: Apache-2.0
"""Modules in a file: both calling conventions, archives, and refusals."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import pytest
from minrpc import ModuleError
from minrpc.library.tvm_modules import adapter_source, defined_functions, load_tvm, parts
from minrpc.program import Elf


def test_functions_of_today() -> None:
    names, text = adapter_source(["__tvm_ffi_add", "helper", "__tvm_ffi_main"])
    assert names == ("add", "main")
    assert "call(__tvm_ffi_add, a, c, n, r, rc)" in text
    assert r'"\002\000"' in text


def test_functions_before_v0_21() -> None:
    names, text = adapter_source(["fused_add", "tvmgen_default_run", "__tvm_module_startup"])
    assert names == ("fused_add",)
    assert '__asm__("fused_add")' in text


def test_no_function() -> None:
    assert adapter_source(["_GLOBAL__sub_I_x"])[0] == ()


def test_the_adapter_compiles_without_a_warning(tmp_path: Path) -> None:
    _, text = adapter_source(["__tvm_ffi_f"])
    (tmp_path / "a.c").write_text(text)
    command = ["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-c", "a.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    defined = defined_functions(Elf((tmp_path / "a.o").read_bytes(), "a.o"))
    assert defined == ["TVMFFIErrorSetRaisedFromCStrParts", "TVMFFIErrorSetRaisedFromCStr"]


def sparse_tar(size: int) -> bytes:
    """A tar in GNU's old format with one file, m.c, that is only a hole of `size` bytes."""
    header = tarfile.TarInfo("m.c")
    header.type = tarfile.GNUTYPE_SPARSE
    block = bytearray(header.tobuf(tarfile.GNU_FORMAT))
    block[386:398], block[398:410] = b"%011o\0" % (size - 1), b"%011o\0" % 0
    block[483:495] = b"\x80" + size.to_bytes(11, "big")
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block).ljust(2048, b"\0")


Mode = Literal["w:gz", "w:bz2", "w:xz"]
MODES: tuple[Mode, ...] = get_args(Mode)


def packed(mode: Mode, size: int) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as archive:
        member = tarfile.TarInfo("m.c")
        member.size = size
        archive.addfile(member, io.BytesIO(bytes(size)))
    return made.getvalue()


def long_names(count: int) -> bytes:
    """Headers that each only announce the name of the next."""
    header = tarfile.TarInfo("x")
    header.type = tarfile.GNUTYPE_LONGNAME
    return header.tobuf() * count + bytes(1024)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (partial(sparse_tar, 1 << 40), "unpacks to more than 1048576 bytes"),
        *((partial(packed, mode, 1 << 24), "unpacks to more than 1048576 bytes") for mode in MODES),
        *((lambda mode=mode: packed(mode, 1 << 12)[:-20], "is no archive") for mode in MODES),
        (lambda: packed("w:xz", 1 << 12)[:60] + bytes(40), "is no archive"),
        (lambda: b"\xfd7zXZ\0" + bytes(64), "is no archive"),
        (partial(long_names, 1500), "is no archive"),
        (lambda: tarfile.TarInfo("m.txt").tobuf() * 2000 + bytes(1024), "more than 1000 members"),
    ],
    ids=lambda value: value if isinstance(value, str) else "tar",
)
def test_hostile_archives(make: Callable[[], bytes], text: str) -> None:
    with pytest.raises(ModuleError, match=text):
        parts("m.tar", make(), 1 << 20)


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("m.so", b"", "a module is a file .c, .o or .tar"),
        ("m.tar", b"text", "m.tar is no archive"),
        ("m.tar", b"\x1f\x8b\x08\0" + bytes(40), "m.tar is no archive"),
    ],
)
def test_what_is_no_module(name: str, content: bytes, text: str) -> None:
    with pytest.raises(ModuleError, match=text):
        parts(name, content)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ModuleError, match=r"there is no file none\.c"):
        load_tvm(None, "none.c")  # type: ignore[arg-type]


def test_what_is_no_module_of_tvms() -> None:
    with pytest.raises(ModuleError, match=r"a dict is no module: give the result of tvm\.compile, or a file"):
        load_tvm(None, {})  # type: ignore[arg-type]


def archive(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as made:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            made.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def test_an_archive_without_code() -> None:
    with pytest.raises(ModuleError, match="holds no C code and no object"):
        parts("m.tar", archive({"readme.txt": b""}))


def test_members_are_not_unpacked() -> None:
    given = archive({"../../evil.c": b"int x;", "lib0.o": b"y"})
    assert parts("m.tar", given) == [(".c", b"int x;"), (".o", b"y")]


def test_an_archive_that_was_cut_off() -> None:
    with pytest.raises(ModuleError, match=r"m\.tar is no archive"):
        parts("m.tar", archive({"a.c": bytes(2000)})[:1000])


# Functions in TVM's form, and a caller that acts as the device.
_CALLS = """
#include <assert.h>
#include <stdlib.h>
#include <string.h>
static char *last;
void TVMAPISetLastError(const char *text) { free(last); last = strdup(text); }
void *TVMBackendAllocWorkspace(int a, int b, unsigned long long c, int d, int e) { return 0; }
int TVMBackendFreeWorkspace(int a, int b, void *c) { return 0; }
int TVMBackendParallelLaunch(void *a, void *b, int c) { return 0; }
int __tvm_ffi_same(void *self, void *args, int count, void *result)
{
	*(any *)result = *(any *)args;
	return 0;
}
int __tvm_ffi_fails(void *self, void *args, int count, void *result)
{
	static char text[1000];
	memset(text, 'x', sizeof(text) - 1);
	TVMFFIErrorSetRaisedFromCStr("ValueError", text);
	return -1;
}
int main(void)
{
	/* Given values, and the type in which each comes back: the device knows ints, floats, handles, none. */
	static const int codes[][2] = {{0, 0}, {1, 0}, {2, 2}, {3, 3}, {4, 4}, {7, 3}, {11, 3}, {15, 0}};
	value many[65] = {{.i = 0x1122334455667788}}, r;
	int given[65] = {0}, code;
	for (int i = 0; i < 8; i++) {
		given[0] = codes[i][0];
		assert(f0(many, given, 64, &r, &code, 0) == 0);
		assert(code == codes[i][1]);
		assert(r.i == (codes[i][0] == 4 ? 0 : many[0].i));
	}
	for (int wrong = -1; wrong < 100; wrong = wrong == 14 ? 16 : wrong + 1) {
		if (wrong >= 8 && wrong != 11 || wrong < 0) {
			given[0] = wrong;
			assert(f0(many, given, 1, &r, &code, 0) == -1);
			assert(strcmp(last, "an argument of a type that generated functions do not take") == 0);
		}
	}
	assert(f0(many, given, 65, &r, &code, 0) == -1);
	assert(strcmp(last, "more arguments than a generated function may have") == 0);
	assert(f1(many, given, 0, &r, &code, 0) == -1);
	assert(strlen(last) == 255 && strncmp(last, "ValueError: xxx", 15) == 0);
	free(last);
	return 0;
}
"""


def test_arguments_results_and_errors_on_their_way(tmp_path: Path) -> None:
    """Each kind of value is passed and returned; unknown types and surplus arguments are refused; a long text
    is cut."""
    _, text = adapter_source(["__tvm_ffi_same", "__tvm_ffi_fails"])
    (tmp_path / "a.c").write_text(text + _CALLS)
    command = ["gcc", "-std=gnu11", "-w", "a.c", "-o", "a"]
    subprocess.run(command, cwd=tmp_path, check=True)
    subprocess.run([tmp_path / "a"], check=True)
