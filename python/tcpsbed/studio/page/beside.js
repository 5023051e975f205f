// @ts-check
// What is shown above a run: the pane of its operator, a guided tour with what steers the run below it, and when it ends. All
// go when the run is over, and it says how to start it again.

import { $, element } from "./dom.js";
import { close, open } from "./pane.js";
import { talks } from "./poll.js";
import { on, run } from "./run.js";
import { begin, COMMANDS } from "./tour.js";

on("shows", ({ operator, tour }) => {
  if (!talks || $("beside") || run.over) return;
  const section = element("section", { id: "beside", "aria-label": tour ? "Demonstration" : "Operator" });
  document.querySelector("main")?.prepend(section);
  if (operator) open(section, operator);
  if (tour) begin(section, tour);
  if (operator) { // what changes the network, in sight of the arm
    (section.querySelector("aside") ?? section.appendChild(element("aside", {}))).append($("steer"));
    $("further").open = false;
  }
  section.classList.toggle("one", !operator);
  const ends = element("p", { className: "ends soft" });
  section.append(ends);
  on("now", ({ t_s }) => {
    const said = left(run.plan.duration_ns / 1e9 - t_s);
    if (!run.over && ends.textContent !== said) ends.textContent = said;
    const lasted = document.querySelector("#lasted"); // the numbers of the whole run come behind the word that it is over
    if (lasted) lasted.textContent = after();
  });
  on("over", () => {
    if (operator) close();
    document.querySelector(".stack.right")?.prepend($("steer"));
    section.replaceWith(ended(tour));
  });
});

/** When the run ends by itself; nothing of one that somebody has to end. @param {number} s */
function left(s) {
  if (s > 1e6) return "";
  const when = s < 100 ? `${Math.max(Math.ceil(s), 0)} s` : `${Math.ceil(s / 60)} min`;
  return `It ends by itself in ${when}, or with Ctrl-C in its terminal; --duration "2 h" makes it longer.`;
}

/** How long the run took, as far as the page knows. */
const after = () => (run.now ? ` after ${Math.min(run.now.t_s, run.plan.duration_ns / 1e9).toFixed(0)} s` : "");

/** @param {string} tour */
function ended(tour) {
  const again = tour ? element("code", {}, COMMANDS[tour]) : "the same command";
  return element("section", { id: "ended", className: "row-of-all", role: "status" }, element("b", {}, tour ? "The demonstration has ended" : "The run has ended"), element("span", { id: "lasted" }, after()), `, and nothing moves any more. Start it again with `, again, ` in a terminal, which prints a new address; add --duration "2 h" for a longer one. Below is the report.`);
}
