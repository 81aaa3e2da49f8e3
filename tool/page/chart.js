// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lines over time or over memory, by uPlot. The mouse and the arrow keys move the cursor, whose values are beside the
// names; a drag, or the keys + and -, shows less or more of the width; 0 shows all of it.
"use strict";

const chartHeight = 230;
const binarySteps = Array.from({length: 64}, (_, power) => 2 ** power);
const kinds = {
  bytes: {text: sizeText, incrs: binarySteps},
  bytesPerSecond: {text: (value) => `${sizeText(value)}/s`, incrs: binarySteps},
  perSecond: {text: (value) => `${numberText(value)}/s`},
  percent: {text: (value) => `${numberText(value)} %`},
  seconds: {text: (value) => `${numberText(value)} s`},
};

function axis(kind, side, name) {
  const grid = {stroke: colourOf("grid"), width: 1};
  return {stroke: colourOf("soft"), grid, ticks: grid, side, label: name, labelSize: name ? 20 : 0,
    incrs: kinds[kind].incrs, size: side === 3 ? 92 : 34, space: side === 3 ? 40 : 80,
    labelFont: "12px system-ui, sans-serif", font: "12px system-ui, sans-serif",
    values: (_, splits) => splits.map(kinds[kind].text)};
}

// Dashed lines across: {at, across: "x" or "y", name, colour}.
function drawMarks(plot, marks) {
  const {ctx, bbox} = plot;
  ctx.save();
  ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.lineWidth = 1.5 * devicePixelRatio;
  ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
  for (const mark of marks) {
    const at = plot.valToPos(mark.at, mark.across, true);
    ctx.strokeStyle = ctx.fillStyle = colourOf(mark.colour);
    ctx.beginPath();
    if (mark.across === "y") {
      ctx.moveTo(bbox.left, at);
      ctx.lineTo(bbox.left + bbox.width, at);
    } else if (at >= bbox.left && at <= bbox.left + bbox.width) {
      ctx.moveTo(at, bbox.top);
      ctx.lineTo(at, bbox.top + bbox.height);
    }
    ctx.stroke();
  }
  ctx.restore();
}

function legend(series, marks, plotOf) {
  const outputs = series.map(() => element("output", {}));
  const entries = series.map((one, number) => {
    const box = element("input", {type: "checkbox", checked: true});
    box.addEventListener("change", () => plotOf().setSeries(number + 1, {show: box.checked}));
    if (series.length === 1) box.hidden = true;
    return element("label", {}, box, element("i", {class: "swatch", style: `background: var(--c${number})`}), one.name,
      " ", outputs[number]);
  });
  const lines = marks.map((mark) => element("span", {}, element("i", {class: `dashes ${mark.colour}`}), mark.name));
  return {box: element("div", {class: "legend"}, ...entries, ...lines), outputs, boxes: entries.map((one) => one.firstChild)};
}

// The cursor as a slider: so is it said to those who do not see it.
function addKeys(place, plotOf, xs, setIndex, indexOf) {
  place.addEventListener("keydown", (event) => {
    const steps = {ArrowLeft: -1, ArrowRight: 1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity};
    const plot = plotOf();
    if (event.key in steps) {
      setIndex(Math.max(0, Math.min(xs.length - 1, indexOf() + steps[event.key])));
    } else if ("+-0".includes(event.key)) {
      const middle = xs[Math.max(0, indexOf())];
      const half = (plot.scales.x.max - plot.scales.x.min) * (event.key === "+" ? 0.25 : 1);
      const [first, last] = [xs[0], xs[xs.length - 1]];
      const all = event.key === "0";
      plot.setScale("x", {min: all ? first : Math.max(first, middle - half), max: all ? last : Math.min(last, middle + half)});
    } else {
      return;
    }
    event.preventDefault();
  });
}

// series: {name, values}, as long as xs; `steps`: each value holds until the next x; `dots`: a mark on each point.
// marks: dashed lines. `draw(plot)` draws in place of the lines, whose values are then only said; `top` is the upper edge
// of its axis, of `axisKind`.
function addChart(place, {name, xKind, xName, kind, axisKind = kind, xs, series, marks = [], steps = false, dots = false,
  draw, top}) {
  let plot = null;
  let index = -1;
  const {box, outputs, boxes} = legend(series, marks, () => plot);
  const drawing = element("div", {class: "chart", tabindex: "0", role: "slider", "aria-label": `${name}: cursor`,
    "aria-valuemin": "0", "aria-valuemax": String(xs.length - 1), "aria-valuenow": "0", "aria-valuetext": "none yet"});
  place.append(element("section", {class: "figure"}, element("h2", {}, name), box, drawing));

  function say(at) {
    index = at ?? -1;
    series.forEach((one, number) => {
      outputs[number].textContent = index < 0 ? "" : kinds[kind].text(one.values[index]);
    });
    if (index < 0) return;
    drawing.setAttribute("aria-valuenow", String(index));
    drawing.setAttribute("aria-valuetext", [kinds[xKind].text(xs[index]),
      ...series.map((one) => `${one.name} ${kinds[kind].text(one.values[index])}`)].join(", "));
  }

  // So far that a mark just beyond the last value is seen.
  const lastX = xs[xs.length - 1];
  const endX = Math.max(lastX, ...marks.filter((mark) => mark.across === "x" && mark.at <= lastX * 1.2).map((mark) => mark.at * 1.01));

  function options() {
    const most = Math.max(0, ...marks.filter((mark) => mark.across === "y").map((mark) => mark.at));
    return {
      width: Math.max(300, drawing.clientWidth), height: chartHeight, legend: {show: false},
      cursor: {points: {size: 7}, drag: {x: true, y: false}, y: false},
      scales: {x: {time: false, range: (_, low, high) => [low, high === lastX ? endX : high]}, y: {range: (_, low, high) => [0, top ?? (Math.max(most, high ?? 0) * 1.06 || 1)]}},
      axes: [axis(xKind, 2, xName), axis(axisKind, 3)],
      series: [{}, ...series.map((one, number) => ({
        label: one.name, stroke: colourOf(`c${number}`), width: draw ? 0 : 2, show: boxes[number].checked,
        fill: series.length === 1 && !draw ? `${colourOf("c0")}33` : undefined, points: {show: dots},
        paths: draw ? () => null : steps ? uPlot.paths.stepped({align: 1}) : undefined}))],
      hooks: {draw: [(made) => {
        if (draw) draw(made);
        drawMarks(made, marks);
      }], setCursor: [(made) => say(made.cursor.idx)]},
    };
  }

  function build() {
    plot?.destroy();
    plot = new uPlot(options(), [xs, ...series.map((one) => one.values)], drawing);
  }
  build();
  addKeys(drawing, () => plot, xs, (at) => {
    plot.setCursor({left: plot.valToPos(xs[at], "x"), top: 10});
    say(at);
  }, () => index);
  new ResizeObserver(() => {
    if (drawing.clientWidth > 0) plot.setSize({width: Math.max(300, drawing.clientWidth), height: chartHeight});
  }).observe(drawing);
  onScheme(build);
}
