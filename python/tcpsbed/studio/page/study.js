// @ts-check
// A study (docs/study.md): what the subject is told, when a presentation begins, and the grades. It knows the number of a
// presentation and nothing else about it, and shows no latency.

import { $, element } from "./dom.js";
import { send } from "./hand.js";
import { stand } from "./stage.js";

/** @type {Record<string, [string, string]>} */
const TEXTS = {
  training: ["Practice", "This is the reference. Take your time to get used to it; nothing is rated."],
  reference: ["Reference", "This is the reference that the next presentation is compared with."],
  condition: ["Presentation", "Do the same again. Afterwards, rate how much worse it was than the reference."],
};
/** @type {any} */ let studying = null;

stand($("pane"), { state: say, told: (message) => { if (message.k === "study") studied(message); } });

/** @param {string} text @param {boolean} gone */
function say(text, gone) {
  if (studying?.phase === "done") return; // nobody waits for a connection any more
  $("state-text").textContent = text;
  $("state").classList.toggle("bad", gone);
}

/** @param {any} told */
function studied(told) {
  studying = told;
  $("study").hidden = told.phase === "run";
  $("pane").hidden = told.phase !== "run";
  $("presentation").textContent = told.place ? `presentation ${told.place} of ${told.of}` : "";
  /** @type {Record<string, (told: any) => any[]>} */
  const asks = { go: askReady, rate: askGrades, wait: () => [element("p", {}, "One moment …")], done: tellDone, run: () => [] };
  $("study").replaceChildren(...asks[told.phase](told));
}

/** @param {any} told */
function askReady(told) {
  const [title, text] = TEXTS[told.what];
  const count = told.what === "condition" ? ` ${told.place} of ${told.of}` : "";
  return [element("h2", {}, title + count), element("p", { className: "task" }, told.instructions), element("p", {}, text),
    element("p", { className: "soft" }, `It takes ${Math.round(told.seconds)} s.`), element("button", { className: "main" }, "Begin")];
}

/** @param {any} told */
function askGrades(told) {
  const grades = (/** @type {string} */ scale) => told.grades.map((/** @type {[number, string]} */ [grade, text]) =>
    element("label", {}, element("input", { type: "radio", name: scale, value: grade, required: true }), element("b", {}, `${grade}`), element("span", {}, text)));
  return [element("h2", {}, "How was it?"),
    ...Object.entries(told.scales).map(([scale, question]) => element("fieldset", {}, element("legend", {}, question), ...grades(scale))),
    element("button", { className: "main" }, "Save")];
}

/** @param {any} told */
function tellDone(told) {
  send({ k: "study", n: told.n, do: told.phase });
  $("state").hidden = true;
  return [element("h2", {}, "Thank you"), element("p", {}, "That was all. Your answers are saved.")];
}

$("study").onsubmit = (/** @type {Event} */ event) => {
  event.preventDefault();
  const chosen = [...new FormData($("study"))].map(([scale, grade]) => [scale, Number(grade)]);
  send({ k: "study", n: studying.n, do: studying.phase, ...(studying.phase === "rate" ? { grades: Object.fromEntries(chosen) } : {}) });
};
