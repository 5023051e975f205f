// @ts-check
// The whole run in a strip, with the window that the charts show: drag it, or its edges; the bar below does it by keys.

import { $, bands, colour, faded } from "./dom.js";
import { bins, columns, middles } from "./bins.js";
import { disturbed, marks, stallColour } from "./events.js";
import { on } from "./run.js";
import { end_s, look, view } from "./view.js";

const EDGE = 9;
const strip = $("strip"), canvas = $("strip-canvas"), frame = $("frame"), bar = $("scroll");

on("drawn", draw);

function draw() {
  const dots = devicePixelRatio || 1, [width, height] = [strip.clientWidth, strip.clientHeight];
  if (!width) return;
  [canvas.width, canvas.height] = [width * dots, height * dots];
  const pen = canvas.getContext("2d");
  if (pen) paint(pen, dots, width);
  frame.style.left = `${(100 * view.from) / end_s()}%`;
  frame.style.width = `${(100 * (view.to - view.from)) / end_s()}%`;
  const room = end_s() - (view.to - view.from);
  Object.assign(bar, { max: Math.max(room, 0.1).toFixed(2), value: view.from.toFixed(2), disabled: room < 0.05 });
  bar.style.visibility = room < 0.05 ? "hidden" : "";
  bar.setAttribute("aria-valuetext", `${view.from.toFixed(1)} s to ${view.to.toFixed(1)} s`);
}

/** @param {CanvasRenderingContext2D} pen @param {number} dots @param {number} width */
function paint(pen, dots, width) {
  const x = (/** @type {number} */ t) => (t / end_s()) * canvas.width;
  pen.fillStyle = faded(colour(stallColour()), 0.3);
  for (const [from, to] of bands(disturbed().map((span) => [x(span.from), x(span.to)]), 4 * dots)) pen.fillRect(from, 0, Math.max(to - from, dots), canvas.height);
  const tops = longest(width);
  const top = Math.max(...tops, 1e-9);
  pen.fillStyle = faded(colour("--soft"), 0.45);
  tops.forEach((value, n) => pen.fillRect(n * dots, canvas.height, dots, (-0.9 * canvas.height * value) / top));
  pen.fillStyle = colour("--ink");
  for (const { t } of marks()) pen.fillRect(x(t), 0, dots, canvas.height);
}

/** The longest mean delay of all flows, by pixel. @param {number} width */
function longest(width) {
  const tops = new Array(width).fill(0);
  for (const values of columns.mean_ms ?? [])
    values.forEach((value, n) => {
      const [at, end] = [middles[n] - bins.width_s / 2, middles[n] + bins.width_s / 2].map((t) => Math.round((t / end_s()) * width));
      for (let x = at; x < Math.max(end, at + 1) && x < width; x++) if (value !== null && value > tops[x]) tops[x] = value;
    });
  return tops;
}

bar.oninput = () => look(+bar.value, +bar.value + view.to - view.from);

/** @type {{grip: number, from: number, to: number, part: string} | null} */
let held = null;
const moment = (/** @type {PointerEvent} */ event) => ((event.clientX - strip.getBoundingClientRect().left) / strip.clientWidth) * end_s();

strip.onpointerdown = (/** @type {PointerEvent} */ event) => {
  const at = moment(event), edge = (EDGE / strip.clientWidth) * end_s(), { from, to } = view;
  const part = Math.abs(at - from) < edge ? "from" : Math.abs(at - to) < edge ? "to" : "all";
  if (part === "all" && (at < from || at > to)) look(at - (to - from) / 2, at + (to - from) / 2);
  held = { grip: at, from: view.from, to: view.to, part };
  strip.setPointerCapture(event.pointerId);
};
strip.onpointermove = (/** @type {PointerEvent} */ event) => {
  if (!held) return;
  const by = moment(event) - held.grip;
  look(held.from + (held.part === "to" ? 0 : by), held.to + (held.part === "from" ? 0 : by));
};
strip.onpointerup = strip.onpointercancel = () => (held = null);
