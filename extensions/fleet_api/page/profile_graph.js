// Profiles of a cluster by layer, with their dependencies drawn: layers from left to right, a line from each release to
// what it needs.

import { h, svg } from "./dom.js";

const WIDTH = 168;
const HEIGHT = 44;
const GAP_X = 72;
const GAP_Y = 14;
const HEAD = 22;
const LONGEST = 22;

// `profiles`: {name, chart, version, layer, dependsOn, state, message}
export function profileGraph(profiles) {
  const layers = [...new Set(profiles.map((each) => each.layer || 0))].sort((left, right) => left - right);
  const columns = layers.map((layer) => profiles.filter((each) => (each.layer || 0) === layer));
  const tallest = Math.max(...columns.map((each) => each.length));
  const width = layers.length * WIDTH + (layers.length - 1) * GAP_X + 2;
  const height = HEAD + tallest * (HEIGHT + GAP_Y);
  const boxes = new Map();
  columns.forEach((column, x) => column.forEach((each, y) => boxes.set(each.name, { x: 1 + x * (WIDTH + GAP_X), y: HEAD + y * (HEIGHT + GAP_Y), profile: each })));
  const lines = profiles.flatMap((each) => (each.dependsOn || []).filter((name) => boxes.has(name)).map((name) => line(boxes.get(name), boxes.get(each.name))));
  const heads = layers.map((layer, x) => svg("text", { x: 1 + x * (WIDTH + GAP_X), y: 12, class: "layer" }, `Layer ${layer}`));
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "graph", role: "img", "aria-label": sentence(profiles) },
    lines, heads, [...boxes.values()].map(box));
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Profiles by layer" }, picture);
}

function box({ x, y, profile }) {
  return svg("g", { class: `node ${tone(profile.state)}` },
    svg("title", {}, [profile.name, profile.state, profile.message].filter(Boolean).join(": ")),
    svg("rect", { x, y, width: WIDTH, height: HEIGHT, rx: 6 }),
    svg("rect", { x, y, width: 4, height: HEIGHT, rx: 2, class: "mark" }),
    svg("text", { x: x + 12, y: y + 18, class: "name" }, cut(profile.name)),
    svg("text", { x: x + 12, y: y + 34, class: "detail" }, cut([profile.version, profile.state].filter(Boolean).join(" · "))));
}

function line(from, to) {
  const [x1, y1, x2, y2] = [from.x + WIDTH, from.y + HEIGHT / 2, to.x, to.y + HEIGHT / 2];
  const middle = (x1 + x2) / 2;
  return svg("path", { class: "edge", d: `M${x1},${y1} C${middle},${y1} ${middle},${y2} ${x2},${y2}` });
}

// The same as text, for those who do not see it.
function sentence(profiles) {
  return profiles.map((each) => `${each.name} in layer ${each.layer || 0}${(each.dependsOn || []).length ? `, after ${each.dependsOn.join(" and ")}` : ""}`).join("; ");
}

const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text);
const tone = (state) => ({ Healthy: "good", Failed: "bad", Progressing: "busy" })[state] || "wait";
