// @ts-check
// The page of a sweep: a cell for each combination of values, filled as its runs end. Messages of sweep.py in.

import { $, element } from "./dom.js";
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
  const socket = new WebSocket(`ws://${location.host}/live${location.search}`);
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
  const head = element("tr", {}, element("th", {}, others.map((axis) => axis.key).join(", ")), ...across.map((value) => element("th", { scope: "col" }, value)));
  const body = [...rows.values()].map((values) => element("tr", {}, element("th", { scope: "row" }, values.join(", ")), ...sweep.combinations.filter((one) => key(one.values.slice(1)) === key(values)).map(cell)));
  return element("table", {}, element("caption", { className: "soft" }, first?.key ?? ""), element("thead", {}, head), element("tbody", {}, ...body));
}

/** The sweep's own table. @param {Sweep} sweep @param {Table} table */
function lines(sweep, table) {
  const words = sweep.axes.length;
  const head = sweep.head.map((one, n) => element("th", { scope: "col", className: n < words ? "words" : "" }, one.title, element("small", {}, one.unit)));
  const rows = table.lines.map((line, n) => element("tr", {}, ...[...table.values[n], ...line].map((text, at) => element("td", { className: at < words ? "words" : "" }, text))));
  return element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
}
