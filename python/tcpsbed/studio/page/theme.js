// @ts-check
// Light or dark: as the system has it, or as the reader has chosen.

import { $, recolour } from "./dom.js";
import { tell } from "./run.js";

const SCHEMES = ["light dark", "light", "dark"], NAMES = ["Theme: system", "Theme: light", "Theme: dark"];

/** A browser may keep nothing for a file. @param {number} [number] */
function kept(number) {
  try {
    if (number !== undefined) localStorage.setItem("theme", `${number}`);
    return +(localStorage.getItem("theme") ?? 0) % 3;
  } catch {
    return number ?? 0;
  }
}

let now = kept();

function show() {
  document.documentElement.style.colorScheme = SCHEMES[now];
  $("theme").textContent = NAMES[now];
  changed();
}

function changed() {
  recolour();
  tell({ k: "theme" });
}

$("theme").onclick = () => {
  now = (now + 1) % 3;
  kept(now);
  show();
};
show();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
