// @ts-check
// What is set at each link now: by the plan, by the scenario's events and by hand.

import { percent, rate } from "./dom.js";
import { on, run, tell } from "./run.js";

/** `jitter_ms` is the mean, null of a kind whose mean the page does not know; without limits the queue has none.
 * @typedef {{rate_bps: number | null, delay_ms: number, jitter_ms: number | null, loss: number, up: boolean, limit_bytes: number | null, limit_packets: number | null}} Settings */

/** By the link's number in the plan. @type {Settings[]} */
export const settings = [];
/** What runs or lives, by kind and number; absent: as at the start. @type {Map<string, boolean>} */
export const switches = new Map();

on("plan", ({ plan }) => {
  settings.length = 0;
  for (const link of plan.network.links) settings.push({ rate_bps: link.rate_bps ?? null, delay_ms: (link.delay_ns ?? 0) / 1e6, jitter_ms: meanJitter(link.jitter), loss: meanLoss(link.loss), up: true, limit_bytes: link.queue?.limit_bytes ?? null, limit_packets: link.queue?.limit_packets ?? null });
});

/** The share that a loss model takes in the long run. @param {any} loss */
function meanLoss(loss) {
  if (!loss?.r) return loss?.p ?? loss?.share ?? 0;
  const bad = loss.p / (loss.p + loss.r);
  return bad * (loss.loss_bad ?? 1) + (1 - bad) * (loss.loss_good ?? 0);
}

/** The mean of an extra delay, ms; null where the page does not know it. @param {any} jitter */
export function meanJitter(jitter) {
  const law = jitter?.delay;
  /** @type {Record<string, () => number>} */
  const means = {
    constant: () => law.span_ns,
    uniform: () => (law.low_ns + law.high_ns) / 2,
    normal: () => law.mean_ns,
    exponential: () => law.mean_ns + (law.shift_ns ?? 0),
    gumbel: () => law.mode_ns + 0.5772156649 * law.scale_ns,
  };
  if (!law) return 0;
  return law.kind in means ? means[law.kind]() / 1e6 : null;
}

/** An event's action has taken place, or is about to. @param {any} action @param {number} t_s */
export function apply(action, t_s) {
  for (const at of action.links ?? []) {
    const link = settings[at];
    if (action.rate_bps != null) link.rate_bps = action.rate_bps;
    if (action.delay_ns != null) link.delay_ms = action.delay_ns / 1e6;
    if (action.loss != null) link.loss = action.loss;
    if (action.jitter != null) link.jitter_ms = meanJitter(action.jitter);
    if (action.limit_bytes != null || action.limit_packets != null) Object.assign(link, { limit_bytes: action.limit_bytes ?? null, limit_packets: action.limit_packets ?? null });
    if (action.up != null) link.up = action.up;
  }
  if (action.kind === "flow") switches.set(`flow ${action.flow}`, action.running);
  if (action.kind === "component") switches.set(`component ${action.component}`, action.alive);
  for (const number of action.traffic ?? []) switches.set(`traffic ${number}`, action.running);
  tell({ k: "set", action, t_s });
}

/** Delays set along the only way from one component to another, ms; null where there are several ways; with `jitter` the means of that, too. @param {string} from @param {string} to @param {boolean} [jitter] */
export const propagation = (from, to, jitter = false) => way(from, to)?.reduce((sum, at) => sum + settings[at].delay_ms + (jitter ? (settings[at].jitter_ms ?? 0) : 0), 0) ?? null;

/** Header of UDP and IP, bytes. */
const HEADER = 28;

/** Time that a sample takes at least to be put on the lines of the only way, ms. @param {string} from @param {string} to @param {number} bytes */
export const lineTime = (from, to, bytes) => way(from, to)?.reduce((sum, at) => sum + (settings[at].rate_bps ? (8000 * (bytes + HEADER)) / /** @type {number} */ (settings[at].rate_bps) : 0), 0) ?? 0;

/** Numbers of the links of the only way from one component to another; null where there are several ways. @param {string} from @param {string} to */
function way(from, to) {
  const { vertices, links } = run.plan.network;
  const [start, end] = [from, to].map((name) => {
    const node = run.plan.components.find((/** @type {any} */ c) => c.name === name)?.node;
    return vertices.indexOf(run.plan.nodes[node]?.name);
  });
  if (start < 0 || end < 0) return null;
  /** @type {number[][]} */ const found = [];
  const walk = (/** @type {number} */ here, /** @type {Set<number>} */ seen, /** @type {number[]} */ taken) => {
    if (here === end) found.push(taken);
    else if (found.length < 2) links.forEach((/** @type {any} */ link, /** @type {number} */ at) => link.from === here && !seen.has(link.to) && walk(link.to, new Set([...seen, link.to]), [...taken, at]));
  };
  walk(start, new Set([start]), []);
  return found.length === 1 ? found[0] : null;
}

/** A link's settings in words. @param {Settings} one */
export function inWords(one) {
  if (!one.up) return "cut";
  return [one.rate_bps && rate(one.rate_bps), (one.delay_ms || one.jitter_ms !== 0) && `${+one.delay_ms.toPrecision(3)}${one.jitter_ms ? ` + ${+one.jitter_ms.toPrecision(2)}` : ""} ms${one.jitter_ms === null ? " + jitter" : ""}`, one.loss && `${percent(one.loss)} loss`].filter(Boolean).join(", ") || "no delay, no limit";
}

/** Both directions of a link in words, a line each; one line where they are the same. @param {number[]} at */
export function inLines(at) {
  const told = at.map((number) => inWords(settings[number]));
  return told.every((text) => text === told[0]) ? [told[0]] : told.map((text, n) => `${n ? "←" : "→"} ${text}`);
}

/** The links' names as an event has them: both directions, or one. @param {string} name @param {number[]} at @param {string} way */
export const named = (name, at, way) => (way === "both" || at.length < 2 ? name : run.plan.network.links[at[way === "forward" ? 0 : 1]].name);
