# SPDX-License-Identifier: Apache-2.0
"""What of a file is a module: both calling conventions, archives, and what is refused."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest
from minrpc.tvm.modules import ModuleError, _parts, adapter_source, defined_functions


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
    defined = defined_functions((tmp_path / "a.o").read_bytes())
    assert defined == ["TVMFFIErrorSetRaisedFromCStrParts", "TVMFFIErrorSetRaisedFromCStr"]


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("none.c", None, "there is no file"),
        ("m.so", b"", "a module is a file .c, .o or .tar"),
        ("m.tar", b"text", "m.tar is no archive"),
    ],
)
def test_what_is_no_module(name: str, content: bytes | None, text: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ModuleError, match=text):
        _parts(tmp_path / name, tmp_path)


def test_an_archive_without_code(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "m.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("readme.txt"), io.BytesIO())
    with pytest.raises(ModuleError, match="holds no C code and no object"):
        _parts(tmp_path / "m.tar", tmp_path)


def test_members_can_not_leave_the_directory(tmp_path: Path) -> None:
    content = b"int x;"
    info = tarfile.TarInfo("../../evil.c")
    info.size = len(content)
    with tarfile.open(tmp_path / "m.tar", "w") as archive:
        archive.addfile(info, io.BytesIO(content))
    (tmp_path / "to").mkdir()
    assert _parts(tmp_path / "m.tar", tmp_path / "to") == [tmp_path / "to" / "0.c"]
