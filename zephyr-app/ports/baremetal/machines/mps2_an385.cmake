# SPDX-License-Identifier: Apache-2.0
# Arm MPS2 with the AN385 image: Cortex-M3. Meaning of the keys: machine.cmake.
set(MACHINE_TITLE "MPS2 AN385")
set(MACHINE_COMPILER arm-none-eabi-gcc)
set(MACHINE_FLAGS -mcpu=cortex-m3 -mthumb)
set(MACHINE_CPU cortex_m)

# ZBT RAM, which must have the vector table, and data RAM; arrays are in the PSRAM.
set(MACHINE_FLASH 0x00000000 0x00400000)
set(MACHINE_RAM 0x20000000 0x00400000)
set(MACHINE_NOTHING 0x00000000 0x20000000)
set(MACHINE_STACK_BYTES 262144)
set(MACHINE_ARENA 0x21000000 0x01000000)

set(MACHINE_CLOCK systick)
set(MACHINE_CLOCK_HZ 25000000)

set(MACHINE_UART cmsdk)
set(MACHINE_LINK 0x40005000) # UART1
set(MACHINE_LINK_IRQ 2)
set(MACHINE_CONSOLE 0x40004000) # UART0
