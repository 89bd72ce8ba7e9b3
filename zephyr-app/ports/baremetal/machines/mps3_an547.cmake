# SPDX-License-Identifier: Apache-2.0
# Arm MPS3 with the AN547 image: Cortex-M55 with FPU and vectors (MVE). It starts in the secure state and stays
# there. Meaning of the keys: machine.cmake.
set(MACHINE_TITLE "MPS3 AN547")
set(MACHINE_COMPILER arm-none-eabi-gcc)
set(MACHINE_FLAGS -mcpu=cortex-m55 -mthumb -mfloat-abi=hard)
set(MACHINE_CPU cortex_m)
set(MACHINE_CACHES 1)

set(MACHINE_FLASH 0x00000000 0x00080000) # ITCM
set(MACHINE_RAM 0x20000000 0x00080000) # DTCM
set(MACHINE_NOTHING 0x00000000 0x20000000)
set(MACHINE_STACK_BYTES 131072)
set(MACHINE_ARENA 0x60000000 0x01000000) # DDR4

set(MACHINE_CLOCK systick)
set(MACHINE_CLOCK_HZ 32000000)
set(MACHINE_SECOND_CLOCK fpgaio)
set(MACHINE_SECOND 0x59302000)
set(MACHINE_SECOND_HZ 20000000)

set(MACHINE_UART cmsdk)
set(MACHINE_LINK 0x59304000) # UART1
set(MACHINE_LINK_IRQ 35)
set(MACHINE_CONSOLE 0x59303000) # UART0
