// @ts-check
// The operator's pane: the picture that the network delays with the hand in it (stage.js), and readings beside it. What only
// some scenarios have (video, the robot's own side, force, a supervisor) appears where the scenario has it.

import { $, colour, faded } from "./dom.js";
import { besides, close as leave, hand, seen } from "./hand.js";
import { settings } from "./links.js";
import { on, PAGE, run, send } from "./run.js";
import { alarm, made, stand, write } from "./stage.js";
import { words } from "./states.js";
import { term } from "./terms.js";

const CROP = 384 / 357; // of the robot's own side: the code takes 24 rows along the upper edge, and blurs some more
const SPAN_S = 8; // of the curve of force
const STILL_MS = 50; // time after which the curve moves on although no force came
const GAP_MS = 500; // time without force over which the curve has no line
const SHORT = 0.9; // share of the frame rate below which the page says so
const LATE_MS = 250; // age of the picture from which it is red
/** Time without a picture from which on the last one is called frozen, ms. */
const FROZEN_MS = 1000;
const SAID_MS = 8000; // how long the page says that the hand was lost
const LAG_MS = 700; // round trip to this page's server from which the page says that it lags

/** @type {number|null} */ let begun = null;
let timer = 0, said = 0;
/** Whether the hand was ever moved, and whether the robot lacks one: it went away, and the robot is not yet back to normal. */
let moved = false, lacks = false;
on("hand", ({ is }) => { if (is === "moved") moved = true; else if (is === "away") lacks = true; });

const READINGS = `
<div class="side">
  <figure id="robot-now" hidden><div class="crop"><canvas id="near" width="480" height="384"></canvas></div>
    <figcaption><b>The robot now</b>, no network <span id="now"></span></figcaption></figure>
  <figure class="of-force" hidden><canvas id="curve" width="480" height="190"></canvas>
    <figcaption><b>Force at the hand</b>, last ${SPAN_S} s <span id="age" class="predicted"></span>
      <span class="key"><span class="of-robot"><i class="held"></i>robot held by its supervisor</span><span><i class="cut"></i>link cut</span></span></figcaption></figure>
</div>
<div class="tiles">
  <div class="of-video"><strong id="glass">–</strong><small><span id="glass-is"></span> <span id="made"></span></small></div>
  <div class="of-force" hidden><strong id="newton">–</strong><small>force at the hand</small></div>
  <div class="of-robot"><strong id="robot">–</strong><small>robot's supervisor</small></div>
  <div class="of-video"><strong id="fps">–</strong><small id="fps-of">frames a second</small></div>
</div>
<p id="slow" role="status" hidden></p>
<dl class="soft"><dt>Hand to the run, p50 (p95)</dt><dd id="took">–</dd><dt>Round trip to this page's server</dt><dd id="trip">–</dd>
  <dt>Events of the hand</dt><dd id="moves">0</dd><dt>Gamepad</dt><dd id="pad">none</dd></dl>`;

/** Builds the pane. @param {HTMLElement} section @param {{fps: number|null, supervisor: string|null, marks: boolean}} has */
export function open(section, { fps, supervisor, marks }) {
  const pane = document.createElement("div");
  pane.id = "pane";
  section.append(pane);
  document.documentElement.classList.add("operated");
  pane.append(made(READINGS));
  $("glass-is").replaceWith(term("glass to glass"));
  reveal("of-video", fps !== null);
  reveal("of-robot", supervisor !== null);
  stand(pane, {
    key: PAGE, marks, draw, told: (message) => told(message, pane), felt: () => reveal("of-force"),
    pad: (name) => write("pad", name.slice(0, 24)),
  });
  $("caption").append(made("<b>What the operator sees</b> after the network. Ring: the hand. Dot: the pointer."));
  on("viewers", reads);
  reads();
  on("now", ({ states, events }) => {
    if (supervisor === null) return;
    holds(supervisor, events);
    if (states?.[supervisor]) supervised(supervisor, states[supervisor]);
  });
  on("events", ({ events }) => supervisor !== null && holds(supervisor, events));
  on("set", ({ t_s }) => bound("cut", settings.some(({ up }) => !up), moment(t_s)));
  timer = setInterval(() => paced(fps ?? 0), 1000);
  Object.assign(window, { seen, hand }); // for whoever looks at the page from outside
}

/** Ends it: the run is over. */
export function close() {
  clearInterval(timer);
  leave();
  document.documentElement.classList.remove("operated");
}

/** Why this page does not move the hand, for when it does not, and the button that takes it back or asks for it. */
function reads() {
  const { you, steers, asking } = run.viewers ?? { you: null, steers: null, asking: [] };
  const asked = asking.includes(you), who = steers === null ? "Nobody moves the hand." : `Viewer ${steers} moves the hand.`;
  write("reads-text", `${who}${you === null ? " You watch." : asked ? " You have asked for it." : ""}`);
  write("take", steers === null ? "Take the hand" : "Ask for the hand");
  $("take").hidden = you === null || asked;
  $("take").onclick = () => send({ k: "ask" });
}

/** Shows what the scenario has, and hides what it has not. */
function reveal(/** @type {string} */ of, has = true) {
  for (const one of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(`.${of}`))) one.hidden = !has;
}

function told(/** @type {any} */ message, /** @type {HTMLElement} */ pane) {
  if (message.k === "near" && $("robot-now").hidden) {
    $("robot-now").hidden = false;
    pane.classList.add("two");
    $("curve").height = 150;
    $("near").style.height = `${100 * CROP}%`;
    besides($("near"));
  }
  if (message.k === "silent") {
    alarm("hand", `This page stalled for ${(message.ms / 1000).toFixed(1)} s: the hand sent no commands meanwhile. This machine or the browser is overloaded.`);
    clearTimeout(said);
    said = setTimeout(() => alarm("hand", ""), SAID_MS);
  }
  if (message.k === "trip") {
    write("trip", `${message.ms.toFixed(1)} ms`);
    alarm("lag", message.ms > LAG_MS ? `This page lags ${(message.ms / 1000).toFixed(1)} s behind: the hand arrives late, and what is shown is old. This machine, the browser or the connection is overloaded.` : "");
    if (seen.took) write("took", `${seen.took[0].toFixed(1)} (${seen.took[1].toFixed(1)}) ms`);
  }
}

function supervised(/** @type {string} */ component, /** @type {string} */ name) {
  if (name === "normal") lacks = false;
  const waits = lacks && !moved && ["hold", "safe stop"].includes(name), good = waits || name === "normal";
  write("robot", waits ? "waiting for a hand" : name);
  $("robot").className = good ? "" : "bad";
  const said = words(component, name);
  alarm("robot", !good && said ? `${name}: ${said}` : "");
}

/** Pictures of the last 2 s, each second. */
const rate = (/** @type {number[]} */ times) => times.filter((at) => at > performance.now() - 2000).length / 2;

/** The frame rate; that of the robot's own side, which no network drops, says when the machine cannot keep it. */
function paced(/** @type {number} */ nominal) {
  if (seen.near.length) begun ??= performance.now();
  if (!seen.near.length && !seen.pictures.length) return;
  write("fps", rate(seen.pictures).toFixed(0));
  write("fps-of", `of ${nominal} frames a second`);
  const slow = begun !== null && performance.now() - begun > 5000 && rate(seen.near) < SHORT * nominal;
  $("slow").hidden = !slow;
  if (slow) write("slow", `This machine draws ${rate(seen.near).toFixed(0)} of ${nominal} frames a second; what is missing is part of the delay shown. Close other programs.`);
}

function draw() {
  const still = seen.came === null ? 0 : performance.now() - seen.came;
  if (still > FROZEN_MS) {
    write("glass", "frozen");
    $("glass").className = "bad";
    write("made", `no picture for ${(still / 1000).toFixed(1)} s`);
    $("made").className = "";
  } else if (seen.glass !== null) {
    write("glass", `${seen.glass.toFixed(0)} ms`);
    $("glass").className = seen.glass > LATE_MS ? "bad" : "";
    write("made", seen.made === null ? "" : `predicted, ${seen.made.toFixed(0)} ms old`);
    $("made").className = seen.made === null ? "" : "predicted";
  }
  if (seen.side !== null) write("now", `(${Math.max(seen.side, 0).toFixed(0)} ms old)`);
  write("newton", `${seen.force.toFixed(1)} N`);
  write("age", seen.predicted === null ? "" : `predicted, ${seen.predicted.toFixed(0)} ms old`);
  write("moves", `${seen.events}`);
  if (seen.forces !== drawn || (drawn.length && performance.now() - drawn_at > STILL_MS)) curve();
}

/** Spans of the page's time behind the curve, ms: the robot held by its supervisor, and a link cut; one that lasts has no end. */
const spans = { held: /** @type {Span[]} */ ([]), cut: /** @type {Span[]} */ ([]) };
/** @typedef {{from: number, to: number}} Span */
const HELD = ["hold", "safe stop"];
/** The run's time is used if it is no further from now than this, ms: a run in simulated time has a pace of its own. */
const NEAR_MS = 4000;

/** Begins or ends a span, unless it has. @param {"held" | "cut"} of @param {boolean} lasts @param {number} at */
function bound(of, lasts, at) {
  const last = spans[of].at(-1);
  if (lasts === (last?.to === Infinity)) return;
  if (last && !lasts) last.to = at;
  else spans[of] = [...spans[of].filter(({ to }) => to > at - 1000 * SPAN_S), { from: at, to: Infinity }];
}

/** When the page shows what happened at a time of the run. @param {number} t_s */
function moment(t_s) {
  const now = performance.now(), at = seen.offset === null || seen.runOffset === null ? now : 1000 * t_s + seen.runOffset - seen.offset;
  return Math.abs(now - at) < NEAR_MS ? at : now;
}

let latest_s = -1;
/** New states of the robot's supervisor; each may be told twice. @param {string} supervisor @param {any[]} events */
function holds(supervisor, events) {
  for (const { t_s, component, state } of events) {
    if (component !== supervisor || t_s <= latest_s) continue;
    latest_s = t_s;
    bound("held", HELD.includes(state), moment(t_s));
  }
}

/** @type {any} */ let drawn = null;
let drawn_at = 0;
function curve() {
  drawn = seen.forces;
  drawn_at = performance.now();
  const { width, height } = $("curve"), pen = $("curve").getContext("2d"), ink = getComputedStyle($("curve"));
  const now = performance.now(), top = Math.max(4, ...drawn.map((/** @type {any} */ f) => f.size)) * 1.1;
  const y = (/** @type {number} */ n) => height - 2 - (height - 6) * (n / top);
  const x = (/** @type {any} */ f) => width - ((now - f.at) / 1000 / SPAN_S) * (width - 30);
  pen.clearRect(0, 0, width, height);
  pen.strokeStyle = ink.stroke;
  pen.fillStyle = ink.color;
  pen.font = "12px system-ui";
  pen.lineWidth = 1;
  for (let n = 0; n <= top; n += top > 9 ? 4 : 2) {
    pen.beginPath(); pen.moveTo(28, y(n)); pen.lineTo(width, y(n)); pen.stroke();
    pen.fillText(`${n} N`, 0, y(n) + (n ? 4 : -1));
  }
  pen.strokeStyle = pen.fillStyle = ink.fill;
  pen.lineWidth = 2.5;
  pen.save();
  pen.beginPath(); pen.rect(30, 0, width - 30, height); pen.clip();
  for (const [list, of, upper] of /** @type {[Span[], string, number][]} */ ([[spans.cut, "--wire", height / 2], [spans.held, "--lost", 0]])) {
    pen.fillStyle = faded(colour(of), 0.35);
    for (const { from, to } of list) pen.fillRect(x({ at: from }), upper, x({ at: Math.min(to, now) }) - x({ at: from }), height / 2);
  }
  pen.fillStyle = ink.fill;
  pen.globalAlpha = 0.2;
  drawn.forEach((/** @type {any} */ f, /** @type {number} */ n) => { if (f.predicted) pen.fillRect(x(f), 0, x(drawn[n + 1] ?? { at: now }) - x(f), height); });
  pen.globalAlpha = 1;
  pen.beginPath();
  drawn.forEach((/** @type {any} */ f, /** @type {number} */ n) => (n && f.at - drawn[n - 1].at > GAP_MS ? pen.moveTo(x(f), y(f.size)) : pen.lineTo(x(f), y(f.size))));
  pen.stroke();
  pen.restore();
}
