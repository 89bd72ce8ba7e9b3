# SPDX-License-Identifier: Apache-2.0
# Arm MPS2 with the AN385 image, with its data in the PSRAM.
include(${CMAKE_CURRENT_LIST_DIR}/../../zephyr-app/ports/baremetal/machines/mps2_an385.cmake)
set(MACHINE_RAM 0x21000000 0x00400000)
set(MACHINE_ARENA 0x21400000 0x00800000)
