// @ts-check
// The page of a sweep: a cell for each combination of values, filled as its runs end. Messages of sweep.py in.

import { $, drawn, element, short, socketAt } from "./dom.js";
import { poll, talks } from "./poll.js";

/**
 * @typedef {{title: string, unit: string}} Column
 * @typedef {{values: string[], done: number, failed: number, running: number}} Combination
 * @typedef {{values: string[][], lines: string[][], means: (number | null)[][]}} Table
 * @typedef {{name: string, scenario: string, world: string, settings: string[], axes: {key: string, values: string[]}[], seeds: number,
 *   all: number, done: number, failed: number, running: number, combinations: Combination[], metrics: Column[], head: Column[],
 *   flows: Record<string, Table>, remark: string, failures: string[], alive: boolean, page: boolean}} Sweep
 */

/** @type {Sweep | null} */ let sweep = null;
/** Columns of a line before its pairs of mean and interval. */
const BEFORE = 2;

const taken = (/** @type {any} */ told) => (sweep = told, draw()), gone = () => state("no connection", false);
if (talks) {
  const socket = new WebSocket(socketAt("live"));
  socket.onclose = gone;
  socket.onmessage = (message) => taken(JSON.parse(message.data));
} else poll(taken, gone);
$("flow").onchange = draw;
$("metric").onchange = draw;

/** @param {string} text @param {boolean} on */
function state(text, on) {
  $("state-text").textContent = text;
  $("state").classList.toggle("on", on);
}

/** @param {number} n @param {string} what */
const counted = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;

function draw() {
  if (!sweep) return;
  document.title = `${sweep.name} · tcpsbed studio`;
  $("name").textContent = sweep.name;
  $("facts").textContent = `${sweep.scenario} · ${sweep.world} · ${counted(sweep.seeds, "seed")}`;
  const ended = sweep.done + sweep.failed;
  const over = ended === sweep.all || sweep.page;
  state(sweep.alive ? "running" : over ? "over" : "stopped: the same command goes on", sweep.alive);
  $("sentence").textContent = `${ended} of ${counted(sweep.all, "run")} have ended${sweep.running ? `, ${sweep.running} in progress` : ""}${sweep.failed ? `, ${sweep.failed} failed` : ""}.`;
  Object.assign($("progress"), { max: sweep.all, value: ended });
  $("report").href = `/report${location.search}`;
  $("report").hidden = !sweep.page || sweep.alive;
  options($("flow"), Object.keys(sweep.flows));
  options($("metric"), sweep.metrics.map((one) => one.title + (one.unit ? ` (${one.unit})` : "")));
  const table = sweep.flows[$("flow").value];
  $("heat").replaceChildren(heat(sweep, table));
  $("plot").replaceChildren(...plot(sweep, table));
  $("sentence").append(...span(sweep, table));
  $("table").replaceChildren(table ? lines(sweep, table) : element("p", { className: "soft" }, "No run has ended yet."));
  $("remark").textContent = sweep.remark;
  $("failed").hidden = !sweep.failures.length;
  $("failures").replaceChildren(...sweep.failures.map((text) => element("li", { className: "bad" }, text)));
}

/** Fills a choice, and keeps what was chosen. @param {any} select @param {string[]} names */
function options(select, names) {
  if (select.options.length === names.length && names.every((name, n) => select.options[n].text === name)) return;
  const chosen = Math.max(select.selectedIndex, 0);
  select.replaceChildren(...names.map((name) => element("option", { value: select.id === "metric" ? "" : name }, name)));
  select.selectedIndex = Math.min(chosen, names.length - 1);
}

/** The first axis across, the others down. @param {Sweep} sweep @param {Table | undefined} table */
function heat(sweep, table) {
  const [first, ...others] = sweep.axes;
  const across = first?.values ?? [""];
  const key = (/** @type {string[]} */ values) => JSON.stringify(values);
  const found = new Map((table?.values ?? []).map((values, n) => [key(values), n]));
  const metric = Math.max($("metric").selectedIndex, 0);
  const means = (table?.means ?? []).map((line) => line[metric]).filter((mean) => mean !== null);
  const [low, high] = [Math.min(...means), Math.max(...means)];
  const rows = new Map(sweep.combinations.map((one) => [key(one.values.slice(1)), one.values.slice(1)]));
  const cell = (/** @type {Combination} */ one) => {
    const n = found.get(key(one.values)), line = table?.lines[n ?? -1];
    const mean = table?.means[n ?? -1]?.[metric] ?? null;
    const share = mean === null || high === low ? 0 : (mean - low) / (high - low);
    const at = BEFORE + 2 * metric;
    const seeds = one.done === sweep.seeds ? "" : `${one.done} of ${counted(sweep.seeds, "seed")}`;
    const about = [one.running ? "running" : "", one.failed ? `${one.failed} failed` : "", !one.running && !one.failed && one.done > 1 && one.done < sweep.seeds && line?.[0] === "1" ? "seeds change nothing" : seeds];
    const name = [one.running && "running", one.failed && "broken"].filter(Boolean).join(" ");
    const paint = mean === null ? "" : `background: color-mix(in srgb, var(--component) ${Math.round(5 + 45 * share)}%, var(--panel))`;
    return element("td", { className: name, style: paint }, element("b", {}, line?.[at] ?? "–"), line && line[at + 1] !== "–" ? ` ± ${line[at + 1]}` : "", element("small", {}, about.filter(Boolean).join(" · ")));
  };
  const head = element("tr", {}, ...(others.length ? [element("th", { scope: "col" }, others.map((axis) => axis.key).join(", "))] : []), ...across.map((value) => element("th", { scope: "col" }, value)));
  const body = [...rows.values()].map((values) => element("tr", {}, ...(others.length ? [element("th", { scope: "row" }, values.join(", "))] : []), ...sweep.combinations.filter((one) => key(one.values.slice(1)) === key(values)).map(cell)));
  return element("table", {}, element("caption", { className: "soft" }, first?.key ?? ""), element("thead", {}, head), element("tbody", {}, ...body));
}

/** The chosen number and its unit. @param {Sweep} sweep */
const chosen = (sweep) => sweep.metrics[Math.max($("metric").selectedIndex, 0)];

/** From which least to which largest value the chosen number goes. @param {Sweep} sweep @param {Table | undefined} table @returns {(string | Node)[]} */
function span(sweep, table) {
  const metric = Math.max($("metric").selectedIndex, 0), at = BEFORE + 2 * metric;
  const known = (table?.means ?? []).flatMap((line, n) => (line[metric] === null ? [] : [{ n, mean: /** @type {number} */ (line[metric]) }]));
  if (!table || known.length < 2) return [];
  const [least, most] = [known.reduce((a, b) => (b.mean < a.mean ? b : a)), known.reduce((a, b) => (b.mean > a.mean ? b : a))];
  const { title, unit } = chosen(sweep), told = (/** @type {number} */ n) => `${table.lines[n][at]}${unit && !table.lines[n][at].endsWith("%") ? ` ${unit}` : ""} (${table.values[n].join(", ")})`;
  return [` ${title[0].toUpperCase()}${title.slice(1)} of ${$("flow").value}: `, element("b", {}, told(least.n)), " to ", element("b", {}, told(most.n)), "."];
}

const WIDE = 560, HIGH = 250, LEFT = 52, BOTTOM = 40, MOST_LINES = 8;

/** The chosen number along the first axis, a line for each combination of the others, with its interval. @param {Sweep} sweep @param {Table | undefined} table @returns {Node[]} */
function plot(sweep, table) {
  const across = sweep.axes[0]?.values ?? [], metric = Math.max($("metric").selectedIndex, 0), at = BEFORE + 2 * metric;
  if (!table || across.length < 2) return [];
  /** @type {Map<string, {x: number, y: number, half: number}[]>} */ const found = new Map();
  table.values.forEach((values, n) => {
    const y = table.means[n][metric], others = values.slice(1).join(", ");
    if (y === null) return;
    const scale = y ? parseFloat(table.lines[n][at].replace("−", "-")) / y : 1; // the table may show per cent
    found.set(others, [...(found.get(others) ?? []), { x: across.indexOf(values[0]), y, half: (parseFloat(table.lines[n][at + 1]) || 0) / (scale || 1) }]);
  });
  const lines = [...found].slice(0, MOST_LINES), all = lines.flatMap(([, points]) => points);
  if (all.length < 2) return [];
  const top = Math.max(...all.map((p) => p.y + p.half)) * 1.06 || 1, low = Math.min(0, ...all.map((p) => p.y - p.half));
  const x = (/** @type {number} */ v) => LEFT + 30 + ((WIDE - LEFT - 64) * v) / (across.length - 1), y = (/** @type {number} */ v) => 12 + (HIGH - BOTTOM - 12) * (1 - (v - low) / (top - low));
  const { title, unit } = chosen(sweep), percents = table.lines[0][at].includes("%");
  const svg = drawn("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": `${title} of ${$("flow").value} along ${sweep.axes[0].key}; the values are in the table` });
  for (const step of [0, 0.25, 0.5, 0.75, 1].map((share) => low + share * (top - low))) svg.append(drawn("path", { d: `M${LEFT} ${y(step)}H${WIDE}`, class: "grid" }), drawn("text", { x: LEFT - 8, y: y(step) + 4, "text-anchor": "end", class: "s" }, percents ? `${short(+(100 * step).toPrecision(2))} %` : short(+step.toPrecision(3))));
  const every = Math.ceil(across.length / 8);
  across.forEach((value, n) => n % every === 0 && svg.append(drawn("text", { x: x(n), y: HIGH - BOTTOM + 18, "text-anchor": "middle", class: "s" }, value.replaceAll('"', ""))));
  svg.append(drawn("text", { x: (LEFT + WIDE) / 2, y: HIGH - 4, "text-anchor": "middle", class: "s" }, sweep.axes[0].key));
  lines.forEach(([, points], n) => {
    const stroke = `var(--flow${n % 8})`, sorted = points.toSorted((a, b) => a.x - b.x);
    svg.append(drawn("path", { d: sorted.map((p, m) => `${m ? "L" : "M"}${x(p.x)} ${y(p.y)}`).join(""), style: `stroke:${stroke}`, class: "line" }), ...sorted.flatMap((p) => [drawn("path", { d: `M${x(p.x)} ${y(p.y - p.half)}V${y(p.y + p.half)}`, style: `stroke:${stroke}`, class: "half" }), drawn("circle", { cx: x(p.x), cy: y(p.y), r: 3.5, style: `fill:${stroke}` })]));
  });
  const names = lines.length > 1 ? lines.map(([name], n) => element("span", {}, element("i", { className: `swatch flow${n % 8}` }), name.replaceAll('"', ""))) : [];
  const left = found.size > MOST_LINES ? [element("span", { className: "soft" }, `and ${found.size - MOST_LINES} more in the table`)] : [];
  return [element("figcaption", {}, element("b", {}, `${title}${unit ? ` (${unit})` : ""}`), element("span", { className: "chips" }, ...names, ...left)), svg];
}

/** The sweep's own table. @param {Sweep} sweep @param {Table} table */
function lines(sweep, table) {
  const words = sweep.axes.length;
  const head = sweep.head.map((one, n) => element("th", { scope: "col", className: n < words ? "words" : "" }, one.title, element("small", {}, one.unit)));
  const rows = table.lines.map((line, n) => element("tr", {}, ...[...table.values[n], ...line].map((text, at) => element("td", { className: at < words ? "words" : "" }, text))));
  return element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
}
