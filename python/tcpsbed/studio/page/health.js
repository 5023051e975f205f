// @ts-check
// Whether the numbers can be trusted: stalls, late sources, clocks, the emulator, and rows that the page has not shown.

import { $, counted, element, ms } from "./dom.js";
import { on, run } from "./run.js";
import { term } from "./terms.js";

/** Lateness (p99) that disturbs a run, ms: that of its report. */
const LATE_MS = 1;

on("now", show);
on("over", (told) => {
  show();
  for (const path of told.emulator ?? []) if (path.error_ms?.p99 !== undefined) $("health").append(line(true, term("Emulation error", "emulation error"), ` ${path.path}: ${ms(path.error_ms.p50)} ms (p50), ${ms(path.error_ms.p99)} ms (p99)`));
});

/** @param {boolean} good @param {(Node | string)[]} inside */
const line = (good, ...inside) => element("li", { className: good ? "" : "bad" }, element("span", { className: `mark ${good ? "ok" : "no"}`, role: "img", "aria-label": good ? "good:" : "check:" }), element("span", {}, ...inside));

function show() {
  if (run.paused || !run.now) return;
  const { stalls = {}, ticks = [], clocks = [], rows, left_out } = run.now;
  const stalled = Object.entries(stalls), behind = ticks.filter((/** @type {any} */ t) => t.skipped || t.late_p99_ms > LATE_MS);
  $("disturbed").hidden = !stalled.length;
  const found = [
    ...stalled.map(([who, [count, longest]]) => line(false, `${who} stalled ${count === 1 ? "once" : `${count} times`}, longest ${ms(longest)} ms`)),
    ...(stalled.length ? [] : [line(true, "No loop stalled over 1 ms.")]),
    ...behind.map((/** @type {any} */ t) => line(false, `${t.flow}: ${counted(t.skipped, "tick")} skipped, ${ms(t.late_p99_ms)} ms late (p99 of 2 s)`)),
    ...(behind.length || !ticks.length ? [] : [line(true, `Sources miss no tick: at most ${ms(Math.max(...ticks.map((/** @type {any} */ t) => t.late_p99_ms)))} ms late (p99 of 2 s).`)]),
    ...clocks.map((/** @type {any} */ c) => line(true, term("Clock offset", "clock offset"), ` of ${c.peer} at ${c.node}: ${signed(c.offset_ns / 1e6)} ± ${ms(c.bound_ns / 1e6)} ms`)),
    ...(clocks.length || run.now.whole ? [] : [line(true, term("Clocks", "clock offset"), " are not compared: the scenario has no measure.sync.")]),
    ...(run.over ? [] : [line(true, term("Emulation error", "emulation error"), " is known at the end of the run.")]),
    left_out ? line(false, `${left_out} of ${rows + left_out} rows not shown: this page's process was too slow. The records have them.`) : line(true, `All ${rows} rows shown.`),
  ];
  $("health").replaceChildren(...found);
}

const signed = (/** @type {number} */ v) => `${v < 0 ? "−" : "+"}${ms(Math.abs(v))} ms`.replace(" ms", "");
