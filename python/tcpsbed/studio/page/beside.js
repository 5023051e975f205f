// @ts-check
// What is shown above a run: the pane of its operator, and a guided tour. Both go when the run is over.

import { element } from "./dom.js";
import { close, open } from "./pane.js";
import { talks } from "./poll.js";
import { on } from "./run.js";
import { begin } from "./tour.js";

on("shows", ({ operator, tour }) => {
  if (!talks) return;
  const section = element("section", { id: "beside", "aria-label": tour ? "Demonstration" : "Operator" });
  document.querySelector("main")?.prepend(section);
  if (operator) open(section, operator);
  if (tour) begin(section, tour);
  section.classList.toggle("one", !operator || !tour);
  on("over", () => {
    if (operator) close();
    section.remove();
  });
});
