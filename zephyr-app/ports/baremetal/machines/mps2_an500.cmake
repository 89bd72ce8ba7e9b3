# SPDX-License-Identifier: Apache-2.0
# Arm MPS2 with the AN500 image: Cortex-M7 with a double-precision FPU. The rest is as in the AN385. Meaning of the
# keys: machine.cmake.
include(${CMAKE_CURRENT_LIST_DIR}/mps2_an385.cmake)
set(MACHINE_TITLE "MPS2 AN500")
set(MACHINE_FLAGS -mcpu=cortex-m7 -mthumb -mfloat-abi=hard)
set(MACHINE_CACHES 1)
set(MACHINE_ARENA 0x60000000 0x01000000) # PSRAM
