# SPDX-License-Identifier: Apache-2.0
"""Sentences in code name their subject: "The size of ..." or "Returns ...", not "What ..." or "Of ..."."""

import re
from pathlib import Path

_TOP = Path(__file__).parents[2]
_NO_SUBJECT_IN_DOCSTRING = re.compile(
    r'^ *"""(?:What|Whoever|Whether|How|That|Those|Of|From|To|As|Else|Also)\b.*', re.MULTILINE
)
# A sentence begins at the begin of a docstring or a comment, or after another sentence.
_NO_SUBJECT = re.compile(
    r'^.*(?:"""|# |/\*\*? ?|[a-z`)]\. )(?:What|Whoever|Whatever|Nobody|Somebody|Anybody|Of|Else)\b.*',
    re.MULTILINE,
)


def _found(pattern: re.Pattern[str], suffixes: set[str]) -> list[str]:
    return [
        f"{file.relative_to(_TOP)}: {match.group().strip()}"
        for directory in ("harness", "zephyr-app", "tests", "samples", "examples", ".ci")
        for file in sorted((_TOP / directory).rglob("*"))
        if file.suffix in suffixes
        for match in pattern.finditer(file.read_text())
    ]


def test_a_docstring_names_its_subject() -> None:
    found = _found(_NO_SUBJECT_IN_DOCSTRING, {".py"})
    assert not found, "\n".join(found)


def test_a_sentence_names_its_subject() -> None:
    found = _found(_NO_SUBJECT, {".py", ".c", ".h"})
    assert not found, "\n".join(found)
