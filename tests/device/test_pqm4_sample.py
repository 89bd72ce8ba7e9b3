# SPDX-License-Identifier: Apache-2.0
"""samples/pqm4 on a checkout made here in the layout of pqm4: each implementation is a row."""

from __future__ import annotations

import csv
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).parents[2]
Rows = tuple[Path, dict[str, Any]]

# Headers declare the random source with other types (MQOM) and have common names (SNOVA).
_API = """
#include <stddef.h>
#include <stdint.h>
#define {space}CRYPTO_PUBLICKEYBYTES 8
#define {space}CRYPTO_SECRETKEYBYTES 8
#define {space}CRYPTO_CIPHERTEXTBYTES 8
#define {space}CRYPTO_BYTES 8
int randombytes(unsigned char *bytes, unsigned long long size);
typedef struct {{ uint8_t bytes[8]; }} public_key;
int {space}crypto_kem_keypair(uint8_t *pk, uint8_t *sk);
int {space}crypto_kem_enc(uint8_t *ct, uint8_t *ss, const uint8_t *pk);
int {space}crypto_kem_dec(uint8_t *ss, const uint8_t *ct, const uint8_t *sk);
"""
# The key is the ciphertext's xor with the secret: a changed byte gives another key.
_KEM = """
#include <stdlib.h>
#include "api.h"
#include "randombytes.h"
#include "hash.h"
int {space}crypto_kem_keypair(uint8_t *pk, uint8_t *sk)
{{
	randombytes(sk, 8);
	for (int i = 0; i < 8; i++) pk[i] = sk[i];
	{crash}
	return 0;
}}
int {space}crypto_kem_enc(uint8_t *ct, uint8_t *ss, const uint8_t *pk)
{{
	randombytes(ct, 8);
	for (int i = 0; i < 8; i++) ss[i] = ct[i] ^ pk[i];
	hash(ss);
	return 0;
}}
int {space}crypto_kem_dec(uint8_t *ss, const uint8_t *ct, const uint8_t *sk)
{{
	for (int i = 0; i < 8; i++) ss[i] = ct[i] ^ sk[i];
	hash(ss);
	{leak}
	return 0;
}}
"""
_ASSEMBLER = """
	.syntax unified
	.thumb
	.text
	.global twice
	.type twice, %function
	.thumb_func
twice:
	lsls r0, r0, #1
	bx lr
	.size twice, . - twice
"""
_SHARED = {
    "mk/crypto.mk": "SYMCRYPTO_SRC = \\\n\tmupq/common/hash.c \\\n\tcommon/more.s\n\nobj/x.a: x\n",
    "common/more.s": _ASSEMBLER.replace("twice", "more"),
    "mupq/common/hash.h": "#include <stdint.h>\nvoid hash(uint8_t *bytes);\n",
    "mupq/common/hash.c": """
#include "hash.h"
void hash(uint8_t *bytes) { for (int i = 0; i < 999; i++) bytes[i % 8] += i; }
""",
    "mupq/common/randombytes.h": """
#include <stddef.h>
#include <stdint.h>
#define randombytes PQCLEAN_randombytes
int randombytes(uint8_t *bytes, size_t size);
""",
}


def _put(directory: Path, *, space: str = "", crash: str = "", leak: str = "") -> None:
    directory.mkdir(parents=True)
    (directory / "api.h").write_text(_API.format(space=space))
    (directory / "kem.c").write_text(_KEM.format(space=space, crash=crash, leak=leak))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    checkout = tmp_path_factory.mktemp("pqm4")
    for name, text in _SHARED.items():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text(text)
    _put(
        checkout / "crypto_kem/toy/m4",
        leak="extern int TWICE(int); volatile int n = TWICE(ss[0] & 7); while (n) n--;",
    )
    (checkout / "crypto_kem/toy/m4/twice.s").write_text(_ASSEMBLER)
    (checkout / "crypto_kem/toy/m4/config.mk").write_text("elf/x.elf: CPPFLAGS += -DTWICE=twice\n")
    _put(checkout / "mupq/crypto_kem/toy/ref")
    _put(checkout / "mupq/crypto_kem/toy/avx2", crash="#error not for this processor")
    _put(checkout / "mupq/pqclean/crypto_kem/toy-1/clean", space="PQCLEAN_TOY1_CLEAN_")
    _put(checkout / "crypto_kem/broken/ref", crash="this is no C;")
    _put(checkout / "crypto_kem/crashing/ref", crash="__builtin_trap();")
    _put(checkout / "crypto_kem/wrong/ref", leak="ss[0] = 1;")
    # Another compiler than the firmware's, with a C library of its own.
    (checkout / "cc").write_text('#!/bin/sh\nexec arm-none-eabi-gcc --specs=picolibc.specs "$@"\n')
    (checkout / "cc").chmod(0o755)
    out = checkout / "rows"
    _run(checkout, out)
    return out, {path.stem: json.loads(path.read_text()) for path in out.glob("*.json")}


def _run(checkout: Path, rows: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "samples/pqm4",
        "--pqm4",
        str(checkout),
        "--pqm4-rows",
        str(rows),
        "--pqm4-cc",
        str(checkout / "cc"),
    ]
    return subprocess.run(
        [*command, "-q", "-p", "no:cacheprovider", "--tb=line"], cwd=_ROOT, capture_output=True, text=True
    )


@pytest.mark.slow
def test_each_implementation_has_a_row(rows: Rows) -> None:
    _, known = rows
    failed = {name: row["failed"] for name, row in known.items()}
    assert sorted(failed) == ["broken-ref", "crashing-ref", "toy-1-clean", "toy-m4", "toy-ref", "wrong-ref"]
    assert failed["toy-m4"] == failed["toy-ref"] == failed["toy-1-clean"] == ""
    assert failed["broken-ref"].startswith("kem.c does not compile: ")
    assert "'this'" in failed["broken-ref"]
    assert "crypto_kem_keypair" in failed["crashing-ref"]
    assert failed["wrong-ref"] == "wrong answer"


@pytest.mark.slow
def test_a_row_has_costs_sizes_hashing_and_constant_time(rows: Rows) -> None:
    row = rows[1]["toy-ref"]
    assert 999 * 5 < row["consume"]["instructions"] < row["consume"]["cycles"]
    assert row["generate"]["hashing"] == 0 < 90 < row["consume"]["hashing"] < 100
    assert row["consume"]["stack"] > 0
    assert row["compiler"].startswith("arm-none-eabi-gcc ")
    assert row["size"][0] > 40
    assert row["size"][1:] == [0, 0]
    assert row["constant_time"] == "same path and addresses"
    assert "took another path from crypto_kem_dec" in rows[1]["toy-m4"]["constant_time"]


@pytest.mark.slow
def test_the_tables_are_pqm4s(rows: Rows) -> None:
    table = list(csv.reader((rows[0] / "benchmarks.csv").open()))
    titles = [row[0] for row in table if len(row) == 1 and row[0].endswith("Evaluation")]
    assert titles == ["Speed Evaluation", "Memory Evaluation", "Hashing Evaluation", "Size Evaluation"]
    assert table[2][:3] == ["Scheme", "Implementation", "Key Generation [cycles] (mean)"]
    assert ["toy (1 executions)", "m4"] in [row[:2] for row in table]
    results = {f"{row[0]}-{row[1]}": row for row in table[[row[0] for row in table].index("Results") + 1 :]}
    assert results["toy-m4"][2:4] == results["toy-ref"][2:4] == ["passed", "that of all implementations"]


@pytest.mark.slow
def test_a_second_run_measures_nothing_again(rows: Rows) -> None:
    before = {path: path.stat().st_mtime_ns for path in rows[0].glob("*.json")}
    assert "3 failed, 3 passed" in _run(rows[0].parent, rows[0]).stdout
    assert before == {path: path.stat().st_mtime_ns for path in rows[0].glob("*.json")}


_PUBLISHED = """\
Speed Evaluation,,,,,,,,,,
Key Encapsulation Schemes,,,,,,,,,,
Scheme,Implementation,Key Generation [cycles] (mean),,,,,,,,
one (10 executions),m4,1000,995,1009,200,200,200,100,98,102
two (10 executions),m4,1000,1000,1000,200,200,200,100,100,101
Memory Evaluation,,,,,,,,,,
Scheme,Implementation,Key Generation [bytes],Encapsulation [bytes],,,,,,,
one (10 executions),m4,1,1,1,1,1,1,1,1,1
"""


def test_functions_that_reject_at_random_and_missing_rows_are_not_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(_ROOT / "samples/pqm4"))
    pqm4 = importlib.import_module("pqm4")
    cycles = dict(zip(pqm4.FUNCTIONS, ({"cycles": 1010}, {"cycles": 190}, {"cycles": 500}), strict=True))
    rows = [{"scheme": "one", "implementation": "m4", "kind": "kem", "failed": "", **cycles}]
    found = pqm4.comparison(_PUBLISHED, rows)
    assert [(item.function, item.estimated, item.chosen) for item in found] == [
        ("Key Generation", 1010, True),
        ("Encapsulation", 190, False),
    ]
    assert pqm4.summary(found) == (
        "2 functions: mean error 3.0 %, bias -2.0 %, 90 % within 5.0 %, largest 5.0 %"
    )
    assert pqm4.comparison(_PUBLISHED, [{**rows[0], "failed": "no room"}]) == []
