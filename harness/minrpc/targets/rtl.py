# SPDX-License-Identifier: Apache-2.0
"""A core's RTL, from which Verilator makes a program, and the cores that PyPI's packages have.

[platforms.fast_ibex]               # other parameters of a core that is there
extends = "rtl_ibex"
rtl = { parameters = { BranchTargetALU = 1, WritebackStage = 1 } }

[platforms.my_soc]                  # a core of your own: a table with a top
extends = "rtl_ibex"
rtl = { top = "my_core", bus = "obi", sources = ["rtl/my_pkg.sv", "rtl/my_core.sv"], search = ["rtl"] }
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

from minrpc.errors import ConfigurationError
from minrpc.names import instead_of
from minrpc.targets.project import define_list, paths_of

Bus = Literal["ibex", "obi", "picorv32"]

_BOOT: Final = 0x1000


class Rtl(NamedTuple):
    """The RTL of an RV32IMC core.

    top: the module whose ports the bus wrapper drives.
    bus: the wrapper, `minrpc/rtl/bus_NAME.hpp`.
    sources: files, packages before their users. search: directories of modules and of included files.
    package: a Python package whose directory the paths are relative to, if they are not absolute.
    defines: of the preprocessor, each "NAME" or "NAME=VALUE".
    parameters: of the top, by name. inputs: constant values of its other inputs.
    clock, reset: names of inputs; the reset is active low.
    pc, registers: signals below the top, "core_i.pc_id": the address of an instruction, and x0 to x31; "" if
        unknown. A fault that the core can't take, and a hang, are reported by them.
    """

    top: str
    bus: Bus
    sources: tuple[str, ...]
    search: tuple[str, ...] = ()
    package: str = ""
    defines: tuple[str, ...] = ()
    parameters: tuple[tuple[str, int], ...] = ()
    inputs: tuple[tuple[str, int], ...] = ()
    clock: str = "clk_i"
    reset: str = "rst_ni"
    pc: str = ""
    registers: str = ""


_PRIM: Final = "vendor/lowrisc_ip/ip/prim/rtl"
_PACKAGES: Final = ("util", "mubi", "count", "secded", "ram_1p", "cipher")

IBEX: Final = Rtl(
    top="ibex_top",
    bus="ibex",
    sources=(
        "{here}/ibex_primitives.sv",
        *(f"{_PRIM}/prim_{name}_pkg.sv" for name in _PACKAGES),
        "rtl/ibex_pkg.sv",
        "rtl/ibex_top.sv",
    ),
    search=("rtl", _PRIM, "vendor/lowrisc_ip/ip/prim_generic/rtl", "vendor/lowrisc_ip/dv/sv/dv_utils"),
    package="pythondata_cpu_ibex",
    defines=("SYNTHESIS",),
    inputs=(("boot_addr_i", _BOOT), ("fetch_enable_i", 5), ("scan_rst_ni", 1)),
    pc="u_ibex_core.pc_id",
    registers="gen_regfile_ff.register_file_i.rf_reg",
)

CV32E40P: Final = Rtl(
    top="cv32e40p_core",
    bus="obi",
    sources=(
        *(f"rtl/include/cv32e40p_{name}pkg.sv" for name in ("apu_core_", "fpu_", "")),
        "rtl/cv32e40p_register_file_ff.sv",
        "bhv/cv32e40p_sim_clock_gate.sv",
        "rtl/cv32e40p_core.sv",
    ),
    search=("rtl", "rtl/include", "bhv/include"),
    package="pythondata_cpu_cv32e40p",
    defines=("SYNTHESIS",),
    inputs=(("boot_addr_i", _BOOT), ("fetch_enable_i", 1)),
    pc="pc_id",
    registers="id_stage_i.register_file_i.mem",
)

PICORV32: Final = Rtl(
    top="picorv32",
    bus="picorv32",
    sources=("picorv32.v",),
    package="pythondata_cpu_picorv32",
    parameters=(
        *((name, 1) for name in ("COMPRESSED_ISA", "BARREL_SHIFTER", "ENABLE_FAST_MUL", "ENABLE_DIV")),
        ("PROGADDR_RESET", _BOOT),
    ),
    clock="clk",
    reset="resetn",
    pc="reg_pc",
    registers="cpuregs",
)


def rtl_of(table: object, base: Rtl | None, directory: Path, where: str) -> Rtl:
    """The RTL of a table of minrpc.toml: `base` with its keys, or, if it names a top, that alone.

    directory: of the file; paths are relative to it. where: the file and the key, for messages.
    Raises ConfigurationError.
    """
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{where}: must be a table, rtl = {{ top = ... }}")
    for key in table:
        if key not in Rtl._fields:
            raise ConfigurationError(f"{where}.{key}: unknown key", next_step=instead_of(key, Rtl._fields))
    values = {key: _checked(key, value, directory, f"{where}.{key}") for key, value in table.items()}
    if "top" not in values:
        if base is None:
            raise ConfigurationError(f"{where}: top is missing", next_step='extend "rtl_ibex", or name a top')
        for key in ("parameters", "inputs"):
            values[key] = tuple((dict(getattr(base, key)) | dict(values.get(key, ()))).items())
        return base._replace(**values)
    lacks = [key for key in ("bus", "sources") if not values.get(key)]
    if lacks:
        raise ConfigurationError(f"{where}: {' and '.join(lacks)} missing", next_step="see docs/rtl.md")
    return Rtl(**values)


def _checked(key: str, value: Any, directory: Path, where: str) -> Any:  # noqa: ANN401 - of a field
    if key in ("parameters", "inputs"):
        if not isinstance(value, Mapping) or not all(isinstance(number, int) for number in value.values()):
            raise ConfigurationError(f"{where}: must be a table of numbers, not {value!r}")
        return tuple((name, int(number)) for name, number in value.items())
    if key == "defines":
        return define_list(value, where)
    if key in ("sources", "search"):
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ConfigurationError(f"{where}: must be a list of strings, not {value!r}")
        return paths_of("sources" if key == "sources" else "include_dirs", value, directory, where)
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"{where}: must be a text, not {value!r}")
    if key == "bus" and value not in get_args(Bus):
        raise ConfigurationError(f"{where}: must be one of {', '.join(get_args(Bus))}, not {value!r}")
    return value
