// @ts-check
// A page that was saved: its data is in it. Folded parts open on paper.

import { $ } from "./dom.js";
import "./theme.js";
import "./plots.js";
import { know } from "./terms.js";
import { tell } from "./run.js";

/** What the page has to tell. @type {{messages: any[], charts: any[], terms: Record<string, string>}} */
export const data = JSON.parse($("data").textContent);

know(data.terms);
data.messages.forEach(tell);
tell({ k: "more", charts: data.charts });
document.documentElement.classList.add("drawn");

/** @type {any[]} */ let folded = [];
addEventListener("beforeprint", () => (folded = [...document.querySelectorAll("details:not([open])")]).forEach((one) => (one.open = !one.closest("figure"))));
addEventListener("afterprint", () => folded.forEach((one) => (one.open = false)));
