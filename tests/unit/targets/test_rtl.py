# SPDX-License-Identifier: Apache-2.0
"""A user's RTL in minrpc.toml."""

from pathlib import Path

import pytest
from minrpc.errors import ConfigurationError
from minrpc.targets.config import load_platforms
from minrpc.targets.rtl import IBEX, Rtl


def rtl_in(directory: Path, rtl: str, extends: str = "rtl_ibex") -> Rtl | None:
    file = directory / "minrpc.toml"
    file.write_text(f'[platforms.mine]\nextends = "{extends}"\nrtl = {rtl}\n')
    return load_platforms(file)["mine"].rtl


def test_parameters_are_added_to_those_of_the_core(tmp_path: Path) -> None:
    mine = rtl_in(tmp_path, "{ parameters = { RV32M = 3, ICache = true } }")
    assert mine == IBEX._replace(parameters=(("RV32M", 3), ("ICache", 1)))


def test_a_top_is_a_core_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "core.sv").write_text("")
    mine = rtl_in(
        tmp_path, '{ top = "core", bus = "obi", sources = ["core.sv"], search = ["."], clock = "c" }'
    )
    assert mine == Rtl("core", "obi", (str(tmp_path / "core.sv"),), (str(tmp_path),), clock="c")


@pytest.mark.parametrize(
    ("rtl", "extends", "says"),
    [
        ("3", "rtl_ibex", "mine.rtl: must be a table"),
        ("{ tops = 1 }", "rtl_ibex", "mine.rtl.tops: unknown key"),
        ("{ parameters = { A = 'x' } }", "rtl_ibex", "mine.rtl.parameters: must be a table of numbers"),
        ("{ top = 'core' }", "rtl_ibex", "mine.rtl: bus and sources missing"),
        ("{ bus = 'axi' }", "rtl_ibex", "mine.rtl.bus: must be one of ibex, obi, picorv32, not 'axi'"),
        ("{ sources = ['absent.sv'] }", "rtl_ibex", "mine.rtl.sources: there is no file absent.sv"),
        ("{ sources = 'absent.sv' }", "rtl_ibex", "mine.rtl.sources: must be a list of strings"),
        ("{ clock = 1 }", "rtl_ibex", "mine.rtl.clock: must be a text"),
        ("{ parameters = {} }", "bare_rv32", "mine.rtl: top is missing"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, rtl: str, extends: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        rtl_in(tmp_path, rtl, extends)
    assert says in str(caught.value)
