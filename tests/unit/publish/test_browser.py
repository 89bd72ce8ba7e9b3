# SPDX-License-Identifier: Apache-2.0
"""The HTML page in a browser: it loads nothing, sorts, names a clicked function, fits a phone and the
dark."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minrpc.publish import RunRecord
from minrpc.publish.html_page import html_page

from tests.unit.publish.runs import failing, one_test, whole

RUNS = {"whole": whole(), "300 failures": failing(300), "one test": one_test()}
# Elements seen with all folds open that are wider than the page, or must be scrolled sideways.
TOO_WIDE = """
for (const one of document.querySelectorAll("details")) { one.open = true; }
const done = arguments[0], wide = document.documentElement.clientWidth;
requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() => done(
  Array.from(document.querySelectorAll("body *"))
    .filter((one) => !one.closest(".boxes, .line"))
    .filter((one) => one.getBoundingClientRect().right > wide + 1 ||
                     (one.clientWidth && one.scrollWidth > one.clientWidth + 1))
    .map((one) => one.outerHTML.slice(0, 80))))));
"""
# The contrast of each text with its background by WCAG 2; a page needs at least 4.5.
FAINT = """
function light(color) {
  const parts = color.match(/[\\d.]+/g).slice(0, 3).map((one) => one / 255)
    .map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
}
function behind(one) {
  const color = getComputedStyle(one).backgroundColor;
  return color.startsWith("rgb(") || one === document.body ? color : behind(one.parentElement);
}
return Array.from(document.querySelectorAll("body *"))
  .filter((one) => Array.from(one.childNodes).some((node) => node.nodeType === 3 && node.textContent.trim()))
  .map((one) => [one, light(getComputedStyle(one).color), light(behind(one))])
  .filter(([one, text, paper]) => (Math.max(text, paper) + 0.05) / (Math.min(text, paper) + 0.05) < 4.5)
  .map(([one]) => one.outerHTML.slice(0, 80));
"""


# tests/unit/publish/test_run.py has the same pages without a browser.
pytestmark = pytest.mark.slow


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
    opened(browser, tmp_path, whole())
    yield browser
    as_it_was(browser)


def opened(browser: Any, directory: Path, run: RunRecord) -> None:  # noqa: ANN401
    file = directory / "report.html"
    file.write_text(html_page(run, "now"), encoding="utf-8")
    browser.get(file.as_uri())


def as_it_was(browser: Any) -> None:  # noqa: ANN401
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def column(page: Any, number: int) -> list[str]:  # noqa: ANN401
    """A column of the table of measurements."""
    script = """return Array.from(document.querySelector("#measurements + .wide table").tBodies[0].rows,
                row => row.cells[arguments[0]].textContent)"""
    found: list[str] = page.execute_script(script, number)
    return found


def seen_at(browser: Any, width: int, scheme: str = "light") -> None:  # noqa: ANN401
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def test_it_says_what_was_run_and_nothing_went_wrong(page: Any) -> None:  # noqa: ANN401
    assert page.title == "A <run> & more: 1 failed, 1 passed, 1 skipped, 1 xfailed, 1 xpassed"
    assert page.find_element("tag name", "h1").text == page.title
    assert page.get_log("browser") == []


def test_it_loads_nothing(page: Any) -> None:  # noqa: ANN401
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    # The page's own policy forbids it, too.
    refused = page.execute_async_script(
        "fetch('http://localhost:1/').then(() => arguments[0]('loaded'), () => arguments[0]('refused'))"
    )
    assert refused == "refused"
    assert any("Content Security Policy" in line["message"] for line in page.get_log("browser"))


def test_a_click_on_a_columns_head_sorts(page: Any) -> None:  # noqa: ANN401
    head = page.find_elements("css selector", "#measurements + .wide thead button")
    head[2].click()
    largest = column(page, 2)
    head[2].click()
    smallest = column(page, 2)
    assert largest == smallest[::-1] != []
    units = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3}
    seconds = [float(text.split()[0]) * units[text.split()[1]] for text in smallest]
    assert seconds == sorted(seconds)
    head[1].click()
    assert column(page, 1) == sorted(column(page, 1))
    sorted_by = page.find_elements("css selector", "th[aria-sort]")
    assert [item.text.split()[0] for item in sorted_by] == ["platform"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("expf: 35 instructions", "expf: 35 instructions (35.0%)"),
        ("fir, fir.c", "68 bytes (16.7%)"),
        ("repeat 2 of add", "101 ticks (4.04 µs)"),
    ],
)
def test_a_click_on_a_box_or_a_dot_names_it(page: Any, name: str, told: str) -> None:  # noqa: ANN401
    script = """const box = Array.from(document.querySelectorAll("figure [title]")).find(
                  one => one.title.startsWith(arguments[0]));
                box.scrollIntoView({block: "center"}); return box"""
    page.execute_script(script, name).click()
    chosen = page.find_element("css selector", ".chosen")
    caption = page.execute_script("return arguments[0].closest('figure').lastChild", chosen)
    assert told in caption.text


def test_folded_tables_open(page: Any) -> None:  # noqa: ANN401
    folded = page.find_element("css selector", "main > details")
    table = folded.find_element("css selector", "table")
    assert not table.is_displayed()
    folded.find_element("css selector", "summary").click()
    assert table.is_displayed()


@pytest.mark.parametrize("width", [390, 768, 1280])
@pytest.mark.parametrize("name", RUNS)
def test_it_fits(browser: Any, tmp_path: Path, name: str, width: int) -> None:  # noqa: ANN401
    opened(browser, tmp_path, RUNS[name])
    seen_at(browser, width)
    assert browser.execute_async_script(TOO_WIDE) == []
    letters = """return Math.min(...Array.from(document.querySelectorAll("body *"),
                 (one) => parseFloat(getComputedStyle(one).fontSize)))"""
    assert browser.execute_script(letters) >= 12
    assert browser.get_log("browser") == []
    as_it_was(browser)


def test_a_failure_takes_a_few_lines_of_a_phone(browser: Any, tmp_path: Path) -> None:  # noqa: ANN401
    opened(browser, tmp_path, failing(300))
    seen_at(browser, 390)
    heights = browser.execute_async_script(
        """const done = arguments[0], rows = document.querySelectorAll("#failures + .wide tbody tr");
        requestAnimationFrame(() => requestAnimationFrame(
          () => done(Array.from(rows, one => one.offsetHeight))))"""
    )
    assert len(heights) == 20
    assert max(heights) < 300
    as_it_was(browser)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_told_from_what_is_behind_it(page: Any, scheme: str) -> None:  # noqa: ANN401
    seen_at(page, 1280, scheme)
    assert page.execute_script(FAINT) == []


def test_all_cells_have_heads(page: Any) -> None:  # noqa: ANN401
    tables = page.find_elements("css selector", "table")
    assert len(tables) > 8
    heads = page.execute_script(
        "return Array.from(document.querySelectorAll('thead th'), one => one.textContent)"
    )
    assert all(heads)
    lacking = "return document.querySelectorAll('tbody tr > :first-child:not(th[scope=row])').length"
    assert page.execute_script(lacking) == 0


def light_of(page: Any) -> tuple[float, int]:  # noqa: ANN401
    """The lightness of the page's picture, and the number of its colours."""
    from PIL import Image

    picture = Image.open(BytesIO(page.get_screenshot_as_png())).convert("RGB")
    pixels = np.asarray(picture).reshape(-1, 3)
    return float(pixels.mean()) / 255, len(np.unique(pixels, axis=0))


@pytest.mark.slow
@pytest.mark.extra("plot")
def test_it_is_dark_where_that_is_wanted(page: Any) -> None:  # noqa: ANN401
    light, colors = light_of(page)
    dark_mode = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", dark_mode)
    dark, _ = light_of(page)
    assert colors > 20
    assert light > 0.8
    assert dark < 0.3
