# SPDX-License-Identifier: Apache-2.0
"""Numbers as people read them."""

from __future__ import annotations

import math
import re
from typing import Final

_PREFIXES: Final = {-4: "p", -3: "n", -2: "µ", -1: "m", 0: "", 1: "k", 2: "M", 3: "G"}


def quantity(value: float, unit: str, digits: int = 4) -> str:
    """`value` with the SI prefix that fits: `quantity(2.5e7, "Hz")` is "25 MHz"."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g} {unit}"
    thousands = math.floor(math.log10(abs(value)) / 3)
    # 999.99 rounds to 1000: the next prefix is the shorter name of it.
    if float(f"{abs(value) / 1000.0**thousands:.{digits}g}") >= 1000:
        thousands += 1
    thousands = max(min(_PREFIXES), min(max(_PREFIXES), thousands))
    return f"{value / 1000.0**thousands:.{digits}g} {_PREFIXES[thousands]}{unit}"


def count(value: float, decimals: int = 2) -> str:
    """`value` with its thousands marked, and with decimals only if it has some: "12,345.67"."""
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(ratio: float, digits: int = 3, sign: str = "+") -> str:
    """A change in percent: `percent(0.0123)` is "+1.23 %", `percent(25)` "+2,500 %"; no change is "0 %".

    sign: "" for a share, which has none: `percent(0.0123, 2, "")` is "1.2 %".
    """
    value = ratio * 100
    # A number that is rounded to more than `digits` digits would get an exponent.
    form = f"{sign},.0f" if abs(value) >= 10**digits - 0.5 else f"{sign}.{digits}g"
    return f"{value:{form}} %" if ratio else "0 %"


def parse_percent(text: str) -> float:
    """The share that a percentage gives: "1%" is 0.01. Raises ValueError for anything but a percentage above
    0."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*%\s*", text)
    if match is None or float(match[1]) == 0:
        raise ValueError(f"{text!r} is not a percentage above 0, such as 1%")
    return float(match[1]) / 100
