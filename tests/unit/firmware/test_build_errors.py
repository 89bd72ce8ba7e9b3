# SPDX-License-Identifier: Apache-2.0
"""Quotes of a failed build's log, from the real output of Zephyr's tools."""

from __future__ import annotations

import pytest
from minrpc import BuildError
from minrpc.firmware.build_errors import first_errors

COMPILE = """\
-- Looking for x.h - not found
[1/9] Building C object strerror: y.c.obj
[2/9] Building C object link.c.obj
FAILED: modules/minrpc/CMakeFiles/minrpc.dir/link.c.obj
ccache /usr/bin/arm-none-eabi-gcc -DKERNEL -DERROR=1 -c link.c
In file included from /zephyr/include/zephyr/toolchain.h:50,
                 from link.c:7:
/zephyr/toolchain/gcc.h:87:36: error: static assertion failed: "The console and RPC can't share a UART."
   87 | #define BUILD_ASSERT(EXPR, MSG...) _Static_assert((EXPR), "" MSG)
      |                                    ^~~~~~~~~~~~~~
link.c:20:1: note: in expansion of macro 'BUILD_ASSERT'
   20 | BUILD_ASSERT(
      | ^~~~~~~~~~~~
[3/9] Building C object other.c.obj
ninja: build stopped: subcommand failed.
FATAL ERROR: command exited with status 1: /usr/bin/cmake --build /tmp/b
"""

LINK = """\
[10/11] Linking C executable zephyr/zephyr.elf
FAILED: zephyr/zephyr.elf zephyr/zephyr.map /b/zephyr/zephyr.map
: && ccache /usr/bin/arm-none-eabi-gcc -gdwarf-4 -o zephyr/zephyr.elf && cd /b/zephyr && true
/usr/lib/gcc/arm-none-eabi/12.2.1/ld.bfd: warning: orphan section `.x' from `a.o' being placed in section `.x'
/usr/lib/gcc/arm-none-eabi/12.2.1/ld.bfd: zephyr/zephyr.elf section `noinit' will not fit in region `RAM'
/usr/lib/gcc/arm-none-eabi/12.2.1/ld.bfd: region `RAM' overflowed by 1234 bytes
collect2: error: ld returned 1 exit status
ninja: build stopped: subcommand failed.
"""

UNDEFINED = """\
: && ccache /usr/bin/gcc -o x
/usr/bin/ld.bfd: app/libapp.a(main.c.obj): in function `main':
/src/main.c:5: undefined reference to `no_such_function'
collect2: error: ld returned 1 exit status
"""

KCONFIG = """\
-- Found BOARD.dts: /zephyr/boards/x.dts
Parsing /app/Kconfig
Loaded configuration '/zephyr/boards/x_defconfig'
Merged configuration '/app/prj.conf'

/app/prj.conf:3: warning: attempt to assign the value 'y' to the undefined symbol NO_SUCH

error: Aborting due to Kconfig warnings

CMake Error at /zephyr/cmake/modules/kconfig.cmake:387 (message):
  command failed with return code: 1
Call Stack (most recent call first):
  /zephyr/cmake/modules/zephyr_default.cmake:131 (include)
"""

CMAKE = """\
-- Board: nosuch
CMake Error at /zephyr/cmake/modules/boards.cmake:219 (message):
  No board named 'nosuch' found.

  Please choose one of the following boards:

Call Stack (most recent call first):
  /zephyr/cmake/modules/zephyr_default.cmake:131 (include)
"""

DEVICETREE = """\
-- Found devicetree overlay: /app/x.overlay
/app/x.overlay:9.21-33: Warning (unit_address_vs_reg): /soc: node has a unit name
devicetree error: /app/x.overlay:5 (column 13): parse error: undefined node label 'uart9'
CMake Error at /zephyr/cmake/modules/dts.cmake:295 (execute_process):
  execute_process failed command indexes:

    1: "Child return code: 1"
"""

GPERF = """\
[1140/1165] Linking C executable zephyr/zephyr_pre0.elf
/usr/bin/ld.bfd: skipping incompatible /usr/lib/gcc/x86_64-linux-gnu/12/libgcc.a when searching for -lgcc
[1143/1165] Generating kobject_prebuilt_hash_preprocessed.c
FAILED: zephyr/kobject_prebuilt_hash_preprocessed.c
cd /build/zephyr && GPERF-NOTFOUND --output-file kobject_prebuilt_hash_preprocessed.c
/bin/sh: 1: GPERF-NOTFOUND: not found
ninja: build stopped: subcommand failed.
"""


@pytest.mark.parametrize(
    ("log", "first", "count"),
    [
        pytest.param(COMPILE, "/zephyr/toolchain/gcc.h:87:36: error: static", 6, id="compiler"),
        pytest.param(
            LINK, "/usr/lib/gcc/arm-none-eabi/12.2.1/ld.bfd: zephyr/zephyr.elf section", 2, id="linker"
        ),
        pytest.param(
            LINK
            + "".join(f"/usr/bin/ld: {number}.c:1: undefined reference to `f'\n" for number in range(20)),
            "/usr/lib/gcc/arm-none-eabi/12.2.1/ld.bfd: zephyr/zephyr.elf section",
            12,
            id="linker, many",
        ),
        pytest.param(UNDEFINED, "/usr/bin/ld.bfd: app/libapp.a(main.c.obj): in function", 2, id="undefined"),
        pytest.param(KCONFIG, "/app/prj.conf:3: warning: attempt to assign", 2, id="Kconfig"),
        pytest.param(CMAKE, "CMake Error at /zephyr/cmake/modules/boards.cmake:219", 3, id="CMake"),
        pytest.param(
            DEVICETREE, "devicetree error: /app/x.overlay:5 (column 13): parse error", 1, id="devicetree"
        ),
        pytest.param(GPERF, "/bin/sh: 1: GPERF-NOTFOUND: not found", 2, id="gperf"),
        pytest.param("a\nb\n", "a", 2, id="nothing known"),
    ],
)
def test_the_first_real_error(log: str, first: str, count: int) -> None:
    lines = first_errors(log)
    assert lines[0].startswith(first)
    assert len(lines) == count, lines


def test_no_log_no_lines() -> None:
    assert first_errors("") == []


MAP = """
Memory Configuration

Name             Origin             Length             Attributes
FLASH            0x08000000         0x00008000         xr
RAM              0x20000000         0x00002000         xw
*default*        0x00000000         0xffffffff
"""


@pytest.mark.parametrize(
    ("arena", "advice"),
    [
        ("SIZE=0\nCONFIG_MINRPC_ARENA_SHARE=25", "1,984 of these bytes: -DCONFIG_MINRPC_ARENA_SIZE=704"),
        ("SIZE=4096", "4,096 of these bytes: -DCONFIG_MINRPC_ARENA_SIZE=2816 makes it fit"),
        ("SIZE=1280", "1,280 of these bytes: also without arrays the board has too little RAM"),
    ],
)
def test_full_ram_comes_with_sizes_and_advice(arena: str, advice: str) -> None:
    *_, sizes, last = first_errors(LINK, MAP, f"CONFIG_MINRPC=y\nCONFIG_MINRPC_ARENA_{arena}\n")
    assert sizes == "RAM has 8,192 bytes, the firmware needs 9,426 bytes"
    assert advice in last


def test_full_flash_comes_with_sizes_and_advice() -> None:
    log = LINK.replace("region `RAM'", "region `FLASH'")
    *_, sizes, last = first_errors(log, MAP, "CONFIG_MINRPC=y\n")
    assert sizes == "FLASH has 32,768 bytes, the firmware needs 34,002 bytes"
    assert "CONFIG_MINRPC_ERROR_TEXTS=n" in last


def test_sizes_are_told_only_if_the_map_has_them() -> None:
    assert first_errors(LINK)[-1].endswith("overflowed by 1234 bytes")


def test_a_name_that_the_firmware_has_comes_with_advice() -> None:
    log = """/usr/bin/ld: main.c.o: in function `main':
/minrpc/app/ports/posix/main.c:12: multiple definition of `main'; app.c.o:app.c:2: first defined here
collect2: error: ld returned 1 exit status
"""
    lines = first_errors(log)
    assert "multiple definition of `main'" in " ".join(lines)
    assert "`linked = false`" in lines[-1]


def test_nothing_of_an_error_is_cut() -> None:
    text = str(
        BuildError("it did not build", details=first_errors("x.c:1:1: error: " + "word " * 60 + "advice"))
    )
    assert text.count("word") == 60
    assert "advice" in text
    assert max(map(len, text.splitlines())) <= 110


def test_a_kconfig_warning_that_ends_the_build_is_the_error() -> None:
    log = """Parsing /app/Kconfig
warning: SYS_HEAP_ARRAY_SIZE (defined at /app/zephyr/Kconfig:250) defined without a type
Loaded configuration '/zephyr/boards/qemu/riscv64/qemu_riscv64_defconfig'
Merged configuration '/app/prj.conf'

error: Aborting due to Kconfig warnings

CMake Error at /zephyr/cmake/modules/kconfig.cmake:389 (message):
  command failed with return code: 1
Call Stack (most recent call first):
"""
    line, aborted = first_errors(log)
    assert "Aborting due to Kconfig warnings" in aborted
    assert line.startswith("warning: SYS_HEAP_ARRAY_SIZE (defined at /app/zephyr/Kconfig:250)")
