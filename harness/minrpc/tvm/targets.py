# SPDX-License-Identifier: Apache-2.0
"""What TVM's LLVM is told of a device's core: its objects then fit what the device's own compiler makes."""

from __future__ import annotations

from typing import Any, Final

from minrpc.client import Device
from minrpc.errors import ConfigurationError
from minrpc.firmware import Firmware, build
from minrpc.library.loading import firmware_of
from minrpc.library.toolset import Toolset, program_facts, toolset_of
from minrpc.targets import Target
from minrpc.tvm.relax import tvm

# Arm's cores by the name of their instruction set in LLVM's triples; all others are thumbv7em.
_THUMB: Final = {
    "cortex-m0": "thumbv6m",
    "cortex-m0plus": "thumbv6m",
    "cortex-m3": "thumbv7m",
    "cortex-m23": "thumbv8m.base",
    "cortex-m33": "thumbv8m.main",
    "cortex-m55": "thumbv8.1m.main",
    "cortex-m85": "thumbv8.1m.main",
}
_RISCV: Final = {32: "riscv32-unknown-elf", 64: "riscv64-unknown-elf"}


def llvm_target(what: Device | Firmware | Target | str) -> Any:  # noqa: ANN401
    """The `tvm.target.Target` for code that `what` runs, by LLVM: a device, a firmware, or a platform.

    A platform's firmware is built first, which tells its core and its options.

    Raises ConfigurationError where TVM is not installed or has nothing for the core; else as `build` does.
    """
    package = tvm()
    return package.target.Target(description(toolset_of(_firmware(what))))


def _firmware(what: Device | Firmware | Target | str) -> Firmware:
    if isinstance(what, Device):
        return firmware_of(what)
    if isinstance(what, Firmware):
        return what
    return build(Target.named(what) if isinstance(what, str) else what)


def description(toolset: Toolset) -> dict[str, Any]:
    """Triple, processor and floating-point ABI, as TVM's target of the kind "llvm" takes them.

    num-cores: one, which TVM's tuner asks for. Raises ConfigurationError for an unknown core.
    """
    facts = program_facts(toolset.elf)
    found: dict[str, Any] = {"kind": "llvm", "num-cores": 1}
    match facts.machine:
        case "EM_ARM":
            core = _value(toolset, "-mcpu=") or "cortex-m3"
            core = core.partition("+")[0]
            found |= {"mtriple": f"{_THUMB.get(core, 'thumbv7em')}-none-eabi", "mcpu": core}
            if "-mfloat-abi=hard" in toolset.code_flags:
                found["mfloat-abi"] = "hard"
        case "EM_RISCV":
            found |= {"mtriple": _RISCV[facts.bits], "mabi": _value(toolset, "-mabi=")}
            found["mattr"] = [f"+{one}" for one in extensions(_value(toolset, "-march="))]
        case "EM_X86_64":
            found["mtriple"] = "x86_64-unknown-linux-gnu"
        case "EM_386":
            found["mtriple"] = "i686-unknown-linux-gnu"
        case other:
            raise ConfigurationError(f"no target of LLVM's is known for {other}", next_step='take "c"')
    return found


def extensions(march: str) -> list[str]:
    """RISC-V's extensions by their names in LLVM: "rv32imac_zicsr" has m, a, c, zicsr."""
    first, *rest = march.partition("rv")[2][2:].split("_")
    letters = [letter for letter in first.replace("g", "imafd") if letter != "i"]
    return [*letters, *rest]


def _value(toolset: Toolset, option: str) -> str:
    return next((flag.removeprefix(option) for flag in toolset.code_flags if flag.startswith(option)), "")
