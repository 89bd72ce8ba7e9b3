# SPDX-License-Identifier: Apache-2.0
"""The HTML page in a browser: it loads nothing, sorts, names what is clicked, fits a phone and the dark."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minrpc.publish.html_page import html_page

from tests.unit.publish.runs import whole

PHONE = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium, without a window."""
    from selenium import webdriver

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("there is no chromium with its driver: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    opened.set_window_size(1280, 900)
    yield opened
    opened.quit()


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Iterator[Any]:  # noqa: ANN401 - a class of a package that may be missing
    file = tmp_path / "report.html"
    file.write_text(html_page(whole(), "now"), encoding="utf-8")
    browser.get(file.as_uri())
    yield browser
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def column(page: Any, table: int, number: int) -> list[str]:  # noqa: ANN401
    script = """return Array.from(document.querySelectorAll("table")[arguments[0]].tBodies[0].rows,
                row => row.cells[arguments[1]].textContent)"""
    found: list[str] = page.execute_script(script, table, number)
    return found


def test_it_says_what_was_run_and_nothing_went_wrong(page: Any) -> None:  # noqa: ANN401
    assert page.title == "A <run> & more: 1 failed, 1 passed, 1 skipped"
    assert page.find_element("tag name", "h1").text == page.title
    assert page.get_log("browser") == []


def test_it_loads_nothing(page: Any) -> None:  # noqa: ANN401
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    # Nor could it: its own policy forbids it.
    refused = page.execute_async_script(
        "fetch('http://localhost:1/').then(() => arguments[0]('loaded'), () => arguments[0]('refused'))"
    )
    assert refused == "refused"
    assert any("Content Security Policy" in line["message"] for line in page.get_log("browser"))


def test_a_click_on_a_columns_head_sorts(page: Any) -> None:  # noqa: ANN401
    head = page.find_elements("css selector", "table")[0].find_elements("css selector", "th button")
    head[2].click()
    largest = column(page, 0, 2)
    head[2].click()
    smallest = column(page, 0, 2)
    assert largest == smallest[::-1] != []
    units = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3}
    seconds = [float(text.split()[0]) * units[text.split()[1]] for text in smallest]
    assert seconds == sorted(seconds)
    head[1].click()
    assert column(page, 0, 1) == sorted(column(page, 0, 1))
    sorted_by = page.find_elements("css selector", "th[aria-sort]")
    assert [one.text.split()[0] for one in sorted_by] == ["platform"]


@pytest.mark.parametrize(
    ("name", "told"),
    [("expf: 35 instructions", "expf: 35 instructions (35.0%)"), ("evaluate, runtime", "700 bytes (46.7%)")],
)
def test_a_click_on_a_box_names_it(page: Any, name: str, told: str) -> None:  # noqa: ANN401
    script = """const box = Array.from(document.querySelectorAll("figure g")).find(
                  one => one.querySelector("title").textContent.startsWith(arguments[0]));
                box.scrollIntoView({block: "center"}); return box.querySelector("rect")"""
    box = page.execute_script(script, name)
    box.click()
    captions = [one.text for one in page.find_elements("css selector", "figcaption") if one.text]
    assert len(captions) == 1
    assert told in captions[0]


def test_folded_tables_open(page: Any) -> None:  # noqa: ANN401
    folded = page.find_element("css selector", "details")
    table = folded.find_element("css selector", "table")
    assert not table.is_displayed()
    folded.find_element("css selector", "summary").click()
    assert table.is_displayed()


def test_it_fits_a_phone(page: Any) -> None:  # noqa: ANN401
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    wide = page.execute_script("return document.documentElement.scrollWidth")
    assert wide <= PHONE["width"]
    letters = page.execute_script(
        "return parseFloat(getComputedStyle(document.querySelector('td')).fontSize)"
    )
    assert letters >= 13


def light_of(page: Any) -> tuple[float, int]:  # noqa: ANN401
    """How light the picture of the page is, and how many colours it has."""
    from PIL import Image

    picture = Image.open(BytesIO(page.get_screenshot_as_png())).convert("RGB")
    pixels = np.asarray(picture).reshape(-1, 3)
    return float(pixels.mean()) / 255, len(np.unique(pixels, axis=0))


@pytest.mark.extra("plot")
def test_it_is_dark_where_that_is_wanted(page: Any) -> None:  # noqa: ANN401
    light, colors = light_of(page)
    dark_mode = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", dark_mode)
    dark, _ = light_of(page)
    assert colors > 20
    assert light > 0.8
    assert dark < 0.3
