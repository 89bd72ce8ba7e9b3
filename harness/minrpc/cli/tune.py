# SPDX-License-Identifier: Apache-2.0
"""`minrpc tune`: finds the parameters and flags that make a C kernel fastest, measured on the device."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Final

from minrpc.cli.call_arguments import parse_argument, to_host
from minrpc.cli.selected import require_one, selected
from minrpc.cli.source_options import add_sandbox_option
from minrpc.cli.unused_options import refuse
from minrpc.cycles import core_or_reason
from minrpc.errors import ConfigurationError
from minrpc.firmware import Firmware, build
from minrpc.host.files import check_writable, write_output
from minrpc.reports.figures import check_target
from minrpc.reports.markdown import table
from minrpc.targets import Target
from minrpc.targets.option_table import DEVICE_OPTIONS
from minrpc.targets.options import add_device_options, check_seconds
from minrpc.targets.target import UNKNOWN_BOARD
from minrpc.tuning.applying import applied, check_applicable
from minrpc.tuning.candidates import (
    COMPILE_TIMEOUT_S,
    CandidateResult,
    Space,
    best,
    pareto,
    parse_flags,
    parse_param,
    t4,
)
from minrpc.tuning.picture import draw_results
from minrpc.tuning.results_file import ResultsFile
from minrpc.tuning.strategies import STRATEGIES

if TYPE_CHECKING:
    from minrpc.tuning.kernel import Check, Kernel
    from minrpc.tuning.tune import Workers

# The exit status that shells give for a program that SIGINT ended.
_STOPPED: Final = 130
# The name of the module of --check: of no module that can be imported.
_CHECK_MODULE: Final = "minrpc_check_ref"
_SEVERAL: Final = {
    "action": "append",
    "default": [],
    "help": "use the board at this port; each shares the queue",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("source", type=Path, metavar="FILE", help="the C file")
    add("function", metavar="FUNC", help="a function of the source")
    add("--param", action="append", default=[], metavar="NAME=VALUES", help="a macro: 1,2,4 or 16:128:16")
    add("--where", default="", metavar="CONDITION", help='try only these candidates: "TI*TJ <= 8"')
    add("--flags", default="", metavar="SETS", help="compiler flags, sets with commas between: -O2,-O3,-Os")
    add("--arg", action="append", default=[], metavar="ARG", help="an argument: int8[1024], 3, 0.5, data.npy")
    add("--include", action="append", default=[], type=Path, metavar="DIR", help="a directory of headers")
    right = "a Python function with the right results; none"
    add("--check", dest="reference", default="none", metavar="FILE:FUNC", help=right)
    add(
        "--check-only",
        metavar="N|best",
        help="check each N-th candidate, or the best at the end, until one is right",
    )
    add(
        "--strategy",
        choices=list(STRATEGIES),
        default="all",
        help="which candidates are tried (default %(default)s)",
    )
    add("--budget", type=int, metavar="N", help="try at most N candidates")
    add("--seed", type=int, default=0, metavar="N", help="seed of the order and of proposals (default 0)")
    add("--jobs", type=int, default=1, metavar="N", help="devices at once (default 1)")
    add("--dask", metavar="ADDRESS", help="use a Dask scheduler's workers, each with a device of its own")
    add(
        "--compile-timeout",
        type=float,
        metavar="S",
        help=f"seconds that compiling a candidate may take (default {COMPILE_TIMEOUT_S:g})",
    )
    add(
        "--objective",
        choices=("time", "cycles"),
        default="time",
        help="the number to minimize: time, or a core's cycles, estimated under QEMU",
    )
    add("--counters", default="", metavar="all|NAME[,NAME...]", help="further counters, under QEMU")
    add("--results", type=Path, metavar="FILE", help="a JSON line for each candidate")
    add("--resume", type=Path, metavar="FILE", help="continue after the results in this file, and add to it")
    add("--t4", type=Path, metavar="FILE", help="the results in the autotuning tools' T4 format")
    add(
        "--apply",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="write the best: a header, a CMake cache (.cmake), or an entry of minrpc.toml; repeatable",
    )
    add(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw how the best was found, and the front, as PNG, SVG or PDF",
    )
    add_sandbox_option(add, "for C of strangers; --dask's workers always do it without --no-sandbox")
    # The options of all commands, but a port can be repeated, and --check is this command's own.
    add_device_options(
        lambda name, **given: add(name, **(given | _SEVERAL if name == "--serial-port" else given)),
        [name for name in DEVICE_OPTIONS if name not in ("check", "total-timeout")],
    )


def main(arguments: argparse.Namespace) -> int:
    """Tune on each platform; 1 if no candidate was right."""
    params = _params(arguments.param, arguments.source)
    space = Space(params, parse_flags(arguments.flags) or [()], arguments.where)
    for name in ("jobs", "budget"):
        value = getattr(arguments, name)
        if value is not None and value < 1:
            raise ConfigurationError(f"--{name} is at least 1, not {value}", next_step="leave it out")
    if arguments.compile_timeout is not None:
        _require_compile_timeout(arguments)
    ports = arguments.serial_port
    _require_ports(arguments, ports)
    arguments.serial_port = ports[0] if ports else None
    kernel = _kernel(arguments)
    if arguments.reference == "none":
        refuse(arguments, ["check-only"], "without --check", "add --check FILE:FUNC")
    _require_files(arguments)
    selection = selected(arguments)
    if arguments.t4 or arguments.plot or arguments.apply:
        require_one(selection.targets, "--t4, --plot and --apply are for")
    status = 0
    for target in selection.targets:
        status = max(status, _tune(kernel, space, target, ports, arguments))
        if status == _STOPPED:
            break
    return status


def _params(given: Sequence[str], source: Path) -> dict[str, list[str]]:
    """The values by name, from each --param. Raises ConfigurationError."""
    params: dict[str, list[str]] = {}
    text = source.read_text(errors="replace") if source.is_file() else None
    for name, values in map(parse_param, given):
        if name in params:
            raise ConfigurationError(
                f"--param {name} is given twice", next_step=f"write --param {name}=1,2 with all its values"
            )
        if text is not None and re.search(rf"\b{name}\b", text) is None:
            print(
                f"note: {source} has no {name}; unless a header has it, it changes nothing", file=sys.stderr
            )
        params[name] = values
    return params


def _require_compile_timeout(arguments: argparse.Namespace) -> None:
    check_seconds("--compile-timeout", arguments.compile_timeout)
    if arguments.dask:
        raise ConfigurationError(
            "--compile-timeout is for compilers that are started here", next_step="leave it out with --dask"
        )


def _require_ports(arguments: argparse.Namespace, ports: Sequence[str]) -> None:
    """Raise ConfigurationError if boards do not fit the other options."""
    if not ports:
        return
    if arguments.jobs != 1:
        raise ConfigurationError(
            "--jobs is for devices that are started here", next_step="name each board by --serial-port"
        )
    if arguments.dask:
        raise ConfigurationError(
            "--dask's workers start their own devices", next_step="leave out --serial-port"
        )
    if len({Path(port).resolve() for port in ports}) < len(ports):
        raise ConfigurationError("--serial-port names a board twice", next_step="name each once")


def _firmware(target: Target) -> Firmware:
    """The firmware into which candidates are loaded: started here, or running at the ports."""
    if target.elf is not None:
        from minrpc.library.loading import firmware_from

        return firmware_from(target, target.elf)
    if target.serial_port is not None and target.name == UNKNOWN_BOARD:
        raise ConfigurationError(
            f"the running program is unknown at {target.serial_port}",
            next_step="name its platform by --platform, or the program that was flashed by --elf FILE",
        )
    return build(target)


def _require_files(arguments: argparse.Namespace) -> None:
    """Raise ConfigurationError if a file can't be written, or if results would be lost or are missing."""
    results, resume = arguments.results, arguments.resume
    if results is not None and resume is not None:
        raise ConfigurationError("--resume adds to its own file", next_step="leave --results out")
    if results is not None and results.is_file() and results.stat().st_size > 0:
        raise ConfigurationError(
            f"--results {results}: the file is not empty",
            next_step=f"go on with it by --resume {results}, or name another file",
        )
    if resume is not None and not resume.is_file():
        raise ConfigurationError(
            f"--resume {resume}: there is no such file", next_step=f"begin one by --results {resume}"
        )
    for path in (results, arguments.t4):
        if path is not None:
            check_writable(path)
    if arguments.plot is not None:
        check_target(arguments.plot)
    for path in arguments.apply:
        check_applicable(path, arguments.function)


def _kernel(arguments: argparse.Namespace) -> Kernel:
    from minrpc.tuning.kernel import Kernel

    plan = [parse_argument(text) for text in arguments.arg]
    named = tuple(filter(None, arguments.counters.split(",")))
    counters = "all" if arguments.counters == "all" else named
    return Kernel(
        arguments.source,
        arguments.function,
        tuple(to_host(plan)),
        _check_of(arguments.reference),
        tuple(arguments.include),
        _check_every(arguments.check_only),
        counters=counters,
        objective=arguments.objective,
    )


def _check_every(text: str | None) -> int:
    """The numbers of --check-only. Raises ConfigurationError."""
    if text in (None, "best"):
        return 1 if text is None else 0
    if not text.isdecimal() or int(text) < 1:
        raise ConfigurationError(
            f"--check-only {text}: a number or `best` is expected", next_step="write 10, or best"
        )
    return int(text)


def _check_of(text: str) -> Check | None:
    """The function of "ref.py:dot". Raises ConfigurationError."""
    if text == "none":
        return None
    name, colon, function = text.rpartition(":")
    path = Path(name)
    spec = spec_from_file_location(_CHECK_MODULE, path) if colon and path.is_file() else None
    if spec is None or spec.loader is None:
        problem = f"{name} is no Python file" if path.is_file() else "there is no such file"
        raise ConfigurationError(f"--check {text}: {problem}", next_step="write ref.py:function")
    module = sys.modules[_CHECK_MODULE] = module_from_spec(spec)
    sys.path.insert(0, str(path.absolute().parent))  # As if it was started by itself.
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # Any error of the user's file.
        reason = f"{type(error).__name__}: {error}"
        raise ConfigurationError(
            f"--check {text}: {path} can't be loaded: {reason}", next_step=f"python {path} shows where"
        ) from error
    named = getattr(module, function, None)
    if not callable(named):
        raise ConfigurationError(
            f"--check {text}: {path.name} has no function {function!r}", next_step="write ref.py:function"
        )
    check: Check = named
    return check


def _tune(
    kernel: Kernel, space: Space, target: Target, ports: Sequence[str], arguments: argparse.Namespace
) -> int:
    """Tune on one platform; 1 if no candidate was right, 130 after Ctrl-C."""
    from minrpc.tuning.fingerprint import identity

    path = arguments.resume or arguments.results
    firmware = _firmware(target)
    with ExitStack() as stack:
        file = path and stack.enter_context(ResultsFile(path, target.name, space, identity(kernel, firmware)))
        results = {item.candidate.number: item for item in (file.earlier if file else ())}
        stopped = _try_all(kernel, space, firmware, ports, arguments, results, file)
    tried = list(results.values())
    if arguments.t4 is not None:
        by_number = sorted(tried, key=lambda result: result.candidate.number)
        write_output(arguments.t4, json.dumps(t4(by_number), indent=1) + "\n")
    if arguments.plot is not None:
        draw_results(f"{kernel.function} on {target.name}", tried, arguments.plot)
    status = _summary(tried, kernel)
    leader = best(tried)
    if leader is not None:
        for place in arguments.apply:
            write_output(place, applied(leader.candidate, kernel, place))
            print(f"\n{leader.candidate}: written to {place}")
    core, _ = core_or_reason(target.platform)
    if core and kernel.objective == "cycles":
        print(f"\nCycles are an {core.about}")
    return _STOPPED if stopped else status


def _try_all(
    kernel: Kernel,
    space: Space,
    firmware: Firmware,
    ports: Sequence[str],
    arguments: argparse.Namespace,
    results: dict[int, CandidateResult],
    file: ResultsFile | None,
) -> bool:
    """Add each candidate's result to `results` and the file; returns True if Ctrl-C has stopped it."""
    from minrpc.tuning.judging import candidate_limit_s
    from minrpc.tuning.tune import tune

    target = firmware.target
    budget: int | None = arguments.budget
    if budget is not None:
        budget = max(0, budget - len(results))
    left = len(space.numbers) - len(results)
    total = len(results) + (left if budget is None else min(left, budget))
    print(f"{target.name}: {len(space.numbers)} candidates, {total} to try, {len(results)} known", flush=True)
    trying = tune(
        kernel,
        space,
        firmware,
        strategy=arguments.strategy,
        budget=budget,
        jobs=arguments.jobs,
        seed=arguments.seed,
        known=tuple(results.values()),
        call_timeout_s=candidate_limit_s(target, arguments.call_timeout),
        workers=_dask(arguments, kernel, target) if arguments.dask else None,
        ports=ports,
        compile_timeout_s=arguments.compile_timeout or COMPILE_TIMEOUT_S,
    )
    try:
        for result in trying:
            results[result.candidate.number] = result
            if file is not None:
                file.add(result)
            _progress(result, list(results.values()), total, kernel.unit)
    except KeyboardInterrupt:
        print("stopped; finished results are kept", file=sys.stderr)
        return True
    finally:
        trying.close()
    return False


def _dask(arguments: argparse.Namespace, kernel: Kernel, target: Target) -> AbstractContextManager[Workers]:
    from minrpc.tuning.cluster import DaskWorkers

    return DaskWorkers(arguments.dask, kernel, target, sandbox=arguments.sandbox is not False)


def _progress(result: CandidateResult, results: Sequence[CandidateResult], total: int, unit: str) -> None:
    leader = best(results)
    told = f"{result.cost:,.0f} {unit}" if result.valid else f"{result.outcome}: {result.reason}"
    so_far = f"best {leader.cost:,.0f}" if leader else "none right yet"
    print(f"  {len(results):>5}/{total}  {result.candidate}  {told}  ({so_far})", flush=True)


def _summary(results: Sequence[CandidateResult], kernel: Kernel) -> int:
    invalid: dict[str, int] = {}
    for result in results:
        if not result.valid:
            invalid[result.outcome] = invalid.get(result.outcome, 0) + 1
    valid = len(results) - sum(invalid.values())
    counted = "".join(f", {count} {name}" for name, count in sorted(invalid.items()))
    right = "right" if kernel.check else "ran, without --check no result was compared"
    print(f"{len(results)} tried: {valid} {right}{counted}")
    front = pareto(results)
    if not front:
        return 1
    print()
    print(f"Not beaten in {kernel.unit}, code and frame at once:")
    print()
    lines = [
        (str(result.candidate), f"{result.cost:,.0f}", f"{result.code_bytes:,}", f"{result.frame_bytes:,}")
        for result in front
    ]
    print(table(("candidate", kernel.unit, "code bytes", "frame bytes"), lines, {1, 2, 3}))
    return 0
