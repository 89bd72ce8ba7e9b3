# SPDX-License-Identifier: Apache-2.0
"""One call on several platforms in a table."""

from dataclasses import replace

from minrpc.timing.side_by_side import NOTE, side_by_side

from tests.unit.timing.samples import WALL, recorded, with_measured


def cells(text: str, platform: str) -> list[str]:
    """The cells of the platform's line."""
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {platform} "))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_instructions_and_their_ratio_to_the_first() -> None:
    first, second = (
        with_measured(recorded([32_000], code=120), inclusive={"instructions": 1000.0}),
        with_measured(
            replace(recorded([16_000], flash=10_000), platform="bare_rv32"), inclusive={"instructions": 500.0}
        ),
    )
    text = side_by_side([first, second])
    assert text.startswith("### add(float32[1024], float32[1024], float32[1024])\n")
    assert "instructions a call" in text
    assert cells(text, "bare_mps2_an385") == [
        "bare_mps2_an385",
        "1,000.00",
        "1.000",
        "128 µs",
        "120",
        "20,000",
        "3,000",
    ]
    assert cells(text, "bare_rv32")[1:6] == ["500.00", "0.500", "64 µs", "", "10,000"]
    assert text.count(NOTE) == 1


def test_a_platform_that_counts_no_instructions_has_a_blank() -> None:
    posix = replace(recorded([1000], clock=WALL), platform="posix", firmware=None)
    text = side_by_side([posix, with_measured(recorded([32_000]), inclusive={"instructions": 1000.0})])
    assert cells(text, "posix")[1:] == ["", "", "100 ns", "", "", ""]
    assert cells(text, "bare_mps2_an385")[2] == "1.000"
    assert NOTE not in side_by_side([posix, posix])


def test_the_stack_is_shown_where_it_was_counted() -> None:
    first, second = recorded([32_000]), replace(recorded([16_000]), platform="bare_rv32")
    sample = replace(first.measurement.samples[0], columns={"stack_bytes": 248})
    counted = with_measured(first, samples=(sample,))
    text = side_by_side([counted, second])
    assert "| stack |" in text
    assert cells(text, "bare_mps2_an385")[-1] == "248"
    assert cells(text, "bare_rv32")[-1] == ""
    assert "stack" not in side_by_side([first, second])
