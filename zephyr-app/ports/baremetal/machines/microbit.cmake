# SPDX-License-Identifier: Apache-2.0
# BBC micro:bit in QEMU: nRF51, Cortex-M0, 16 KiB of RAM. QEMU's model has a SysTick, which the real
# chip lacks. Meaning of the keys: machine.cmake.
set(MACHINE_TITLE "micro:bit")
set(MACHINE_COMPILER arm-none-eabi-gcc)
set(MACHINE_FLAGS -mcpu=cortex-m0 -mthumb)
set(MACHINE_CPU cortex_m)

set(MACHINE_FLASH 0x00000000 0x00040000)
set(MACHINE_RAM 0x20000000 0x00004000)
set(MACHINE_STACK_BYTES 2048)
set(MACHINE_HANDLER_BYTES 640)
set(MACHINE_PACKET_BYTES 2048)
set(MACHINE_RING_BYTES 2048)

set(MACHINE_CLOCK systick)
set(MACHINE_CLOCK_HZ 16000000)
set(MACHINE_SECOND_CLOCK nrf51)
set(MACHINE_SECOND 0x4000a000) # TIMER2, which has 32 bits in QEMU
set(MACHINE_SECOND_HZ 31250)

set(MACHINE_UART nrf51)
set(MACHINE_LINK 0x40002000)
set(MACHINE_LINK_IRQ 2)
set(MACHINE_LINK_PINS 0x1819) # sends on P0.24, receives on P0.25
