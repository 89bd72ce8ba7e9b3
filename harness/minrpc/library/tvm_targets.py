# SPDX-License-Identifier: Apache-2.0
"""TVM targets for LLVM that match a device's core, so that objects are compatible with the device's compiler.

TVM passes the triple to LLVM unchanged. LLVM reads three words as "thumbv7m", vendor "none", system "eabi",
which does not select the EABI: LLVM then calls missing arithmetic by GCC's names, such as __adddf3, and
passes doubles in registers that those functions do not read. A triple of four words is read correctly.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from minrpc.client import Session
from minrpc.errors import ConfigurationError
from minrpc.firmware import Firmware, build
from minrpc.library.loading import firmware_of
from minrpc.library.toolset import Toolset, program_facts, run_tool, toolset_of
from minrpc.targets import Target

# float16 in TVM's C, in casts and declarations: compilers need a flag for it, or lack it.
_FLOAT16: Final = re.compile(r"\(half\s*\*?\)|^\s*(?:static |const )*half(?: \*?|\* ?)\w", re.M)
# Instruction sets of Arm's cores in LLVM's triples; all others are thumbv7em.
_THUMB: Final = {
    "cortex-m0": "thumbv6m",
    "cortex-m0plus": "thumbv6m",
    "cortex-m3": "thumbv7m",
    "cortex-m23": "thumbv8m.base",
    "cortex-m33": "thumbv8m.main",
    "cortex-m55": "thumbv8.1m.main",
    "cortex-m85": "thumbv8.1m.main",
}
# The libgcc of these cores only has the names of Arm's run-time ABI.
_WITHOUT_GCC_NAMES: Final = ("thumbv6m", "thumbv8m.base")
# GCC's names for arithmetic and conversions of floating-point numbers.
_GCC_FLOAT: Final = re.compile(
    r"__(add|sub|mul|div|eq|ne|lt|le|gt|ge|unord)[sd]f[23]|__(extend|trunc)[sd]f[sd]f2|"
    r"__fix(uns)?[sd]f[sd]i|__float(un)?[sd]i[sd]f"
)
# TVM puts its own conversions into each object.
_HALF: Final = frozenset({"__extendhfsf2", "__truncsfhf2"})
_RISCV: Final = {32: "riscv32-unknown-elf", 64: "riscv64-unknown-elf"}


def llvm_target(what: Session | Firmware | Target | str) -> Any:  # noqa: ANN401
    """The `tvm.target.Target` that makes LLVM generate code for a device, a firmware, or a platform.

    A platform's firmware is built first, since the build has the core and its options.

    Raises ConfigurationError if TVM is not installed or does not support the core; else as `build` does.
    """
    package = tvm_package()
    return package.target.Target(description(toolset_of(_firmware(what))))


def tvm_package() -> Any:  # noqa: ANN401 - TVM has no types
    """The tvm package. Raises ConfigurationError if it is not installed."""
    try:
        return import_module("tvm")
    except ImportError as error:
        raise ConfigurationError(
            f"TVM can't be imported: {error}", next_step="pip install 'minrpc-harness[tvm]'"
        ) from error


def _firmware(what: Session | Firmware | Target | str) -> Firmware:
    if isinstance(what, Session):
        return firmware_of(what)
    if isinstance(what, Firmware):
        return what
    return build(Target.named(what) if isinstance(what, str) else what)


def description(toolset: Toolset) -> dict[str, Any]:
    """Triple, processor and floating-point ABI, as TVM's target of the kind "llvm" takes them.

    num-cores is 1; TVM's tuner needs it. Raises ConfigurationError for an unknown core.
    """
    facts = program_facts(toolset.elf)
    target: dict[str, Any] = {"kind": "llvm", "num-cores": 1}
    match facts.machine:
        case "EM_ARM":
            target |= _arm(toolset)
        case "EM_RISCV":
            target |= {"mtriple": _RISCV[facts.bits], "mabi": _value(toolset, "-mabi=")}
            target["mattr"] = [f"+{extension}" for extension in extensions(_value(toolset, "-march="))]
        case "EM_X86_64":
            target["mtriple"] = "x86_64-unknown-linux-gnu"
        case "EM_386":
            target["mtriple"] = "i686-unknown-linux-gnu"
        case other:
            raise ConfigurationError(f"no target of LLVM's is known for {other}", next_step='take "c"')
    return target


def _arm(toolset: Toolset) -> dict[str, Any]:
    """Options of an Arm core. LLVM's cores have all extensions; the device's flags may exclude some."""
    core, *without = _core(toolset).split("+")
    abi, unit = _value(toolset, "-mfloat-abi="), _value(toolset, "-mfpu=")
    features = [f"-{name.removeprefix('no')}" for name in without if name in ("nodsp", "nomve", "nomve.fp")]
    target: dict[str, Any] = {"mtriple": f"{_instructions(toolset)}-none-unknown-eabi", "mcpu": core}
    if abi == "hard":
        target["mfloat-abi"] = "hard"
    if abi in ("", "soft"):
        features += ["+soft-float", "-fpregs"]
    elif "-sp-" in unit:
        features.append("-fp64")
    return target | ({"mattr": features} if features else {})


def _core(toolset: Toolset) -> str:
    return _value(toolset, "-mcpu=") or "cortex-m3"


def _instructions(toolset: Toolset) -> str:
    return _THUMB.get(_core(toolset).partition("+")[0], "thumbv7em")


def uses_float16(source: str) -> bool:
    """True if C code that TVM generated computes with float16."""
    return _FLOAT16.search(source) is not None


def float16_flags(source: str, toolset: Toolset) -> list[str]:
    """The flags that enable float16 in the device's compiler, if the generated C code uses it.

    Raises ConfigurationError if the compiler has no float16.
    """
    if not uses_float16(source):
        return []
    facts = program_facts(toolset.elf)
    if facts.machine == "EM_ARM":
        return ["-mfp16-format=ieee"]
    macros = run_tool([toolset.compiler, *toolset.flags, "-dM", "-E", "-x", "c", os.devnull])
    if "__FLT16_MANT_DIG__" not in macros:
        raise ConfigurationError(
            f"{Path(toolset.compiler).name} has no float16 for this device",
            next_step="compute with float32, or let LLVM make the code: minrpc.tvm.llvm_target(device)",
        )
    return []


def misfit(toolset: Toolset, used: Iterable[str]) -> str:
    """The reason why an object that uses these symbols would compute wrong values here; "" if it fits."""
    machine = program_facts(toolset.elf).machine
    called = next((symbol for symbol in sorted(used) if _GCC_FLOAT.fullmatch(symbol)), "")
    if machine == "EM_ARM" and called:
        hard = "-mfloat-abi=hard" in toolset.code_flags
        if hard or _instructions(toolset) in _WITHOUT_GCC_NAMES:
            return f"calls {called} by no EABI's convention: its triple should have four words"
    in_floats = re.fullmatch(r"i?lp(32|64)[fdq]", _value(toolset, "-mabi="))
    if machine == "EM_RISCV" and in_floats and _HALF.intersection(used):
        return "computes with float16, which TVM passes in other registers than LLVM does on this core"
    return ""


def extensions(march: str) -> list[str]:
    """RISC-V's extensions by their names in LLVM: "rv32imac_zicsr" has m, a, c, zicsr."""
    first, *rest = march.partition("rv")[2][2:].split("_")
    letters = [letter for letter in first.replace("g", "imafd") if letter != "i"]
    return [*letters, *rest]


def _value(toolset: Toolset, option: str) -> str:
    return next((flag.removeprefix(option) for flag in toolset.code_flags if flag.startswith(option)), "")
