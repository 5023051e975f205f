// @ts-check
// Events: the scenario's and those by hand, with their time and by whom; what was refused, with the reason. And what
// supervisors did, and when the operator's hand was away.

import { $, button, element } from "./dom.js";
import { apply } from "./links.js";
import { between, on, run, send, tell } from "./run.js";
import { words } from "./states.js";
import { look } from "./view.js";

/**
 * @typedef {{id: string, name: string, by: number | null, numbers: number[], asked_s: number | null, t: number | null,
 *   refused: string, told: any, said?: string}} Entry
 */
/** @type {Entry[]} */ let entries = [];
/** Answers that are awaited. @type {Map<string, (told: any) => void>} */ const waiting = new Map();
/** While the operator's hand is away. @type {Entry | null} */ let absence = null;
/** Numbers that events by hand took. */ let byHand = 0;
/** @type {{from: number, to: number}[]} */ let stalls = [], gone = [];

on("plan", ({ plan }) => {
  entries = plan.events.map((/** @type {any} */ event, /** @type {number} */ number) => ({ id: "", name: event.name, by: event.by ?? null, numbers: [number], asked_s: null, t: null, refused: "", told: event }));
  byHand = 0;
  absence = null;
  show();
});

on("hand", ({ is, t_s }) => {
  if (is === "away") {
    absence = { id: `hand ${t_s}`, name: "the operator's hand is away", by: null, numbers: [], asked_s: null, t: t_s, refused: "", told: null, said: "connection lost, let go, or a page that said nothing for 3 s: no commands" };
    entries.push(absence);
  } else if (is === "back" && absence) {
    absence.name = `the operator's hand was away ${(t_s - /** @type {number} */ (absence.t)).toFixed(1)} s`;
    absence = null;
  }
  show();
});

/**
 * Asks the run for an event; answers with the message "asked".
 * @param {Record<string, any>} event @param {string} text @param {() => void} [done] when it was taken @returns {Promise<any>}
 */
export function ask(event, text, done = () => {}) {
  const id = crypto.randomUUID();
  entries.push({ id, name: `${text} (viewer ${run.viewers?.you})`, by: run.viewers?.you, numbers: [], asked_s: run.now?.t_s ?? 0, t: null, refused: "", told: null });
  show();
  send({ k: "event", id, event: { ...event, name: text } });
  return new Promise((answer) => waiting.set(id, (told) => (told.refused || done(), answer(told))));
}

on("asked", (told) => {
  let entry = entries.find((one) => one.id === told.id);
  if (!entry) entries.push((entry = { id: told.id, name: String(told.event?.name ?? ""), by: told.by, numbers: [], asked_s: null, t: null, refused: "", told }));
  entry.name = String(told.event?.name ?? entry.name);
  entry.asked_s = told.asked_s ?? entry.asked_s;
  if (told.refused) entry.refused = told.refused;
  else {
    entry.numbers = told.actions.map(() => run.plan.events.length + byHand++);
    for (const action of told.actions) apply(action, told.at_ns / 1e9);
  }
  waiting.get(told.id)?.(told);
  waiting.delete(told.id);
  show();
});

on("events", ({ events }) => happen(events));
on("now", (told) => {
  stalls = (told.disturbed ?? []).map((/** @type {[number, number]} */ [from, to]) => ({ from, to }));
  gone = (told.unseen ?? []).map((/** @type {[number, number]} */ [from, to]) => ({ from, to }));
  happen(told.events);
});

/** Events that took place, and new states of supervisors. @param {any[]} told */
function happen(told) {
  let more = false;
  for (const { t_s, number, ...change } of told) {
    if (change.state) {
      more = changed(t_s, change) || more;
      continue;
    }
    if (change.name) {
      more = closed(t_s, change.name) || more;
      continue;
    }
    const entry = entries.find((one) => one.numbers.includes(number));
    if (!entry || entry.t !== null) continue;
    entry.t = t_s;
    more = true;
    if (entry.told?.action) apply(entry.told.action, t_s);
  }
  if (more) show();
}

/** A link closed or opened by its own settings; whether the list did not have it yet. It has no number among the events. @param {number} t @param {string} name */
function closed(t, name) {
  const id = `${name} ${t}`;
  if (entries.some((one) => one.id === id)) return false;
  entries.push({ id, name, by: null, numbers: [-1], asked_s: null, t, refused: "", told: null });
  return true;
}

/** A supervisor is in another state; whether the list did not have it yet. @param {number} t @param {any} change */
function changed(t, { component, state, age_ms }) {
  const id = `${component} ${t}`;
  if (entries.some((one) => one.id === id)) return false;
  const age = age_ms >= 0 ? `; newest good command ${Math.round(age_ms)} ms old` : "";
  entries.push({ id, name: `${component}: ${state}`, by: null, numbers: [], asked_s: null, t, refused: "", told: null, said: `${words(component, state)}${age}` });
  return true;
}

on("over", (told) => {
  for (const text of told.errors) entries.push({ id: text, name: text, by: null, numbers: [], asked_s: run.now?.t_s ?? 0, t: null, refused: " ", told: null });
  show();
});

/** Spans of time in which a loop stalled. */
export const disturbed = () => stalls;

/** Their colour, by its name in the style sheet. */
export const stallColour = () => (between() ? "--link" : "--lost");

/** Spans of time of which the page was not sent all rows. */
export const unseen = () => gone;

/** Events that took place, in order, numbered as in the list. @returns {{t: number, number: number, by: number | null}[]} */
export const marks = () => happened().map((entry, n) => ({ t: /** @type {number} */ (entry.t), number: n + 1, by: entry.by }));

const happened = () => entries.filter((entry) => entry.t !== null && entry.numbers.length).sort((a, b) => /** @type {number} */ (a.t) - /** @type {number} */ (b.t));

function show() {
  const done = happened(), number = new Map(done.map((entry, n) => [entry, n + 1]));
  const moment = (/** @type {Entry} */ entry) => entry.t ?? entry.asked_s ?? entry.told.at_ns / 1e9;
  const shown = entries.toSorted((a, b) => moment(b) - moment(a)).slice(0, 100);
  $("events").replaceChildren(...shown.map((entry) => item(entry, moment(entry), number.get(entry))));
  if (!shown.length) $("events").append(element("li", { className: "soft" }, run.over ? "None." : "None so far."));
  tell({ k: "marks" });
}

/** @param {Entry} entry @param {number} moment @param {number | undefined} number */
function item(entry, moment, number) {
  const late_ms = entry.t !== null && entry.by !== null && entry.asked_s !== null ? Math.round(1000 * (entry.t - entry.asked_s)) : null;
  const planned = entry.told?.actions ? ["asked for", "from the file"] : ["planned", entry.by !== null ? "by hand" : entry.told ? "scenario" : "of the link"];
  const state = entry.said ? entry.said : entry.refused.trim() ? `refused: ${entry.refused}` : entry.refused ? "" : number === undefined ? (entry.by === null ? planned[0] : "asked for") : late_ms === null ? planned[1] : late_ms >= 0 ? `in force after ${late_ms} ms` : "by hand";
  const time = `${moment.toFixed(2)} s`;
  return element("li", { className: entry.refused ? "bad" : number === undefined && !entry.said ? "soft" : "" },
    element("span", { className: "flag" }, number === undefined ? "" : `${number}`),
    button(element("time", {}, time), () => look(moment - 2, moment + 3), { className: "plain", "aria-label": `${time}: show in the charts` }),
    element("span", {}, entry.name, " ", element("small", { className: "soft" }, state)));
}
