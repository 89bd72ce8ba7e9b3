# SPDX-License-Identifier: Apache-2.0
"""A compiled source is taken from the cache only if the compiler would read the same bytes again."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from minrpc import CompileError
from minrpc.firmware import compiler_notes, inputs
from minrpc.firmware.identity import Content, Look
from minrpc.library import Sources, Toolset, compile_sources
from minrpc.library.compiling import compile_file
from minrpc.library.toolset import is_clang
from minrpc.program import Elf

_FORM = '__attribute__((section("probe"))) const char got[] = VALUE;\n'
_BYTES = '{word}(".pushsection probe,\\"a\\"\\n.incbin \\"{name}\\"\\n.popsection");\n'
_ASSEMBLER = '\t.section probe,"a"\n'
_OTHER = '#!/bin/sh\nexec gcc -DVALUE=\'"{value}"\' "$@"\n'


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@dataclass(frozen=True)
class Case:
    """`source` is compiled with `flags` and gives `before`; after `changes` it gives `after`. {at} is the
    directory of all files."""

    source: str
    before: str
    after: str
    files: Mapping[str, str]
    changes: Mapping[str, str]
    flags: tuple[str, ...] = ()
    name: str = "a.c"
    compiler: str = "gcc"


def has(name: str, other: str = "OLD") -> str:
    return f'#if __has_include({name})\n#include {name}\n#else\n#define VALUE "{other}"\n#endif\n' + _FORM


def value(text: str) -> str:
    return f'#define VALUE "{text}"\n'


_QUOTED, _SEARCHED = '#include "k.h"\n' + _FORM, "#include <deep/k.h>\n" + _FORM
_TWO = ("-I{at}/one", "-I{at}/two")
CASES = {
    "incbin in C": Case(
        _BYTES.format(word="__asm__", name="{at}/d.bin"), "old", "new", {"d.bin": "old"}, {"d.bin": "new"}
    ),
    "incbin by a macro": Case(
        '#define AS(x) __asm__(".pushsection probe,\\"a\\"\\n.inc" "bin \\"" x "\\"\\n.popsection")\n'
        'AS("d.bin");\n',
        "old",
        "new",
        {"two/d.bin": "old"},
        {"one/d.bin": "new"},
        _TWO,
    ),
    "incbin in .s": Case(
        _ASSEMBLER + '\t.incbin "{at}/d.bin"\n', "old", "new", {"d.bin": "old"}, {"d.bin": "new"}, name="a.s"
    ),
    "include in .s, found earlier": Case(
        _ASSEMBLER + '\t.include "d.inc"\n',
        "old",
        "new",
        {"two/d.inc": '\t.ascii "old"\n'},
        {"one/d.inc": '\t.ascii "new"\n'},
        _TWO,
        name="a.s",
    ),
    "incbin in .S": Case(
        '#include "n.h"\n' + _ASSEMBLER + "\t.incbin NAME\n",
        "old",
        "new",
        {"d.bin": "old", "n.h": '#define NAME "{at}/d.bin"\n'},
        {"d.bin": "new"},
        name="a.S",
    ),
    "has_include of a sibling": Case(has('"k.h"'), "OLD", "new", {}, {"k.h": value("new")}),
    "has_include in a directory that is not there": Case(
        has("<deep/k.h>"), "OLD", "new", {}, {"one/deep/k.h": value("new")}, _TWO
    ),
    "has_include by a macro": Case(
        "#define NAME <k.h>\n" + has("NAME"), "OLD", "new", {}, {"one/k.h": value("new")}, _TWO
    ),
    "has_include in a header": Case(
        _QUOTED,
        "OLD",
        "new",
        {"k.h": has("<n.h>").removesuffix(_FORM)},
        {"two/n.h": value("new")},
        _TWO,
    ),
    "an earlier -I of flags": Case(
        _SEARCHED, "old", "new", {"two/deep/k.h": value("old")}, {"one/deep/k.h": value("new")}, _TWO
    ),
    "an earlier -I, by a path with ..": Case(
        '#include "../k.h"\n' + _FORM,
        "old",
        "new",
        {"two/deep/none": "", "two/k.h": value("old"), "one/deep/none": ""},
        {"one/k.h": value("new")},
        ("-I{at}/one/deep", "-I{at}/two/deep"),
    ),
    "an earlier -iquote": Case(
        _QUOTED,
        "old",
        "new",
        {"two/k.h": value("old")},
        {"one/k.h": value("new")},
        ("-iquote{at}/one", *_TWO),
    ),
    "a header named by -include": Case(
        _FORM,
        "old",
        "new",
        {"two/k.h": value("old")},
        {"one/k.h": value("new")},
        ("-include", "k.h", *_TWO),
    ),
    "a file of options": Case(
        _FORM, "old", "new", {"o": "-DVALUE='\"old\"'\n"}, {"o": "-DVALUE='\"new\"'\n"}, ("@{at}/o",)
    ),
    "a compiler replaced at its path": Case(
        _FORM,
        "old",
        "new",
        {"my-gcc": _OTHER.format(value="old")},
        {"my-gcc": _OTHER.format(value="new")},
        compiler="{at}/my-gcc",
    ),
    "an assembler that comes to stand in front": Case(
        _FORM.replace("VALUE", '"old"'),
        "old",
        "new",
        {"b/none": ""},
        {"b/as": '#!/bin/sh\nfor last; do :; done\nsed -i s/old/new/ "$last"\nexec as "$@"\n'},
        ("-B{at}/b/",),
    ),
}


def write(at: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        file = at / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("{at}", str(at)))
        file.chmod(0o755)


def made(at: Path, case: Case) -> Callable[[], str]:
    """Writes the files of a case; returns the function that compiles the source and returns its probe."""
    write(at, {case.name: case.source, **case.files})
    flags = [flag.replace("{at}", str(at)) for flag in case.flags]
    toolset = Toolset(case.compiler.replace("{at}", str(at)), ("-O1",), (), Path(sys.executable))
    sources = Sources.of(at / case.name, flags=flags)

    def probe() -> str:
        file = compile_file(at / case.name, sources, toolset).path
        return (Elf(file.read_bytes(), file.name).section("probe") or b"").rstrip(b"\0").decode()

    return probe


@pytest.mark.parametrize("name", CASES)
def test_each_input_of_a_compiler_counts(tmp_path: Path, name: str) -> None:
    case, at = CASES[name], tmp_path / "user's files"
    probe = made(at, case)
    assert [probe(), probe()] == [case.before] * 2
    write(at, case.changes)
    assert probe() == case.after


def test_same_size_and_time_but_other_bytes(tmp_path: Path) -> None:
    probe = made(tmp_path, Case(_QUOTED, "old", "new", {"k.h": value("old")}, {}))
    assert probe() == "old"
    times = (tmp_path / "k.h").stat()
    write(tmp_path, {"k.h": value("new")})
    os.utime(tmp_path / "k.h", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert probe() == "new"


@pytest.mark.parametrize("source", ['#define VALUE __TIME__ ".."\n' + _FORM, has("(NAME)")])
def test_what_no_list_can_tell_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.setattr("minrpc.firmware.identity._YOUNG_NS", 0)
    write(tmp_path, {"a.c": "#define NAME <k.h>\n" + source.replace("(NAME)", "NAME")})
    toolset = Toolset("gcc", ("-O1",), (), Path(sys.executable))
    sources = Sources.of(tmp_path / "a.c")
    first, second = (compile_file(tmp_path / "a.c", sources, toolset).path for _ in range(2))
    assert first != second
    assert first.is_file()


def test_the_environment_of_the_compiler_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"one/k.h": value("old"), "two/k.h": value("new")}
    probe = made(tmp_path, Case("#include <k.h>\n" + _FORM, "", "", files, {}))
    found = []
    for place in ("one", "two", "one"):
        monkeypatch.setenv("CPATH", str(tmp_path / place))
        found.append(probe())
    assert found == ["old", "new", "old"]


def test_the_compiler_is_the_first_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = {
        f"{text}/gcc": _OTHER.format(value=text).replace("gcc", str(shutil.which("gcc")))
        for text in ("old", "new")
    }
    probe = made(tmp_path, Case(_FORM, "", "", others, {}))
    found, path = [], os.environ["PATH"]
    for place in ("old", "new", "old"):
        monkeypatch.setenv("PATH", f"{tmp_path / place}:{path}")
        found.append(probe())
    assert found == ["old", "new", "old"]


def test_a_header_that_changes_while_the_compiler_runs(tmp_path: Path) -> None:
    """The object is of the old header, and the list of inputs would have the new one."""
    compiler = "#!/bin/sh\ngcc \"$@\" && cp '{at}/later.h' '{at}/k.h'\n"
    files = {"cc": compiler, "k.h": value("old"), "later.h": value("new")}
    probe = made(tmp_path, Case(_QUOTED, "", "", files, {}, compiler="{at}/cc"))
    assert [probe(), probe()] == ["old", "new"]


def test_a_library_that_is_only_linked_counts(tmp_path: Path) -> None:
    write(tmp_path, {"a.c": "int f(void) { return 1; }\n"})
    toolset = Toolset("gcc", ("-O1",), (), Path(sys.executable))
    keys = []
    for text in ("int g = 1;", "int g = 2;", "int g = 1;"):
        command = ["gcc", "-xc", "-", "-c", "-o", str(tmp_path / "b.o")]
        subprocess.run(command, input=text, text=True, check=True)
        keys.append(compile_sources(Sources.of(tmp_path / "a.c", libraries=tmp_path / "b.o"), toolset).key)
    assert keys[0] == keys[2] != keys[1]


def test_a_header_below_a_header_of_declare(tmp_path: Path) -> None:
    """The declarations of assembler functions are kept in memory, too."""
    write(
        tmp_path,
        {"a.S": "\t.text\n\t.globl f\n\t.type f, @function\nf:\tmov %edi, %eax\n\tret\n\t.size f, . - f\n"},
    )
    write(tmp_path, {"f.h": '#include "t.h"\nnumber f(number x);\n', "t.h": "typedef int number;\n"})
    toolset = Toolset("gcc", ("-O1",), (), Path(sys.executable))
    sources = Sources.of(tmp_path / "a.S", declare=["f.h"])
    assert "int" in str(compile_sources(sources, toolset).functions["f"].type)
    write(tmp_path, {"t.h": "typedef short number;\n"})
    assert "short" in str(compile_sources(sources, toolset).functions["f"].type)


def test_unchanged_sources_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = made(tmp_path, CASES["an earlier -I of flags"])
    for path in tmp_path.rglob("*"):
        os.utime(path)
    monkeypatch.setattr("minrpc.firmware.identity._YOUNG_NS", 0)
    assert [probe(), probe()] == ["old"] * 2
    for name in ("content_of", "run_compiler"):
        monkeypatch.delattr(f"minrpc.library.compiling.{name}")
    monkeypatch.delattr(Content, "holds")
    assert probe() == "old"


def test_the_kernel_saw_no_other_file(tmp_path: Path) -> None:
    """strace is the witness: of each file that the compiler opened, or looked for in vain."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed (sudo apt-get install strace)")
    at = tmp_path / "files"
    write(
        at,
        {
            "a.c": "#include <math.h>\n#include <stdlib.h>\n#if __has_include(<deep/none.h>)\n#endif\n"
            '#include "../files/k.h"\n' + _BYTES.format(word="__asm__", name="d.bin"),
            "two/d.bin": "d",
            "k.h": "#include <l.h>\n",
            "two/l.h": "#include_next <l.h>\n",
            "three/l.h": "",
        },
    )
    words = ["gcc", *(f"-I{at}/{name}" for name in ("one", "two", "three")), "-c", str(at / "a.c")]
    work = tmp_path / "work"
    work.mkdir()
    trace = tmp_path / "trace"
    strace = ["strace", "-f", "-e", "trace=file", "-o", str(trace)]
    noted = compiler_notes.noting(words)
    ran = subprocess.run(
        [*strace, *noted],
        cwd=work,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    if "ptrace" in ran.stderr:
        pytest.skip(f"strace can't work here: {ran.stderr.strip()}")
    assert ran.returncode == 0, ran.stderr
    found = inputs.inputs_of_compilation(words, work, ran.stderr)
    assert not found.unsure
    known = {os.path.realpath(path) for path in found.files | found.tools}
    opened: set[str] = set()
    missed: set[str] = set()
    for line in trace.read_text().splitlines():
        call = re.search(
            r'(?:execve|openat|open|stat|newfstatat)\((?:AT_FDCWD, )?"([^"]+)".* = (\d+|-1 ENOENT)',
            line,
        )
        path = os.path.join(work, call[1]) if call else ""
        if not call or re.search(
            r"\.so|^/(etc|proc|sys|dev|tmp/cc)|locale|gconv|/share/|/\.$|-as$|/bin/", path
        ):
            continue
        if not path.startswith(str(work)):
            (missed if call[2].startswith("-1") else opened).add(path)
    assert {path for path in opened if os.path.isfile(path) and os.path.realpath(path) not in known} == set()
    places = {os.path.normpath(path) for path in found.searched}
    lost = {
        path
        for path in missed
        if os.path.normpath(path) not in places
        and (
            os.path.normpath(os.path.dirname(path)) not in places or os.path.basename(path) not in found.names
        )
    }
    assert lost == set()
    assert len(missed) > 10
    assert Look.at("", found).paths


@pytest.mark.parametrize("flag", ["-E", "-S", "-M", "-fsyntax-only", "--version", "--help"])
def test_a_flag_that_ends_the_compiler_early_is_told(tmp_path: Path, flag: str) -> None:
    (tmp_path / "a.c").write_text("int a;\n")
    toolset = Toolset("gcc", ("-O1",), (), Path(sys.executable))
    with pytest.raises(CompileError, match=r"the compiler makes no object of a\.c") as caught:
        compile_file(tmp_path / "a.c", Sources((tmp_path / "a.c",), flags=(flag,)), toolset)
    assert "-fsyntax-only" in (caught.value.next_step or "")


@pytest.mark.parametrize(("program", "is_one"), [("clang-19", True), ("x86_64-linux-gnu-gcc-14", False)])
def test_clang_is_known_behind_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, is_one: bool
) -> None:
    (tmp_path / program).touch(0o755)
    (tmp_path / "cc").symlink_to(program)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [is_clang(name) for name in ("cc", str(tmp_path / "cc"), program)] == [is_one] * 3
