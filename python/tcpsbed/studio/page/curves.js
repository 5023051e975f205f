// @ts-check
/* global uPlot */
// Charts over time with one cursor, one window and one legend. They are drawn a few times a second at most, and not in a hidden tab.

import { $, button, colour, element, faded, paint, short, table } from "./dom.js";
import { bins, columns, middles, running } from "./bins.js";
import { disturbed, marks, unseen } from "./events.js";
import { on, run, tell } from "./run.js";
import { saves } from "./save.js";
import { follow, keys, look, view, zoom } from "./view.js";

const HEIGHT = 176, EVERY_MS = 200, ROWS = 24;
/** More flows than these share a chart of delays: only means. */
const MOST_CHARTS = 8;

/**
 * @typedef {{label: string, at: number, of: () => (number | null)[] | undefined, period_s?: number, soft?: boolean, flow?: boolean}} Line
 * @typedef {{lines: Line[], title: string, plot: any, figure: any, readout: any, table: any}} Chart
 */
/** @type {Chart[]} */ const charts = [];
/** Numbers of flows that the legend has switched off. @type {Set<number>} */ const hidden = new Set();
const drawable = "uPlot" in globalThis && !!document.createElement("canvas").getContext("2d");
/** No more than this share of the time goes into drawing: on a slow machine charts move less often. */
const BUSY = 0.1;
let due = 0, took_ms = 0;

on("plan", build);
on("bins", soon);
on("view", soon);
on("marks", soon);
on("theme", () => charts.forEach((chart) => chart.plot?.redraw()));
document.addEventListener("visibilitychange", soon);

/** Draws with the next picture, if it is time. */
function soon() {
  if (due || document.hidden || !run.plan) return;
  due = setTimeout(() => requestAnimationFrame(draw), Math.max(EVERY_MS, took_ms / BUSY));
}

function build() {
  $("charts").replaceChildren();
  charts.length = 0;
  const flows = run.plan.flows;
  $("legend").replaceChildren(...flows.map(chip));
  const of = (/** @type {string} */ key, /** @type {(v: any) => any} */ as = (v) => v) => flows.map((/** @type {any} */ flow, /** @type {number} */ at) => ({ label: flow.name, at, flow: true, of: () => as({ values: columns[key]?.[at], period_s: flow.period_ns / 1e9 }), period_s: flow.period_ns / 1e9 }));
  const plain = (/** @type {any} */ { values }) => values;
  const each = (/** @type {number} */ factor) => (/** @type {any} */ { values, period_s }) => values && running(values, period_s).map((/** @type {any} */ v) => v && v * factor);
  if (flows.length > MOST_CHARTS) chart("One-way delay, mean (ms)", of("mean_ms", plain));
  else
    flows.forEach((/** @type {any} */ flow, /** @type {number} */ at) => {
      const line = (/** @type {string} */ label, /** @type {string} */ key, soft = false) => ({ label, at, soft, flow: true, of: () => columns[key]?.[at], period_s: flow.period_ns / 1e9 });
      chart(`Delay of ${flow.name} (ms)`, [line("max", "most_ms", true), line("mean", "mean_ms"), line("min", "least_ms", true)]);
    });
  chart("Rate delivered (kbit/s)", of("rate_bps", each(1e-3)));
  chart("Packets dropped (1/s)", of("dropped", ({ values }) => values?.map((/** @type {any} */ v) => v / bins.width_s)));
  chart("Samples lost, by time sent", of("lost", plain));
  chart("Age of the newest data (ms)", of("age_ms", plain));
  chart("Samples in a packet", of("fragments", plain));
  const queues = run.plan.network.links.flatMap((/** @type {any} */ link, /** @type {number} */ at) => (link.queue ? [{ label: link.name, at, of: () => columns.queued_bytes?.[at]?.map((/** @type {any} */ v) => v && v / 1e3) }] : []));
  if (queues.length) chart("Queue, longest (kB)", queues.map((/** @type {any} */ line, /** @type {number} */ n) => ({ ...line, at: n })));
}

/** A flow in the legend: shows and hides it in all charts. @param {any} flow @param {number} at */
function chip(flow, at) {
  const made = button(element("span", {}, element("i", { className: `swatch flow${at % 8}` }), flow.name), () => {
    hidden.has(at) ? hidden.delete(at) : hidden.add(at);
    made.setAttribute("aria-pressed", `${!hidden.has(at)}`);
    for (const { plot, lines, figure } of charts) {
      lines.forEach((line, n) => line.flow && plot?.setSeries(n + 1, { show: !hidden.has(line.at) }));
      figure.hidden = lines.every((line) => line.flow && hidden.has(line.at));
    }
  }, { className: "chip", "aria-pressed": "true" });
  return made;
}

/** @param {string} title @param {Line[]} lines */
function chart(title, lines) {
  const readout = element("span", { className: "readout" }), place = element("div", { className: "place" });
  const rows = element("div", { className: "wide", tabIndex: 0, role: "region", "aria-label": `${title}: table` });
  const details = element("details", { open: !drawable, ontoggle: draw }, element("summary", {}, "Table"), rows);
  const figure = element("figure", { tabIndex: drawable ? 0 : -1, role: "group", onkeydown: keys, "aria-label": `${title}. Arrow keys move the window, plus and minus zoom, End follows the run. The values are in the table below.` }, element("figcaption", {}, element("b", {}, title), readout), place, element("div", { className: "under" }, details));
  $("charts").append(figure);
  const made = { lines, title, figure, readout, table: { details, rows }, plot: /** @type {any} */ (null) };
  charts.push(made);
  if (!drawable) return;
  const axis = { stroke: () => colour("--soft"), grid: { stroke: () => colour("--faint"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  const size = () => ({ width: Math.max(place.clientWidth, 200), height: HEIGHT });
  // @ts-ignore
  made.plot = new uPlot({
    ...size(),
    padding: [14, 16, 0, 0],
    cursor: { sync: { key: "studio", setSeries: false, filters: { pub: (/** @type {string} */ type) => type === "mousemove" || type === "mouseleave" } }, drag: { x: true, y: false, setScale: false }, y: false, points: { size: 6 } },
    scales: { x: { time: false, range: () => [view.from, view.to] }, y: { range: (/** @type {any} */ _, /** @type {number} */ low, /** @type {number} */ high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.08 : 1] } },
    axes: [{ ...axis, size: 26, space: 60, values: (/** @type {any} */ _, /** @type {number[]} */ at) => at.map((t) => `${+t.toFixed(3)} s`) }, { ...axis, size: 44, space: 34 }],
    legend: { show: false },
    series: [{}, ...lines.map((line) => series(line))],
    bands: lines[0].soft ? [{ series: [1, 3], fill: () => faded(paint(lines[0].at), 0.17) }] : [],
    hooks: { setSelect: [select], setCursor: [() => read(made)], drawClear: [shade], draw: [mark] },
  }, [[], ...lines.map(() => [])], place);
  figure.lastChild.append(saves(title, made.plot, lines.map((line) => line.label), "time (s)", (n) => 2 * (lines[n].period_s ?? 0) + 2 * bins.width_s));
  figure.plot = made.plot; // for the browser's console, too
  made.plot.root.setAttribute("aria-hidden", "true");
  made.plot.over.addEventListener("dblclick", () => follow(null));
  made.plot.over.addEventListener("wheel", (/** @type {WheelEvent} */ event) => {
    if (!event.ctrlKey && !event.shiftKey) return; // the page scrolls
    event.preventDefault();
    const [left, width] = [made.plot.cursor.left, view.to - view.from];
    if (event.shiftKey) look(view.from + Math.sign(event.deltaY || event.deltaX) * width * 0.1, view.to + Math.sign(event.deltaY || event.deltaX) * width * 0.1);
    else zoom(event.deltaY > 0 ? 1.3 : 1 / 1.3, made.plot.posToVal(left, "x"));
  }, { passive: false });
  new ResizeObserver(() => made.plot.setSize(size())).observe(place);
}

/** A line goes on over gaps in which no sample was due. @param {Line} line */
function series(line) {
  const bridge = () => 2 * (line.period_s ?? 0) + 2 * bins.width_s;
  const span = (/** @type {any} */ u, /** @type {number} */ a, /** @type {number} */ b) => u.posToVal(b, "x", true) - u.posToVal(a, "x", true);
  return {
    label: line.label, stroke: () => faded(paint(line.at), line.soft ? 0.45 : 1), width: line.soft ? 0.6 : 1.6, points: { show: false },
    gaps: (/** @type {any} */ u, /** @type {any} */ _i, /** @type {any} */ _a, /** @type {any} */ _b, /** @type {number[][]} */ gaps) => gaps.filter(([left, right]) => span(u, left, right) > bridge()),
  };
}

/** A window that was dragged becomes that of all charts. @param {any} plot */
function select(plot) {
  if (plot.select.width < 4) return;
  const [from, to] = [plot.posToVal(plot.select.left, "x"), plot.posToVal(plot.select.left + plot.select.width, "x")];
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  look(from, to);
}

/** Times in which something stalled, and of which rows are not shown, behind the lines. @param {any} plot */
function shade(plot) {
  const { ctx, bbox } = plot, dots = devicePixelRatio || 1;
  ctx.save();
  const spans = (/** @type {any[]} */ list, /** @type {string} */ of) => list.map((span) => ({ ...span, of }));
  for (const { from, to, of } of [...spans(unseen(), "--wire"), ...spans(disturbed(), "--lost")]) {
    ctx.fillStyle = faded(colour(of), 0.18);
    const [left, right] = [Math.max(plot.valToPos(from, "x", true), bbox.left), Math.min(plot.valToPos(to, "x", true), bbox.left + bbox.width)];
    if (right >= left) ctx.fillRect(left, bbox.top, Math.max(right - left, dots), bbox.height);
  }
  ctx.restore();
}

/** Events: a line with its number in the list, dashed if the scenario has it. @param {any} plot */
function mark(plot) {
  const { ctx, bbox } = plot, dots = devicePixelRatio || 1;
  ctx.save();
  ctx.font = `600 ${9.5 * dots}px system-ui`;
  ctx.lineWidth = dots;
  ctx.strokeStyle = ctx.fillStyle = colour("--ink");
  ctx.textAlign = "center";
  let taken = -Infinity;
  for (const { t, number, by } of marks()) {
    const x = plot.valToPos(t, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.setLineDash(by ? [] : [4 * dots, 3 * dots]);
    ctx.globalAlpha = 0.55;
    ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
    ctx.globalAlpha = 1;
    if (x - taken < 16 * dots) continue;
    ctx.fillText(`${number}`, x, bbox.top - 3 * dots);
    taken = x;
  }
  ctx.restore();
}

/** What a chart's lines are at the cursor, or were last. @param {Chart} chart */
function read({ plot, lines, readout }) {
  const at = plot.cursor.idx ?? null;
  $("at").textContent = at === null || !plot.data[0].length ? "" : `at ${plot.data[0][at].toFixed(2)} s`;
  readout.replaceChildren(...lines.flatMap((line, n) => {
    if (line.flow && hidden.has(line.at)) return [];
    const known = plot.data[n + 1].findLast((/** @type {any} */ v) => v != null), value = at === null ? known : near(plot.data[n + 1], at);
    if (known === undefined) return [];
    return [element("span", { title: line.label }, element("i", { className: `swatch flow${line.at % 8}${line.soft ? " soft" : ""}` }), line.soft || lines[0].soft || !line.flow || (run.over && at === null) ? `${line.label} ` : "", element("b", {}, run.over && at === null ? "" : short(value)))];
  }));
}

/** The value in this bin, or the last one before it that is not older than a few bins. @param {any[]} values @param {number} at */
const near = (values, at) => values.slice(Math.max(at - 5, 0), at + 1).findLast((v) => v != null);

function draw() {
  due = 0;
  if (!bins.count) return;
  const began = performance.now();
  for (const chart of charts) {
    const { plot, lines, figure, table: { details, rows }, title } = chart;
    const data = [middles, ...lines.map((line) => line.of() ?? middles.map(() => null))];
    figure.hidden = lines.every((line, n) => (line.flow && hidden.has(line.at)) || data[n + 1].every((v) => v === null));
    if (figure.hidden) continue;
    if (details.open && (rows.dataset.shown !== `${view.from} ${view.to}`)) {
      rows.dataset.shown = `${view.from} ${view.to}`;
      rows.replaceChildren(sampled(title, lines, data));
    }
    if (!plot) continue;
    if (lines[0].soft) plot.bands[0].series[1] = data[3].some((v) => v !== null) ? 3 : 2; // down to the least, or to the mean
    plot.setData(data, false);
    plot.setScale("x", { min: view.from, max: view.to });
    read(chart);
  }
  tell({ k: "drawn" });
  took_ms = performance.now() - began;
}

/** The window's values at a few moments. @param {string} title @param {Line[]} lines @param {any[][]} data */
function sampled(title, lines, data) {
  const within = data[0].map((t, n) => [t, n]).filter(([t]) => t >= view.from && t <= view.to);
  const every = Math.max(Math.ceil(within.length / ROWS), 1);
  return table(`${title}, every ${short(every * bins.width_s)} s`, ["time (s)", ...lines.map((line) => line.label)], within.filter((_, n) => n % every === 0).map(([t, n]) => [t.toFixed(2), ...lines.map((_, line) => short(data[line + 1][n]))]));
}
