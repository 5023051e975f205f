// @ts-check
// Where the time goes: for each flow one bar that splits its mean delay of the last seconds; its parts add up.

import { $, arrow, button, element, ms, percent, table } from "./dom.js";
import { propagation } from "./links.js";
import { on, run } from "./run.js";
import { term } from "./terms.js";

/** Colours of causes by their name; all others are work of components. @type {Record<string, string>} */
const CAUSES = { queueing: "queue", serialisation: "serial", propagation: "wire", merging: "merge", playout: "play", radio: "lost", retransmission: "lost", held: "lost", unsplit: "rest" };
/** Share of a bar below which a part has no room for its name. */
const NAMED = 0.16;
/** Share of the delay beyond which what no part explains is shown. */
const UNKNOWN = 0.01;
/** Flows whose parts are listed. @type {Set<string>} */ const open = new Set();

on("now", show);

/** What the numbers are of. */
export const span = () => (run.now.whole ? "the whole run" : `the last ${Math.max(Math.round(run.now.span_s), 2)} s`);

function show() {
  if (run.paused || !run.now) return;
  const longest = Math.max(...run.now.flows.flatMap((/** @type {any} */ f) => [f.mean_ms ?? 0, f.causes.length ? (f.arrived_ms ?? 0) : 0]), 1e-6);
  const held = /** @type {any} */ (document.activeElement)?.dataset?.flow;
  $("fall").replaceChildren(...run.now.flows.map((/** @type {any} */ flow, /** @type {number} */ at) => row(flow, at, longest)));
  if (held) /** @type {any} */ ([...document.querySelectorAll("#fall [data-flow]")].find((/** @type {any} */ one) => one.dataset.flow === held))?.focus();
  const shown = new Set([...document.querySelectorAll("#fall .bar i")].map((part) => part.className));
  for (const key of document.querySelectorAll("#key [data-cause]")) /** @type {any} */ (key).hidden = !shown.has(/** @type {any} */ (key).dataset.cause);
}

/** The parts of a delay by place, links without what is set as their propagation, and what no part explains. @param {any} flow */
const parts = (flow) => shared(flow.parts.flatMap(apart), flow.mean_ms ?? 0);

/** The parts of a delay by cause. @param {any} flow */
const causes = (flow) => shared(flow.causes.map((/** @type {any} */ c) => ({ ...c, name: c.name === "unsplit" ? "not split" : c.name, what: CAUSES[c.name] ?? "component" })), flow.arrived_ms ?? flow.mean_ms ?? 0);

/**
 * Parts that add up to the mean: what is missing has a part of its own. Parts that are the means of other samples than the whole
 * (near a stage that makes samples of its own) may come to more: then they are shares of their sum.
 * @param {any[]} split @param {number} whole_ms
 */
function shared(split, whole_ms) {
  const known = split.filter((p) => p.ms > 0), sum_ms = known.reduce((sum, p) => sum + p.ms, 0), rest_ms = whole_ms - sum_ms;
  if (!known.length || rest_ms > UNKNOWN * whole_ms) return known.length ? [...known, { name: "not split", what: "rest", ms: rest_ms }] : [];
  return rest_ms < 0 ? known.map((p) => ({ ...p, ms: (p.ms * whole_ms) / sum_ms })) : known;
}

/** A link's part as propagation and the rest, where only one way leads from one component to the other. @param {any} part */
function apart(part) {
  const [from, to] = part.name.split(" -> "), set_ms = part.what === "link" && !run.now.whole ? propagation(from, to, true) : null;
  if (set_ms === null) return [part.what === "link" ? { ...part, what: "hop" } : part];
  const wire = Math.min(set_ms, part.ms), rest = part.ms - wire;
  return [{ name: `${part.name}: propagation`, what: "wire", ms: wire }, { name: `${part.name}: queueing, serialisation`, what: "link", ms: rest }].filter((p) => p.ms > 0);
}

/** @param {any} flow @param {number} at @param {number} longest */
function row(flow, at, longest) {
  const places = parts(flow), why = causes(flow);
  const name = button(element("span", {}, element("i", { className: `swatch flow${at % 8}` }), flow.name), () => { open.has(flow.name) ? open.delete(flow.name) : open.add(flow.name); show(); }, { className: "plain", "aria-expanded": `${open.has(flow.name)}`, title: "List the parts" });
  name.dataset.flow = flow.name;
  const bars = element("div", { className: "bars" }, bar(places, flow.mean_ms, longest), ...(why.length ? [bar(why, flow.arrived_ms ?? flow.mean_ms, longest, "causes")] : []));
  const lost = flow.loss > 0.0005 ? element("small", { className: "bad" }, `${percent(flow.loss)} lost`) : "";
  const made = element("div", { className: "row" }, name, element("span", { className: "total" }, flow.mean_ms === undefined ? "–" : `${ms(flow.mean_ms)} ms`, lost), bars);
  if (open.has(flow.name)) made.append(listed(flow, places, why));
  return made;
}

/** @param {any[]} split @param {number} whole_ms @param {number} longest @param {string} kind */
function bar(split, whole_ms, longest, kind = "") {
  const made = element("div", { className: `bar ${kind}`, role: "presentation" }, ...split.map((part) => {
    const share = part.ms / whole_ms, i = element("i", { className: part.what, title: `${arrow(part.name)}: ${ms(part.ms)} ms, ${percent(share)}` }, part.what !== "rest" && share * (whole_ms / longest) > NAMED ? arrow(part.name) : "");
    i.style.width = `${(100 * share).toFixed(2)}%`;
    return i;
  }));
  made.style.width = `${(100 * (whole_ms ?? 0)) / longest}%`;
  return made;
}

/** The same as a table. @param {any} flow @param {any[]} places @param {any[]} why */
function listed(flow, places, why) {
  const rows = (/** @type {any[]} */ split, /** @type {number} */ whole_ms) => split.map((p) => [arrow(p.name), ms(p.ms), percent(p.ms / whole_ms)]);
  const tables = [table(`${flow.name} by place`, ["place", "ms", "share"], rows(places, flow.mean_ms)), ...(why.length ? [table(`${flow.name} by cause`, ["cause", "ms", "share"], rows(why, flow.arrived_ms ?? flow.mean_ms))] : [])];
  const told = ["p50", "p99", "max"].map((key) => `${key} ${ms(flow[`${key}_ms`])} ms`).join(" · "), all = flow.total;
  const since = all ? element("p", { className: "soft" }, `since the warm-up: ${all.delivered} of ${all.sent} delivered, ${all.lost} lost${all.loss ? ` (${percent(all.loss)})` : ""}, mean ${ms(all.mean_ms)} ms`) : "";
  return element("div", { className: "parts" }, element("p", { className: "soft" }, `${run.now.whole ? "" : `${span()}: `}${told}`), since, ...tables);
}

/** From which share of its samples on a flow's loss is a number in the sentence, and how many flows it names: as sentence.py. */
const LEAST_LOSS = 0.0005, MOST_NAMED = 4;

/** The sentence over the page and its large numbers. */
export function sentence() {
  if (run.paused) return;
  const flows = run.now.flows.filter((/** @type {any} */ f) => f.mean_ms !== undefined);
  $("big").replaceChildren(...(flows.length ? flows : run.now.flows).slice(0, 4).map((/** @type {any} */ f) => tile(ms(f.p99_ms), "ms", `${f.name}, p99${run.now.whole ? "" : ` of ${span()}`}`)));
  if (!flows.length) return $("sentence").replaceChildren(`Nothing arrived in ${span()}.`);
  if (run.now.sentence) return $("sentence").replaceChildren(...run.now.sentence.map((/** @type {[string, string]} */ [className, text]) => (className ? element("b", { className }, text) : text)));
  const worst = flows.reduce((/** @type {any} */ a, /** @type {any} */ b) => (b.p99_ms > a.p99_ms ? b : a));
  const split = worst.causes.length ? causes(worst) : parts(worst);
  const part = split.reduce((/** @type {any} */ a, /** @type {any} */ b) => (b.ms > (a?.ms ?? 0) ? b : a), null);
  const lost = run.now.flows.filter((/** @type {any} */ f) => f.loss >= LEAST_LOSS);
  const few = run.now.flows.filter((/** @type {any} */ f) => f.loss > 0).map((/** @type {any} */ f) => f.name);
  const about = part ? [element("b", {}, `${((100 * part.ms) / ((worst.causes.length && worst.arrived_ms) || worst.mean_ms)).toFixed(0)} % of the delay of ${worst.name}`), " is ", term(arrow(part.name))] : [element("b", {}, `${worst.name} takes ${ms(worst.mean_ms)} ms`)];
  const most = lost.reduce((/** @type {any} */ a, /** @type {any} */ b) => (b.loss > (a?.loss ?? 0) ? b : a), null);
  const others = lost.length > 1 ? `; less of ${lost.length === 2 ? "another flow" : `${lost.length - 1} others`}` : "";
  const lostOf = most ? [element("b", { className: "bad" }, `${percent(most.loss)} of ${most.name} is lost`), `${most.dropped ?? ""}${others}`] : [few.length ? `less than ${100 * LEAST_LOSS} % of ${few.length > MOST_NAMED ? `each of ${few.length} flows` : few.join(", ")} is lost` : "nothing is lost"];
  const said = most?.slow ? [element("b", { className: "bad" }, "This machine is too slow"), ": ", ...lostOf, "; ", ...about] : [...about, "; ", ...lostOf];
  $("sentence").replaceChildren(...said, ".");
}

/** @param {string} value @param {string} unit @param {string} what */
const tile = (value, unit, what) => element("div", {}, element("strong", {}, value, element("small", {}, ` ${unit}`)), element("span", { className: "soft" }, what));
on("now", sentence);
