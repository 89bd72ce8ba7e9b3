# SPDX-License-Identifier: Apache-2.0
"""A program's use of a device's memory: by region, component, file and symbol, to the byte."""

from minrpc.sizes.pieces import Piece, ProgramSizes, program_sizes

__all__ = ["Piece", "ProgramSizes", "program_sizes"]
