# SPDX-License-Identifier: Apache-2.0
# Arm MPS2 with the AN505 image: Cortex-M33 with FPU. It starts in the secure state and stays there,
# so addresses are secure aliases (bit 28 set). Meaning of the keys: machine.cmake.
set(MACHINE_TITLE "MPS2 AN505")
set(MACHINE_COMPILER arm-none-eabi-gcc)
set(MACHINE_FLAGS -mcpu=cortex-m33 -mthumb -mfloat-abi=hard)
set(MACHINE_CPU cortex_m)

set(MACHINE_FLASH 0x10000000 0x00400000)
set(MACHINE_RAM 0x38000000 0x00400000)
set(MACHINE_NOTHING 0x00000000 0x20000000)
set(MACHINE_STACK_BYTES 262144)
set(MACHINE_ARENA 0x80000000 0x01000000) # PSRAM

set(MACHINE_CLOCK systick)
set(MACHINE_CLOCK_HZ 20000000)
set(MACHINE_SECOND_CLOCK fpgaio)
set(MACHINE_SECOND 0x50302000)
set(MACHINE_SECOND_HZ 20000000)

set(MACHINE_UART cmsdk)
set(MACHINE_LINK 0x50201000) # UART1
set(MACHINE_LINK_IRQ 34)
set(MACHINE_CONSOLE 0x50200000) # UART0
