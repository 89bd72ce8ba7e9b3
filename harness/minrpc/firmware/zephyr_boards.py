# SPDX-License-Identifier: Apache-2.0
"""Reads a board's description from Zephyr's own files, so that users need to give only its name.

The board's YAML file names its architecture and its simulator; its devicetree, preprocessed as Zephyr does
it, gives its UARTs, the console and its rate, and the clock.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from minrpc.errors import ConfigurationError, MissingError, NoSuchBoardError, ZephyrMissingError
from minrpc.firmware.board_names import BoardTarget, find_board
from minrpc.firmware.cache import cache_home
from minrpc.firmware.sources import firmware_root
from minrpc.firmware.zephyr_workspace import Workspace, find_workspace, projects_of
from minrpc.host.files import write_whole
from minrpc.host.process import ask_tool
from minrpc.targets import Platform
from minrpc.targets.config import unknown_platform
from minrpc.targets.table import Start

# Types of a devicetree and its nodes, from the parser of the user's Zephyr.
Tree = Any

_ISA: Final = ("riscv,isa", "riscv,isa-base")
_UART_NODES: Final = ("uart", "serial", "usart", "lpuart")
# Compatibles of UARTs whose nodes may have any name: a terminal of the host, and USB.
_UART_COMPATIBLES: Final = frozenset({"zephyr,native-tty-uart", "zephyr,cdc-acm-uart"})

# Vendors by the prefix of their devicetree compatibles, if the module's name differs from it.
_MODULES: Final = {"st": "hal_stm32", "raspberrypi": "hal_rpi_pico", "gd": "hal_gigadevice"}

# The vendor of cores that Zephyr runs without the vendor's module.
_NO_HAL: Final = "intel,"

# Clocks behind Zephyr's cycle counter by the compatible of their node; the first match counts.
_CLOCKS: Final = (
    ("intel,hpet", "HPET"),
    ("nordic,nrf-grtc", "GRTC"),
    ("nordic,nrf-rtc", "RTC"),
    ("arm,armv6m-systick", "SysTick"),
    ("arm,armv7m-systick", "SysTick"),
    ("arm,armv8m-systick", "SysTick"),
    ("arm,armv8.1m-systick", "SysTick"),
    ("arm,armv8-timer", "generic timer"),
    ("sifive,clint0", "mtime"),
    ("ite,it8xxx2-timer", "ITE's timer"),
    ("litex,timer0", "LiteX's timer"),
)

# Boards whose clock has another rate in QEMU than their devicetrees tell.
_QEMU_MHZ: Final = {
    20: ("mps2/an521", "mps2_an521"),
    32: ("mps3/an547", "mps3/corstone300/an547", "mps3_an547"),
}

# The option that selects another clock.
_TIMING: Final = "-DCONFIG_MINRPC_CLOCK_TIMING=y"
_TIMING_FUNCTIONS: Final = "Zephyr's timing functions"

# Cells of an address and of a size in `reg`, with the values where the devicetree has none.
_CELLS: Final = (("#address-cells", 2), ("#size-cells", 1))

MODULE_STAGE: Final = "find Zephyr's modules"


@dataclass(frozen=True, slots=True)
class Uart:
    """A UART that is enabled in the devicetree. index: its number in the machine, counted from 0."""

    label: str
    path: str
    index: int
    baud: int


@dataclass(frozen=True, slots=True)
class Board:
    """A board, as its files describe it.

    identifier: its whole name, with the SoC's and the core's.
    arch: in Zephyr's words: "arm", "x86", "riscv", "posix"; "riscv32" if the core has 32 bits.
    simulators: programs that Zephyr's run target knows for it: "qemu", "native", "renode".
    uarts: enabled UARTs. resting: disabled UARTs.
    console: the UART of the console; None if there is none.
    chosen: the UART that the devicetree chooses for RPC, or for data; None if it chooses none.
    clock: the clock of Zephyr's cycle counter; "" if unknown.
    smp: Zephyr runs on several cores by default.
    flash, ram: bytes of the memories that the devicetree chooses; 0 if unknown.
    """

    identifier: str
    directory: Path
    arch: str
    simulators: tuple[str, ...]
    qemu: str
    uarts: tuple[Uart, ...]
    console: Uart | None
    chosen: Uart | None
    clock: str
    smp: bool
    resting: tuple[Uart, ...] = ()
    flash: int = 0
    ram: int = 0


def resolved(platform: Platform) -> Platform:
    """`platform` with missing fields taken from its board's files; for an entry without `arch`.

    Raises ZephyrMissingError, ConfigurationError for an unknown board, MissingError for a module.
    """
    if platform.port != "zephyr" or platform.arch or not platform.zephyr_board:
        return platform
    try:
        workspace = find_workspace(firmware_root())
        target = find_board(workspace, platform.zephyr_board, platform.cmake_options)
        overlay, conf = _users_files(platform, target)
        board = read_target(workspace, target, overlay or _our_overlay(target))
    except (NoSuchBoardError, ZephyrMissingError) as error:
        if platform.name != platform.zephyr_board or platform.project or error.stage == MODULE_STAGE:
            raise
        raise unknown_platform(platform.name, error.message) from error
    return completed(platform, board, overlay, conf)


def completed(platform: Platform, board: Board, overlay: Path | None, conf: Path | None) -> Platform:
    """`platform` with the fields of `board`, and the user's own overlay and configuration, if any."""
    starts = platform.starts if platform.starts != "board" else _start_of(board)
    link = link_of(board, starts)
    alone = link is not None and link == board.console
    overlays = [overlay] if overlay else []
    if link is not None and board.chosen != link:
        overlays.append(_choosing(link))
    confs = [_own_conf("one_uart")] if alone else []
    if board.smp and starts == "qemu":
        confs.append(_own_conf("one_cpu"))  # Instructions are counted on one core only.
    if starts == "qemu":
        rates = [mhz for mhz, boards in _QEMU_MHZ.items() if board.identifier.startswith(boards)]
        confs += [_own_conf(f"qemu_{mhz}_mhz") for mhz in rates]
    confs += [conf] if conf else []
    return replace(
        platform,
        starts=starts,
        zephyr_board=board.identifier,
        arch={"posix": "host"}.get(board.arch, board.arch),
        description=platform.description or f"Zephyr on {board.identifier}{' in QEMU' * (starts == 'qemu')}",
        qemu=platform.qemu or board.qemu,
        elf="zephyr/zephyr.exe" if board.arch == "posix" else platform.elf,
        link_uart=link.index if link else platform.link_uart,
        console_uart=None if alone or board.console is None else board.console.index,
        baud=link.baud if link else platform.baud,
        clock=platform.clock or (_TIMING_FUNCTIONS if _TIMING in platform.cmake_options else board.clock),
        cmake_options=_with_files(platform.cmake_options, overlays, confs),
    )


def link_of(board: Board, starts: str) -> Uart | None:
    """The UART for RPC: the devicetree's choice, else a free UART.

    QEMU wires all UARTs. A real board may wire only the console: RPC uses it, and text goes over the link.
    """
    if board.chosen is not None:
        return board.chosen
    free = [uart for uart in board.uarts if uart != board.console]
    return free[0] if free and starts == "qemu" else board.console


def read_board(workspace: Workspace, name: str, overlay: Path | None = None) -> Board:
    """The board `name`, with the user's devicetree `overlay` applied.

    Raises ConfigurationError if there is no such board, MissingError for a module that it needs.
    """
    return read_target(workspace, find_board(workspace, name), overlay)


def read_target(workspace: Workspace, target: BoardTarget, overlay: Path | None = None) -> Board:
    """The board of `target`, with the user's devicetree `overlay` applied. Raises as `read_board` does."""
    about = target.facts()
    arch = str(about.get("arch", ""))
    tree = _devicetree(workspace, target, overlay)
    simulators = tuple(_simulators(about.get("simulation")))
    if not simulators:
        missing = [missing_module(workspace, vendor) for vendor in _vendors(tree)]
        for module in filter(None, missing):
            raise module_error(workspace, module, target.identifier)
    uarts = tuple(_uarts(tree))
    return Board(
        identifier=target.identifier,
        directory=target.directory,
        arch="riscv32" if arch == "riscv" and _is_rv32(tree) else arch,
        simulators=simulators,
        qemu=qemu_program(target, arch),
        uarts=uarts,
        console=_chosen(tree, uarts, "zephyr,console"),
        chosen=_chosen(tree, uarts, "minrpc,uart") or _chosen(tree, uarts, "zephyr,uart-pipe"),
        clock=_clock(tree),
        resting=tuple(uart for uart in _uarts(tree, on=False) if uart.label),
        smp=any("\nCONFIG_SMP=y" in file.read_text() for file in target.defconfigs),
        flash=_chosen_size(tree, "zephyr,flash"),
        ram=_chosen_size(tree, "zephyr,sram"),
    )


@dataclass(frozen=True, slots=True)
class BuiltTree:
    """The UARTs of RPC and console, and the clock, from the devicetree of a finished build."""

    link: Uart
    console: Uart | None
    clock: str


def read_built_tree(base: Path, dts: Path) -> BuiltTree:
    """Reads the devicetree `dts`, as written by the Zephyr in `base`. Raises ConfigurationError."""
    parser = _parser(base)
    try:
        tree = parser.DT(str(dts))
    except (parser.DTError, OSError) as error:
        raise ConfigurationError(f"the devicetree of that build can't be read: {error}") from error
    uarts = tuple(_uarts(tree))
    names = ("minrpc,uart", "zephyr,uart-pipe", "zephyr,console")
    link = next((item for item in (_chosen(tree, uarts, name) for name in names) if item), None)
    if link is None:
        step = "choose one by minrpc,uart in an overlay: / { chosen { minrpc,uart = &uart1; }; };"
        raise ConfigurationError(f"{dts} names no UART for RPC", next_step=step)
    return BuiltTree(link, _chosen(tree, uarts, "zephyr,console"), _clock(tree))


def _simulators(value: object) -> Iterator[str]:
    """A name until 3.7, a list of tables since."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (str(item["name"]) for item in value if "name" in item)


def _start_of(board: Board) -> Start:
    if board.arch == "posix":
        return "process"
    return "qemu" if "qemu" in board.simulators else "board"


def qemu_program(target: BoardTarget, arch: str) -> str:
    """QEMU's program by Zephyr's board.cmake: the last `set` for this board, or the architecture's."""
    if arch == "posix":
        return ""
    cmake, stem = target.directory / "board.cmake", target.stems[0]
    text = cmake.read_text() if cmake.is_file() else ""
    # From Zephyr 4.5 on the variable has capital letters, and a file that all x86 boards share sets it.
    suffixes: list[str] = re.findall(r"set\(QEMU_(?:(?i:binary_suffix)|ARCH) (\S+?)\)", text)
    own = (
        [suffix for suffix in suffixes if suffix in stem] if len(suffixes) > 1 or arch == "x86" else suffixes
    )
    if own:
        return f"qemu-system-{own[0]}"
    wide = {
        "riscv": "riscv64" if "64" in stem else "riscv32",
        "x86": "x86_64" if "x86_64" in stem else "i386",
        "arm64": "aarch64",
    }
    return f"qemu-system-{wide.get(arch, arch)}"


def _devicetree(workspace: Workspace, target: BoardTarget, overlay: Path | None) -> Tree:
    """The board's devicetree as Zephyr's own parser reads it."""
    source = target.dts or workspace.base / "boards" / "common" / "stub.dts"
    files = [source, *target.overlays, *([overlay] if overlay else [])]
    arches = [path.name for path in sorted((workspace.base / "arch").iterdir()) if path.is_dir()]
    below = (
        "include",
        "include/zephyr",
        "dts/common",
        "dts/vendor",
        *(f"dts/{name}" for name in arches),
        "dts",
    )
    places = [root / part for root in (target.directory, *target.roots.dts) for part in below]
    flags = [f"-I{place}" for place in (target.directory, *places) if place.is_dir()]
    words = ["gcc", "-E", "-P", "-x", "assembler-with-cpp", "-nostdinc", "-undef", "-D__DTS__", *flags, "-"]
    includes = "".join(f'#include "{path}"\n' for path in files)
    ran = ask_tool(words, text=includes)
    if ran.returncode != 0:
        raise _not_preprocessed(workspace, target, ran.stderr)
    with tempfile.NamedTemporaryFile("w", suffix=".dts", prefix="minrpc-") as file:
        file.write(ran.stdout)
        file.flush()
        parser = _parser(workspace.base)
        try:
            return parser.DT(file.name)
        except parser.DTError as error:
            reason = str(error).replace(file.name, str(overlay or source))
            message = f"the devicetree of {target.identifier} can't be read: {reason}"
            raise ConfigurationError(message) from error


def _not_preprocessed(workspace: Workspace, target: BoardTarget, errors: str) -> Exception:
    """The error for a failed preprocessor; it names the HAL module of a missing include file."""
    board = target.identifier
    missing = re.search(r"error: (\S+): No such file", errors)
    if missing is None:
        return ConfigurationError(f"the devicetree of {board} can't be read: {errors.strip()[:400]}")
    vendors = (missing[1].partition("/")[0], _soc_vendor(workspace, target.qualifiers.partition("/")[0]))
    for module in filter(None, (missing_module(workspace, vendor) for vendor in vendors)):
        return module_error(workspace, module, board)
    return ConfigurationError(f"the devicetree of {board} includes {missing[1]}, which is not there")


def _soc_vendor(workspace: Workspace, soc: str) -> str:
    """The vendor of a SoC: the directory below Zephyr's soc/ that lists the SoC; "" for an unknown SoC."""
    listed = re.compile(rf"^\s*- name: {re.escape(soc)}$", re.MULTILINE)
    directory = workspace.base / "soc"
    files = (file for file in sorted(directory.rglob("soc.yml")) if listed.search(file.read_text()))
    return next((file.relative_to(directory).parts[0] for file in files), "")


def module_error(workspace: Workspace, module: str, board: str) -> MissingError:
    """The error for a Zephyr module that a board needs and the workspace lacks."""
    where = workspace.topdir or workspace.base
    return ZephyrMissingError(
        f"the board {board} needs Zephyr's module {module}, which {where} lacks",
        stage=MODULE_STAGE,
        next_step=f"add {module} to the manifest (west.yml, name-allowlist), then run `west update {module}`",
    )


def missing_module(workspace: Workspace, vendor: str) -> str | None:
    """The HAL module of a vendor (a compatible's prefix) that Zephyr knows and the workspace lacks."""
    name = _MODULES.get(vendor, f"hal_{vendor}")
    known = re.search(rf"(?m)^ +- name: {name}$", (workspace.base / "west.yml").read_text())
    there = {path.name for path in projects_of(workspace) if path.is_dir()}
    return name if known and not {name, name.removeprefix("hal_")} & there else None


def _parser(base: Path) -> ModuleType:
    """The devicetree parser of that Zephyr: one file without dependencies."""
    path = base / "scripts/dts/python-devicetree/src/devicetree/dtlib.py"
    spec = importlib.util.spec_from_file_location(f"minrpc_dtlib_{abs(hash(path))}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ZephyrMissingError(f"{base} has no devicetree parser ({path})", stage="build")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _uarts(tree: Tree, *, on: bool = True) -> Iterator[Uart]:
    """Enabled UARTs in the machine's order: by the number in their label, else by address."""
    nodes = [node for node in tree.node_iter() if _is_uart(node) and _is_on(node) == on]
    for place, node in enumerate(sorted(nodes, key=lambda node: int(node.unit_addr or "0", 16))):
        label = next(iter(node.labels), "")
        number = re.fullmatch(r"(?:uart|serial)(\d+)", label)
        speed = node.props.get("current-speed")
        yield Uart(label, node.path, int(number[1]) if number else place, speed.to_num() if speed else 115200)


def _is_uart(node: Tree) -> bool:
    compatible = node.props.get("compatible")
    named = compatible is not None and not _UART_COMPATIBLES.isdisjoint(compatible.to_strings())
    # A unit that can be several interfaces, such as sercom@ or flexcomm@, has a rate as a UART only.
    return named or node.name.partition("@")[0] in _UART_NODES or "current-speed" in node.props


def _is_on(node: Tree) -> bool:
    status = node.props.get("status")
    return status is None or status.to_string() in ("okay", "ok")


def _chosen(tree: Tree, uarts: Iterable[Uart], name: str) -> Uart | None:
    node = _chosen_node(tree, name)
    return next((uart for uart in uarts if node is not None and uart.path == node.path), None)


def _chosen_node(tree: Tree, name: str) -> Tree | None:
    chosen = tree.root.nodes.get("chosen")
    prop = chosen.props.get(name) if chosen else None
    return prop.to_path() if prop else None


def _chosen_size(tree: Tree, name: str) -> int:
    """Bytes of the memory that the devicetree chooses as `name`; 0 if it chooses none."""
    node = _chosen_node(tree, name)
    if node is None or "reg" not in node.props:
        return 0
    parent = node.parent.props
    cells = [parent[key].to_num() if key in parent else default for key, default in _CELLS]
    numbers = node.props["reg"].to_nums()[cells[0] : sum(cells)]
    return int(sum(number << 32 * place for place, number in enumerate(reversed(numbers))))


def _vendors(tree: Tree) -> list[str]:
    """The vendors of the SoC, the board and the cores: the prefixes of their compatibles."""
    cpus = tree.root.nodes.get("cpus")
    nodes = [node for node in (tree.root.nodes.get("soc"), tree.root) if node]
    compatibles = [name for node in nodes for name in _compatibles(node)]
    cores = [name for node in (cpus.nodes.values() if cpus else ()) for name in _compatibles(node)]
    compatibles += [name for name in cores if not name.startswith(_NO_HAL)]
    return list(dict.fromkeys(name.partition(",")[0] for name in compatibles if "," in name))


def _compatibles(node: Tree) -> list[str]:
    return list(node.props["compatible"].to_strings()) if "compatible" in node.props else []


def _is_rv32(tree: Tree) -> bool:
    isas = [node.props[name] for node in tree.node_iter() for name in _ISA if name in node.props]
    return any(isa.to_string().startswith("rv32") for isa in isas)


def _clock(tree: Tree) -> str:
    compatibles = {name for node in tree.node_iter() for name in _compatibles(node)}
    # Before Zephyr 4 each vendor's machine timer has a name: "andestech,machine-timer".
    other = "mtime" if any(name.endswith("machine-timer") for name in compatibles) else ""
    return next((clock for compatible, clock in _CLOCKS if compatible in compatibles), other)


def _users_files(platform: Platform, target: BoardTarget) -> tuple[Path | None, Path | None]:
    """boards/NAME.overlay and .conf beside the user's minrpc.toml. Zephyr itself finds this project's
    files."""
    if not platform.project or Path(platform.project) == firmware_root():
        return None, None
    names = [platform.zephyr_board.replace("/", "_"), *reversed(target.revised_stems)]
    return _first_file(Path(platform.project), names, "overlay"), _first_file(
        Path(platform.project), names, "conf"
    )


def _our_overlay(target: BoardTarget) -> Path | None:
    return _first_file(firmware_root(), reversed(target.revised_stems), "overlay")


def _first_file(project: Path, names: Iterable[str], kind: str) -> Path | None:
    files = [project / "boards" / f"{name}.{kind}" for name in names]
    return next((file for file in files if file.is_file()), None)


def _choosing(uart: Uart) -> Path:
    """An overlay that gives RPC this UART, kept under its content's name."""
    text = f'/ {{\n\tchosen {{\n\t\tminrpc,uart = "{uart.path}";\n\t}};\n}};\n'
    if uart.label:
        text = f"/ {{\n\tchosen {{\n\t\tminrpc,uart = &{uart.label};\n\t}};\n}};\n"
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = cache_home() / "boards" / f"{uart.label or 'uart'}-{name}.overlay"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    return path


def _own_conf(name: str) -> Path:
    return firmware_root() / "boards" / f"{name}.conf"


def _with_files(options: Sequence[str], overlays: Sequence[Path], confs: Sequence[Path]) -> tuple[str, ...]:
    """`options` with more files: each of CMake's variables can be given only once."""
    more = {"EXTRA_DTC_OVERLAY_FILE": overlays, "EXTRA_CONF_FILE": confs}
    kept = list(options)
    for variable, files in more.items():
        prefix = f"-D{variable}="
        given = [word.removeprefix(prefix) for word in kept if word.startswith(prefix)]
        kept = [word for word in kept if not word.startswith(prefix)]
        # The user's files come last, so they override the others.
        words = [str(path) for path in files] + given
        kept += [prefix + ";".join(words)] if words else []
    return tuple(kept)
