# SPDX-License-Identifier: Apache-2.0
# QEMU's RISC-V machine `virt` with 64 bits and vectors (RVV 1.0). Debian's gcc 12 makes no vector instructions by
# itself: its assembler takes them, in .S files and in asm statements. Meaning of the keys: machine.cmake.
include(${CMAKE_CURRENT_LIST_DIR}/rv64.cmake)
set(MACHINE_TITLE "RV64 virt with vectors")
# picolibc exists for rv64gc only, so the compiler gets this architecture, and writes no attribute that
# forbids vectors.
list(APPEND MACHINE_FLAGS -Wa,-march=rv64gcv -mno-riscv-attribute)
set(MACHINE_VECTORS 1)
