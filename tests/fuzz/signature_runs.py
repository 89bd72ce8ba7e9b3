# SPDX-License-Identifier: Apache-2.0
"""Calls random C functions on devices: `python -m tests.fuzz.signature_runs [--functions N] [--target NAME]`.

The expected results are computed from the values alone, and once more by a program in C, compiled by this
machine's gcc. A finding shows the function, the call, and the command that repeats it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import numpy as np
from minrpc import Address, Device, HarnessError, LoadedLibrary, RemoteError, library_of, open_device

from tests.fuzz.signatures import (
    HEAD,
    Array,
    Call,
    Case,
    Leaf,
    Made,
    Object,
    Pointer,
    Record,
    Slot,
    Type,
    bump,
    fold,
    got,
    plain,
    pointers,
    put,
    random_case,
    walk,
)

CALLS: Final = 3


class Target(NamedTuple):
    """functions: in a load; the device's memory has room for them. wide: the bytes of a pointer."""

    platform: str
    functions: int
    flags: tuple[str, ...] = ()
    wide: int = 4


TARGETS: Final = {
    "posix": Target("posix", 40, wide=8),
    "bare_mps2_an385": Target("bare_mps2_an385", 40),
    "bare_rv32": Target("bare_rv32", 40),
    "bare_mps2_an386": Target("bare_mps2_an386", 40),
    "soft": Target("bare_mps2_an386", 40, ("-mfloat-abi=soft",)),
    "bare_microbit": Target("bare_microbit", 1, ("-Os",)),
}


def source(cases: Sequence[Case]) -> str:
    """The C file of the functions."""
    return HEAD + "".join(case.definitions() for case in cases)


def require_witness(calls: Sequence[Call], directory: Path) -> None:
    """Raise AssertionError if this machine's compiler gives another number for a call than Python."""
    program = directory / "witness"
    cases = list(dict.fromkeys(call.case for call in calls))
    called = "".join(f"call{call.case.index}_{call.number}();\n" for call in calls)
    text = f"#include <stdio.h>\n{source(cases)}{''.join(call.source() for call in calls)}"
    Path(f"{program}.c").write_text(f"{text}int main(void)\n{{\n{called}return 0;\n}}\n")
    flags = ["-O1", "-DWITNESS", "-w", "-Wno-packed-bitfield-compat"]
    subprocess.run(["gcc", *flags, f"{program}.c", "-o", program], check=True, timeout=300)
    ran = subprocess.run([program], check=True, timeout=60, capture_output=True, text=True)
    for call, line in zip(calls, ran.stdout.split(), strict=True):
        expected = call.case.digest(call.case.answer(*call.given), call.given)
        assert int(line) == expected, f"the model of call {call.number} of {call.case} is wrong"


class Given:
    """The arguments of a call as Python gives them: arrays, structs, other objects that share memory."""

    def __init__(self, call: Call, library: LoadedLibrary, wide: int) -> None:
        """wide: the size of a pointer, in bytes."""
        self.call, self.library = call, library
        self.random = Random(f"{call.case.seed} {call.case.index} {call.number}")
        self._sizes = {"l": f"i{wide}", "L": f"u{wide}"}
        self._made: dict[int, Any] = {}
        self.values = [
            self._value(kind, call.given, index) for index, kind in enumerate(call.case.parameters)
        ]

    def roots(self) -> Iterator[tuple[Pointer, Any, Object]]:
        """The objects that were made, with their type."""
        for root in self.call.roots:
            if id(root) in self._made:
                yield Pointer(root.kind, len(root.cells), False), self._made[id(root)], root

    def _value(self, kind: Type, holder: Any, key: Any) -> Any:  # noqa: ANN401 - of any type
        """A value whose pointers lead to objects."""
        made = [self._plain(kind, got(holder, key))]
        self._point(kind, made, 0, holder, key)
        return made[0]

    def _point(self, kind: Type, made: list[Any], at: int, holder: Any, key: Any) -> None:  # noqa: ANN401
        """Sets the pointers of a value that was made."""
        theirs = pointers(kind, holder, key)
        for (_, mine, here, _), (_, model, there, _) in zip(pointers(kind, made, at), theirs, strict=True):
            target = got(model, there)
            if target is not None:
                put(mine, here, self._object(target))

    def _plain(self, kind: Type, model: Any) -> Any:  # noqa: ANN401
        match kind:
            case Array(element):
                return [self._plain(element, each) for each in model]
            case Record():
                values = {each.name: self._plain(each.type, getattr(model, each.name)) for each in kind.used}
                return self.library.types[kind.name](**values) if kind.name else values
            case Pointer():
                return None
        return model

    def _object(self, target: Object) -> Any:  # noqa: ANN401 - an array, a struct, a list
        if id(target) in self._made:
            return self._made[id(target)]
        if target.parent is not None:
            parent = self._object(target.parent)
            if isinstance(target.path, str):
                made = getattr(parent, target.path)
            else:  # A slice of a bytearray would be a copy.
                made = (memoryview(parent) if isinstance(parent, bytearray) else parent)[target.path :]
        elif isinstance(target.kind, Leaf):
            made = self._array(target.kind, list(target.cells))
        elif isinstance(target.kind, Array):
            assert isinstance(target.kind.element, Leaf)
            made = self._array(target.kind.element, list(target.cells))
        else:
            items = [self._plain(target.kind, got(target.cells, index)) for index in range(len(target.cells))]
            made = items[0] if isinstance(target.kind, Record) and len(items) == 1 else items
            self._made[id(target)] = made  # before its pointers, which may lead into it
            for index in range(len(items)):
                self._point(target.kind, items, index, target.cells, index)
        self._made[id(target)] = made
        return made

    def _array(self, leaf: Leaf, values: list[Any]) -> Any:  # noqa: ANN401
        made = np.array(values, self._sizes.get(leaf.dtype, leaf.dtype))
        if (leaf.dtype, leaf.kind) == ("u1", "int") and made.ndim == 1 and self.random.random() < 0.4:
            data = bytearray(made)
            return self.random.choice([data, memoryview(data)])
        return made


def shown(slots: Iterator[Slot]) -> list[Any]:
    """The leaves' values; a pointer's is 0 or 1."""
    return [int(slot.key) if slot.leaf is None else slot.value for slot in slots]


def check_call(call: Call, library: LoadedLibrary, wide: int) -> None:
    """Raise AssertionError if the call gives another result, or changes its arguments otherwise, than C's
    rules say."""
    case = call.case
    given = Given(call, library, wide)
    further: list[Any] = []
    if case.way == "callback":
        in_c = given.random.random() < 0.5
        further = [library[f"k{case.index}"] if in_c else answer_of(case)]
    result = library[f"f{case.index}"](*given.values, *further)
    expected = case.answer(*call.given)
    if case.result is not None:
        assert shown(walk(case.result, [result], 0)) == shown(walk(case.result, [expected], 0)), "the result"
    for kind, mine, model in given.roots():
        found, due = shown(walk(kind, [mine], 0)), shown(walk(kind, [model], 0))
        assert found == due, f"memory behind {model.c}"
    assert case.digest(result, given.values) == case.digest(expected, call.given)


def answer_of(case: Case) -> Callable[..., Any]:
    """The body in Python, as a fake or a callback."""
    return lambda *given: plain(case.answer(*given))


def fakes_of(cases: Sequence[Case]) -> dict[str, Any]:
    """The fakes that the functions call."""
    return {f"k{case.index}": answer_of(case) for case in cases if case.way == "fake"}


def check_variables(case: Case, library: LoadedLibrary) -> None:
    """Raise AssertionError if a variable of a struct gets other values in C, as a whole or by its members."""
    for number, decoy in enumerate(case.decoys.values()):
        if decoy.is_flexible:
            continue
        name, model = f"v{decoy.name}", [Made(case.index * 16 + number)(decoy)]
        setattr(library.variables, name, library.types[decoy.name](**plain(model[0])))
        read = [getattr(library.variables, name)]
        for _ in range(2):
            assert shown(walk(decoy, read, 0)) == shown(walk(decoy, model, 0)), name
            assert library[f"g{decoy.name}"]() == fold(0, walk(decoy, model, 0)), name
            bump(walk(decoy, read, 0))
            bump(walk(decoy, model, 0))


def wrong_values(case: Case, kind: Type, library: LoadedLibrary) -> list[Any]:
    """Values that no parameter of this type takes."""
    match kind:
        case Leaf(kind="float"):
            return [True, "1", None, 1j, 10**400]
        case Leaf(kind="enum"):
            return [1.5, "no_such", None, 1 << 80, -(1 << 80)]
        case Leaf():
            return [1.5, "ab", None, 1 << 80, 1 << 64, -(1 << 63) - 1, np.float32(1)]
        case Record():
            decoy = library.types[case.decoys[kind].name]
            return [decoy(), 1, {"no_such": 1}, None, np.zeros(64, np.uint8), Address(64)]
        case Pointer(Record() as target):
            decoy = library.types[case.decoys[target].name]
            return [decoy(), [decoy()], 1.5, np.zeros(64, np.float32), {"no_such": 1}, "text"]
        case Pointer(target):
            other = np.float32 if isinstance(target, Leaf) and target.dtype != "f4" else np.complex64
            return [np.zeros(24, other), np.zeros((24, 3, 2), np.uint8)[:, ::2], True, 1.5, {}]
    return []


def check_refusals(call: Call, library: LoadedLibrary, wide: int) -> None:
    """Raise AssertionError if the function takes a wrong value for one of its arguments."""
    case = call.case
    further = [library[f"k{case.index}"]] if case.way == "callback" else []
    for index, kind in enumerate(case.parameters):
        for wrong in wrong_values(case, kind, library):
            values = [*Given(call, library, wide).values, *further]
            values[index] = wrong
            try:
                library[f"f{case.index}"](*values)
            except (TypeError, ValueError):
                continue
            raise AssertionError(f"p{index} took {wrong!r}")


def batch(seed: int, indices: Sequence[int]) -> tuple[list[Case], list[Call]]:
    """The functions, and their calls."""
    cases = [random_case(seed, index) for index in indices]
    return cases, [Call(case, number) for case in cases for number in range(CALLS)]


class Finding(NamedTuple):
    """error: what went wrong, in a call or in the load."""

    case: Case
    call: Call | None
    error: Exception

    def report(self, name: str) -> str:
        """The function, the call in C, the error, and the command that repeats it."""
        case = self.case
        lines = [case.definitions()]
        lines += [self.call.source()] if self.call else []
        lines += traceback.format_exception_only(self.error)
        program = f"python -m {__spec__.name}"
        return "\n".join([*lines, f"{program} --target {name} --seed {case.seed} --function {case.index}"])


def findings(name: str, seed: int, indices: Sequence[int], directory: Path) -> Iterator[Finding]:
    """Calls the functions of these numbers on a target."""
    target = TARGETS[name]
    waiting = [list(indices[at : at + target.functions]) for at in range(0, len(indices), target.functions)]
    while waiting:
        with open_device(target.platform) as device:
            try:
                while waiting:
                    yield from load_and_call(device, target, seed, waiting, directory)
            except HarnessError:
                continue


def is_refusal(error: Exception) -> bool:
    """True if the device has no room for the function."""
    return "out of device memory" in str(error)


def load_and_call(
    device: Device, target: Target, seed: int, waiting: list[list[int]], directory: Path
) -> Iterator[Finding]:
    """Calls the first functions that wait. Raises HarnessError after an end of the device."""
    indices = waiting.pop(0)
    cases, calls = batch(seed, indices)
    require_witness(calls, directory)
    cases, calls = batch(seed, indices)
    file = directory / "signatures.c"
    file.write_text(source(cases))
    flags = ["-w", f"-O{'012s'[indices[0] // 40 % 4]}", *target.flags]
    try:
        library = library_of(device.load(file, fakes=fakes_of(cases), flags=flags))
    except HarnessError as error:
        if len(indices) > 1:
            half = len(indices) // 2
            waiting[:0] = [indices[:half], indices[half:]]
        elif not is_refusal(error):
            yield Finding(cases[0], None, error)
        return
    with library:
        wrong: set[Case] = set()
        for call in calls:
            if call.case in wrong:
                continue
            try:
                check_call(call, library, target.wide)
                if call.number == 0:
                    check_variables(call.case, library)
                    check_refusals(Call(call.case, 0), library, target.wide)
            except Exception as error:
                wrong.add(call.case)
                if is_refusal(error):
                    continue
                yield Finding(call.case, call, error)
                if isinstance(error, HarnessError) and not isinstance(error, RemoteError):
                    behind = [index for index in indices if index > call.case.index]
                    waiting[:0] = [behind] if behind else []
                    raise


def main() -> int:
    """Run the functions on the targets; 1 with a finding."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.signature_runs")
    parser.add_argument("--functions", type=int, default=10_000, help="of all targets (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", choices=TARGETS, help="only this one")
    parser.add_argument("--function", type=int, help="only the function of this number")
    options = parser.parse_args()
    shares = share(options.functions, options.target or list(TARGETS))
    status = 0
    with tempfile.TemporaryDirectory() as directory:
        for name, indices in shares.items():
            begin, count = processor_time(), 0
            wanted = [options.function] if options.function is not None else indices
            for finding in findings(name, options.seed, wanted, Path(directory)):
                print(finding.report(name), flush=True)
                status, count = 1, count + 1
            spent = processor_time() - begin
            print(
                f"{name}: {len(wanted)} functions, {count} findings, {spent:.0f} s of processors", flush=True
            )
    return status


def processor_time() -> float:
    """Seconds of this process, and of compilers and devices that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def share(functions: int, names: Sequence[str]) -> dict[str, range]:
    """The numbers of the functions of each target: others of each, fewest where a load has one."""
    least = max(functions // 50, 1)
    slow = [name for name in names if TARGETS[name].functions == 1]
    fast = max((functions - least * len(slow)) // max(len(names) - len(slow), 1), 1)
    counts = [least if name in slow else fast for name in names]
    return {name: range(sum(counts[:at]), sum(counts[: at + 1])) for at, name in enumerate(names)}


if __name__ == "__main__":
    sys.exit(main())
