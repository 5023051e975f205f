// The operator's pane: the picture that the network delays, with the hand in it, beside the robot's own side, which nothing
// delays. Pictures and hand are those of the console (hand.js).
// @ts-check

import { hand, operate, seen, shown, tone } from "./hand.js";

const WIDE = 480, HIGH = 360;
const STATES = { degraded: "commands come late or get lost: the robot follows slowly", hold: "no commands: the supervisor stops the robot", "safe stop": "no commands: the robot stays stopped", recovering: "commands are back: the robot goes to the hand, slowly" };
const CROP = 384 / 357; // the code takes 24 rows along the upper edge, and blurs some more
const PX_N = 9; // length of the arrow for each N
const SPAN_S = 8; // of the curve of force
const SHORT = 0.9; // share of the frame rate below which the page says so

/** @type {Record<string, any>} */ const at = {};
/** @type {number|null} */ let begun = null;
let loudness = (/** @type {number} */ _) => {};

/** Text without empty space between tags becomes elements; those with an id are kept. */
function made(/** @type {string} */ html) {
  const template = document.createElement("template");
  template.innerHTML = html.replace(/>\s+</g, "><").trim();
  for (const one of template.content.querySelectorAll("[id]")) at[one.id] = one;
  return template.content;
}

const PAGE = `
<div class="eyes">
  <figure class="operator">
    <div id="stage" tabindex="0" aria-label="The operator's picture: move the pointer to move the hand; keys W A S D, Q E">
      <canvas id="picture" width="480" height="384"></canvas>
      <svg viewBox="0 0 ${WIDE} ${HIGH}" aria-hidden="true">
        <line id="spring"/><circle id="wish" r="5"/><circle id="held" r="9"/><path id="arrow"/>
      </svg>
      <p id="hint">Move the pointer over the picture: the arm follows it.</p>
      <p id="alarm" hidden></p>
    </div>
    <figcaption><b>What the operator sees</b> after the network. Ring: the hand. Dot: the pointer.</figcaption>
  </figure>
  <div class="side">
    <figure><div class="crop"><canvas id="near" width="480" height="384"></canvas></div>
      <figcaption><b>The robot now</b>, without the network <span id="now"></span></figcaption></figure>
    <figure><canvas id="curve" width="480" height="120"></canvas>
      <figcaption><b>Force at the hand</b>, last ${SPAN_S} s <button id="sound" type="button">Hear it</button></figcaption></figure>
  </div>
</div>
<div class="tiles">
  <div><strong id="glass">–</strong><small>glass to glass</small></div>
  <div><strong id="newton">–</strong><small id="newton-of">force at the hand</small></div>
  <div><strong id="robot">–</strong><small>robot's supervisor</small></div>
  <div><strong id="fps">–</strong><small id="fps-of">frames a second</small></div>
</div>
<p id="slow" role="status" hidden></p>`;

/** Builds the pane and connects it to the console. */
export function open(/** @type {HTMLElement} */ section, /** @type {URLSearchParams} */ asked) {
  section.append(made(`<div id="pane">${PAGE}</div>`));
  at.sound.onclick = () => { loudness = tone(); at.sound.disabled = true; };
  for (const name of ["picture", "near"]) at[name].style.height = `${100 * CROP}%`;
  const nominal = Number(asked.get("fps"));
  operate({
    host: asked.get("console"), token: asked.get("key"), stage: at.stage, picture: at.picture, near: at.near,
    state: (/** @type {string} */ text, /** @type {boolean} */ gone) => alarm(gone ? text : ""),
    told: (/** @type {any} */ message) => { if (message.k === "state") supervised(message); },
    felt: (/** @type {number} */ size) => loudness(size), draw,
  });
  setInterval(() => paced(nominal), 1000);
  Object.assign(window, { seen, hand }); // for whoever looks at the page from outside
}

function write(/** @type {string} */ id, /** @type {string} */ text) {
  if (at[id].textContent !== text) at[id].textContent = text;
}

function alarm(/** @type {string} */ text) {
  write("alarm", text);
  at.alarm.hidden = !text;
}

function supervised(/** @type {any} */ told) {
  const name = told.is;
  write("robot", name);
  at.robot.className = name === "normal" ? "" : "bad";
  const why = /** @type {Record<string, string>} */ (STATES)[name];
  alarm(why ? `${name}: ${why}` : "");
}

/** Says when the machine cannot keep the frame rate: pictures of the robot's own side, which no network drops. */
function paced(/** @type {number} */ nominal) {
  if (!seen.near.length) return;
  begun ??= performance.now();
  const rate = seen.near.length / 2;
  write("fps", rate.toFixed(0));
  write("fps-of", `of ${nominal} frames a second drawn`);
  const slow = performance.now() - begun > 5000 && rate < SHORT * nominal;
  at.slow.hidden = !slow;
  if (slow) write("slow", `This machine draws ${rate.toFixed(0)} of ${nominal} frames a second; what is missing is part of the delay shown. Close other programs.`);
}

const toX = (/** @type {number} */ x) => ((1 + x) * WIDE) / 2, toY = (/** @type {number} */ y) => ((1 - y) * HIGH) / 2;

function draw() {
  if (seen.glass !== null) {
    write("glass", `${seen.glass.toFixed(0)} ms`);
    at.glass.className = seen.glass > 250 ? "bad" : "";
  }
  if (seen.side !== null) write("now", `(${Math.max(seen.side, 0).toFixed(0)} ms old)`);
  write("newton", `${seen.force.toFixed(1)} N`);
  at.hint.hidden = seen.events > 0;
  const wish = [toX(hand.x), toY(hand.y)], held = seen.held ? [toX(seen.held[0]), toY(seen.held[1])] : wish;
  set(at.wish, { cx: wish[0], cy: wish[1] });
  set(at.held, { cx: held[0], cy: held[1] });
  set(at.spring, { x1: wish[0], y1: wish[1], x2: held[0], y2: held[1] });
  const [, left, up] = seen.vector;
  const path = seen.force > 0.2 ? arrow(held[0], held[1], -left * PX_N, -up * PX_N) : "";
  if (at.arrow.getAttribute("d") !== path) at.arrow.setAttribute("d", path);
  if (seen.forces !== drawn) curve();
}

function set(/** @type {Element} */ one, /** @type {Record<string, number>} */ keys) {
  for (const [key, value] of Object.entries(keys)) {
    const text = value.toFixed(1);
    if (one.getAttribute(key) !== text) one.setAttribute(key, text); // what is the same is not drawn again
  }
}

/** An arrow from a point: a line and a head. */
function arrow(/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ dx, /** @type {number} */ dy) {
  const long = Math.hypot(dx, dy) || 1, [ux, uy] = [dx / long, dy / long], [tx, ty] = [x + dx, y + dy];
  const wing = (/** @type {number} */ s) => `${(tx - 7 * ux - 4 * s * uy).toFixed(1)} ${(ty - 7 * uy + 4 * s * ux).toFixed(1)}`;
  return `M${x.toFixed(1)} ${y.toFixed(1)}L${tx.toFixed(1)} ${ty.toFixed(1)}M${wing(1)}L${tx.toFixed(1)} ${ty.toFixed(1)}L${wing(-1)}`;
}

/** @type {any} */ let drawn = null;
function curve() {
  drawn = seen.forces;
  const { width, height } = at.curve, pen = at.curve.getContext("2d"), ink = getComputedStyle(at.curve);
  const now = performance.now(), top = Math.max(4, ...drawn.map((/** @type {any} */ f) => f.size)) * 1.1;
  const y = (/** @type {number} */ n) => height - 2 - (height - 6) * (n / top);
  pen.clearRect(0, 0, width, height);
  pen.strokeStyle = ink.stroke;
  pen.fillStyle = ink.color;
  pen.font = "12px system-ui";
  pen.lineWidth = 1;
  for (let n = 0; n <= top; n += top > 9 ? 4 : 2) {
    pen.beginPath(); pen.moveTo(28, y(n)); pen.lineTo(width, y(n)); pen.stroke();
    pen.fillText(`${n} N`, 0, y(n) + (n ? 4 : -1));
  }
  pen.strokeStyle = ink.fill;
  pen.lineWidth = 2.5;
  pen.beginPath();
  for (const f of drawn) pen.lineTo(width - ((now - f.at) / 1000 / SPAN_S) * (width - 30), y(f.size));
  pen.save(); pen.clip(box(width, height)); pen.stroke(); pen.restore();
}

function box(/** @type {number} */ width, /** @type {number} */ height) {
  const path = new Path2D();
  path.rect(30, 0, width - 30, height);
  return path;
}
