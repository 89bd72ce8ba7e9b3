# SPDX-License-Identifier: Apache-2.0
"""Growth is visible: no room has more lines than tests/lines.toml gives it."""

from __future__ import annotations

import subprocess
import tomllib
from collections import Counter
from pathlib import Path

from tests.costs import room_of

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "tests/lines.toml"
ROOMS: dict[str, int] = tomllib.loads(TABLE.read_text())
COUNTED = ("harness", "zephyr-app", "tests")
RAISE = (
    "take out code that has become needless, or raise the number in tests/lines.toml and give the reason in "
    "the message of the same commit"
)


def sources() -> list[str]:
    """Files that git tracks: others may come and go while tests run."""
    command = ["git", "ls-files", "-z", "--", *COUNTED]
    names = subprocess.check_output(command, cwd=ROOT, text=True).split("\0")
    return [name for name in names if (ROOT / name).is_file()]


def lines() -> Counter[str | None]:
    """Lines of each room, as `wc -l` counts them."""
    count: Counter[str | None] = Counter()
    for path in sources():
        count[room_of(path, ROOMS)] += (ROOT / path).read_bytes().count(b"\n")
    return count


def test_no_room_is_longer_than_its_number() -> None:
    now = lines()
    above = [
        f"{room} has {now[room]} lines, and its number is {ROOMS[room]}: {RAISE}"
        for room in ROOMS
        if now[room] > ROOMS[room]
    ]
    assert not above, "\n".join(above)
    assert sum(now.values()) > 0.9 * sum(ROOMS.values()), "numbers far above the lines hold nothing"


def test_the_table_has_each_room_once_one_a_line_sorted() -> None:
    rooms = {room_of(path, ROOMS) for path in sources()}
    assert rooms == set(ROOMS), "a directory without a number, or a number without a directory"
    rows = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    assert rows == [f'"{room}" = {number}' for room, number in sorted(ROOMS.items())]
