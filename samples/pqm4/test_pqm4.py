# SPDX-License-Identifier: Apache-2.0
"""pqm4's job without its board: each implementation of a checkout is a row of its tables.

pytest samples/pqm4 --pqm4 PATH -n 2        # two devices side by side; goes on where it was stopped
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from minrpc import (
    CompileError,
    Device,
    Firmware,
    HarnessError,
    LoadedLibrary,
    QemuCounters,
    Target,
    build,
    check_constant_time,
    connect,
    counters_for,
    library_of,
    profile_call,
    start,
)
from minrpc.cycles.core import load_core
from minrpc.firmware.toolchain import compiler_version
from pqm4 import DEFAULT_COMPILER, FUNCTIONS, Implementation

OURS = [Path(__file__).parent / name for name in ("scheme.c", "randombytes.c")]
# pqm4 compiles and links a benchmark in one command, so its linker flags are the compiler's, too: with
# -ffreestanding memcpy and memset are calls, of any size.
FLAGS = ["-O3", "-std=gnu99", "-ffreestanding", "-mfpu=fpv4-sp-d16", "-w"]
# Flags of another compiler than the firmware's: the processor, and the form of objects that can be loaded.
OBJECT_FLAGS = [
    "-mcpu=cortex-m4",
    "-mthumb",
    "-mfloat-abi=hard",
    "-g",
    "-ffunction-sections",
    "-fdata-sections",
]
# Traces take the host a hundred times as long as a call.
LARGEST_TRACE = 5_000_000


def test_implementation(implementation: Implementation, pytestconfig: pytest.Config, tmp_path: Path) -> None:
    file = pytestconfig.getoption("--pqm4-rows") / f"{implementation}.json"
    if not file.exists():
        row = measured(implementation, pytestconfig, tmp_path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(row))
    failed = json.loads(file.read_text())["failed"]
    assert not failed


def measured(implementation: Implementation, config: pytest.Config, work: Path) -> dict[str, Any]:
    """The implementation's row; if it can't be loaded, crashes or takes too long, the row has the reason.

    work: an empty directory, for objects of another compiler.
    """
    linked = [path.absolute() for path in config.getoption("--pqm4-link")]
    compiler = config.getoption("--pqm4-cc")
    row: dict[str, Any] = {
        **implementation.named,
        "failed": "",
        "compiler": compiler_version(compiler),
        "linked": [path.name for path in linked],
    }
    # The board model has 4 MiB of RAM. A few schemes need more stack than this.
    options = ["-DMINRPC_STACK_BYTES=3145728"]
    seconds = config.getoption("--pqm4-seconds")
    target = Target.named("bare_mps2_an386").changed(cmake_options=options, call_timeout_s=seconds)
    firmware = build(target)
    try:
        sources = [*implementation.sources, *implementation.hashing]
        if compiler != DEFAULT_COMPILER:
            sources = [compiled(source, implementation, compiler, work) for source in sources]
        files = [*OURS, *sources, *linked]
        row |= counted(implementation, firmware, files)
    except CompileError as error:
        first = next((line for line in error.output.splitlines() if "error:" in line), "")
        return row | {"failed": f"{error.message}: {first}"}
    except HarnessError as error:
        return row | {"failed": error.message.splitlines()[0]}
    if row["consume" if implementation.kind == "kem" else "produce"]["instructions"] > LARGEST_TRACE:
        return row | {"constant_time": "not tried: too long"}
    try:
        return row | {"constant_time": constant_time(implementation, firmware, files)}
    except HarnessError as error:
        return row | {"constant_time": f"not known: {error.message.splitlines()[0]}"}


def compiled(source: Path, implementation: Implementation, compiler: str, work: Path) -> Path:
    """The source's object in `work`. Raises CompileError."""
    made = work / f"{len(list(work.iterdir()))}.o"
    given = [f"-I{path}" for path in implementation.include] + [
        f"-D{name}" for name in implementation.defines
    ]
    command = [compiler, *OBJECT_FLAGS, *FLAGS, *given, "-c", str(source), "-o", str(made)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise CompileError(f"{source.name} does not compile", ran.stderr)
    return made


def counted(implementation: Implementation, firmware: Firmware, files: Sequence[Path]) -> dict[str, Any]:
    """A row with sizes, known answer and counters."""
    counters = counters_for(firmware.elf, flow=True, memory=True, core=load_core("cortex-m4"))
    with start(firmware, counters=counters) as running, connect(running) as device:
        lib = loaded(device, implementation, files)
        own = lib.section_sizes[len(OURS) : len(OURS) + len(implementation.sources)]
        results = [lib[name]() for name in FUNCTIONS]
        right = results == [0, 0, 0] and lib["accepted"]()
        wrong = "" if right else "wrong answer"
        answer = bytes(lib.variables.public_bytes) + bytes(lib.variables.sent)
        return {
            "failed": wrong or ("" if lib["notices_change"]() else "a changed byte is not noticed"),
            "size": [sum(sizes) for sizes in zip(*own, strict=True)],
            "digest": hashlib.sha256(answer).hexdigest(),
            **{name: costs(lib, counters, name, implementation.hashing) for name in FUNCTIONS},
        }


def costs(lib: LoadedLibrary, counters: QemuCounters, name: str, hashing: Sequence[Path]) -> dict[str, float]:
    """Counters of one call. hashing: the sources whose share of the cycles is reported, in percent."""
    profile = profile_call(lib, counters, name, (), by="cycles")
    [of_call] = counters.of_batches(counters.windows - 1)
    hashed = sum(cycles for line, cycles in profile.lines.items() if line and Path(line.file) in hashing)
    return {
        "cycles": (of_call["cycles"] + of_call["cycles_most"]) // 2,
        "instructions": of_call["instructions"],
        "stack": of_call["stack_bytes"],
        "hashing": round(100 * hashed / profile.total, 1),
    }


def loaded(device: Device, implementation: Implementation, files: Sequence[Path]) -> LoadedLibrary:
    lib = device.load(
        files,
        include=implementation.include,
        flags=FLAGS,
        defines=implementation.defines,
    )
    loaded: LoadedLibrary = library_of(lib)
    return loaded


def constant_time(implementation: Implementation, firmware: Firmware, files: Sequence[Path]) -> str:
    """The result of trying the operation with the secret key on other ciphertexts, one of them damaged, or
    with other random numbers."""
    counters = counters_for(firmware.elf, trace=True)
    with start(firmware, counters=counters) as running, connect(running) as device:
        lib = loaded(device, implementation, files)
        lib["generate"]()
        inputs: list[tuple[Any]]
        operation, inputs = "consume_other", [(sent(lib),) for _ in range(3)]
        inputs[2][0][5] ^= 1
        if implementation.kind == "sign":
            if len({bytes(sent(lib)) for _ in range(2)}) == 1:
                return "signs without random numbers: not tried"
            operation, inputs = "produce_with", [(value,) for value in (1, 2, 3)]
        result = check_constant_time(device, counters, operation, inputs, lib)
        differences = dict.fromkeys(item.description for item in result.differences)
        same = "same path and addresses; IT may skip" if result.perhaps else "same path and addresses"
        return "; ".join(differences) or same


def sent(lib: LoadedLibrary) -> npt.NDArray[np.uint8]:
    lib["produce"]()
    return np.array(lib.variables.sent)
