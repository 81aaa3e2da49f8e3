// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The page: its most telling figures, and its views behind tabs, each of which is drawn when it is opened first.
"use strict";

const pageData = JSON.parse(document.getElementById("data").textContent);

function viewsOf({report, timeline, stacks, contexts, comparison}) {
  if (comparison) return [["comparison", "Comparison", comparisonView]];
  return [
    report.lines && ["lines", "Lines that waited", linesView],
    report.sites && ["sites", "Allocations", sitesView],
    report.phases && ["phases", "Phases", phasesView],
    stacks && ["stacks", "Call stacks", stacksView],
    contexts && ["contexts", "Contexts", contextsView],
    report.memory && ["budget", "Which budget", budgetView],
    report.memory?.plan_words && ["plan", "Plan", planView],
    timeline && ["timeline", "Timeline", timelineView],
    timeline && ["ranges", "Addresses", rangesView],
  ].filter(Boolean);
}

function factsOf({report, comparison}) {
  if (comparison) return [];
  const waited = report.waits?.stall_seconds ?? report.stall_seconds;
  const known = (value, text) => (typeof value === "number" ? text(value) : null);
  return [
    ["ran for", known(report.seconds, secondsText)],
    ["waited for pages", known(waited, secondsText)],
    ["faults", known(report.waits?.faults ?? report.faults, countText)],
    ["read from the store", known(report.bytes_read, sizeText)],
    ["budget", known(report.budget_bytes, sizeText)],
    ["heap at its peak", report.heap_peak_bytes > 0 ? sizeText(report.heap_peak_bytes) : null],
  ].filter(([, text]) => text !== null);
}

function addFacts(place) {
  for (const [name, text] of factsOf(pageData)) {
    place.append(element("div", {}, element("dt", {}, name), element("dd", {}, text)));
  }
}

function addViews(place) {
  const views = viewsOf(pageData).map(([id, title, fill]) => {
    const tab = element("button", {type: "button", role: "tab", id: `tab-${id}`, "aria-controls": `view-${id}`}, title);
    const panel = element("section", {role: "tabpanel", id: `view-${id}`, "aria-labelledby": `tab-${id}`});
    return {id, tab, panel, fill, filled: false};
  });
  if (views.length === 0) return;
  const tabs = element("div", {role: "tablist", "aria-label": "Views"}, ...views.map((view) => view.tab));
  place.append(tabs, ...views.map((view) => view.panel));

  function open(number) {
    views.forEach((view, other) => {
      view.tab.setAttribute("aria-selected", String(other === number));
      view.tab.tabIndex = other === number ? 0 : -1;
      view.panel.hidden = other !== number;
    });
    const view = views[number];
    if (!view.filled) view.fill(view.panel, pageData);
    view.filled = true;
    history.replaceState(null, "", `#${view.id}`);
  }
  views.forEach((view, number) => view.tab.addEventListener("click", () => open(number)));
  tabs.addEventListener("keydown", (event) => {
    const at = views.findIndex((view) => view.tab === document.activeElement);
    const to = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1}[event.key];
    if (to === undefined) return;
    const number = (to + views.length) % views.length;
    open(number);
    views[number].tab.focus();
    event.preventDefault();
  });
  open(Math.max(0, views.findIndex((view) => `#${view.id}` === location.hash)));
}

addFacts(document.getElementById("facts"));
addViews(document.getElementById("views"));
