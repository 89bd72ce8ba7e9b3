# SPDX-License-Identifier: Apache-2.0
"""The cache whose misses are counted: its permitted shapes."""

from __future__ import annotations

import pytest
from minrpc import ConfigurationError
from minrpc.counters import Cache


def test_what_is_written_is_read() -> None:
    assert Cache.parse("8192,32,4") == Cache(8192, 32, 4)
    assert Cache.parse("8192,32,4").sets == 64


@pytest.mark.parametrize("text", ["", "8192", "8192,32,x", "8000,32,4", "8192,0,4", "64,32,4"])
def test_what_is_no_cache_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        Cache.parse(text)
