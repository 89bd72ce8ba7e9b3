# SPDX-License-Identifier: Apache-2.0
# Arm MPS2 with the AN386 image: Cortex-M4 with FPU. The rest is as in the AN385. Meaning of the keys: machine.cmake.
include(${CMAKE_CURRENT_LIST_DIR}/mps2_an385.cmake)
set(MACHINE_TITLE "MPS2 AN386")
set(MACHINE_FLAGS -mcpu=cortex-m4 -mthumb -mfloat-abi=hard)
