# SPDX-License-Identifier: Apache-2.0
"""Programs and objects as ELF and DWARF describe them: symbols, segments, functions, lines, types."""

from minrpc.program.elf import Elf
from minrpc.program.program import CodeRange, Program, Symbols, read_program

__all__ = ["CodeRange", "Elf", "Program", "Symbols", "read_program"]
