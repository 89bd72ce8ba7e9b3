# SPDX-License-Identifier: Apache-2.0
"""Docstrings begin with their subject or verb, as "The size of ..." or "Returns ..." do."""

import re
from pathlib import Path

_TOP = Path(__file__).parents[2]
_NO_SUBJECT = re.compile(
    r'^ *"""(?:What|Whoever|Whether|How|That|Those|Of|From|To|Else|Also)\b.*', re.MULTILINE
)


def test_a_docstring_names_its_subject() -> None:
    found = [
        f"{file.relative_to(_TOP)}: {match.group().strip()}"
        for directory in ("harness", "tests", "samples", ".ci")
        for file in sorted((_TOP / directory).rglob("*.py"))
        for match in _NO_SUBJECT.finditer(file.read_text())
    ]
    assert not found, "\n".join(found)
