// @ts-check
/* global uPlot */
// Charts over time with one cursor, one window and one legend. They are drawn a few times a second at most, and not in a hidden tab.

import { $, bands, button, colour, element, faded, paint, short, table } from "./dom.js";
import { bins, columns, middles, running } from "./bins.js";
import { disturbed, marks, stallColour, unseen } from "./events.js";
import { on, run, tell } from "./run.js";
import { saves } from "./save.js";
import { end_s, follow, keys, look, view, zoom } from "./view.js";

const HEIGHT = 176, EVERY_MS = 200, ROWS = 24;
/** Least width of a chart and the gap between two, px; stalls that are nearer than the last are one band. */
const NARROW = 300, GAP = 24, JOINED = 3;
/** More flows than these share a chart of delays: only means. Of services no more have a curve. */
const MOST_CHARTS = 8;
/** Values of a line whose moments are marked by dots, where there are no more. */
const FEW = 60;

/**
 * @typedef {{label: string, at: number, of: () => (number | null)[] | undefined, period_s?: number, soft?: boolean, dots?: boolean, flow?: boolean, fold?: Fold}} Line
 * @typedef {(values: (number | null)[], line: Line, span: [number, number]) => number | null} Fold
 * @typedef {{lines: Line[], title: string, folded: string, plot: any, figure: any, readout: any, table: any}} Chart
 */
/** @type {Chart[]} */ const charts = [];
/** Numbers of flows that the legend has switched off. @type {Set<number>} */ const hidden = new Set();
const drawable = "uPlot" in globalThis && !!document.createElement("canvas").getContext("2d");
/** No more than this share of the time goes into drawing: on a slow machine charts move less often. */
const BUSY = 0.1;
let due = 0, took_ms = 0;
/** What series.json has of services: of a run that is over. @type {any} */ let services = null;
/** Whether they are drawn: beside an operator, whose hand waits for nobody, only where they can be seen. */
let seen = true;
on("shows", ({ operator }) => operator && new IntersectionObserver(([now]) => { seen = now.isIntersecting || run.over; soon(); }).observe($("charts")));
on("over", () => ((seen = true), soon()));

on("plan", () => ((services = null), build()));
on("more", (told) => told.services && ((services = told.services), build(), more(), soon()));
on("bins", () => (more(), soon()));
on("view", soon);
on("marks", soon);
on("theme", () => charts.forEach((chart) => chart.plot?.redraw()));
document.addEventListener("visibilitychange", soon);

/** Draws with the next picture, if it is time. */
function soon() {
  if (due || document.hidden || !seen || !run.plan) return;
  due = setTimeout(() => requestAnimationFrame(draw), Math.max(EVERY_MS, took_ms / BUSY));
}

function build() {
  $("charts").replaceChildren();
  charts.length = 0;
  const flows = run.plan.flows;
  watched.clear();
  $("legend").replaceChildren(...flows.map(chip));
  const of = (/** @type {string} */ key, /** @type {(v: any) => any} */ as = (v) => v) => flows.map((/** @type {any} */ flow, /** @type {number} */ at) => ({ label: flow.name, at, flow: true, of: () => as({ values: columns[key]?.[at], period_s: flow.period_ns / 1e9 }), period_s: flow.period_ns / 1e9 }));
  const plain = (/** @type {any} */ { values }) => values;
  const each = (/** @type {number} */ factor) => (/** @type {any} */ { values, period_s }) => values && running(values, period_s).map((/** @type {any} */ v) => v && v * factor);
  if (flows.length > MOST_CHARTS) chart("One-way delay, mean", "ms", of("mean_ms", plain), { fold: delay("mean_ms", weighted) });
  else
    flows.forEach((/** @type {any} */ flow, /** @type {number} */ at) => {
      const line = (/** @type {string} */ label, /** @type {string} */ key, soft = false) => ({ label, at, soft, flow: true, of: () => columns[key]?.[at], period_s: flow.period_ns / 1e9 });
      chart(`Delay of ${flow.name}`, "ms", [{ ...line("max", "most_ms", true), fold: delay("max_ms", most) }, { ...line("mean", "mean_ms"), fold: delay("mean_ms", weighted) }, { ...line("min", "least_ms", true), fold: least }]);
    });
  if (services) ofServices();
  chart("Rate delivered", "kbit/s", of("rate_bps", each(1e-3)), { fold: (_, { at }, [from, to]) => middle(columns.rate_bps?.[at].slice(from, to) ?? [], 1e-3), folded: "mean" });
  chart("Packets dropped", "1/s", of("dropped", ({ values }) => values?.map((/** @type {any} */ v) => v / bins.width_s)), { fold: (values) => Math.round(values.reduce((/** @type {number} */ sum, v) => sum + (v ?? 0), 0) * bins.width_s), folded: "in all" });
  chart("Samples lost, by time sent", "", of("lost", plain), { fold: (values) => known(values).reduce((sum, v) => sum + v, 0), folded: "in all" });
  chart("Age of the newest data, mean", "ms", of("age_ms", plain), { fold: mean, folded: "mean" });
  const queues = run.plan.network.links.flatMap((/** @type {any} */ link, /** @type {number} */ at) => (link.queue ? [{ label: link.name, at, of: () => columns.queued_bytes?.[at]?.map((/** @type {any} */ v) => v && v / 1e3) }] : []));
  if (queues.length && run.plan.queues_probed) chart("Queue, longest sampled", "kB", queues.map((/** @type {any} */ line, /** @type {number} */ n) => ({ ...line, at: n })), { fold: most, folded: "longest sampled", note: "A sample says how long the queue was then; between samples it may have been longer. The longest at any packet (exact) stands at its link when the run is over." });
  chart("Age of the newest sample at its sink, max", "ms", of("oldest_ms", plain), { fold: most, folded: "oldest", note: "Grows until a newer sample arrives; its greatest value after the warm-up is age_ms.max of the summary. What a stalled loop reports late corrects the last bins." });
  for (const [kind, title, unit] of [["way", "Way of hand and robot from the start", "mm"], ["force", "Force", "N"]]) {
    const lines = (run.plan.motion ?? []).flatMap((/** @type {any} */ one, /** @type {number} */ number) => (one.kind === kind ? [{ label: one.name, number, of: () => columns.moved?.[number] }] : []));
    if (lines.length) chart(title, unit, lines.map((/** @type {any} */ line, /** @type {number} */ at) => ({ ...line, at })), { fold: most, folded: "most" });
  }
  arrange();
}

/** Delay and loss of each service, a value a second: bins of the page are shorter or longer. */
function ofServices() {
  const all = Object.keys(services.paths), sent = (/** @type {string} */ name) => known(services.paths[name].packets).reduce((sum, n) => sum + n, 0);
  const most_sent = new Set([...all].sort((a, b) => sent(b) - sent(a)).slice(0, MOST_CHARTS)), names = all.filter((name) => most_sent.has(name));
  const others = all.length - names.length, note = others ? `The ${names.length} services with the most packets; series.json has ${others} ${others > 1 ? "others" : "other"}.` : "";
  const found = () => (services.at === bins.count ? services.binned : ((services.at = bins.count), (services.binned = names.map((name) => binned(services.paths[name])))));
  const line = (/** @type {string} */ label, /** @type {number} */ at, /** @type {string} */ key, /** @type {Fold} */ fold) => ({ label, at, fold, period_s: services.span_s, dots: services.paths[names[at]].t_s.length <= FEW, of: () => found()[at][key] });
  if (others) chart("Delay by service, p99", "ms", names.map((name, at) => line(name, at, "p99_ms", most)), { folded: "highest", note });
  else names.forEach((name, at) => chart(`Delay of ${name}`, "ms", [{ ...line("p50", at, "p50_ms", mean), at: 0 }, { ...line("p99", at, "p99_ms", most), at: 1 }], { folded: "mean p50, highest p99" }));
  const lost = (/** @type {number} */ at) => (/** @type {any} */ _v, /** @type {any} */ _l, /** @type {[number, number]} */ [from, to]) => share(...["lost", "packets"].map((key) => known(found()[at][key].slice(from, to)).reduce((sum, v) => sum + v, 0)));
  chart("Packets lost by service", "%", names.map((name, at) => line(name, at, "loss", lost(at))), { folded: "in all", note });
}

/** Percent of the packets. @param {number} lost @param {number} packets */
const share = (lost = 0, packets = 0) => (packets ? (100 * lost) / packets : null);

/** Curves of a service in the bins of the page: where several fall into one, joined as in proxy/seconds.py. @param {any} path */
function binned(path) {
  const [p50_ms, p99_ms, packets, lost, weights] = Array.from({ length: 5 }, () => /** @type {(number | null)[]} */ (middles.map(() => null)));
  path.t_s.forEach((/** @type {number} */ t, /** @type {number} */ n) => {
    const at = Math.min(Math.floor(t / bins.width_s), middles.length - 1);
    if (at < 0) return;
    packets[at] = (packets[at] ?? 0) + path.packets[n];
    lost[at] = (lost[at] ?? 0) + path.lost[n];
    if (path.p50_ms[n] == null) return;
    const weight = Math.max(path.packets[n] - path.lost[n], 1), all = (weights[at] ?? 0) + weight;
    p50_ms[at] = ((p50_ms[at] ?? 0) * (all - weight) + path.p50_ms[n] * weight) / all;
    p99_ms[at] = Math.max(p99_ms[at] ?? 0, path.p99_ms[n]);
    weights[at] = all;
  });
  return { p50_ms, p99_ms, packets, lost, loss: packets.map((n, at) => share(lost[at] ?? 0, n ?? 0)) };
}

/** Kinds of charts that came when there was something in them. @type {Set<string>} */ const watched = new Set();

/** A chart of merging, once a sender merges. */
function more() {
  if (!run.plan || watched.has("k") || !columns.merged?.some((values) => values.some((v) => v !== null))) return;
  watched.add("k");
  const lines = run.plan.flows.flatMap((/** @type {any} */ flow, /** @type {number} */ at) => (columns.merged[at].some((v) => v !== null) ? [{ label: flow.name, at, flow: true, of: () => columns.merged?.[at] }] : []));
  chart("Samples merged into a packet, k", "", lines, { fold: mean, folded: "mean" });
  arrange();
}

/** Values of a window. */
const known = (/** @type {(number | null)[]} */ values) => /** @type {number[]} */ (values.filter((v) => v !== null));
/** @type {Fold} */ const most = (values) => known(values).reduce((/** @type {number | null} */ a, b) => (a === null || b > a ? b : a), null);
/** @type {Fold} */ const least = (values) => known(values).reduce((/** @type {number | null} */ a, b) => (a === null || b < a ? b : a), null);
const middle = (/** @type {(number | null)[]} */ values, factor = 1) => (known(values).length ? (known(values).reduce((sum, v) => sum + v, 0) * factor) / values.length : null);
/** @type {Fold} */ const mean = (values) => middle(known(values));
/** Of a delay: over the samples of the window, or what the summary says where that is the whole run. @param {string} key @param {Fold} fold @returns {Fold} */
const delay = (key, fold) => (values, line, span) => (run.now?.whole && view.to - view.from >= 0.99 * end_s() ? (run.now.flows[line.at]?.[key] ?? null) : fold(values, line, span));
/** @type {Fold} */
function weighted(values, { at }, [from, to]) {
  const weights = columns.delivered?.[at]?.slice(from, to) ?? values.map((v) => +(v !== null)), all = weights.reduce((/** @type {number} */ sum, n) => sum + (n ?? 0), 0);
  return all ? values.reduce((/** @type {number} */ sum, v, n) => sum + (v ?? 0) * (weights[n] ?? 0), 0) / all : null;
}

/** As many columns as fill the last row best; the last chart takes what is left. */
function arrange() {
  const place = $("charts"), shown = charts.filter(({ figure }) => !figure.hidden), fit = Math.max(Math.floor((place.clientWidth + GAP) / (NARROW + GAP)), 1);
  const rows = Math.ceil(shown.length / fit), across = Math.ceil(shown.length / Math.max(rows, 1)) || 1;
  place.style.gridTemplateColumns = `repeat(${across}, minmax(0, 1fr))`;
  const left = shown.length % across;
  for (const chart of charts) chart.figure.style.gridColumn = chart === shown[shown.length - 1] && left ? `span ${across - left + 1}` : "";
}
new ResizeObserver(arrange).observe($("charts"));

/** A flow in the legend: shows and hides it in all charts. @param {any} flow @param {number} at */
function chip(flow, at) {
  const made = button(element("span", {}, element("i", { className: `swatch flow${at % 8}` }), flow.name), () => {
    hidden.has(at) ? hidden.delete(at) : hidden.add(at);
    made.setAttribute("aria-pressed", `${!hidden.has(at)}`);
    for (const { plot, lines } of charts) lines.forEach((line, n) => line.flow && plot?.setSeries(n + 1, { show: !hidden.has(line.at) }));
    reveal();
  }, { className: "chip", "aria-pressed": "true" });
  return made;
}

/**
 * @param {string} name @param {string} unit @param {Line[]} lines
 * @param {{fold?: Fold, folded?: string, note?: string}} [over] what stands for a window, and a line about what is drawn
 */
function chart(name, unit, lines, { fold, folded = "", note = "" } = {}) {
  const title = unit ? `${name} (${unit})` : name;
  for (const line of lines) line.fold ??= fold;
  const readout = element("span", { className: "readout" }), place = element("div", { className: "place" });
  const rows = element("div", { className: "wide", tabIndex: 0, role: "region", "aria-label": `${title}: table` });
  const details = element("details", { open: !drawable, ontoggle: draw }, element("summary", {}, "Table"), rows);
  const figure = element("figure", { tabIndex: drawable ? 0 : -1, role: "group", onkeydown: keys, "aria-label": `${title}. Arrow keys move the window, plus and minus zoom, End follows the run. The values are in the table below.` }, element("figcaption", {}, element("b", {}, title), readout), place, element("div", { className: "under" }, details, ...(note ? [element("p", { className: "note soft" }, note)] : [])));
  $("charts").append(figure);
  const made = { lines, title, folded, figure, readout, table: { details, rows }, plot: /** @type {any} */ (null) };
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
  figure.lastChild.append(saves(title, made.plot, lines.map((line) => line.label), "time (s)", (n) => bridge(lines[n]), draw));
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

/** A line goes on over gaps in which no sample was due: so long, s. @param {Line} line */
const bridge = (line) => 2 * (line.period_s ?? 0) + 2 * bins.width_s;

/** @param {Line} line */
function series(line) {
  const span = (/** @type {any} */ u, /** @type {number} */ a, /** @type {number} */ b) => u.posToVal(b, "x", true) - u.posToVal(a, "x", true);
  return {
    label: line.label, stroke: () => faded(paint(line.at), line.soft ? 0.45 : 1), width: line.soft ? 0.6 : 1.6, points: { show: !!line.dots, size: 4 },
    gaps: (/** @type {any} */ u, /** @type {any} */ _i, /** @type {any} */ _a, /** @type {any} */ _b, /** @type {number[][]} */ gaps) => gaps.filter(([left, right]) => span(u, left, right) > bridge(line)),
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
  for (const [list, of] of /** @type {[any[], string][]} */ ([[unseen(), "--wire"], [disturbed(), stallColour()]])) {
    const found = list.map(({ from, to }) => [Math.max(plot.valToPos(from, "x", true), bbox.left), Math.min(plot.valToPos(to, "x", true), bbox.left + bbox.width)]);
    for (const [left, right] of bands(found.filter(([a, b]) => b >= a), JOINED * dots)) {
      ctx.fillStyle = faded(colour(of), 0.11);
      ctx.fillRect(left, bbox.top, Math.max(right - left, 2 * dots), bbox.height);
      ctx.fillStyle = faded(colour(of), 0.8);
      ctx.fillRect(left, bbox.top, Math.max(right - left, 2 * dots), 2 * dots);
    }
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

/** What a chart's lines are at the cursor, or were last; of a run that is over, what stands for the window. @param {Chart} chart */
function read({ plot, lines, readout, folded }) {
  const at = plot.cursor.idx ?? null, folds = at === null && run.over && plot.data[0].length;
  const first = folds ? Math.max(plot.data[0].findIndex((/** @type {number} */ t) => t >= view.from), 0) : 0, after = folds ? plot.data[0].findLastIndex((/** @type {number} */ t) => t <= view.to) + 1 : 0;
  $("at").textContent = at === null || !plot.data[0].length ? "" : `at ${plot.data[0][at].toFixed(2)} s`;
  readout.replaceChildren(folds && folded ? element("small", {}, folded) : "", ...lines.flatMap((line, n) => {
    if (line.flow && hidden.has(line.at)) return [];
    const value = folds && line.fold ? line.fold(plot.data[n + 1].slice(first, after), line, [first, after]) : at === null ? plot.data[n + 1].findLast((/** @type {any} */ v) => v != null) : near(plot.data[n + 1], at, line);
    if (!plot.data[n + 1].some((/** @type {any} */ v) => v != null)) return [];
    return [element("span", { title: line.label }, element("i", { className: `swatch flow${line.at % 8}${line.soft ? " soft" : ""}` }), line.soft || lines[0].soft || !line.flow ? `${line.label} ` : "", element("b", {}, short(value)))];
  }));
}

/** The value in this bin, or the last one before it that is no older than a few bins or a gap of its line. @param {any[]} values @param {number} at @param {Line} line */
const near = (values, at, line) => values.slice(Math.max(at - Math.max(5, Math.ceil(bridge(line) / bins.width_s)), 0), at + 1).findLast((v) => v != null);

function draw() {
  due = 0;
  if (!bins.count) return;
  const began = performance.now();
  reveal();
  for (const chart of charts) {
    const { plot, lines, figure, table: { details, rows }, title } = chart;
    const data = [middles, ...lines.map((line) => line.of() ?? middles.map(() => null))];
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

/** Shows charts with something in them, and not those of flows that are switched off. */
function reveal() {
  const before = charts.map(({ figure }) => figure.hidden).join();
  for (const { figure, lines } of charts) figure.hidden = lines.every((line) => (line.flow && hidden.has(line.at)) || !line.of()?.some((v) => v !== null && v !== undefined));
  if (charts.map(({ figure }) => figure.hidden).join() !== before) arrange();
}

/** The window's values at a few moments. @param {string} title @param {Line[]} lines @param {any[][]} data */
function sampled(title, lines, data) {
  const within = data[0].map((t, n) => [t, n]).filter(([t]) => t >= view.from && t <= view.to);
  const every = Math.max(Math.ceil(within.length / ROWS), 1);
  return table(`${title}, every ${short(every * bins.width_s)} s`, ["time (s)", ...lines.map((line) => line.label)], within.filter((_, n) => n % every === 0).map(([t, n]) => [t.toFixed(2), ...lines.map((line, number) => short(line.flow || !line.period_s ? data[number + 1][n] : near(data[number + 1], n, line)))]));
}
