// @ts-check
// Explanations from the glossary: a word in the page that is one of its terms explains itself when pointed at or focused.

import { element } from "./dom.js";

/** @type {Record<string, string>} */
let meanings = {};
const tip = document.body.appendChild(element("div", { id: "tip", role: "tooltip", hidden: true }));

export async function load() {
  try {
    know(await (await fetch(`terms.json${location.search}`)).json());
  } catch {
    know({}); // the page is worth looking at without
  }
}

/** Takes the glossary. @param {Record<string, string>} known */
export function know(known) {
  meanings = known;
  for (const place of document.querySelectorAll("[data-term]")) if (!meanings[name(place)]) place.removeAttribute("data-term");
    else ready(place);
}

/** A word, explained if the glossary has it (or what it stands for). @param {string} text @param {string} [term] @returns {any} */
export function term(text, term = text) {
  const place = element("span", {}, text);
  if (meanings[term.toLowerCase()]) {
    place.dataset.term = term;
    ready(place);
  }
  return place;
}

const name = (/** @type {any} */ place) => (place.dataset.term || place.textContent).toLowerCase();

function ready(/** @type {any} */ place) {
  place.tabIndex = 0;
  place.setAttribute("aria-description", meanings[name(place)]);
}

function show(/** @type {Event} */ event) {
  const place = /** @type {any} */ (event.target)?.closest?.("[data-term]");
  if (!place) return hide();
  tip.replaceChildren(element("b", {}, place.dataset.term || place.textContent), ` ${meanings[name(place)]}`);
  tip.hidden = false;
  const at = place.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(at.left, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${at.bottom + tip.offsetHeight + 8 < innerHeight ? at.bottom + 6 : at.top - tip.offsetHeight - 6}px`;
}

const hide = () => void (tip.hidden = true);

document.addEventListener("mouseover", show);
document.addEventListener("focusin", show);
document.addEventListener("focusout", hide);
document.addEventListener("scroll", hide, true);
document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
