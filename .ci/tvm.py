#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests that need TVM with each version of TVM, and prints a table of the results.

    .ci/tvm.py [--platform NAME[,NAME...]] [--load] [--versions 0.25,0.27] [--keep DIR]

Each version gets an environment of its own in DIR, 2 GB each; without DIR they are removed at the end. With
--load the tuner tries 64 candidates. Arguments after "--" go to pytest.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]

# With later versions of apache-tvm-ffi 0.25 can't be imported, and MetaSchedule of the others crashes.
VERSIONS = {
    "0.25": ("0.25.0.post1", "0.1.12"),
    "0.26": ("0.26.0", "0.1.14.post1"),
    "0.27": ("0.27.0.post1", "0.1.14.post1"),
}
FURTHER = ("cloudpickle", "onnx", "onnxruntime", "psutil", "tflite", "tornado")
FILES = ("device/test_tvm_today", "models/device/test_models", "models/device/test_tvm_tuning")

# The feature that a test checks, by the beginning of its name, else by its file.
SHOWS = {
    "test_tensor": "arrays",
    "test_a_tensor": "arrays",
    "test_the_device_allocates": "arrays",
    "test_more_than": "arrays",
    "test_add": "functions",
    "test_attributes": "functions",
    "test_a_time_evaluator": "evaluator",
    "test_errors": "errors",
    "test_an_object": "object",
    "test_a_client_over_two_pipes": "pipe",
    "test_models": "model",
    "test_tvm_tuning": "tuning",
    "test_tvm_today": "C",
}
COLUMNS = ("arrays", "functions", "evaluator", "errors", "pipe", "C", "object", "model", "tuning")


def environment(directory: Path, version: str) -> Path:
    """The Python of an environment with this TVM, which is made if it is missing."""
    python = directory / version / "bin" / "python"
    if not python.exists():
        tvm, ffi = VERSIONS[version]
        subprocess.run([sys.executable, "-m", "venv", str(directory / version)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-e", f"{ROOT}[test,zephyr]", *FURTHER, f"apache-tvm=={tvm}"], check=True)
        # 0.25 declares another version, but works with this version.
        subprocess.run([*pip, "--no-deps", f"apache-tvm-ffi=={ffi}"], check=True)
    return python


def outcomes(report: Path, platforms: list[str]) -> dict[tuple[str, str], list[str]]:
    """The results by platform and column: "passed", "failed" or "skipped" for each test."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for case in ElementTree.parse(report).iter("testcase"):
        name, file = case.attrib["name"], case.attrib["classname"].rpartition(".")[2]
        words = name.partition("[")[2].rstrip("]").replace("-", " ").split()
        platform = next((one for one in platforms if one in words), "")
        begins = max((one for one in SHOWS if name.startswith(one)), key=len, default=file)
        kinds = {child.tag for child in case}
        result = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        found[platform, SHOWS[begins]].append(result)
    return found


def cell(results: list[str]) -> str:
    """The text of a cell: the results of one version, platform and column."""
    failed, passed = results.count("failed"), results.count("passed")
    return f"FAILED {failed} of {failed + passed}" if failed else f"right ({passed})" if passed else "-"


def main() -> int:
    """Returns 0 if all executed tests passed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--platform", default="posix,bare_mps2_an385")
    parser.add_argument("--versions", default=",".join(VERSIONS))
    parser.add_argument("--load", action="store_true")
    parser.add_argument("--keep", type=Path)
    given, further = parser.parse_known_args()
    platforms = given.platform.split(",")
    lines, failed = [], False
    with TemporaryDirectory() as temporary:
        for version in given.versions.split(","):
            directory = Path(given.keep or temporary).absolute()
            python, report = environment(directory, version), Path(temporary) / f"{version}.xml"
            command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
            command += [f"tests/{file}.py" for file in FILES] + ["--platform", given.platform]
            command += ["--load"] if given.load else []
            command += [one for one in further if one != "--"]
            print(f"TVM {version}: {' '.join(command)}", file=sys.stderr, flush=True)
            status = subprocess.run(command, cwd=ROOT, check=False, stdout=sys.stderr).returncode
            failed = failed or status != 0
            found = outcomes(report, platforms)
            for platform in platforms:
                cells = [cell(found[platform, column]) for column in COLUMNS]
                lines.append(f"| {version} | {platform} | {' | '.join(cells)} |")
    print(f"| TVM | platform | {' | '.join(COLUMNS)} |")
    print("| --- " * (len(COLUMNS) + 2) + "|")
    print("\n".join(lines))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
