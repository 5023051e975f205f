// A study (docs/study.md): what the subject is told, when a presentation begins, and the grades. It knows the number of a
// presentation and nothing else about it. While a study runs, the page hides the latencies that it shows otherwise.
"use strict";

const TEXTS = {
  training: ["Practice", "This is the reference. Take your time to get used to it; nothing is rated."],
  reference: ["Reference", "This is the reference that the next presentation is compared with."],
  condition: ["Presentation", "Do the same again. Afterwards, rate how much worse it was than the reference."],
};
let studying = null;
let send = () => {};

export function studied(told, sender) {
  send = sender;
  const panel = document.getElementById("study");
  studying = told;
  document.body.classList.add("studied");
  panel.hidden = told.phase === "run";
  document.getElementById("progress").textContent = told.place ? `presentation ${told.place} of ${told.of}` : "";
  panel.replaceChildren();
  ({ go: askReady, rate: askGrades, wait: tellWait, done: tellDone, run: () => {} })[told.phase](panel, told);
}

const part = (name, text) => Object.assign(document.createElement(name), { textContent: text });

function askReady(panel, told) {
  const [title, text] = TEXTS[told.what];
  const count = told.what === "condition" ? ` ${told.place} of ${told.of}` : "";
  panel.append(part("h1", title + count), part("p", told.instructions), part("p", text));
  panel.append(part("p", `It takes ${Math.round(told.seconds)} s.`), part("button", "Begin"));
  panel.onsubmit = (event) => answered(event, {});
}

function askGrades(panel, told) {
  panel.append(part("h1", "How was it?"));
  for (const [scale, question] of Object.entries(told.scales)) {
    const field = document.createElement("fieldset");
    field.append(part("legend", question));
    for (const [grade, text] of told.grades) {
      const label = document.createElement("label");
      const choice = Object.assign(document.createElement("input"), { type: "radio", name: scale, value: grade, required: true });
      label.append(choice, `${grade} ${text}`);
      field.append(label);
    }
    panel.append(field);
  }
  panel.append(part("button", "Save"));
  panel.onsubmit = (event) => {
    const chosen = [...new FormData(panel)].map(([scale, grade]) => [scale, Number(grade)]);
    answered(event, { grades: Object.fromEntries(chosen) });
  };
}

function answered(event, answer) {
  event.preventDefault();
  send({ k: "study", n: studying.n, do: studying.phase, ...answer });
}

function tellWait(panel) {
  panel.append(part("p", "One moment …"));
}

function tellDone(panel, told) {
  send({ k: "study", n: told.n, do: told.phase });
  panel.append(part("h1", "Thank you"), part("p", "That was all. Your answers are saved."));
}
