# SPDX-License-Identifier: Apache-2.0
"""pqm4's job without its board: each implementation of a checkout is a row of its tables.

pytest samples/pqm4 --pqm4 PATH -n 2        # two devices side by side; goes on where it was stopped
"""

from __future__ import annotations

import hashlib
import json
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
from pqm4 import FUNCTIONS, Implementation

OURS = [Path(__file__).parent / name for name in ("scheme.c", "randombytes.c")]
FLAGS = ["-O3", "-std=gnu99", "-fomit-frame-pointer", "-mfpu=fpv4-sp-d16", "-w"]
# Traces take the host a hundred times as long as a call.
LARGEST_TRACE = 5_000_000


def test_implementation(implementation: Implementation, pytestconfig: pytest.Config) -> None:
    file = pytestconfig.getoption("--pqm4-rows") / f"{implementation}.json"
    if not file.exists():
        row = measured(implementation, pytestconfig.getoption("--pqm4-seconds"))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(row))
    failed = json.loads(file.read_text())["failed"]
    assert not failed


def measured(implementation: Implementation, seconds: float) -> dict[str, Any]:
    """The implementation's row; if it can't be loaded, crashes or takes too long, the row has the reason."""
    row: dict[str, Any] = {**implementation.named, "failed": ""}
    # The board model has 4 MiB of RAM. A few schemes need more stack than this.
    options = ["-DMINRPC_STACK_BYTES=3145728"]
    target = Target.named("bare_mps2_an386").changed(cmake_options=options, call_timeout_s=seconds)
    firmware = build(target)
    try:
        row |= counted(implementation, firmware)
    except CompileError as error:
        first = next((line for line in error.output.splitlines() if "error:" in line), "")
        return row | {"failed": f"{error.message}: {first}"}
    except HarnessError as error:
        return row | {"failed": error.message.splitlines()[0]}
    if row["consume" if implementation.kind == "kem" else "produce"]["instructions"] > LARGEST_TRACE:
        return row | {"constant_time": "not tried: too long"}
    try:
        return row | {"constant_time": constant_time(implementation, firmware)}
    except HarnessError as error:
        return row | {"constant_time": f"not known: {error.message.splitlines()[0]}"}


def counted(implementation: Implementation, firmware: Firmware) -> dict[str, Any]:
    """A row with sizes, known answer and counters."""
    counters = counters_for(firmware.elf, flow=True, memory=True, core=load_core("cortex-m4"))
    with start(firmware, counters=counters) as running, connect(running) as device:
        lib = loaded(device, implementation)
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


def loaded(device: Device, implementation: Implementation) -> LoadedLibrary:
    lib = device.load(
        [*OURS, *implementation.sources, *implementation.hashing],
        include=implementation.include,
        flags=FLAGS,
        defines=implementation.defines,
    )
    loaded: LoadedLibrary = library_of(lib)
    return loaded


def constant_time(implementation: Implementation, firmware: Firmware) -> str:
    """The result of trying the operation with the secret key on other ciphertexts, one of them damaged, or
    with other random numbers."""
    counters = counters_for(firmware.elf, trace=True)
    with start(firmware, counters=counters) as running, connect(running) as device:
        lib = loaded(device, implementation)
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
        return "; ".join(differences) or "same path and addresses"


def sent(lib: LoadedLibrary) -> npt.NDArray[np.uint8]:
    lib["produce"]()
    return np.array(lib.variables.sent)
