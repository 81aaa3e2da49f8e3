// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The views of a page: each takes the page's data and fills its place.
"use strict";

const codeText = (text) => element("code", {}, printable(text));
const shareOf = (whole) => (part) => (whole > 0 ? part / whole : 0);

function waitColumns(whole) {
  const share = shareOf(whole);
  return [
    {title: "Waited", of: (row) => row.stall_seconds, show: secondsText, share: (row) => share(row.stall_seconds)},
    {title: "Share", of: (row) => share(row.stall_seconds), show: shareText},
    {title: "Faults", of: (row) => row.faults, show: countText},
    {title: "Read", of: (row) => row.bytes_read, show: sizeText},
  ];
}

function explain(place, text) {
  place.append(element("p", {class: "hint"}, text));
}

function linesView(place, {report, left_out: leftOut}) {
  explain(place, "The lines of the program that touched pages which were not there, and how long threads waited for them.");
  addTable(place, {name: "Where threads waited", rows: report.lines, sortedBy: 0,
    text: (row) => `${row.line} ${row.most_for}`,
    columns: [...waitColumns(report.waits.stall_seconds),
      {title: "Line", of: (row) => row.line, show: codeText, words: true},
      {title: "Mostly for pages of", of: (row) => row.most_for, show: (text, row) => element("span", {}, codeText(text), ` ${shareText(row.most_for_share)}`), words: true}]});
  if (leftOut.lines > 0) {
    explain(place, `${countText(leftOut.lines)} more lines, that waited ${secondsText(leftOut.lines_stall_seconds)} together, are not in this page.`);
  }
}

function stackOf(site, row) {
  if (row.stack.length < 2) return codeText(site);
  const callers = row.stack.slice(0, -1).reverse().map((frame) => element("li", {}, codeText(frame)));
  return element("details", {}, element("summary", {}, codeText(site)), "called from", element("ol", {}, ...callers));
}

function sitesView(place, {report, left_out: leftOut}) {
  explain(place, "Where memory was allocated, how much of it there was, how much of all touches came to it, and how long threads waited for its pages. A line opens to its callers.");
  addTable(place, {name: "Objects by where they were allocated", rows: report.sites, sortedBy: 0,
    text: (row) => `${row.site} ${row.stack.join(" ")}`,
    columns: [...waitColumns(report.waits.stall_seconds),
      {title: "Peak", of: (row) => row.peak_bytes, show: sizeText, share: (row) => shareOf(report.heap_peak_bytes)(row.peak_bytes)},
      {title: "At the end", of: (row) => row.live_bytes, show: sizeText},
      {title: "Allocated", of: (row) => row.allocated_bytes, show: sizeText},
      {title: "Objects", of: (row) => row.objects, show: countText},
      {title: "Touched", of: (row) => row.touched, show: shareText},
      {title: "Allocated at", of: (row) => row.site, show: stackOf, words: true}]});
  if (leftOut.sites > 0) {
    explain(place, `${countText(leftOut.sites)} smaller sites are not in this page. Together they waited ` +
      `${secondsText(leftOut.stall_seconds)}, and held ${sizeText(leftOut.peak_bytes)} at their peaks.`);
  }
}

// A row a site, a column a phase.
function phasesView(place, {report}) {
  const {sites, phases, order, process, pages_for_one: pagesForOne} = report.phases;
  const all = phases.reduce((sum, phase) => sum + phase.uses, 0);
  explain(place, `What process ${process} used when: the order in which pages were used, cut where the set of allocations that is used ` +
    `changes. It is that of a sample of one page in ${countText(pagesForOne)}, and a phase is as long as the uses seen in it.`);
  addTable(place, {name: "Phases", rows: phases.map((phase, number) => ({...phase, number: number + 1})), sortedBy: 0,
    columns: [
      {title: "Share of all uses", of: (row) => shareOf(all)(row.uses), show: shareText, share: (row) => shareOf(all)(row.uses)},
      {title: "Times that it came", of: (row) => row.visits, show: countText},
      {title: "Phase", of: (row) => row.number, show: countText}]});
  addTable(place, {name: "Share of a phase's uses, by where the memory was allocated", sortedBy: 0,
    rows: sites.map((site, at) => ({site, at, uses: phases.reduce((sum, phase) => sum + phase.of_site[at], 0)})),
    text: (row) => row.site,
    columns: [
      {title: "Of all uses", of: (row) => shareOf(all)(row.uses), show: shareText, share: (row) => shareOf(all)(row.uses)},
      ...phases.map((phase, number) => {
        const share = (row) => shareOf(phase.uses)(phase.of_site[row.at]);
        return {title: `Phase ${number + 1}`, of: share, show: shareText, share};
      }),
      {title: "Allocated at", of: (row) => row.site, show: codeText, words: true}]});
  explain(place, `The phases came so: ${order.map((number) => number + 1).join(" ")}.`);
}

function stacksView(place, {stacks}) {
  explain(place, "Who called for the memory: the outermost function is on top, the line that allocated is at the bottom.");
  addFlameGraph(place, stacks, [
    {name: "waited for it", text: secondsText}, {name: "held at its peak", text: sizeText}, {name: "allocated", text: sizeText}]);
  if (stacks.folded === 0) return;
  const [seconds, peak, allocated] = stacks.folded_weights;
  explain(place, `${countText(stacks.folded)} of ${countText(stacks.seen)} frames are too small to be seen, and folded into ` +
    `“(smaller stacks)”: ${secondsText(seconds)} of waiting, ${sizeText(peak)} of peaks, ${sizeText(allocated)} of what was allocated.`);
}

const contextWeights = [{name: "time", text: durationText}, {name: "reads", text: countText}, {name: "writes", text: countText}];

function contextsTable(place, {contexts, contexts_left_out: leftOut, names, stacks}, of) {
  const [, , seconds, reads, writes] = stacks.frames[0];
  const rows = contexts.map(([path, entries, own, whole, read, written]) => ({
    stack: path.map((name) => names[name]), entries, own, whole, reads: read, writes: written}));
  addTable(place, {name: `Where it spent its time, and what it accessed${of}`, rows, sortedBy: 0, text: (row) => row.stack.join(" "),
    columns: [
      {title: "With all below", of: (row) => row.whole, show: durationText, share: (row) => shareOf(seconds)(row.whole)},
      {title: "Own", of: (row) => row.own, show: durationText, share: (row) => shareOf(seconds)(row.own)},
      {title: "Entries", of: (row) => row.entries, show: countText},
      {title: "Reads", of: (row) => row.reads, show: countText, share: (row) => shareOf(reads)(row.reads)},
      {title: "Writes", of: (row) => row.writes, show: countText, share: (row) => shareOf(writes)(row.writes)},
      {title: "Context", of: (row) => row.stack[row.stack.length - 1], show: stackOf, words: true}]});
  if (leftOut.contexts === 0) return;
  explain(place, `${countText(leftOut.contexts)} smaller contexts are not in this table: ${durationText(leftOut.own_seconds)} of their own, ` +
    `${countText(leftOut.reads)} reads and ${countText(leftOut.writes)} writes together.`);
}

function accessesTable(place, {sites, sites_left_out: leftOut, names}, of) {
  const accesses = (row) => row.reads + row.writes;
  const all = sites.reduce((sum, row) => sum + accesses(row), leftOut.reads + leftOut.writes);
  addTable(place, {name: `What they access, by where it was allocated${of}`, rows: sites, sortedBy: 0,
    text: (row) => `${row.site} ${names[row.in]} ${names[row.most_by]}`,
    columns: [
      {title: "Accesses", of: accesses, show: countText, share: (row) => shareOf(all)(accesses(row))},
      {title: "Reads", of: (row) => row.reads, show: countText},
      {title: "Writes", of: (row) => row.writes, show: countText},
      {title: "Peak", of: (row) => row.peak_bytes, show: sizeText},
      {title: "At the end", of: (row) => row.live_bytes, show: sizeText},
      {title: "Allocated", of: (row) => row.allocated_bytes, show: sizeText},
      {title: "Objects", of: (row) => row.objects, show: countText},
      {title: "Allocated at", of: (row) => row.site, show: codeText, words: true},
      {title: "In", of: (row) => names[row.in], show: codeText, words: true},
      {title: "Most accesses by", of: (row) => names[row.most_by], show: codeText, words: true}]});
  if (leftOut.sites === 0) return;
  explain(place, `${countText(leftOut.sites)} sites that are accessed less are not in this table: ${countText(leftOut.reads)} reads and ` +
    `${countText(leftOut.writes)} writes together.`);
}

// `of`: which process it is, where there are several.
function fillContexts(place, process, id, of) {
  addFlameGraph(place, process.stacks, contextWeights, id);
  contextsTable(place, process, of);
  accessesTable(place, process, of);
  if (process.folded > 0) {
    explain(place, `${countText(process.folded)} contexts took so little time that they were made part of those above them.`);
  }
}

// The first process is shown; the others when they are opened.
function contextsView(place, {contexts}) {
  explain(place, "Functions and loops by the path of calls that led to them, as the program counted them (farcc -ffar=record). " +
    "A frame of the graph is as wide as its own time, reads or writes with all below it; reads and writes in the tables are a context's own.");
  contexts.forEach((process, number) => {
    const name = printable(`${process.name} (process ${process.process})`);
    const fill = (into) => fillContexts(into, process, `contexts-${number}`, contexts.length > 1 ? `: ${name}` : "");
    if (number === 0) return fill(place);
    const more = element("details", {}, element("summary", {}, name));
    more.addEventListener("toggle", () => fill(more), {once: true});
    place.append(more);
  });
}

// The knee of a falling curve: its point farthest below the straight line between its ends. None where it is flat.
function kneeOf(points, secondsOf) {
  const [first, last] = [points[0], points[points.length - 1]];
  const [width, fall] = [last.memory_bytes - first.memory_bytes, secondsOf(first) - secondsOf(last)];
  if (!(width > 0) || !(fall > 0.01 * secondsOf(last))) return null;
  const below = (point) => 1 - (point.memory_bytes - first.memory_bytes) / width - (secondsOf(point) - secondsOf(last)) / fall;
  const knee = points.reduce((best, point) => (below(point) > below(best) ? point : best));
  return below(knee) > 0.02 ? knee : null;
}

const policyCurves = [
  {name: "LRU, page by page", of: (point) => point.alone_seconds},
  {name: "LRU, reading ahead", of: (point) => point.ahead_seconds},
  {name: "Farheap", of: (point) => point.farheap_seconds},
  {name: "oracle, reading ahead", of: (point) => point.best_seconds},
];
const plannedCurve = {name: "Farheap with a plan", of: (point) => point.planned_seconds};

function budgetMarks({report}, knees, curves) {
  const {memory} = report;
  const marks = [];
  const add = (at, name, colour) => marks.push({at, across: "x", name: `${name}: ${sizeText(at)}`, colour});
  if (report.budget_bytes > 0) add(report.budget_bytes, "budget of this run", "limit");
  if (memory.enough_bytes > 0) add(memory.enough_bytes, "enough", "good");
  knees.forEach((knee, number) => {
    if (knee) add(knee.memory_bytes, `knee of ${curves[number].name}`, `c${number}`);
  });
  return marks;
}

// null: nobody has measured it.
function errorText(error, what) {
  if (!error) return "not measured";
  return `${(error.mean * 100).toFixed(1)} % ${what}, ${(error.most * 100).toFixed(1)} at most, of ${error.programs} programs`;
}

function policiesTable(place, {policies, no_plan: noPlan}) {
  const rows = policies.filter((row) => !noPlan || row.key !== "planned");
  addTable(place, {name: "Policies of the predictions, and how far these are known to be wrong", rows, columns: [
    {title: "Policy", of: (row) => row.name, words: true},
    {title: "What leaves first", of: (row) => row.leaves, words: true},
    {title: "Error of its misses", of: (row) => errorText(row.misses_error, "of uses"), words: true},
    {title: "Error of its seconds", of: (row) => errorText(row.seconds_error, "of the time"), words: true}]});
  if (noPlan) explain(place, `No plan is made: ${noPlan}.`);
}

function budgetView(place, data) {
  const {memory} = data.report;
  if (memory.missing) return explain(place, `Not known: ${memory.missing}.`);
  place.append(element("p", {class: "answer"}, memory.enough_bytes > 0
    ? `Enough, even page by page: ${sizeText(memory.enough_bytes)}.` : `No budget is recommended: ${memory.caution || "none is sure"}.`));
  explain(place, `How long the program would take with less or more memory. Its own work took ${secondsText(memory.own_seconds)}; ` +
    "the store is as it was in this run. LRU: what was used least recently leaves first; oracle: what is needed last does; " +
    "Farheap: a replay of its own pager with the recorded uses, in which the program works while the store reads and writes. " +
    "Page by page: each missing page is waited for; reading ahead: they come in large pieces and before they are wanted. " +
    "At a knee more memory begins to gain less.");
  const planned = memory.no_plan ? [] : [plannedCurve];
  const curves = [...policyCurves, ...planned];
  const knees = curves.map((curve) => kneeOf(memory.points, curve.of));
  addChart(place, {name: "Predicted time by memory", xKind: "bytes", xName: "memory", kind: "seconds", dots: true,
    xs: memory.points.map((point) => point.memory_bytes), marks: budgetMarks(data, knees, curves),
    series: curves.map((curve) => ({name: curve.name, values: memory.points.map(curve.of)}))});
  const withKnee = (number) => (value, point) => (knees[number] === point ? element("strong", {}, `${secondsText(value)} (knee)`) : secondsText(value));
  addTable(place, {name: "Predictions", rows: memory.points, columns: [
    {title: "Memory", of: (point) => point.memory_bytes, show: sizeText},
    {title: "Share", of: (point) => shareOf(memory.whole_bytes)(point.memory_bytes), show: shareText},
    {title: "LRU misses", of: (point) => point.lru_misses, show: countText},
    {title: "page by page", of: curves[0].of, show: withKnee(0)},
    {title: "reading ahead", of: curves[1].of, show: withKnee(1)},
    {title: "Farheap misses", of: (point) => point.farheap_misses, show: countText},
    {title: "Farheap time", of: curves[2].of, show: withKnee(2)},
    ...planned.flatMap((curve) => [{title: "Plan misses", of: (point) => point.planned_misses, show: countText},
      {title: "Plan time", of: curve.of, show: withKnee(curves.length - 1)}]),
    {title: "Oracle misses", of: (point) => point.best_misses, show: countText},
    {title: "reading ahead", of: curves[3].of, show: withKnee(3)}]});
  policiesTable(place, memory);
}

function planView(place, {report}) {
  explain(place, "What `farheap plan` makes of this profile, and `farheap run --plan` follows, in words.");
  place.append(element("pre", {class: "plan", tabindex: "0"}, report.memory.plan_words.split("\n").map(printable).join("\n")));
}

const seriesNames = {
  faults_store: "from the store", faults_probation: "still in memory", faults_waited: "on their way", faults_fresh: "first touches",
  bytes_read: "in", bytes_written: "out", bytes_read_ahead: "in, of it ahead", stall: "all", stall_no_room: "of it for want of room",
};

function timelineView(place, {report, timeline}) {
  const xs = Array.from({length: timeline.pieces + 1}, (_, piece) => (timeline.seconds * piece) / timeline.pieces);
  const held = (values) => [...values, values[values.length - 1]];  // the last piece has an end
  const add = (name, kind, rows, scale = 1) => addChart(place, {name, kind, xKind: "seconds", xName: "time", xs, steps: true,
    series: Object.entries(rows).map(([key, values]) => ({name: seriesNames[key], values: held(values).map((value) => value * scale)}))});
  addChart(place, {name: "Memory", kind: "bytes", xKind: "seconds", xName: "time", xs, steps: true,
    series: [{name: "resident, all processes", values: held(timeline.resident_bytes)}],
    marks: [{at: report.budget_bytes, across: "y", name: `budget, ${sizeText(report.budget_bytes)}`, colour: "limit"}]});
  if (!timeline.faults_per_second) return explain(place, "Nothing was paged: all of it fitted the budget.");
  add("Faults", "perSecond", timeline.faults_per_second);
  const moved = Object.values(timeline.bytes_per_second).flat().some((value) => value > 0);
  if (moved) add("Bytes to and from the store", "bytesPerSecond", timeline.bytes_per_second);
  add("Time that faults waited, of all threads", "percent", timeline.stall_ns_per_second, 1e-7);
  if (!moved) return explain(place, "No bytes went to the store or came from it.");
  if (timeline.heat.end_offset > 0) addHeatMap(place, {name: "Where in the heap bytes moved", map: timeline.heat, seconds: timeline.seconds});
}

const countColumns = [
  {title: "Stalled", of: (row) => row.stall_ns * 1e-9, show: secondsText},
  {title: "Faults", of: (row) => row.faults, show: countText},
  {title: "From the store", of: (row) => row.faults_store, show: countText},
  {title: "In", of: (row) => row.bytes_read, show: sizeText},
  {title: "Out", of: (row) => row.bytes_written, show: sizeText},
];

// Rows of the report: [pid, offset, bytes, fresh, probation, store, waited, read, written, stall_ns].
function rangeRow([pid, offset, bytes, fresh, probation, store, waited, read, written, stall]) {
  return {pid, offset, bytes, faults: fresh + probation + store + waited, faults_store: store, bytes_read: read, bytes_written: written, stall_ns: stall};
}

function rangesView(place, {report, processes}) {
  const address = (row) => `0x${(BigInt(report.heap_address) + BigInt(row.offset)).toString(16)}`;
  explain(place, "Which parts of the heap were waited for, and how many bytes went out from there and came back.");
  addTable(place, {name: "Ranges of the heap", rows: report.ranges.map(rangeRow), sortedBy: 0, text: (row) => `${address(row)} ${row.pid}`,
    columns: [...countColumns, {title: "Addresses", of: address, show: (text, row) => codeText(`${text} + ${sizeText(row.bytes)}`), words: true},
      {title: "In the heap at", of: (row) => row.offset, show: sizeText}, {title: "Process", of: (row) => row.pid}]});
  addTable(place, {name: "Processes", rows: processes, sortedBy: 5, text: (row) => `${row.name} ${row.pid}`,
    columns: [...countColumns, {title: "Largest", of: (row) => row.peak_bytes, show: sizeText},
      {title: "Process", of: (row) => row.pid}, {title: "Name", of: (row) => row.name, show: codeText, words: true}]});
}

function comparisonView(place, {comparison}) {
  const figure = (value, row) => ({bytes: sizeText, accesses: countText}[row.unit] ?? secondsText)(value);
  const change = (row) => (row.before === 0 ? (row.after === 0 ? 0 : Infinity) : row.after / row.before - 1);
  addTable(place, {name: "Figures", rows: comparison.figures, columns: [
    {title: "Figure", of: (row) => row.name, words: true},
    {title: "Before", of: (row) => row.before, show: figure}, {title: "After", of: (row) => row.after, show: figure},
    {title: "Change", of: change, show: (value) => (value === Infinity ? "new" : signed(shareText(value), value))},
    {title: "Verdict", of: (row) => (row.worse ? "worse" : "not worse"), show: (text) => (text === "worse" ? element("strong", {class: "worse"}, text) : text), words: true}]});
  if (comparison.sites.length === 0) return;
  addTable(place, {name: "What changed most, by where it was allocated", rows: comparison.sites, text: (row) => row.site, columns: [
    "accesses" in comparison.sites[0] ? {title: "Accesses", of: (row) => row.accesses, show: (value) => signed(countText(value), value)}
      : {title: "Waited", of: (row) => row.stall_seconds, show: (value) => signed(secondsText(value), value)},
    {title: "Peak", of: (row) => row.peak_bytes, show: (value) => (value < 0 ? `-${sizeText(-value)}` : `+${sizeText(value)}`)},
    {title: "Allocated at", of: (row) => row.site, show: codeText, words: true}]});
}
