// The guided tour beside a demonstration: each step makes its change by an event of the run, as the sliders do.
// @ts-check

import { ask } from "./events.js";
import { hand, seen } from "./hand.js";
import { may, on, run, send } from "./run.js";

/** With `touch` the hand has to be at the wall. @typedef {{title: string, say: string, act: string, watch: string, touch?: boolean, change: () => [Record<string, any>, string][], sets?: Record<string, number>, back?: string}} Step */

const line = (/** @type {number} */ delay, /** @type {number} */ loss = 0) =>
  /** @type {[Record<string, any>, string]} */ ([{ link: "line", delay: `${delay} ms`, loss: `${loss} %`, up: true }, `line: ${delay} ms each way, ${loss} % lost`]);
/** Cuts the line, or restores it with the delay and the loss that it had. */
const joined = (/** @type {boolean} */ up) => /** @type {[Record<string, any>, string]} */ ([{ link: "line", up }, up ? "line restored" : "line cut"]);
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

/** What starts each of them. @type {Record<string, string>} */
export const COMMANDS = { demo: "tcpsbed demo", "demo-network": "tcpsbed demo network" };

/** @type {Record<string, Step[]>} */
const TOURS = {
  demo: [
    { title: "Feel the wall", say: "The line is clean: push the pointer to the right until the probe meets the grey wall.", act: "Clean line", watch: "The ring stays behind the pointer: the wall holds the hand. The force is steady, and both pictures agree.", touch: true, change: () => [line(0), predictor(false)] },
    { title: "40 ms each way", say: "The button makes commands and force travel 40 ms. Then pull the hand out of the wall and push again: a hand that rests there shows nothing.", act: "Delay of 40 ms", watch: "The hand goes deeper before it feels the wall. The force comes late and swings a few times before it settles. The robot is ahead of your picture.", touch: true, change: () => [line(40), predictor(false)] },
    { title: "150 ms: it swings on", say: "The answer is so late that it pushes the hand out when it should already be back.", act: "Delay of 150 ms", watch: "Hold the pointer still, anywhere right of the wall's face: the force swings on and on, and the robot hammers on the wall. At the click the supervisor may hold for a moment: a longer way is a gap in the commands.", touch: true, change: () => [line(150), predictor(false)] },
    { title: "10 % loss", say: "Little delay, but one packet in ten is lost in each direction.", act: "20 ms, 10 % lost", watch: "The force is nearly the same, as samples come every 2 ms. The picture is not: it needs all of its packets, so frames are missing.", change: () => [line(20, 10), predictor(false)] },
    { title: "The predictor", say: "150 ms again, but the hand feels a model of the wall, learned from the force that came back.", act: "150 ms with predictor", watch: "Push again: the force answers at once and stays steady, though the pictures are as late as before.", touch: true, change: () => [line(150), predictor(true)] },
    { title: "Cut the line", say: "The button cleans the line, switches the predictor off and cuts the line: no command and no force arrive any more.", act: "Clean the line, then cut it", back: "Restore the line", watch: "100 ms after the last command the robot's own supervisor holds, after 500 ms it stops safely. The operator's picture freezes.", change: () => [predictor(false), line(0), joined(false)] },
  ],
  "demo-network": [
    beside(3, "Room for both", "Beside 300 kbit/s of cross traffic both sessions fit into their 1.5 Mbit/s.", "The force needs about 17 ms with either transport; nearly all of it is propagation."),
    beside(5, "Plain UDP fills its queue", "A packet for each sample costs 1.1 Mbit/s, most of it headers: 1.6 Mbit/s no longer fit.", "The force by UDP waits 80 ms in a full queue, and samples are lost. dpm merges samples into one packet, and its queue stays short."),
    beside(8, "Merging still fits", "At 800 kbit/s the merged session uses less than half of the rate.", "force-dpm stays below about 30 ms; force-udp loses a quarter of its samples."),
    beside(9, "Too much for both", "Merging saves headers only: what is left has to fit.", "Both queues are full now."),
    beside(3, "Back again", "The cross traffic goes.", "Queues drain, and dpm sends single samples again, because they are younger."),
  ],
};

/** The pointer has to be so far right, from the middle to the edge, for the hand to be at the wall's face. */
const WALL = 0.42;
/** Force from which the hand touches it, N, and how long ago that may have been while it swings, ms. */
const TOUCH_N = 0.3, LATELY_MS = 2500;
const LOOK_MS = 300;

/** Fills the section with the steps of a tour. It follows whoever steers. */
export function begin(/** @type {HTMLElement} */ section, /** @type {string} */ name) {
  const steps = TOURS[name] ?? [];
  const list = document.createElement("ol"), aside = document.createElement("aside"), box = document.createElement("fieldset");
  const whose = Object.assign(text("p", ""), { className: "whose soft", hidden: true });
  whose.setAttribute("role", "status");
  list.className = "tour";
  list.append(...steps.map((step, number) => item(step, number, list)));
  box.append(...(name === "demo-network" ? [text("h2", "Cross traffic"), slider()] : []), text("h2", "Guided tour"), whose, list);
  aside.append(box);
  section.append(aside);
  choose(list, 0);
  /** The step that the server knows. @type {number | null} */ let known = null;
  const follow = () => {
    box.disabled = !may();
    whose.hidden = may();
    whose.textContent = run.viewers?.steers == null ? "Nobody steers: the tour waits." : `Viewer ${run.viewers.steers} steers. The tour shows their step.`;
    if (run.viewers && run.viewers.step !== known) choose(list, (known = run.viewers.step));
  };
  on("viewers", follow);
  /** What events by hand have set. @type {Map<string, string>} */ const holds = new Map();
  on("asked", ({ event, refused }) => {
    if (refused) return;
    moved(event ?? {});
    for (const [key, value] of settings(event ?? {})) holds.set(key, value);
    steps.forEach((step, number) => {
      const wanted = new Map(step.change().flatMap(([one]) => settings(one)));
      press(list, number, [...wanted].every(([key, value]) => holds.get(key) === value));
    });
  });
  follow();
  const timer = setInterval(() => list.isConnected ? touches() : clearInterval(timer), LOOK_MS);
}

/** Says whether the hand is where the open step needs it. */
function touches() {
  const place = document.querySelector(".tour [aria-current] .where");
  if (!place) return;
  const since = performance.now() - LATELY_MS, there = seen.forces.some((/** @type {any} */ force) => force.at > since && force.size > TOUCH_N);
  const said = there ? "The hand is at the wall." : !may() ? "The hand is not at the wall." : hand.x < WALL ? "The hand is not at the wall: move the pointer right, behind the wall's face." : "The hand is on its way to the wall.";
  if (place.textContent !== said) place.textContent = said;
  place.classList.toggle("there", there);
}

/** What an event sets, by what it is of; of one direction of a link alone, nothing that a step sets. @returns {[string, string][]} */
function settings(/** @type {Record<string, any>} */ { link, flow, traffic, name, by, ...values }) {
  return [link ?? flow ?? traffic ?? []].flat().flatMap((/** @type {string} */ one) => {
    const whole = one.replace(/\.(forward|backward)$/, "");
    return Object.entries(values).map(([key, value]) => /** @type {[string, string]} */ ([`${whole} ${key}`, whole === one ? `${value}` : ""]));
  });
}

/** Says of a step's button whether what it sets is in force. */
function press(/** @type {HTMLElement} */ list, /** @type {number} */ number, /** @type {boolean} */ pressed) {
  list.children[number].querySelector(".main")?.setAttribute("aria-pressed", `${pressed}`);
}

/** Cross traffic that somebody else has set: the slider shows it. */
function moved(/** @type {any} */ event) {
  if (!Array.isArray(event.traffic) || !event.traffic[0]?.startsWith("cross")) return;
  show("cross traffic", event.running ? event.traffic.length : MOST - event.traffic.length);
}

const text = (/** @type {string} */ name, /** @type {string} */ content) => Object.assign(document.createElement(name), { textContent: content });

function item(/** @type {Step} */ step, /** @type {number} */ number, /** @type {HTMLElement} */ list) {
  const head = text("button", ""), act = text("button", step.act), more = document.createElement("div");
  head.className = "head";
  head.title = step.title;
  head.dataset.number = `${number + 1}`;
  head.append(text("span", step.title));
  const open = () => {
    choose(list, number);
    send({ k: "step", n: number });
  };
  head.onclick = open;
  act.className = "main";
  act.setAttribute("aria-pressed", "false");
  act.onclick = () => { make(step); open(); };
  const acts = document.createElement("p");
  acts.append(act);
  if (step.back) {
    const back = text("button", step.back);
    back.onclick = () => change(...joined(true));
    acts.append(" ", back);
  }
  const watch = text("p", step.watch);
  watch.className = "watch";
  more.append(text("p", step.say), acts, ...(step.touch ? [Object.assign(text("p", ""), { className: "where" })] : []), watch);
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
