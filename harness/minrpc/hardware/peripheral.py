# SPDX-License-Identifier: Apache-2.0
"""Opens and closes a peripheral whose registers are in Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from minrpc.errors import HarnessError
from minrpc.hardware.registers import Registers, registers_of
from minrpc.hardware.svd import peripheral_of
from minrpc.hardware.trap import trap_of
from minrpc.library.c_functions import CFunctions, library_of, types
from minrpc.library.namespaces import StructType
from minrpc.library.scalars import describe
from minrpc.names import text_name


@contextmanager
def registers(
    lib: CFunctions,
    address: int | str,
    type: str | None = None,
    *,
    svd: str | Path | None = None,
    model: object = None,
) -> Iterator[Registers]:
    """Let Python answer the loads and stores of C at `address`; the C code stays as it is.

    with minrpc.registers(lib, 0x40013800, "USART_TypeDef") as usart:
        usart.SR.reads = [0, 0, 0x80]
        usart.on_write("DR", sent.append)
        lib.send(65)
        usart.expect([usart.SR.read(), usart.SR.read(), usart.SR.read(0x80), usart.DR.write(65)])

    type: a struct of the library, by its name in C. Its members are the registers; without a function they
        are memory, which is zero at first.
    svd: instead of a type, the vendor's CMSIS-SVD file, in which `address` may be the peripheral's name.
        Registers have their first values, fields (`usart.SR.TXE`), rights and effects of accesses from it.
    model: an object with methods `read_NAME(self)` and `write_NAME(self, value)`, by register.

    While it is open, each access of loaded code to a peripheral that is not in Python is an error. An error
    of a function in Python ends the call of C.

    Raises RegisterError for a target that can't trap accesses or a damaged SVD file, ValueError for an
    address that overlaps, AttributeError for an unknown type, peripheral or register.
    """
    library = library_of(lib)
    described = _described(lib, address, type, svd)
    if model is not None:
        described.use(model)
    trap = trap_of(library.session)
    trap.add(described, library)
    try:
        yield described
    except BaseException:
        with suppress(HarnessError, ValueError):  # The device may have ended, by this very error.
            trap.remove(described)
        raise
    trap.remove(described)


def _described(lib: CFunctions, address: int | str, type: str | None, svd: str | Path | None) -> Registers:
    if svd is not None:
        if type is not None:
            raise TypeError("the registers are those of a type or of an SVD file, not of both")
        return peripheral_of(svd, address)
    struct = getattr(types(lib), text_name(type, "type"))
    if not isinstance(struct, StructType):
        raise TypeError(f"{type} is no struct of registers")
    if not isinstance(address, int) or address < 0:
        raise TypeError(f"the address of {type} is a number, not {describe(address)}")
    return Registers(str(type), address, registers_of(struct.ctype), struct.size)
