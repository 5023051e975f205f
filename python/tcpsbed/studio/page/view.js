// @ts-check
// The window of time that all charts show: it follows the run, or stays where somebody has put it.

import { $ } from "./dom.js";
import { bins } from "./bins.js";
import { on, run, tell } from "./run.js";

/** Shortest window, s. */
const SHORTEST = 0.2;

/** With `follow` it ends now; `span_s` is its length then, or null for the whole run. */
export const view = { from: 0, to: 1, follow: true, span_s: /** @type {number | null} */ (null) };

/** The moment up to which there are curves. */
export const end_s = () => Math.max(bins.count * bins.width_s, 1);

/** Shows this window and no longer follows the run. @param {number} from @param {number} to */
export function look(from, to) {
  const span = Math.max(Math.min(to - from, end_s()), SHORTEST);
  view.from = Math.max(Math.min(from, end_s() - span), 0);
  view.to = view.from + span;
  view.follow = false;
  tell({ k: "view" });
}

/** Follows the run again: its last seconds, or all of it. @param {number | null} span_s */
export function follow(span_s) {
  Object.assign(view, { follow: true, span_s });
  step();
  tell({ k: "view" });
}

/** Moves the window by a share of its length. @param {number} share */
export function pan(share) {
  const span = view.to - view.from;
  look(view.from + share * span, view.to + share * span);
}

/** Makes the window longer or shorter around a moment in it. @param {number} factor @param {number} [at] */
export function zoom(factor, at = (view.from + view.to) / 2) {
  if (factor > 1 && view.to - view.from >= end_s() * 0.99) return follow(null);
  look(at - (at - view.from) * factor, at + (view.to - at) * factor);
}

function step() {
  if (!view.follow || run.paused) return;
  view.to = end_s();
  view.from = view.span_s === null ? 0 : Math.max(view.to - view.span_s, 0);
}

on("bins", step);
on("view", () => {
  for (const choice of document.querySelectorAll("#spans button")) choice.setAttribute("aria-pressed", `${view.follow && (/** @type {any} */ (choice).dataset.span || null) === (view.span_s && `${view.span_s}`)}`);
  $("follow").hidden = view.follow;
});

for (const choice of document.querySelectorAll("#spans button")) /** @type {any} */ (choice).onclick = () => follow(+/** @type {any} */ (choice).dataset.span || null);
$("follow").onclick = () => follow(view.span_s);

/** Keys that move the window, for whatever has the focus. @param {KeyboardEvent} event */
export function keys(event) {
  /** @type {Record<string, () => void>} */
  const acts = { ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), Home: () => look(0, view.to - view.from), End: () => follow(view.span_s), Escape: () => follow(null) };
  if (event.target !== event.currentTarget || !acts[event.key]) return;
  acts[event.key]();
  event.preventDefault();
}
