# SPDX-License-Identifier: Apache-2.0
"""Names that messages propose."""

from minrpc.names import did_you_mean, instead_of, kind_of, listed, near_or_all

KNOWN = ["sources", "defines", "libraries"]


def test_lists_are_cut_and_say_so() -> None:
    assert listed(KNOWN, 3) == "sources, defines, libraries"
    assert listed(KNOWN, 2) == "sources, defines, …"
    assert listed([], 2) == "none"


def test_what_is_near_is_proposed() -> None:
    assert near_or_all("source", KNOWN) == ["sources"]
    assert did_you_mean("define", KNOWN) == "did you mean defines"
    assert did_you_mean("scal", ["scale", "scala"]) == "did you mean scale or scala"
    assert instead_of("librarys", KNOWN) == "write 'libraries'"


def test_without_a_near_one_all_are_named_or_none() -> None:
    assert near_or_all("zz", KNOWN) == KNOWN
    assert did_you_mean("zz", KNOWN) == ""
    assert instead_of("zz", KNOWN) == "known keys are sources, defines, libraries"


def test_a_kind_has_its_article() -> None:
    values: tuple[object, ...] = (3, [], 1.5)
    assert [kind_of(value) for value in values] == ["an int", "a list", "a float"]
