# SPDX-License-Identifier: Apache-2.0
# The system around a Verilated RV32IMC core (harness/minrpc/rtl). Meaning of the keys: machine.cmake.
set(MACHINE_TITLE "RTL of an RV32 core")
set(MACHINE_COMPILER riscv64-unknown-elf-gcc)
set(MACHINE_FLAGS -march=rv32imc -misa-spec=2.2 -mabi=ilp32 -mcmodel=medany)
set(MACHINE_CPU riscv)
set(MACHINE_RESET 0x00100000)
set(MACHINE_RESET_VALUE 1)

# Stores below the RAM are errors of the bus.
set(MACHINE_FLASH 0x80000000 0x00400000)
set(MACHINE_RAM 0x80400000 0x00400000)
set(MACHINE_STACK_BYTES 262144)
set(MACHINE_ARENA 0x80800000 0x01000000)
set(MACHINE_CODE_PAGE 0)

# It counts the core's cycles. The rate is a nominal one: the core's own is the user's choice.
set(MACHINE_CLOCK mtime)
set(MACHINE_MTIME 0x0200bff8)
set(MACHINE_CLOCK_HZ 10000000)
