// @ts-check
// The curves of the whole run, bin by bin, as the collector has them.

import { on } from "./run.js";

/** Columns of numbers by name, then by flow or link. @type {Record<string, (number | null)[][]>} */
export const columns = {};
/** Width of a bin, s; bins that there are; how often they were joined; and whether rates are means over long enough a time. */
export const bins = { width_s: 0.1, count: 0, generation: -1, smoothed: false };

/** The middle of each bin, s. @type {number[]} */
export const middles = [];

function forget() {
  for (const key of Object.keys(columns)) delete columns[key];
  middles.length = 0;
}

on("plan", () => {
  forget();
  Object.assign(bins, { count: 0, generation: -1 });
});

on("bins", (told) => {
  if (told.generation !== bins.generation) forget();
  for (const [key, more] of Object.entries(told)) {
    if (!Array.isArray(more)) continue;
    columns[key] ??= more.map(() => []);
    more.forEach((values, n) => {
      columns[key][n].length = told.first;
      for (const value of values) columns[key][n].push(value);
    });
  }
  const count = told.first + (told.queued_bytes[0] ?? told.mean_ms[0] ?? []).length;
  Object.assign(bins, { width_s: told.width_s, count, generation: told.generation, smoothed: !!told.smoothed });
  for (let n = middles.length; n < count; n++) middles.push(+((n + 0.5) * told.width_s).toFixed(3));
  middles.length = count;
});

/** Means over the time of ten samples around each bin, where a bin is shorter than that. @param {(number | null)[]} values @param {number} period_s */
export function running(values, period_s) {
  const half = Math.floor(Math.ceil((10 * period_s) / bins.width_s) / 2);
  if (half < 1 || bins.smoothed) return values;
  const sums = [0];
  for (const value of values) sums.push(sums[sums.length - 1] + (value ?? 0));
  return values.map((_, n) => {
    const [from, to] = [Math.max(n - half, 0), Math.min(n + half + 1, values.length)];
    return (sums[to] - sums[from]) / (to - from);
  });
}
