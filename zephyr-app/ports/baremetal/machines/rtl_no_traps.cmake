# SPDX-License-Identifier: Apache-2.0
# As rtl.cmake, for a core without RISC-V's traps and machine mode, such as PicoRV32.
include(${CMAKE_CURRENT_LIST_DIR}/rtl.cmake)
set(MACHINE_NO_TRAPS 1)
