# SPDX-License-Identifier: Apache-2.0
"""pqm4's layout: the implementations of a checkout, and the tables of its benchmarks.csv."""

from __future__ import annotations

import csv
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

_ROOTS = ("", "mupq/", "mupq/pqclean/")
_FOR_OTHER_PROCESSORS = {"avx", "avx2", "sse", "vec", "aesni", "aarch64"}
_SUFFIXES = {".c", ".S", ".s"}
_OPERATIONS = {
    "kem": ("Key Generation", "Encapsulation", "Decapsulation"),
    "sign": ("Key Generation", "Sign", "Verify"),
}
_TITLES = {"kem": "Key Encapsulation Schemes", "sign": "Signature Schemes"}
_HEAD = ("Scheme", "Implementation")
FUNCTIONS = ("generate", "produce", "consume")
DEFAULT_COMPILER = "arm-none-eabi-gcc"


@dataclass(frozen=True)
class Implementation:
    """An implementation of a scheme in a checkout. kind: "kem" or "sign"."""

    checkout: Path
    directory: Path
    kind: str

    @property
    def scheme(self) -> str:
        """The scheme's name: "ml-kem-512"."""
        return self.directory.parent.name

    @property
    def name(self) -> str:
        """The implementation's name: "m4fspeed"."""
        return self.directory.name

    def __str__(self) -> str:
        return f"{self.scheme}-{self.name}"

    @property
    def named(self) -> dict[str, str]:
        """The first columns of its row."""
        return {"scheme": self.scheme, "implementation": self.name, "kind": self.kind}

    @property
    def namespace(self) -> str:
        """The prefix of its names, which PQClean's implementations have."""
        if "pqclean" not in self.directory.parts:
            return ""
        return "PQCLEAN_" + "".join(f"{part.replace('-', '').upper()}_" for part in (self.scheme, self.name))

    @property
    def sources(self) -> list[Path]:
        """The implementation's own sources."""
        return sorted(path for path in self.directory.iterdir() if path.suffix in _SUFFIXES)

    @property
    def hashing(self) -> list[Path]:
        """Sources of hash functions and ciphers, which all schemes share."""
        given = (self.checkout / "mk" / "crypto.mk").read_text()
        listed = re.search(r"SYMCRYPTO_SRC =((?:.*\\\n)*.*)", given)
        words = listed[1].replace("\\", " ").split() if listed else []
        return [self.checkout / word for word in words]

    @property
    def include(self) -> list[Path]:
        """The existing directories of headers."""
        names = ["common", "mupq/common", "mupq/pqclean/common", "mupq"]
        return [self.directory, *(path for name in names if (path := self.checkout / name).is_dir())]

    @property
    def defines(self) -> list[str]:
        """Macros for all sources, with the macros of its own makefile."""
        own = self.directory / "config.mk"
        words = re.findall(r"-D(\S+)", own.read_text()) if own.exists() else []
        return [
            "MUPQ",
            "PQM4",
            f"NAMESPACE={self.namespace}",
            *(["KEM"] if self.kind == "kem" else []),
            *words,
        ]


def implementations(checkout: Path) -> Iterator[Implementation]:
    """All implementations that are not for other processors, in pqm4's order of directories."""
    for kind in ("kem", "sign"):
        for root in _ROOTS:
            for header in sorted(checkout.glob(f"{root}crypto_{kind}/*/*/api.h")):
                if header.parent.name not in _FOR_OTHER_PROCESSORS:
                    yield Implementation(checkout, header.parent, kind)


Row = Mapping[str, Any]
_TABLES = (
    (
        "Speed Evaluation",
        "cycles",
        ("[cycles] (mean)", "[cycles] (min)", "[cycles] (max)"),
        " (1 executions)",
    ),
    ("Memory Evaluation", "stack", ("[bytes]",), ""),
    ("Hashing Evaluation", "hashing", ("[%]",), ""),
)


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    """Writes the tables of pqm4's benchmarks.csv, then a row for each implementation, also failed ones."""
    known = sorted(rows, key=lambda row: (row["scheme"], row["implementation"]))
    whole = [row for row in known if not row["failed"]]
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        for title, key, columns, executions in _TABLES:
            table.writerow([title])
            for kind, operations in _OPERATIONS.items():
                table.writerow([_TITLES[kind]])
                table.writerow([*_HEAD, *(f"{name} {column}" for name in operations for column in columns)])
                for row in (row for row in whole if row["kind"] == kind):
                    numbers = [row[name][key] for name in FUNCTIONS for _ in columns]
                    table.writerow([row["scheme"] + executions, row["implementation"], *numbers])
        table.writerow(["Size Evaluation"])
        for kind, title in _TITLES.items():
            table.writerow([title])
            table.writerow([*_HEAD, ".text [bytes]", ".data [bytes]", ".bss [bytes]", "Total [bytes]"])
            for row in (row for row in whole if row["kind"] == kind):
                table.writerow([row["scheme"], row["implementation"], *row["size"], sum(row["size"])])
        table.writerow(["Results"])
        columns = ("Result", "Answer", "Constant time", *(f"{name} [instructions]" for name in FUNCTIONS))
        table.writerow([*_HEAD, *columns, "Compiler", "Linked with"])
        for row in known:
            numbers = [] if row["failed"] else [row[name]["instructions"] for name in FUNCTIONS]
            told = [row["failed"] or "passed", _answer(row, whole), row.get("constant_time", "")]
            linked = " ".join(row.get("linked", ())) or "the firmware's C library: mem* byte by byte"
            table.writerow(
                [
                    row["scheme"],
                    row["implementation"],
                    *told,
                    *(numbers or [""] * 3),
                    row.get("compiler", ""),
                    linked,
                ]
            )


def _answer(row: Row, whole: Sequence[Row]) -> str:
    """The comparison of the keys and the message with the results of the scheme's other implementations."""
    digests = [other["digest"] for other in whole if other["scheme"] == row["scheme"]]
    if row["failed"] or len(digests) < 2:
        return ""
    return "that of all implementations" if len(set(digests)) == 1 else "not that of all implementations"


class Compared(NamedTuple):
    """A function's published and estimated cycles. chosen: one of the third that numbers may be chosen on."""

    scheme: str
    implementation: str
    function: str
    published: int
    estimated: int
    chosen: bool

    @property
    def error(self) -> float:
        """Percent of the published cycles."""
        return 100 * (self.estimated / self.published - 1)


def comparison(table: str, rows: Iterable[Row]) -> list[Compared]:
    """The functions of `rows` whose published least and most lie within 1 % of the mean: others reject at
    random. table: the text of pqm4's benchmarks.csv."""
    known = {(row["scheme"], row["implementation"]): row for row in rows if not row["failed"]}
    found = []
    for number, (scheme, name, at, mean) in enumerate(_steady(table)):
        row = known.get((scheme, name))
        if row is not None:
            estimated = row[FUNCTIONS[at]]["cycles"]
            function = _OPERATIONS[row["kind"]][at]
            found.append(Compared(scheme, name, function, mean, estimated, number % 3 == 0))
    return found


def _steady(table: str) -> Iterator[tuple[str, str, int, int]]:
    """Scheme, implementation, place of the function and its mean, in the table's order."""
    for line in csv.reader(table.partition("Memory Evaluation")[0].splitlines()):
        scheme, _, executions = line[0].partition(" (") if line else ("", "", "")
        if executions:
            for at in range(len(FUNCTIONS)):
                mean, least, most = map(int, line[2 + 3 * at : 5 + 3 * at])
                if max(mean - least, most - mean) <= mean / 100:
                    yield scheme, line[1], at, mean


def summary(compared: Sequence[Compared]) -> str:
    """The errors of functions in a line: number, mean, bias, 90th percentile, largest."""
    if not compared:
        return "no function"
    errors = [item.error for item in compared]
    sizes = sorted(map(abs, errors))
    ninth = sizes[min(len(sizes) - 1, 9 * len(sizes) // 10)]
    return (
        f"{len(errors)} functions: mean error {statistics.mean(sizes):.1f} %, "
        f"bias {statistics.mean(errors):+.1f} %, 90 % within {ninth:.1f} %, largest {sizes[-1]:.1f} %"
    )
