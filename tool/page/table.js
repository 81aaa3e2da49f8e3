// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A table that is sorted by a press on a heading, and shows the rows that have all words of the filter.
"use strict";

const rowsAtFirst = 100;

// columns: {title, of(row): value, show(value, row): text or element, words: true for text, share(row): 0 to 1 of a
// bar behind the number}. `text(row)`: what the filter looks at; without it there is none. The rows come in the order of
// `sortedBy`.
function addTable(place, {name, columns, rows, text, sortedBy}) {
  const state = {column: sortedBy, down: true, filter: "", most: rowsAtFirst};
  const body = element("tbody");
  const said = element("p", {class: "count", role: "status"});
  const more = element("button", {type: "button", class: "more", hidden: true});
  const headings = columns.map((column, number) => {
    const button = element("button", {type: "button"}, column.title);
    button.addEventListener("click", () => {
      state.down = state.column === number ? !state.down : !column.words;
      state.column = number;
      draw();
    });
    return element("th", {scope: "col", class: column.words ? "words" : false}, button);
  });
  const filter = element("input", {type: "search", placeholder: "words that a row has", spellcheck: "false"});
  filter.addEventListener("input", () => {
    state.filter = filter.value;
    draw();
  });
  more.addEventListener("click", () => {
    state.most = Infinity;
    draw();
  });
  const table = element("table", {}, element("caption", {}, name), element("thead", {}, element("tr", {}, ...headings)), body);
  if (text) place.append(element("div", {class: "bar"}, element("label", {}, "Filter ", filter), said));
  place.append(element("div", {class: "wide", tabindex: "0", role: "region", "aria-label": `${name}, table`}, table), more);

  const found = rows.map((row) => ({row, text: text ? text(row).toLowerCase() : ""}));

  function compare(one, other) {
    const [a, b] = [one, other].map(({row}) => columns[state.column].of(row));
    const order = typeof a === "string" ? a.localeCompare(b) : a - b;
    return state.down ? -order : order;
  }

  function cell(column, row) {
    const value = column.of(row);
    const shown = column.show ? column.show(value, row) : String(value);
    const made = element("td", {class: column.words ? "words" : "number", "data-value": String(value)}, shown);
    if (column.share) made.style.setProperty("--share", `${Math.min(100, 100 * column.share(row))}%`);
    return made;
  }

  function draw() {
    const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const hits = found.filter((one) => words.every((word) => one.text.includes(word)));
    if (state.column !== undefined) hits.sort(compare);
    body.replaceChildren(...hits.slice(0, state.most).map(({row}) =>
      element("tr", {}, ...columns.map((column) => cell(column, row)))));
    headings.forEach((heading, number) => {
      if (number === state.column) heading.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else heading.removeAttribute("aria-sort");
    });
    said.textContent = `${countText(hits.length)} of ${countText(rows.length)} rows`;
    more.hidden = hits.length <= state.most;
    more.textContent = `Show all ${countText(hits.length)} rows`;
  }
  draw();
}
