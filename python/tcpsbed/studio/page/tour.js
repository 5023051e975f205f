// The guided tour beside a demonstration: each step makes its change by an event of the run, as the sliders do.
// @ts-check

import { ask } from "./events.js";

/** @typedef {{title: string, say: string, act: string, watch: string, change: () => [Record<string, any>, string][], sets?: Record<string, number>, up?: boolean, back?: string}} Step */

const line = (/** @type {number} */ delay, /** @type {number} */ loss = 0, up = true) =>
  /** @type {[Record<string, any>, string]} */ ([{ link: "line", delay: `${delay} ms`, loss: `${loss} %`, up }, up ? `line: ${delay} ms each way, ${loss} % lost` : "line cut"]);
const predictor = (/** @type {boolean} */ running) =>
  /** @type {[Record<string, any>, string]} */ ([{ flow: "predictor", running }, `predictor ${running ? "on" : "off"}`]);
const MOST = 9; // sources of cross traffic, 100 kbit/s each
const cross = (/** @type {number} */ count) => {
  const names = Array.from({ length: MOST }, (_, i) => `cross${i + 1}`);
  const some = /** @type {[string[], boolean][]} */ ([[names.slice(0, count), true], [names.slice(count), false]]);
  return some.filter(([list]) => list.length).map(([traffic, running]) =>
    /** @type {[Record<string, any>, string]} */ ([{ traffic, running }, `cross traffic ${count * 100} kbit/s`]));
};
const beside = (/** @type {number} */ count, /** @type {string} */ title, /** @type {string} */ say, /** @type {string} */ watch) =>
  ({ title, say, act: `Cross traffic ${count * 100} kbit/s`, watch, change: () => cross(count), sets: { "cross traffic": count } });

/** @type {Record<string, Step[]>} */
const TOURS = {
  demo: [
    { title: "Feel the wall", say: "The line is clean: push the pointer to the right until the probe meets the grey wall.", act: "Clean line", watch: "The ring stays behind the pointer: the wall holds the hand. The force is steady, and both pictures agree.", change: () => [line(0), predictor(false)] },
    { title: "50 ms each way", say: "Commands and force now travel 50 ms; the hand goes deeper before it feels the wall.", act: "Delay of 50 ms", watch: "The force comes late and swings a few times before it settles. The robot is ahead of your picture.", change: () => [line(50), predictor(false)] },
    { title: "150 ms: it oscillates", say: "The answer is so late that it pushes the hand out when it should already be back.", act: "Delay of 150 ms", watch: "Hold the pointer still behind the wall's face: the force swings on and on, and the robot hammers on the wall.", change: () => [line(150), predictor(false)] },
    { title: "10 % loss", say: "Little delay, but one packet in ten is lost in each direction.", act: "20 ms, 10 % lost", watch: "The force is nearly the same, as samples come every 2 ms. The picture is not: it needs all of its packets, so frames are missing.", change: () => [line(20, 10), predictor(false)] },
    { title: "The predictor", say: "150 ms again, but the hand feels a model of the wall, learned from the force that came back.", act: "150 ms with predictor", watch: "Push again: the force answers at once and stays steady, though the pictures are as late as before.", change: () => [line(150), predictor(true)] },
    { title: "Cut the line", say: "No command arrives any more.", act: "Cut the line", back: "Restore the line", watch: "After 100 ms the robot's own supervisor holds, after 500 ms it stops safely. The operator's picture freezes.", change: () => [line(20, 0, false), predictor(false)] },
  ],
  "demo-network": [
    beside(3, "Room for both", "Beside 300 kbit/s of cross traffic both sessions fit into their 1.5 Mbit/s.", "The force needs about 17 ms with either transport; nearly all of it is propagation."),
    beside(5, "Plain UDP fills its queue", "A packet for each sample costs 1.1 Mbit/s, most of it headers: 1.6 Mbit/s no longer fit.", "The force by UDP waits 80 ms in a full queue, and samples are lost. dpm merges samples into one packet, and its queue stays short."),
    beside(8, "Merging still fits", "At 800 kbit/s the merged session uses less than half of the rate.", "force-dpm stays below about 30 ms; force-udp loses a quarter of its samples."),
    beside(9, "Too much for both", "Merging saves headers only: what is left has to fit.", "Both queues are full now."),
    beside(3, "Back again", "The cross traffic goes.", "Queues drain, and dpm sends single samples again, because they are younger."),
  ],
};

/** Fills the section with the steps of a tour. */
export function begin(/** @type {HTMLElement} */ section, /** @type {string} */ name) {
  const steps = TOURS[name] ?? [];
  const list = document.createElement("ol");
  list.className = "tour";
  list.append(...steps.map((step, number) => item(step, number, list)));
  const aside = document.createElement("aside");
  aside.append(text("h2", "Guided tour"), list);
  if (name === "demo-network") aside.prepend(text("h2", "Cross traffic"), slider());
  section.append(aside);
  choose(list, 0);
}

const text = (/** @type {string} */ name, /** @type {string} */ content) => Object.assign(document.createElement(name), { textContent: content });

function item(/** @type {Step} */ step, /** @type {number} */ number, /** @type {HTMLElement} */ list) {
  const head = text("button", step.title), act = text("button", step.act), more = document.createElement("div");
  head.className = "head";
  head.onclick = () => choose(list, number);
  act.className = "main";
  act.onclick = () => { choose(list, number); make(step); };
  const acts = document.createElement("p");
  acts.append(act);
  if (step.back) {
    const back = text("button", step.back);
    back.onclick = () => change(...line(20));
    acts.append(" ", back);
  }
  const watch = text("p", step.watch);
  watch.className = "watch";
  more.append(text("p", step.say), acts, watch);
  const one = document.createElement("li");
  one.append(head, more);
  return one;
}

function choose(/** @type {HTMLElement} */ list, /** @type {number} */ number) {
  [...list.children].forEach((one, at) => {
    at === number ? one.setAttribute("aria-current", "step") : one.removeAttribute("aria-current");
    one.querySelector(".head")?.setAttribute("aria-expanded", `${at === number}`);
  });
}

function make(/** @type {Step} */ step) {
  for (const [event, said] of step.change()) change(event, said);
  for (const [label, value] of Object.entries(step.sets ?? {})) show(label, value);
}

function change(/** @type {Record<string, any>} */ event, /** @type {string} */ said) {
  ask(event, said);
}

/** Moves a slider to what holds now; it asks for nothing. */
function show(/** @type {string} */ label, /** @type {number} */ value) {
  const input = /** @type {HTMLInputElement|null} */ (document.querySelector(`input[aria-label="${label}"]`));
  if (!input) return;
  input.value = `${value}`;
  input.dispatchEvent(new Event("input"));
}

function slider() {
  const label = document.createElement("label"), out = text("output", "300 kbit/s"), input = document.createElement("input");
  label.className = "slide";
  Object.assign(input, { type: "range", min: 0, max: MOST, step: 1, value: 3 });
  input.setAttribute("aria-label", "cross traffic");
  input.oninput = () => { out.textContent = `${+input.value * 100} kbit/s`; };
  input.onchange = () => { for (const [event, said] of cross(+input.value)) change(event, said); };
  label.append(text("span", "rate"), input, out);
  return label;
}
