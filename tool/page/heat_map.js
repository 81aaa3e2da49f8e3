// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where in the heap bytes moved over time: fields in the axes of a chart.
"use strict";

function addHeatMap(place, {name, map, seconds}) {
  const most = Math.max(1, ...map.bytes_per_second);
  const xs = Array.from({length: map.columns + 1}, (_, column) => (seconds * column) / map.columns);
  const sums = xs.map((_, column) => {
    let sum = 0;
    for (let row = 0; row < map.rows; ++row) sum += map.bytes_per_second[row * map.columns + Math.min(column, map.columns - 1)];
    return sum;
  });
  const draw = (plot) => {
    const {ctx} = plot;
    // Whole pixels: fields neither overlap nor leave gaps.
    const y = (row) => Math.round(plot.valToPos((map.end_offset * row) / map.rows, "y", true));
    ctx.save();
    ctx.beginPath();
    ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
    ctx.clip();
    ctx.fillStyle = colourOf("c0");
    map.bytes_per_second.forEach((value, number) => {
      if (value < most * 0.0005) return;
      const [row, column] = [Math.floor(number / map.columns), number % map.columns];
      const [left, right] = [xs[column], xs[column + 1]].map((x) => Math.round(plot.valToPos(x, "x", true)));
      ctx.globalAlpha = 0.08 + 0.92 * Math.sqrt(value / most);
      ctx.fillRect(left, y(row + 1), right - left, y(row) - y(row + 1));
    });
    ctx.restore();
  };
  addChart(place, {name, xKind: "seconds", xName: "time", kind: "bytesPerSecond", axisKind: "bytes", xs,
    draw, top: map.end_offset, series: [{name: `in and out (darkest field: ${sizeText(most)}/s), by distance from the beginning of the heap`, values: sums}]});
}
