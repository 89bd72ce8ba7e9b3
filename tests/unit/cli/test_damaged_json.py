# SPDX-License-Identifier: Apache-2.0
"""Damaged files of results: the same run, or an error that names the file and the key; never a traceback."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from minrpc.publish import RunRecord, run_of
from minrpc.publish.markdown_page import markdown_page
from minrpc.publish.pages import html
from minrpc.reports.document import sealed
from minrpc.timing import MemoryUse, Overhead
from minrpc.timing.compare import compare
from minrpc.timing.comparison_text import comparison_markdown

from tests.unit.cli.conftest import Result
from tests.unit.publish.runs import whole
from tests.unit.timing.samples import with_measured

_Path = tuple[str | int, ...]
_NUMBERS: Final = (1, -1, 0.5, True, math.nan, math.inf, 10**400, 2**80)
OTHERS: Final[tuple[Any, ...]] = (None, "text", "\ud800", [], {}, [1], {"a": 1}, *_NUMBERS)


def run() -> RunRecord:
    """A run in whose file no list and no object is empty."""
    full = whole()
    costs = dict.fromkeys(("instructions", "loads", "stack_bytes"), (1.0, 0.5))
    first = with_measured(
        full.records[0],
        overhead=Overhead(5.0, 1.5, counters=costs),
        memory=MemoryUse(64, 0, 16, 80),
        groups=(("loads",), ("instructions",)),
        doubtful=("loads",),
        inclusive={"instructions": 12.5},
    )
    assert first.firmware
    first = replace(first, firmware=replace(first.firmware, symbols={"main": (10, 4)}), commit="0123abc+")
    return replace(full, records=[first, *full.records[1:]])


TEXT: Final = run().to_json()
SEED: Final = run_of(TEXT)


def places(found: Any, above: _Path = ()) -> Iterator[_Path]:  # noqa: ANN401 - JSON
    """The keys that lead to each value."""
    if above:
        yield above
    inner = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for key, value in inner:
        yield from places(value, (*above, key))


def changed(found: Any, place: _Path, value: object) -> Any:  # noqa: ANN401 - JSON
    """A copy of the document with `value` at `place`."""
    copy = found.copy()
    copy[place[0]] = changed(found[place[0]], place[1:], value) if place[1:] else value
    return copy


def with_others(chosen: random.Random, count: int) -> Iterator[tuple[str, str]]:
    """A key, and the document that another program would write with a value of another type there."""
    document = json.loads(TEXT)
    known = list(places(document))
    for _ in range(count):
        place = chosen.choice(known)
        named = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in place)
        yield named.lstrip("."), json.dumps(sealed(changed(document, place, chosen.choice(OTHERS))))


def with_bytes(chosen: random.Random, count: int) -> Iterator[bytes]:
    """The document with a flipped bit, or with bytes missing, twice, or cut off."""
    text = TEXT.encode()
    for _ in range(count):
        at, size = chosen.randrange(len(text)), chosen.choice((1, 8, 64))
        flipped = text[:at] + bytes([text[at] ^ 1 << chosen.randrange(8)]) + text[at + 1 :]
        yield chosen.choice(
            (flipped, text[:at] + text[at + size :], text[: at + size] + text[at:], text[:at])
        )


def pages(found: RunRecord) -> str:
    """All that is shown of a run, as a new one and as an earlier one."""
    compared = compare(found.records, SEED.records)
    return html(found, SEED) + markdown_page(SEED, found) + comparison_markdown(compared)


def test_a_value_of_another_type_is_refused_with_its_key_or_can_be_shown() -> None:
    refused = 0
    for key, text in with_others(random.Random(33), 500):
        try:
            found = run_of(text)
        except ValueError as error:
            told = str(error)
            of_key = told.startswith(key) or key.startswith(told.partition(": ")[0])
            assert of_key or key in ("format", "version", "command", "checksum"), (key, told)
            refused += 1
        else:
            assert pages(found).encode()
    assert 300 < refused < 450


def test_a_damaged_byte_never_changes_a_run() -> None:
    refused = 0
    for content in with_bytes(random.Random(33), 500):
        try:
            assert run_of(content.decode()) == SEED
        except ValueError:
            refused += 1
    assert 450 < refused <= 500


@pytest.mark.parametrize(
    "command",
    [
        ["compare", "bad.json", "good.json", "--json", "out.json"],
        ["compare", "good.json", "bad.json"],
        ["report", "--from", "bad.json", "--html", "page.html"],
        ["report", "--from", "good.json", "--base", "bad.json", "--markdown", "page.md"],
        ["time", "inc", "--json", "bad.json"],
    ],
)
def test_a_command_names_the_file_and_the_key(
    command: list[str], tmp_path: Path, minrpc: Callable[..., Result]
) -> None:
    (tmp_path / "good.json").write_text(TEXT)
    document = json.loads(TEXT)
    for key, value in (("ticks_hz", "25\ud800"), ("coarse_hz", None)):
        place: _Path = ("timings", 0, "clock", key)
        damaged = changed({**document, "command": "time" if "time" in command else "report"}, place, value)
        (tmp_path / "bad.json").write_text(json.dumps(sealed(damaged)))
        status, out, err = minrpc(*command)
        assert (status, out) == (2, "")
        assert re.search(rf"bad.json .*: timings\[0\].clock.{key}: must be a whole number from 0 to", err)
        assert "next: " in err
    (tmp_path / "bad.json").write_text(TEXT.replace('"ticks": 1010', '"ticks": 1018'))
    if "time" not in command:
        status, _, err = minrpc(*command)
        assert status == 2
        assert "its content is not the written content, by its checksum" in err
