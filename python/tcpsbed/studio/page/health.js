// @ts-check
// Whether the numbers can be trusted: stalls, late sources, clocks, the emulator, and rows that the page has not shown.

import { $, counted, element, ms } from "./dom.js";
import { lineTime, propagation } from "./links.js";
import { between, on, run } from "./run.js";
import { term } from "./terms.js";

/** Lateness (p99) that disturbs a run, ms: that of its report. */
const LATE_MS = 1;

on("now", show);
/** What the run said of itself when it was over. @type {any} */ let ended = null;
on("plan", () => (ended = null));
/** How much this page's server has refused, by what it was. @type {Record<string, number>} */ let refused = {};
on("refused", ({ counts }) => {
  refused = counts;
  show();
});
on("over", (told) => {
  ended = told;
  show();
});

/** @param {boolean} good @param {(Node | string)[]} inside */
const line = (good, ...inside) => element("li", { className: good ? "" : "bad" }, element("span", { className: `mark ${good ? "ok" : "no"}`, role: "img", "aria-label": good ? "good:" : "check:" }), element("span", {}, ...inside));

function show() {
  if (run.paused || !run.now) return;
  const { stalls = {}, ticks = [], clocks = [], rows, left_out } = run.now;
  const stalled = Object.entries(stalls), behind = ticks.filter((/** @type {any} */ t) => t.skipped || t.late_p99_ms > LATE_MS);
  $("disturbed").hidden = between() || !stalled.length;
  // A run that is over has its disturbances in words of its own.
  const own = (ended?.disturbances ?? []).map((/** @type {string} */ text) => line(false, text));
  const measured = (ended?.emulator ?? []).flatMap((/** @type {any} */ path) => (path.part_of || path.error_ms?.p99 == null ? [] : [line(true, term("Emulation error", "emulation error"), ` ${path.path}: ${ms(path.error_ms.p50)} ms (p50), ${ms(path.error_ms.p99)} ms (p99)`)]));
  const found = [
    ...own,
    ...(own.length ? [] : stalled).map(([who, [count, longest]]) => line(between(), `${who} stalled ${count === 1 ? "once" : `${count} times`}, longest ${ms(longest)} ms${between() ? ": part of the emulation error" : ""}`)),
    ...(stalled.length ? [] : [line(true, "No loop stalled over 1 ms.")]),
    ...(own.length ? [] : behind).map((/** @type {any} */ t) => line(false, `${t.flow}: ${counted(t.skipped, "tick")} skipped, ${ms(t.late_p99_ms)} ms late (p99 of 2 s)`)),
    ...(behind.length || !ticks.length ? [] : [line(true, `Sources miss no tick: at most ${ms(Math.max(...ticks.map((/** @type {any} */ t) => t.late_p99_ms)))} ms late (p99 of 2 s).`)]),
    ...clocks.map((/** @type {any} */ c) => line(true, term("Clock offset", "clock offset"), ` of ${c.peer} at ${c.node}: ${signed(c.offset_ns / 1e6)} ± ${ms(c.bound_ns / 1e6)} ms`)),
    ...(clocks.length || run.now.whole || between() ? [] : [line(true, term("Clocks", "clock offset"), " are not compared: the scenario has no measure.sync.")]),
    ...(run.over ? measured : emulated()),
    left_out ? line(false, `${left_out} of ${rows + left_out} rows not shown: this page's process was too slow. The records have them.`) : line(true, `All ${rows} rows shown.`),
    ...Object.entries(refused).map(([what, count]) => line(false, `Refused: ${count} ${count === 1 ? what.replace(/^(\w+)s\b/, "$1") : what}.`)),
  ];
  $("health").replaceChildren(...found);
}

/** By how much the fastest sample of the last 2 s exceeded what is set for the links: the part of the emulator and the sockets. */
function emulated() {
  if (run.now.flows.some((/** @type {any} */ flow) => flow.causes.length)) return []; // a simulated network: it alone tells causes so soon
  /** @type {{line_ms: number, late_ms: number}[]} */ const late = run.now.flows.flatMap((/** @type {any} */ flow) => flow.parts.flatMap((/** @type {any} */ part) => {
    if (part.what !== "link" || part.least_ms === undefined) return [];
    const ends = part.name.split(" -> "), set_ms = propagation(ends[0], ends[1]);
    const line_ms = lineTime(ends[0], ends[1], flow.least_bytes ?? 0);
    if (set_ms === 0 && line_ms === 0) return []; // within a node
    return set_ms === null ? [] : [{ line_ms, late_ms: part.least_ms - set_ms - line_ms }];
  }));
  const name = term("Emulation error", "emulation error");
  if (!late.length) return [line(true, name, " is known at the end of the run.")];
  // Where lines take the least time, headers matter least.
  const least = Math.max(late.reduce((a, b) => (b.line_ms < a.line_ms || (b.line_ms === a.line_ms && b.late_ms < a.late_ms) ? b : a)).late_ms, 0);
  return [line(least <= LATE_MS, name, ` of the fastest samples of 2 s: ${ms(least)} ms. Its distribution is known at the end.`)];
}

const signed = (/** @type {number} */ v) => `${v < 0 ? "−" : "+"}${ms(Math.abs(v))} ms`.replace(" ms", "");
