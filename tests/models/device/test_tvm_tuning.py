# SPDX-License-Identifier: Apache-2.0
"""TVM's tuner, as docs/models.md describes it: its own builder and runner, a tracker, a served device.

A normal run tries a few candidates; `--load` the 64 of one round of TVM's.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minrpc import Device, Firmware, library_of

from tests.device.conftest import Amount
from tests.docs.pages import ROOT, blocks_of

pytestmark = pytest.mark.extra("tvm")

HERE = Path(__file__).parent
# Each of TVM's processes imports TVM, and LLVM compiles: both take long on a busy machine.
LIMIT_S = 3600


@pytest.fixture
def platform(firmware: Firmware | None, device: Device) -> str:
    if firmware is None or firmware.target.serial_port:
        pytest.skip("a device that was not started from here")
    if not device.rpc.global_function("minrpc.code_load"):
        pytest.skip("its firmware can't load code")
    return firmware.target.name


@contextmanager
def started(command: list[str], ready: str) -> Iterator[re.Match[str]]:
    """A process that has printed a line like `ready`. It is ended with the processes that it has started,
    since TVM's tracker would leave a process behind.
    """
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        try:
            found = next((match for line in process.stdout if (match := re.search(ready, line))), None)
            assert found, f"{' '.join(command)} has ended"
            yield found
        finally:
            os.killpg(process.pid, signal.SIGTERM)


@pytest.fixture
def tracked(platform: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The platform's device in a tracker, and the environment that leads there."""
    python = [sys.executable, "-m"]
    tracker = [*python, "tvm.exec.rpc_tracker", "--host", "127.0.0.1", "--port", "9190", "--port-end", "9999"]
    with started(tracker, r"bind to 127\.0\.0\.1:(\d+)") as found:
        where = ["--tracker", f"127.0.0.1:{found[1]}", "--key", platform]
        serve = [
            *python,
            "minrpc.cli",
            "serve",
            "--platform",
            platform,
            "--tvm-port",
            "0",
            "--call-timeout",
            "5",
        ]
        with started([*serve, *where], r"try tvm\.rpc\.connect"):
            monkeypatch.setenv("TVM_TRACKER_HOST", "127.0.0.1")
            monkeypatch.setenv("TVM_TRACKER_PORT", found[1])
            monkeypatch.setenv("TVM_TRACKER_KEY", platform)
            yield


def run_program(file: Path, *words: object) -> str:
    """Run a program in a process of its own: TVM's tuner keeps threads and workers until its process ends."""
    ran = subprocess.run(
        [sys.executable, str(file), *map(str, words)],
        cwd=file.parent,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.usefixtures("tracked")
def test_a_matrix_product_is_tuned_as_the_page_says(
    device: Device, platform: str, tmp_path: Path, amount: Amount
) -> None:
    """All candidates are counted; the best candidate's object is right on the device."""
    trials = amount(4, 64)
    page = (ROOT / "docs" / "models.md").read_text()
    (text,) = (block.text for block in blocks_of(page) if "ms.tune_tir" in block.text)
    assert "max_trials_global=64" in text
    text = text.replace("bare_mps2_an385", platform)
    (tmp_path / "tune.py").write_text(text.replace("max_trials_global=64", f"max_trials_global={trials}"))
    run_program(tmp_path / "tune.py")
    records = (tmp_path / "work" / "database_tuning_record.json").read_text().splitlines()
    times = [json.loads(line)[1][1] for line in records]
    assert len(times) == trials
    assert all(0 < float(time) < 60 for (time,) in times)
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-128, 127, (32, 32), endpoint=True).astype(np.int8) for _ in range(2))
    product = a.astype(np.int32) @ b.astype(np.int32)
    c = np.zeros((32, 32), np.int32)
    device.load_tvm(tmp_path / "best.o").main(a, b, c)
    np.testing.assert_array_equal(c, product)
    np.testing.assert_array_equal(as_c(device, tmp_path / "matmul", a, b), product)


def as_c(device: Device, exported: Path, a: Any, b: Any) -> Any:  # noqa: ANN401
    """The product by the C library that the page exports."""
    files = sorted(str(path) for path in (exported / "src").glob("*.c"))
    library = library_of(device.load(files, include=[exported / "include"]))
    c = np.zeros((32, 32), np.int32)
    inputs = library.types["tvmgen_matmul_inputs"](a=device.array(a), b=device.array(b))
    outputs = library.types["tvmgen_matmul_outputs"](c=device.array(c))
    assert library["tvmgen_matmul_run"](inputs, outputs) == 0
    return outputs.c.numpy()


@pytest.mark.usefixtures("tracked")
def test_candidates_that_fail_are_one_record_each(tmp_path: Path, amount: Amount) -> None:
    """One candidate crashes, one hangs, one is wrong, one does not link: the device works again for all
    others."""
    trials = amount(7, 64)
    output = run_program(HERE / "tune_conv2d.py", tmp_path, trials)
    found = json.loads(output.splitlines()[-1])
    assert len(found) == trials
    whys = [
        "(it restarted|ended by itself)",
        "did not come to its end within 5 s",
        "Mismatched elements",
        "needs no_such_function",
    ]
    for error, why in zip(found, whys, strict=False):
        assert error, why
        assert re.search(why, error), error
    assert found[4:] == [""] * (trials - 4)
