# SPDX-License-Identifier: Apache-2.0
"""Arguments that a format reads, against the host's own printf."""

from __future__ import annotations

import pytest
from minrpc.library.further_arguments import Further, further


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("plain %% 100%%", []),
        ("%d%i", [Further("i", 4, True)] * 2),
        ("%-08.3u %#x", [Further("i", 4)] * 2),
        ("%c %lc", [Further("i", 1), Further("l", 8)]),
        ("%hd %hhX", [Further("i", 2, True), Further("i", 1)]),
        ("%ld %zu %td", [Further("l", 8, True), Further("l", 8), Further("l", 8, True)]),
        ("%lld %ju", [Further("q", 8, True), Further("q", 8)]),
        ("%*.*f", [*[Further("i", 4, True)] * 2, Further("f")]),
        ("%Lg %a", [Further("F"), Further("f")]),
        ("%s %.5s %.s", [Further("p", text=True, limit=limit) for limit in (None, 5, 0)]),
        ("%.*s", [Further("i", 4, True), Further("p", text=True, limit=-1)]),
        ("%p %n", [Further("p")] * 2),
    ],
)
def test_conversions(form: str, expected: list[Further]) -> None:
    assert list(further(form, 8)) == expected


def test_long_has_the_size_of_the_target_s() -> None:
    assert [item.size for item in further("%lu %u %llu", 4)] == [4, 4, 8]


@pytest.mark.parametrize("form", ["%", "%y", "%ls", "%1$d"])
def test_other_conversions_are_refused(form: str) -> None:
    with pytest.raises(ValueError, match="none of printf's"):
        list(further(form, 4))
