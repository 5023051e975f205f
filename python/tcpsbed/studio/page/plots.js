// @ts-check
/* global uPlot */
// Charts over anything but time: distributions, and numbers over a parameter with their intervals. `views/charts.py` describes them.

import { $, colour, element, paint, short } from "./dom.js";
import { on } from "./run.js";
import { saves } from "./save.js";

const HEIGHT = 220, FONT = "11px system-ui";
/** Lines with a colour of their own; further ones are dashed. */
const COLOURS = 8;

/**
 * @typedef {{title: string, xLabel: string, yLabel: string, steps: boolean, log: boolean, categories: string[],
 *   data: (number | null)[][], whiskers: (number | null)[][], labels: string[]}} Chart
 */
/** @type {any[]} */ let drawnPlots = [];
const drawable = "uPlot" in globalThis && !!document.createElement("canvas").getContext("2d");

on("more", ({ charts }) => {
  drawnPlots = [];
  for (const figure of document.querySelectorAll("figure[data-chart]")) draw(/** @type {any} */ (figure), charts[+(/** @type {any} */ (figure).dataset.chart)]);
});
on("theme", () => drawnPlots.forEach((plot) => plot.redraw()));

/** Confidence intervals as vertical whiskers. @param {Chart} chart */
const whiskers = (chart) => (/** @type {any} */ plot) => {
  const { ctx } = plot, dots = devicePixelRatio || 1;
  ctx.save();
  ctx.lineWidth = 1.2 * dots;
  chart.whiskers.forEach((half, line) => half.forEach((h, n) => {
    const y = plot.data[line + 1][n];
    if (h == null || y == null) return;
    ctx.strokeStyle = paint(line);
    const x = plot.valToPos(plot.data[0][n], "x", true), [low, high] = [y - h, y + h].map((v) => plot.valToPos(v, "y", true));
    ctx.beginPath();
    ctx.moveTo(x, low); ctx.lineTo(x, high);
    for (const end of [low, high]) { ctx.moveTo(x - 4 * dots, end); ctx.lineTo(x + 4 * dots, end); }
    ctx.stroke();
  }));
  ctx.restore();
};

const tick = (/** @type {number | null} */ v) => (v == null ? "" : v === 0 ? "0" : Math.abs(v) < 1e-3 ? v.toExponential(0) : String(+v.toPrecision(6)));

/** On a logarithmic scale only powers of ten have a line and a number. @param {number} v */
const isPower = (v) => v > 0 && Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-9;
const powers = (/** @type {any} */ _, /** @type {number[]} */ at) => at.map((v) => (isPower(v) ? v : null));
const raised = (/** @type {number} */ n) => `${n}`.replace("-", "⁻").replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[+d]);
const power = (/** @type {number | null} */ v) => (v == null ? "" : v >= 0.01 && v <= 100 ? tick(+v.toPrecision(3)) : `10${raised(Math.round(Math.log10(v)))}`);

/** Names at whole numbers only, each turned so that it leaves its neighbours room. @param {string[]} names */
function slanted(names) {
  const pen = /** @type {any} */ (document.createElement("canvas").getContext("2d"));
  pen.font = FONT;
  return { incrs: [1], space: 1, rotate: -40, size: Math.ceil(24 + 0.65 * Math.max(...names.map((name) => pen.measureText(name).width))) };
}

/** @param {Chart} chart */
function axes(chart) {
  const look = { font: FONT, labelFont: FONT, labelSize: 18, stroke: () => colour("--soft"), grid: { stroke: () => colour("--faint"), width: 1 }, ticks: { show: false } };
  const names = chart.categories, named = (/** @type {number} */ v) => (names.length ? (Number.isInteger(v) ? names[v] ?? "" : "") : tick(v));
  const log = { grid: { ...look.grid, filter: powers }, filter: powers, values: (/** @type {any} */ _, /** @type {number[]} */ at) => at.map(power) };
  return [
    { ...look, label: chart.xLabel, size: 28, values: (/** @type {any} */ _, /** @type {number[]} */ at) => at.map(named), ...(names.length ? slanted(names) : {}) },
    { ...look, label: chart.yLabel, size: 48, values: (/** @type {any} */ _, /** @type {number[]} */ at) => at.map(tick), ...(chart.log ? log : {}) },
  ];
}

/** @param {any} figure @param {Chart} chart */
function draw(figure, chart) {
  if (!drawable || !chart) return;
  const readout = element("span", { className: "readout" }), place = element("div", { className: "place" });
  figure.replaceChildren(element("figcaption", {}, element("b", {}, chart.title)), place, element("div", { className: "under" }, readout));
  const few = chart.whiskers.length > 0, top = Math.max(0, ...chart.whiskers.flatMap((half, line) => half.map((h, n) => (chart.data[line + 1][n] ?? 0) + (h ?? 0))));
  const size = () => ({ width: Math.max(place.clientWidth, 200), height: HEIGHT });
  // @ts-ignore
  const plot = new uPlot({
    ...size(),
    padding: [8, 12, 0, 0],
    cursor: { y: false, drag: { x: true, y: false } },
    legend: { show: false },
    scales: {
      x: { time: false, range: (/** @type {any} */ _, /** @type {number} */ low, /** @type {number} */ high) => (few ? [low - (high - low || 1) * 0.05, high + (high - low || 1) * 0.05] : [low, high]) },
      y: chart.log ? { distr: 3, log: 10 } : { range: (/** @type {any} */ _, /** @type {number} */ low, /** @type {number} */ high) => [Math.min(0, low ?? 0), Math.max(high, top) > 0 ? Math.max(high, top) * 1.05 : 1] },
    },
    axes: axes(chart),
    series: [{}, ...chart.labels.map((label, n) => ({ label, steps: chart.steps, stroke: () => paint(n), width: 1.6, dash: n >= COLOURS ? [6, 4] : undefined, points: { show: few, size: 6, fill: () => paint(n) }, spanGaps: true, ...(chart.steps ? { paths: /** @type {any} */ (globalThis).uPlot.paths.stepped({ align: 1 }) } : {}) }))],
    hooks: { draw: few ? [whiskers(chart)] : [], setCursor: [() => read()] },
  }, chart.data, place);
  plot.root.setAttribute("role", "img");
  plot.root.setAttribute("aria-label", `${chart.title}: ${chart.yLabel} over ${chart.xLabel}. Its values can be saved as CSV.`);

  /** Each line's value where the cursor is: of steps between any two points, too. */
  function read() {
    const left = plot.cursor.left ?? -1, at = left < 0 ? null : chart.steps ? plot.posToVal(left, "x") : plot.data[0][plot.cursor.idx ?? 0];
    const n = at === null ? -1 : plot.data[0].findLastIndex((/** @type {number} */ x) => x <= at);
    const value = (/** @type {number} */ line) => (at === null ? "" : short(n < 0 ? (chart.log ? 1 : 0) : chart.data[line + 1][n]));
    const where = at === null ? "" : `${chart.xLabel} ${chart.categories.length ? chart.categories[at] : short(at)}`;
    readout.replaceChildren(...chart.labels.map((label, line) => element("span", {}, element("i", { className: `swatch flow${line % COLOURS}` }), `${label} `, element("b", {}, value(line)))), element("span", { className: "soft" }, where));
  }
  read();
  figure.lastChild.append(saves(chart.title, plot, chart.labels, chart.xLabel));
  new ResizeObserver(() => plot.setSize(size())).observe(place);
  figure.plot = plot;
  drawnPlots.push(plot);
}
