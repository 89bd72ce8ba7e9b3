# SPDX-License-Identifier: Apache-2.0
"""Chooses compilers as Zephyr users expect: the compiler set by variables, the Zephyr SDK, then the compiler
on PATH, which has the names of Debian's."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from minrpc.errors import ToolchainMissingError
from minrpc.firmware.environment import searched_from
from minrpc.host.process import ask_tool, describe_status
from minrpc.host.system import home_directory

_NARROW: Final = 32


@dataclass(frozen=True, slots=True)
class DebianToolchain:
    """Debian's compiler for a processor family, and Zephyr's variables to use it.

    packages: names for `apt install`.
    compiler: the program.
    variant: Zephyr's name for such compilers.
    narrow: Zephyr's flags for 32 bits, if some of these compilers have no libgcc for 32 bits.
    removes: the package that can't be installed beside these; "" for none.
    """

    packages: str
    compiler: str
    variant: str = "cross-compile"
    narrow: tuple[str, ...] = ()
    removes: str = ""

    def variables(self) -> dict[str, str]:
        """Zephyr's environment variables for this compiler where PATH has it; Zephyr looks for binutils
        beside it, where a link of ccache's has none."""
        places = (shutil.which(self.compiler, path=part) for part in os.get_exec_path())
        programs = (Path(place).resolve() for place in places if place)
        directory = next((path.parent for path in programs if path.name != "ccache"), Path("/usr/bin"))
        chosen = {"ZEPHYR_TOOLCHAIN_VARIANT": self.variant}
        match self.variant:
            case "cross-compile":
                chosen["CROSS_COMPILE"] = str(directory / self.compiler.removesuffix("gcc"))
            case "gnuarmemb":
                chosen["GNUARMEMB_TOOLCHAIN_PATH"] = str(directory.parent)
        return chosen


# A directory for each installed package of Debian's.
_PACKAGES: Final = Path("/usr/share/doc")

DEBIAN: Final[Mapping[str, DebianToolchain]] = {
    "host": DebianToolchain("gcc gcc-multilib", "gcc", "host"),
    "x86": DebianToolchain("gcc gcc-multilib", "x86_64-linux-gnu-gcc", narrow=("-m32",)),
    "arm": DebianToolchain("gcc-arm-none-eabi picolibc-arm-none-eabi", "arm-none-eabi-gcc", "gnuarmemb"),
    "arm64": DebianToolchain(
        "gcc-aarch64-linux-gnu",
        "aarch64-linux-gnu-gcc",
        removes="gcc-multilib",
    ),
    "riscv": DebianToolchain(
        "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf",
        "riscv64-unknown-elf-gcc",
    ),
    "riscv32": DebianToolchain(
        "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf",
        "riscv64-unknown-elf-gcc",
        narrow=("-march=rv32imac", "-mabi=ilp32"),
    ),
}
"""Debian's compilers, by `Platform.arch`."""


def find_tool(name: str) -> str:
    """The path of a build tool. Raises ToolchainMissingError with the command that installs it."""
    path = shutil.which(name)
    if path is None:
        package = {"ninja": "ninja-build", "dtc": "device-tree-compiler"}.get(name, name)
        step = f"run `sudo apt-get install {package}`"
        raise ToolchainMissingError(f"{name} is not installed", stage="build", next_step=step)
    return path


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler that was found.

    description: for people and reports: "Debian arm-none-eabi-gcc 12.2.1".
    environment: variables to set for a Zephyr build.
    """

    description: str
    environment: Mapping[str, str] = field(default_factory=dict)


def compiler_version(compiler: str) -> str | None:
    """The first line of `compiler --version`, or None when there is no such program.

    Raises ToolchainMissingError for a program that exists and does not run.
    """
    path = shutil.which(compiler)
    if path is None:
        return None
    ran = ask_tool([path, "--version"])
    if ran.returncode != 0:
        raise ToolchainMissingError(
            f"{path} does not run: `{compiler} --version` ended with {describe_status(ran.returncode)}",
            stage="build",
            details=(ran.stderr or ran.stdout).splitlines(),
            next_step="install it again, or look for another in front of it in PATH",
        )
    return ran.stdout.partition("\n")[0] or path


def debian_compiler(arch: str) -> str:
    """The path of Debian's compiler for `arch`; it is not run. Raises as `debian_toolchain` does."""
    known = DEBIAN.get(arch)
    path = shutil.which(known.compiler) if known else None
    if path is None:
        debian_toolchain(arch)
    assert path is not None
    return path


def debian_toolchain(arch: str, *, bare: bool = False) -> Toolchain:
    """Debian's compiler for `arch`; with `bare` its picolibc must be there too.

    Raises ToolchainMissingError with the command that installs it.
    """
    known = DEBIAN.get(arch)
    if known is None:
        step = "install the Zephyr SDK: `west sdk install`, or set ZEPHYR_TOOLCHAIN_VARIANT"
        raise ToolchainMissingError(f"no compiler is known for arch {arch!r}", stage="build", next_step=step)
    version = compiler_version(known.compiler)
    missing = known.compiler if version is None else "picolibc" if bare and not _has_picolibc(known) else ""
    if version is None or missing:
        step = f"run `sudo apt-get install {known.packages}`"
        if known.removes and (_PACKAGES / known.removes).exists():
            step = f"run `west sdk install`: Debian's {known.packages} would remove {known.removes}"
        raise ToolchainMissingError(f"{missing} is not installed", stage="build", next_step=step)
    return Toolchain(version, known.variables())


def _has_picolibc(toolchain: DebianToolchain) -> bool:
    return Path(_file_of(toolchain.compiler, "picolibc.specs")).is_absolute()


OWN_VARIABLES: Final = "MINRPC_ENV"
"""The variable in which `minrpc env` notes the compiler whose variables it has set."""


def note_of(environ: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    """The value of OWN_VARIABLES after `wanted` is set over the user's `environ`."""
    return json.dumps({name: [value, environ.get(name)] for name, value in wanted.items()})


def users_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without the variables that `minrpc env` set: with these variables, builds with another
    compiler would fail.

    A variable that has changed since stays.
    """
    try:
        noted: dict[str, tuple[str, str | None]] = json.loads(environ.get(OWN_VARIABLES, "{}"))
    except ValueError:
        noted = {}
    kept = {name: value for name, value in environ.items() if name != OWN_VARIABLES}
    for name, (value, before) in noted.items():
        if kept.get(name) == value:
            del kept[name]
            kept |= {name: before} if before is not None else {}
    return kept


def environment_here() -> dict[str, str]:
    """The user's variables for a build, also in another working directory."""
    # Each look at a variable of os.environ decodes it.
    return searched_from(users_environment(dict(os.environ)), os.getcwd())


def zephyr_toolchain(arch: str) -> Toolchain:
    """The compiler for a Zephyr build for `arch`: ZEPHYR_TOOLCHAIN_VARIANT as set, the SDK, else Debian's.

    Native programs are always built by the host's compiler, even if others are installed.
    Raises ToolchainMissingError.
    """
    variant = users_environment(os.environ).get("ZEPHYR_TOOLCHAIN_VARIANT")
    if variant:
        return Toolchain(f"ZEPHYR_TOOLCHAIN_VARIANT={variant}{_set_tools()}")
    sdk = find_sdk() if arch != "host" else None
    if sdk is not None:
        environment = {"ZEPHYR_TOOLCHAIN_VARIANT": "zephyr", "ZEPHYR_SDK_INSTALL_DIR": str(sdk)}
        return Toolchain(f"Zephyr SDK {sdk_version(sdk)}", environment)
    toolchain = debian_toolchain(arch)
    _check_libgcc(DEBIAN[arch])
    more = _second_stage() if arch == "arm" else {}
    return Toolchain(toolchain.description, {**toolchain.environment, **more})


def _check_libgcc(toolchain: DebianToolchain) -> None:
    """Raise ToolchainMissingError if the compiler would link 32-bit code with a libgcc of 64 bits."""
    if not toolchain.narrow or _bits_of(_libgcc(toolchain.compiler, toolchain.narrow)) == _NARROW:
        return
    flags = " ".join(toolchain.narrow)
    packages = [name for name in toolchain.packages.split() if name.endswith("-multilib")]
    step = "install the Zephyr SDK: `west sdk install`"
    if packages:
        step = f"run `sudo apt-get install {' '.join(packages)}`"
    raise ToolchainMissingError(
        f"{toolchain.compiler} has no libgcc of 32 bits for {flags}", stage="build", next_step=step
    )


def base_extensions(flags: Sequence[str]) -> tuple[str, ...]:
    """`flags` with RISC-V's extensions that are letters only: -march=rv32imac for rv32imac_zicsr_zifencei.

    GCC 12 finds its libgcc for these names, and takes the 64-bit libgcc if other extensions are named, too.
    """
    return tuple(re.sub(r"^(-march=rv[^_]+)_.*$", r"\1", flag) for flag in flags)


def _libgcc(compiler: str, flags: Sequence[str]) -> Path:
    command = [compiler, *flags, "-print-libgcc-file-name"]
    ran = ask_tool(command)
    return Path(ran.stdout.strip())


def _bits_of(archive: Path) -> int:
    """The word size of an archive's first object file; 0 without an object file."""
    try:
        content = archive.read_bytes()
    except OSError:
        return 0
    start = content.find(b"\x7fELF")
    return {1: 32, 2: 64}.get(content[start + 4], 0) if start >= 0 else 0


def find_sdk() -> Path | None:
    """The Zephyr SDK: ZEPHYR_SDK_INSTALL_DIR, else the newest in CMake's registry and the usual places."""
    named = os.environ.get("ZEPHYR_SDK_INSTALL_DIR")
    if named:
        return Path(named)
    sdks = [path for path in _sdk_candidates() if (path / "sdk_version").is_file()]
    return max(sdks, key=lambda path: _version_key(sdk_version(path)), default=None)


def _sdk_candidates() -> list[Path]:
    registry = home_directory() / ".cmake" / "packages" / "Zephyr-sdk"
    listed = [Path(entry.read_text().strip()) for entry in sorted(registry.glob("*")) if entry.is_file()]
    home = home_directory()
    homes = (home, home / ".local", home / ".local/opt", Path("/opt"), Path("/usr/local"))
    return [path.parent for path in listed] + [path for home in homes for path in home.glob("zephyr-sdk-*")]


def sdk_version(sdk: Path) -> str:
    """The version of the Zephyr SDK at `sdk`."""
    try:
        return (sdk / "sdk_version").read_text().strip()
    except OSError:
        return "of unknown version"


def _version_key(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _set_tools() -> str:
    """Further variables of the user for that variant, which distinguish two set-ups."""
    names = sorted(name for name in os.environ if name.endswith("_TOOLCHAIN_PATH") or name == "CROSS_COMPILE")
    return "".join(f" {name}={os.environ[name]}" for name in names)


def _second_stage() -> dict[str, str]:
    """Works around Debian's picolibc.specs, whose --gc-sections leaves nothing of the RP2040's bootloader.

    Zephyr links that with these specs and without an entry point. Elsewhere nothing has that name.
    """
    users = users_environment(os.environ).get("LDFLAGS", "")
    return {"LDFLAGS": f"{users} -Wl,-u,_stage2_boot".strip()}


def _file_of(compiler: str, name: str) -> str:
    command = [compiler, f"--print-file-name={name}"]
    return ask_tool(command, env=users_environment(os.environ)).stdout.strip()
