# SPDX-License-Identifier: Apache-2.0
# QEMU's RISC-V machine `virt` with 32 bits, without FPU. Meaning of the keys: machine.cmake.
set(MACHINE_TITLE "RV32 virt")
set(MACHINE_COMPILER riscv64-unknown-elf-gcc)
set(MACHINE_FLAGS -march=rv32imac -misa-spec=2.2 -mabi=ilp32 -mcmodel=medany)
set(MACHINE_CPU riscv)
set(MACHINE_PLIC 0x0c000000)
set(MACHINE_RESET 0x00100000)
set(MACHINE_RESET_VALUE 0x7777)

# All memory is in the same DRAM.
set(MACHINE_FLASH 0x80000000 0x00400000)
set(MACHINE_RAM 0x80400000 0x00400000)
set(MACHINE_NOTHING 0x40000000 0x40000000) # devices on a PCI bus
set(MACHINE_PMP 1)
set(MACHINE_STACK_BYTES 262144)
set(MACHINE_ARENA 0x80800000 0x01000000)

set(MACHINE_CLOCK mtime)
set(MACHINE_MTIME 0x0200bff8)
set(MACHINE_CLOCK_HZ 10000000)

set(MACHINE_UART 16550)
set(MACHINE_LINK 0x10000000)
set(MACHINE_LINK_IRQ 10)
