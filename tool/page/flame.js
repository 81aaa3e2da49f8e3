// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stacks as a flame graph, by d3-flame-graph. A frame's width is its share; what it calls is below it. A click, or
// Enter, makes a frame as wide as the page; Escape shows all again.
"use strict";

const mostDrawn = 4000;
const folded = "(smaller stacks)";

// The tree for one weight: {name, value, children}, without what has none of it.
function flameTree(stacks, weight) {
  const names = stacks.names.map(printable);
  const nodes = stacks.frames.map(([, name, ...weights]) => ({name: names[name], value: weights[weight], children: []}));
  stacks.frames.forEach(([caller], number) => {
    if (number > 0 && nodes[number].value > 0) nodes[caller].children.push(nodes[number]);
  });
  const size = (node) => (node.name === folded ? -1 : node.value);
  for (const node of nodes) node.children.sort((one, other) => size(other) - size(one));
  return nodes[0];
}

// As many pixels as a frame needs so that not too many are drawn.
function leastWidth(stacks, weight, width) {
  const all = stacks.frames[0][2 + weight] || 1;
  const widths = stacks.frames.map((frame) => (width * frame[2 + weight]) / all).sort((one, other) => other - one);
  return Math.max(0.4, widths[mostDrawn] ?? 0);
}

function frameColour(node) {
  if (node.highlight) return colourOf("found");
  if (node.data.name === folded) return colourOf("folded");
  let hash = 0;
  for (const character of node.data.name) hash = (hash * 31 + character.codePointAt(0)) % 9973;
  return `hsl(${18 + (hash % 34)}, ${colourOf("flame-strength")}, ${Number(colourOf("flame-light")) + (hash % 7)}%)`;
}

// The frame that the arrow keys lead to from `at`.
function stepFrom(at, key, isDrawn) {
  const siblings = at.parent ? at.parent.children.filter(isDrawn) : [at];
  const place = siblings.indexOf(at);
  switch (key) {
    case "ArrowUp": return at.parent ?? at;
    case "ArrowDown": return (at.children ?? []).find(isDrawn) ?? at;
    case "ArrowLeft": return siblings[place - 1] ?? at;
    case "ArrowRight": return siblings[place + 1] ?? at;
    default: return null;
  }
}

// weights: {name, text(value)} in the order of a frame's numbers. `id`: no other graph of the page has it.
function addFlameGraph(place, stacks, weights, id = "flame") {
  let chart = null;
  let root = null;
  let current = null;
  let weight = 0;
  const graph = element("div", {class: "flame", tabindex: "0", role: "application", "aria-describedby": `${id}-keys`,
    "aria-label": "Flame graph of stacks"});
  const said = element("p", {class: "frame-said", role: "status"});
  const search = element("input", {type: "search", placeholder: "part of a name", spellcheck: "false"});
  const back = element("button", {type: "button"}, "Show all");
  const choices = weights.map((one, number) => {
    const radio = element("input", {type: "radio", name: `${id}-weight`, value: String(number), checked: number === 0});
    radio.addEventListener("change", () => build(number));
    return element("label", {}, radio, one.name);
  });
  place.append(
    element("div", {class: "bar"}, element("fieldset", {}, element("legend", {}, "Width"), ...choices),
      element("label", {}, "Find ", search), back),
    said, graph,
    element("p", {class: "hint", id: `${id}-keys`}, "A click or Enter on a frame makes it as wide as the page; Escape or " +
      "“Show all” goes back. Arrow keys move from frame to frame. Colours only tell frames apart."));

  const describe = (node) => `${node.data.name}: ${weights[weight].text(node.data.value)}, ` +
    `${shareText(node.data.value / (stacks.frames[0][2 + weight] || 1))} of all`;
  const groups = () => d3.select(graph).selectAll("g.frame");
  const isDrawn = (node) => groups().filter((one) => one === node).size() > 0;

  function go(node) {
    current = node;
    groups().classed("current", (one) => one === current);
    said.textContent = describe(node);
  }

  function build(number) {
    weight = number;
    graph.replaceChildren();
    const tree = flameTree(stacks, weight);
    if (!(tree.value > 0)) {
      root = null;
      said.textContent = "None of the stacks has any of this.";
      return;
    }
    const width = Math.max(300, graph.clientWidth);
    chart = flamegraph.default().width(width).cellHeight(20).inverted(true).transitionDuration(0)
      .minFrameSize(leastWidth(stacks, weight, width)).setColorMapper(frameColour).setLabelHandler(describe)
      .setSearchMatch((node, term) => term !== "" && node.data.name.toLowerCase().includes(term.toLowerCase()))
      .setSearchHandler((found, sum, all) => {
        if (search.value) said.textContent = `“${search.value}”: ${countText(found.length)} frames, ${weights[weight].text(sum)}, ${shareText(sum / all)} of all`;
      }).onHover((node) => { said.textContent = describe(node); })
      .onClick((node) => go(node));
    d3.select(graph).datum(tree).call(chart);
    root = d3.select(graph).datum();
    graph.querySelector("svg").setAttribute("aria-hidden", "true");
    if (search.value) chart.search(search.value);
    go(root);
  }

  graph.addEventListener("keydown", (event) => {
    if (!root) return;
    const next = stepFrom(current ?? root, event.key, isDrawn);
    if (next) go(next);
    else if (event.key === "Enter") chart.zoomTo(current);
    else if (event.key === "Escape") chart.resetZoom();
    else return;
    event.preventDefault();
  });
  search.addEventListener("input", () => {
    if (!root) return;
    if (search.value) chart.search(search.value);
    else {
      chart.clear();
      go(current);
    }
  });
  back.addEventListener("click", () => {
    if (root) chart.resetZoom();
  });
  onScheme(() => {
    if (root) chart.update();  // its colours
  });
  new ResizeObserver(() => {
    const width = graph.clientWidth;
    if (root && width > 0 && width !== chart.width()) chart.width(width).update();
  }).observe(graph);
  build(0);
}
