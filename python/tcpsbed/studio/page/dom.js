// @ts-check
// Elements, formats and colours that all panels share.

const SVG = "http://www.w3.org/2000/svg";

/** An element of the page by its id. @param {string} id @returns {any} */
export const $ = (id) => document.getElementById(id);

/**
 * A new element. Keys are properties where it has them, attributes otherwise; children that are texts stay texts.
 * @param {string} name @param {Record<string, any>} [keys] @param {(Node | string)[]} inside @returns {any}
 */
export function element(name, keys = {}, ...inside) {
  const made = /** @type {any} */ (document.createElement(name));
  for (const [key, value] of Object.entries(keys)) key in made ? (made[key] = value) : made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

/** Address of a WebSocket of this page's server. @param {string} path @param {string} [more] */
export const socketAt = (path, more = "") => `${location.protocol.replace("http", "ws")}//${location.host}/${path}${location.search}${more}`;

/** A new element of a drawing. @param {string} name @param {Record<string, any>} keys @param {(Node | string)[]} inside @returns {any} */
export function drawn(name, keys, ...inside) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(keys)) key === "style" ? (made.style.cssText = value) : made.setAttribute(key, value); // the policy lets no attribute be a style
  made.append(...inside);
  return made;
}

/** A button. @param {string | Node} inside @param {() => void} onclick @param {Record<string, any>} [keys] */
export const button = (inside, onclick, keys = {}) => element("button", { type: "button", onclick, ...keys }, inside);

/** A table with its caption for those who do not see the chart. @param {string} caption @param {string[]} head @param {string[][]} rows */
export function table(caption, head, rows) {
  const line = (/** @type {string[]} */ cells, /** @type {string} */ kind) =>
    element("tr", {}, ...cells.map((cell, n) => element(n ? kind : "th", n ? {} : { scope: kind === "th" ? "col" : "row" }, cell)));
  return element("table", {}, element("caption", {}, caption), element("thead", {}, line(head, "th")), element("tbody", {}, ...rows.map((cells) => line(cells, "td"))));
}

/** Milliseconds as wide as they need to be. @param {number | null | undefined} v */
export const ms = (v) => (v == null ? "–" : v < 0.0005 ? "0" : v < 0.0995 ? v.toFixed(3) : v < 9.95 ? v.toFixed(2) : v < 99.5 ? v.toFixed(1) : v.toFixed(0));

/** @param {number} bps */
export const rate = (bps) => (bps >= 1e9 ? `${+(bps / 1e9).toPrecision(3)} Gbit/s` : bps >= 1e6 ? `${+(bps / 1e6).toPrecision(3)} Mbit/s` : `${+(bps / 1e3).toPrecision(3)} kbit/s`);

/** A share. @param {number} share */
export const percent = (share) => `${+(100 * share).toPrecision(share < 0.1 ? 2 : 3)} %`;

/** A number for an axis or a table. @param {number | null | undefined} v */
export const short = (v) => (v == null ? "–" : String(+v.toPrecision(4)));

/** A part of a path as people write it. @param {string} text */
export const arrow = (text) => text.replaceAll(" -> ", " → ");

/** How many, with their noun. @param {number} n @param {string} noun */
export const counted = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

/** The colour of a flow or link by its number, as the page's theme has it now. @param {number} n */
export const paint = (n) => colour(`--flow${n % 8}`);

/** A colour of the style sheet as text that a canvas takes. @param {string} name @returns {string} */
export function colour(name) {
  if (!known.has(name)) {
    probe.style.color = `var(${name})`;
    known.set(name, getComputedStyle(probe).color);
  }
  return known.get(name) ?? "";
}
const probe = document.body.appendChild(element("i", { hidden: true }));
/** @type {Map<string, string>} */
const known = new Map();

/** The theme has changed. */
export const recolour = () => known.clear();

/** The same colour, so far transparent. @param {string} of @param {number} alpha */
export const faded = (of, alpha) => of.replace(/^rgba?\(([^,]+,[^,]+,[^,)]+).*$/, `rgba($1,${alpha})`);

/** Spans along an axis, those that overlap or are nearer than this as one. @param {number[][]} spans @param {number} near */
export function bands(spans, near) {
  /** @type {number[][]} */ const found = [];
  for (const [from, to] of spans.toSorted((a, b) => a[0] - b[0])) {
    const before = found[found.length - 1];
    if (before && from - before[1] <= near) before[1] = Math.max(before[1], to);
    else found.push([from, to]);
  }
  return found;
}

/** @param {any[] | undefined} list @returns {any} */
export const last = (list) => list?.findLast((v) => v !== null);
