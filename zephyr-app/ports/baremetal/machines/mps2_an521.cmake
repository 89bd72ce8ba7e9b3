# SPDX-License-Identifier: Apache-2.0
# Arm MPS2 with the AN521 image: two Cortex-M33, of which only the first runs, without FPU and DSP
# instructions. The rest is as in the AN505. Meaning of the keys: machine.cmake.
include(${CMAKE_CURRENT_LIST_DIR}/mps2_an505.cmake)
set(MACHINE_TITLE "MPS2 AN521")
set(MACHINE_FLAGS -mcpu=cortex-m33+nofp+nodsp -mthumb -mfloat-abi=soft)
