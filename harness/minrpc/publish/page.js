// SPDX-License-Identifier: Apache-2.0
// Tables sort by a click on a column's head, and become cards where they are too wide for the page.
// A click on a box or a dot of a picture says below it what it is.
"use strict";

// "1,234.5", "36.4 µs", "12.3%": by value; in a column of numbers any text after the number, too; all else as text.
const prefixes = { p: 1e-12, n: 1e-9, "µ": 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9 };

function value(cell) {
  const text = cell.textContent.trim();
  const found = /^([+-]?[\d,]+(?:\.\d+)?(?:e[+-]?\d+)?)(?:\s*([pnµmkMG]?)(?:s|Hz|%)(?!\w))?/.exec(text);
  if (!found || (found[0] !== text && !cell.classList.contains("number"))) {
    return text === "" ? null : text;
  }
  return parseFloat(found[1].replaceAll(",", "")) * (prefixes[found[2]] || 1);
}

function order(one, other) {
  if (one === null || other === null) {
    return (one === null) - (other === null);
  }
  if (typeof one === typeof other) {
    return typeof one === "number" ? one - other : one.localeCompare(other);
  }
  return typeof one === "number" ? -1 : 1;
}

function sortBy(head) {
  const table = head.closest("table");
  const column = head.cellIndex;
  const down = head.getAttribute("aria-sort") === "ascending" ||
    (head.classList.contains("number") && !head.hasAttribute("aria-sort"));
  const rows = Array.from(table.tBodies[0].rows);
  for (const other of head.parentNode.cells) {
    other.removeAttribute("aria-sort");
  }
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  rows.sort((a, b) => order(value(a.cells[column]), value(b.cells[column])) * (down ? -1 : 1));
  table.tBodies[0].append(...rows);
}

for (const head of document.querySelectorAll("thead th")) {
  head.querySelector("button").addEventListener("click", () => sortBy(head));
}

// Rows without the searched text are hidden.
for (const search of document.querySelectorAll("input[type=search]")) {
  search.addEventListener("input", () => {
    const wanted = search.value.toLowerCase();
    for (const row of search.nextElementSibling.querySelectorAll("tbody tr")) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
    }
  });
}

const desktop = 800;
const widths = new WeakMap();

function fit(place) {
  if (widths.get(place) !== place.clientWidth) {
    widths.set(place, place.clientWidth);
    place.classList.remove("cards");
    // On a desktop a wide table stays a table, and scrolls.
    place.classList.toggle("cards", place.clientWidth < desktop && place.scrollWidth > place.clientWidth);
  }
}

// In the next frame: what changes sizes while they are observed is an error.
const fitting = new ResizeObserver((entries) => requestAnimationFrame(() => entries.forEach((one) => fit(one.target))));

for (const place of document.querySelectorAll(".wide")) {
  fit(place);
  fitting.observe(place);
}

for (const figure of document.querySelectorAll("figure")) {
  figure.addEventListener("click", (event) => {
    const chosen = event.target.closest("[title]");
    if (!chosen) {
      return;
    }
    for (const before of figure.querySelectorAll(".chosen")) {
      before.classList.remove("chosen");
    }
    chosen.classList.add("chosen");
    figure.querySelector("figcaption").textContent = chosen.title;
  });
}
