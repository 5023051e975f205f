// @ts-check
// The path: places with what is in them, links with their settings, cross traffic and the fill of their queues.

import { $, drawn, last, ms, rate } from "./dom.js";
import { laidOut } from "./layout.js";
import { inLines, settings, switches } from "./links.js";
import { bothWays, on, run, tell } from "./run.js";
import { columns } from "./bins.js";

const BOX = 176, STEP = 356, LINE = 17, PORT = 26, LETTERS = 21;

/** Queues fuller than this are shown as filling, and as full. */
const FILLS = 0.05, FULL = 0.9;
/** Cross traffic by the number of the link's first direction: its sources, each with the direction. @type {Map<number, {number: number, at: number}[]>} */
let crossing = new Map();

on("plan", draw);
on("set", told_);
on("now", fill);
on("bins", () => run.now && fill());

function draw() {
  const { vertices } = run.plan.network;
  $("path").parentElement.hidden = !vertices.length;
  if (!vertices.length) return $("path").replaceChildren();
  const node = (/** @type {string} */ name) => run.plan.nodes.findIndex((/** @type {any} */ n) => n.name === name);
  const inside = vertices.map((/** @type {string} */ name) => run.plan.components.flatMap((/** @type {any} */ c, /** @type {number} */ at) => (node(name) >= 0 && c.node === node(name) ? [{ name: c.name, at }] : [])));
  const links = bothWays();
  const { places, edges, width, height } = laidOut(vertices.length, links.map(({ link }) => link), inside.map((/** @type {any[]} */ list) => 34 + LINE * Math.max(list.length, 1)), { box: BOX, step: STEP, port: PORT });
  crossing = crossed(links);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Network of ${vertices.length} places and ${links.length} links` });
  svg.style.cssText = `width:100%;max-width:${width}px;min-width:${Math.min(width, 1000)}px`;
  links.forEach(({ name, at }, n) => svg.append(edge(name, at, edges[n])));
  vertices.forEach((/** @type {string} */ name, /** @type {number} */ v) => svg.append(box(name, inside[v], places[v], node(name) >= 0)));
  $("path").replaceChildren(svg);
  told_();
}

/** Which sources of cross traffic take which links: along a shortest way. @param {ReturnType<typeof bothWays>} links */
function crossed(links) {
  const found = new Map();
  run.plan.network.traffic.forEach((/** @type {any} */ one, /** @type {number} */ number) => {
    const before = new Map([[one.from, -1]]), order = [one.from];
    for (const here of order)
      run.plan.network.links.forEach((/** @type {any} */ link, /** @type {number} */ at) => link.from === here && !before.has(link.to) && (before.set(link.to, at), order.push(link.to)));
    for (let here = one.to, at = before.get(here) ?? -1; at >= 0; here = run.plan.network.links[at].from, at = before.get(here) ?? -1) {
      const first = links.find((link) => link.at.includes(at))?.at[0] ?? at;
      found.set(first, [...(found.get(first) ?? []), { number, at }]);
    }
  });
  return found;
}

/** A link between two boxes, which leads to its sliders. @param {string} name @param {number[]} at @param {import("./layout.js").Edge} edge */
function edge(name, at, { line, label, run: span }) {
  const made = drawn("g", { class: "edge", id: `edge-${at[0]}` },
    drawn("title", {}, `${name}: click for its sliders`),
    drawn("path", { d: line, class: "wire", id: `wire-${at[0]}` }), drawn("path", { d: line, class: "touch" }));
  if (span && crossing.has(at[0])) made.append(drawn("path", { d: `M${span.x1 + 6} ${span.y - 7}H${span.x2 - 6}`, class: "cross", id: `cross-${at[0]}` }));
  if (label) made.append(drawn("text", { x: label.x, y: label.y - (label.anchor === "start" ? 0 : 14), "text-anchor": label.anchor, class: "name" }, name), drawn("text", { x: label.x, y: label.y + 18, "text-anchor": label.anchor, id: `told-${at[0]}` }));
  made.addEventListener("click", () => tell({ k: "chosen", name }));
  return made;
}

/** @param {string} name @param {{name: string, at: number}[]} inside @param {import("./layout.js").Place} place @param {boolean} node */
function box(name, inside, { x, y, height }, node) {
  const middle = x + BOX / 2;
  const made = drawn("g", { class: node ? "box" : "box router" }, drawn("title", {}, [name, ...inside.map((one) => one.name)].join("\n")), drawn("rect", { x, y, width: BOX, height, rx: 9 }), drawn("text", { x: middle, y: y + 20, "text-anchor": "middle", class: "name" }, shortened(name)));
  if (!inside.length) made.append(drawn("text", { x: middle, y: y + 37, "text-anchor": "middle", class: "s" }, node ? "node" : "router"));
  inside.forEach((component, n) => {
    const line = y + 39 + LINE * n;
    made.append(drawn("text", { x: x + 10, y: line, class: "s" }, shortened(component.name)), drawn("text", { x: x + BOX - 10, y: line, "text-anchor": "end", class: "s number", id: `spent-${component.at}` }));
  });
  return made;
}

const shortened = (/** @type {string} */ name) => (name.length > LETTERS ? `${name.slice(0, LETTERS - 1)}…` : name);

/** The lines of text below a link: what is set, its cross traffic, its queue. @param {number[]} at @param {string[]} [more] @param {boolean} [bad] */
function write(at, more = [], bad = false) {
  const place = $(`told-${at[0]}`);
  if (!place) return;
  const sources = (crossing.get(at[0]) ?? []).filter(({ number }) => switches.get(`traffic ${number}`) ?? true);
  const bps = at.map((way) => sources.filter((one) => one.at === way).reduce((sum, { number }) => sum + (run.plan.network.traffic[number].model?.rate_bps ?? NaN), 0));
  const words = bps.every((one) => one === bps[0]) ? rate(bps[0]) : bps.map((one, n) => `${n ? "←" : "→"} ${rate(one)}`).join(" ");
  $(`cross-${at[0]}`)?.setAttribute("class", sources.length ? "cross" : "cross off");
  const cross = !crossing.has(at[0]) ? [] : [!sources.length ? "cross traffic stopped" : bps.every(Number.isFinite) ? `cross traffic ${words}` : "cross traffic"];
  const lines = [...inLines(at), ...cross, ...more], x = place.getAttribute("x");
  place.replaceChildren(...lines.map((text, n) => drawn("tspan", { x, dy: n ? 14 : 0, class: bad && n >= lines.length - more.length ? "s bad" : "s" }, text)));
}

function told_() {
  if (!run.plan.network.vertices.length) return;
  for (const { at } of bothWays()) write(at);
  fill();
}

/** A queue that fills makes its link thick and orange, one that is full or cut red; components tell their share. */
function fill() {
  if (run.paused || !run.now || !run.plan.network.vertices.length) return;
  const { fullest } = run.now;
  for (const { at, link } of bothWays()) {
    const isKnown = at.some((l) => typeof fullest?.[l] === "number"), limit = link.queue?.limit_bytes, waits = Math.max(0, ...at.map((l) => fullest?.[l] ?? last(columns.queued_bytes?.[l]) ?? 0));
    const isWatched = at.some((l) => columns.queued_bytes?.[l]?.some((v) => v !== null));
    const share = limit ? Math.min(waits / limit, 1) : 0, drops = at.reduce((sum, l) => sum + (run.now.drops?.[l] ?? 0), 0);
    const cut = at.some((l) => !settings[l].up), full = cut || share > FULL || (drops > 0 && !run.now.whole);
    $(`wire-${at[0]}`).setAttribute("class", `wire ${full ? "full" : share > FILLS ? "fills" : "free"}${cut ? " cut" : ""}`);
    $(`wire-${at[0]}`).style.strokeWidth = 3 + 7 * share;
    const queue = limit ? `${isKnown ? "longest queue" : "queue"} ${isWatched || isKnown ? `${(waits / 1e3).toFixed(1)} of ` : "of "}${+(limit / 1e3).toPrecision(3)} kB` : "";
    write(at, [queue, drops ? `${drops} dropped${run.now.whole ? "" : " in 10 s"}` : ""].filter(Boolean), full);
  }
  run.plan.components.forEach((/** @type {any} */ component, /** @type {number} */ at) => {
    const spent = run.now.flows.flatMap((/** @type {any} */ f) => f.parts.filter((/** @type {any} */ p) => p.what === "component" && p.name === component.name).map((/** @type {any} */ p) => p.ms));
    const told = $(`spent-${at}`);
    if (told && spent.length) told.textContent = `${ms(Math.max(...spent))} ms`;
  });
}
