// @ts-check
// A page that was saved: its data is in it. Folded parts open on paper.

import { $, recolour } from "./dom.js";
import "./theme.js";
import "./plots.js";
import { know } from "./terms.js";
import { tell } from "./run.js";

/** What the page has to tell. @type {{messages: any[], charts: any[], services?: any, terms: Record<string, string>}} */
export const data = JSON.parse($("data").textContent);

know(data.terms);
data.messages.forEach(tell);
tell({ k: "more", charts: data.charts, services: data.services });
document.documentElement.classList.add("drawn");

/** On paper all is open, light, and charts are as wide as half a page. */
const PAPER = { width: 334, height: 150 };
/** @type {any[]} */ let folded = [], plots = [];
/** @param {string} scheme */
function shade(scheme) {
  document.documentElement.style.colorScheme = scheme;
  recolour();
}
let scheme = "";
addEventListener("beforeprint", () => {
  scheme = document.documentElement.style.colorScheme;
  folded = [...document.querySelectorAll("details:not([open])")].filter((one) => !one.closest("figure"));
  plots = [...document.querySelectorAll("figure")].map((/** @type {any} */ figure) => figure.plot).filter(Boolean).map((plot) => ({ plot, size: { width: plot.width, height: plot.height } }));
  folded.forEach((one) => (one.open = true));
  shade("light");
  plots.forEach(({ plot }) => plot.setSize(PAPER));
});
addEventListener("afterprint", () => {
  folded.forEach((one) => (one.open = false));
  shade(scheme);
  plots.forEach(({ plot, size }) => plot.setSize(size));
});
