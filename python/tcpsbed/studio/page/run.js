// @ts-check
// The run that the page shows: its messages, handed to every panel that asked for their kind.

import { socketAt } from "./dom.js";

/** @typedef {{name: string, from: number, to: number, rate_bps?: number, delay_ns?: number, loss?: any, queue?: any}} Link */
/** @typedef {{t: number, number: number}} Happened */

/**
 * What is known of it, and what is saved with its changes: the "scenario", or the "profile" of a network between the user's
 * own programs, which no page stops.
 * @type {{plan: any, now: any, viewers: any, paused: boolean, over: boolean, saves: string}}
 */
export const run = { plan: null, now: null, viewers: null, paused: false, over: false, saves: "scenario" };

/** @type {Map<string, ((told: any) => void)[]>} */
const panels = new Map();

/** Calls back with each message of this kind. @param {string} kind @param {(told: any) => void} panel */
export function on(kind, panel) {
  panels.set(kind, [...(panels.get(kind) ?? []), panel]);
}

/** @param {any} told */
export function tell(told) {
  if (told.k === "plan") run.plan = told.plan;
  if (told.k === "now") run.now = told;
  if (told.k === "viewers") run.viewers = told;
  if (told.k === "steered") run.saves = told.saves ?? "scenario";
  if (told.k === "over") run.over = true;
  for (const panel of panels.get(told.k) ?? []) panel(told);
}

/** The key by which the server knows this tab again after a reload. */
function key() {
  const known = sessionStorage.getItem("viewer") ?? crypto.randomUUID();
  sessionStorage.setItem("viewer", known);
  return known;
}

/** The key by which the server knows that the hand (hand.js) is of this page. */
export const PAGE = crypto.randomUUID?.() ?? ""; // a saved page has no server

/** @type {WebSocket | null} */
let socket = null;

/** Pauses between attempts to connect again, and how many there are, one after the other. */
const AGAIN_MS = 1000, ATTEMPTS = 60;

/**
 * Connects, and again where the connection breaks before the run is over: then the server tells everything anew. `open` and
 * `closed` are messages as all others.
 */
export function connect(attempts = ATTEMPTS) {
  socket = new WebSocket(socketAt("live", `&viewer=${key()}&page=${PAGE}`));
  socket.onopen = () => {
    attempts = ATTEMPTS;
    tell({ k: "open" });
  };
  socket.onclose = () => {
    const again = !run.over && attempts > 0;
    tell({ k: "closed", again });
    if (again) setTimeout(() => connect(attempts - 1), AGAIN_MS);
  };
  socket.onmessage = (message) => tell(JSON.parse(message.data));
}

/** @param {any} message */
export const send = (message) => socket?.readyState === 1 && socket.send(JSON.stringify(message)); // 1: it is open

/** Whether this page may change the run: it steers, or nobody does, so that its first change takes control. */
export const may = () => !run.over && run.viewers?.you != null && [null, run.viewers.you].includes(run.viewers.steers);

/**
 * Whether the emulator runs between the user's own programs. A stall of its loop is part of the emulation error there, and
 * disturbs nothing by itself (disturbances.py): it is counted, but is no alarm.
 */
export const between = () => run.saves === "profile";

/** Links without their direction, with the numbers of both in the plan. @returns {{name: string, at: number[], link: Link}[]} */
export function bothWays() {
  /** @type {Map<string, {name: string, at: number[], link: Link}>} */
  const found = new Map();
  run.plan.network.links.forEach((/** @type {Link} */ link, /** @type {number} */ at) => {
    const name = link.name.replace(/\.(forward|backward)$/, "");
    const one = found.get(name) ?? { name, at: [], link };
    one.at.push(at);
    found.set(name, one);
  });
  return [...found.values()];
}
