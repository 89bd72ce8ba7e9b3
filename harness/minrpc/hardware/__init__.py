# SPDX-License-Identifier: Apache-2.0
"""A device's hardware in Python: registers that answer C, and interrupts."""

from minrpc.hardware.accesses import Access, Expected
from minrpc.hardware.interrupts import Interruption, Interruptions, interrupt, interruptions
from minrpc.hardware.peripheral import registers
from minrpc.hardware.registers import Register, Registers

__all__ = [
    "Access",
    "Expected",
    "Interruption",
    "Interruptions",
    "Register",
    "Registers",
    "interrupt",
    "interruptions",
    "registers",
]
