# SPDX-License-Identifier: Apache-2.0
# QEMU's RISC-V machine `virt` with 64 bits and double-precision FPU. Meaning of the keys: machine.cmake.
include(${CMAKE_CURRENT_LIST_DIR}/rv32.cmake)
set(MACHINE_TITLE "RV64 virt")
set(MACHINE_FLAGS -march=rv64gc -mabi=lp64d -mcmodel=medany)
