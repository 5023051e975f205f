// @ts-check
// The path: vertices in columns by their distance from the first node, links with their settings and the fill of their queues.

import { $, drawn, last, ms } from "./dom.js";
import { bothInWords, settings } from "./links.js";
import { bothWays, on, run, tell } from "./run.js";
import { columns } from "./bins.js";

const STEP = 320, BOX = 152, LINE = 17;

/** Queues fuller than this are shown as filling, and as full. */
const FILLS = 0.05, FULL = 0.9;

on("plan", draw);
on("set", () => run.plan.network.vertices.length && bothWays().forEach(({ at }) => ($(`set-${at[0]}`).textContent = bothInWords(at))));
on("now", fill);
on("bins", () => run.now && fill());

/** Where each vertex is: its column is its distance from the first, its row the next free one there. @param {number[]} heights */
function placed(heights) {
  const { vertices, links } = run.plan.network;
  const distance = vertices.map(() => Infinity);
  distance[0] = 0;
  for (let round = 0; round < vertices.length; round++)
    for (const { from, to } of links) distance[to] = Math.min(distance[to], distance[from] + 1);
  const far = Math.max(...distance.filter(Number.isFinite), 0);
  /** @type {number[]} */ const filled = [];
  return vertices.map((/** @type {string} */ _, /** @type {number} */ v) => {
    const column = Number.isFinite(distance[v]) ? distance[v] : far + 1;
    const y = filled[column] ?? 8;
    filled[column] = y + heights[v] + 46;
    return { x: 2 + column * STEP, y, height: heights[v] };
  });
}

function draw() {
  const { vertices } = run.plan.network;
  $("path").parentElement.hidden = !vertices.length;
  if (!vertices.length) return $("path").replaceChildren();
  const node = (/** @type {string} */ name) => run.plan.nodes.findIndex((/** @type {any} */ n) => n.name === name);
  const inside = vertices.map((/** @type {string} */ name) => run.plan.components.flatMap((/** @type {any} */ c, /** @type {number} */ at) => (node(name) >= 0 && c.node === node(name) ? [{ name: c.name, at }] : [])));
  const place = placed(inside.map((/** @type {any[]} */ list) => 34 + LINE * Math.max(list.length, 1)));
  const width = Math.max(...place.map((/** @type {any} */ p) => p.x)) + BOX + 2, height = Math.max(...place.map((/** @type {any} */ p) => p.y + p.height)) + 8;
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Network of ${vertices.length} places and ${bothWays().length} links` });
  svg.style.cssText = `width:100%;max-width:${width}px;min-width:${Math.min(width, 720)}px`;
  bothWays().forEach(({ name, at, link }) => svg.append(edge(name, at, place[link.from], place[link.to])));
  vertices.forEach((/** @type {string} */ name, /** @type {number} */ v) => svg.append(box(name, inside[v], place[v], node(name) >= 0)));
  $("path").replaceChildren(svg);
}

/** A link between two boxes, which leads to its sliders. @param {string} name @param {number[]} at @param {any} from @param {any} to */
function edge(name, at, from, to) {
  const [a, b] = [from, to].sort((p, q) => p.x - q.x || p.y - q.y);
  const below = a.x === b.x;
  const [x1, y1, x2, y2] = below ? [a.x + BOX / 2, a.y + a.height, b.x + BOX / 2, b.y] : [a.x + BOX, a.y + 26, b.x, b.y + 26];
  const half = (x1 + x2) / 2, line = below ? `M${x1} ${y1}V${y2}` : `M${x1} ${y1}C${half} ${y1} ${half} ${y2} ${x2} ${y2}`;
  const near = below ? { x: x1 + 10, "text-anchor": "start" } : { x: y1 === y2 ? half : x2 - 6, "text-anchor": y1 === y2 ? "middle" : "end" };
  const y = below ? (y1 + y2) / 2 : y2;
  const made = drawn("g", { class: "edge", id: `edge-${at[0]}` },
    drawn("title", {}, `${name}: click for its sliders`),
    drawn("path", { d: line, class: "wire", id: `wire-${at[0]}` }), drawn("path", { d: line, class: "touch" }),
    drawn("text", { ...near, y: y - 11, class: "name" }, name), drawn("text", { ...near, y: y + 18, class: "s", id: `set-${at[0]}` }, bothInWords(at)), drawn("text", { ...near, y: y + 32, class: "s", id: `queue-${at[0]}` }));
  made.addEventListener("click", () => tell({ k: "chosen", name }));
  return made;
}

/** @param {string} name @param {{name: string, at: number}[]} inside @param {any} place @param {boolean} node */
function box(name, inside, { x, y, height }, node) {
  const middle = x + BOX / 2;
  const made = drawn("g", { class: node ? "box" : "box router" }, drawn("rect", { x, y, width: BOX, height, rx: 9 }), drawn("text", { x: middle, y: y + 20, "text-anchor": "middle", class: "name" }, name));
  if (!inside.length) made.append(drawn("text", { x: middle, y: y + 37, "text-anchor": "middle", class: "s" }, node ? "node" : "router"));
  inside.forEach((component, n) => {
    const line = y + 39 + LINE * n;
    made.append(drawn("text", { x: x + 10, y: line, class: "s" }, shortened(component.name)), drawn("text", { x: x + BOX - 10, y: line, "text-anchor": "end", class: "s number", id: `spent-${component.at}` }));
  });
  return made;
}

const shortened = (/** @type {string} */ name) => (name.length > 14 ? `${name.slice(0, 13)}…` : name);

/** A queue that fills makes its link thick and orange, one that is full or cut red; components tell their share. */
function fill() {
  if (run.paused || !run.now || !run.plan.network.vertices.length) return;
  const { fullest } = run.now;
  for (const { at, link } of bothWays()) {
    const limit = link.queue?.limit_bytes, waits = Math.max(0, ...at.map((l) => fullest?.[l] ?? last(columns.queued_bytes?.[l]) ?? 0));
    const share = limit ? Math.min(waits / limit, 1) : 0, drops = at.reduce((sum, l) => sum + (run.now.drops?.[l] ?? 0), 0);
    const cut = at.some((l) => !settings[l].up);
    const state = cut || share > FULL || drops ? "full" : share > FILLS ? "fills" : "free";
    $(`wire-${at[0]}`).setAttribute("class", `wire ${state}${cut ? " cut" : ""}`);
    $(`wire-${at[0]}`).style.strokeWidth = 3 + 7 * share;
    $(`queue-${at[0]}`).textContent = [limit && `queue ${fullest ? "at most " : ""}${(waits / 1e3).toFixed(1)} of ${+(limit / 1e3).toPrecision(3)} kB`, drops && `${drops} dropped${run.now.whole ? "" : " in 10 s"}`].filter(Boolean).join(", ");
    $(`queue-${at[0]}`).setAttribute("class", state === "full" ? "s bad" : "s");
  }
  run.plan.components.forEach((/** @type {any} */ component, /** @type {number} */ at) => {
    const spent = run.now.flows.flatMap((/** @type {any} */ f) => f.parts.filter((/** @type {any} */ p) => p.what === "component" && p.name === component.name).map((/** @type {any} */ p) => p.ms));
    const told = $(`spent-${at}`);
    if (told && spent.length) told.textContent = `${ms(Math.max(...spent))} ms`;
  });
}
