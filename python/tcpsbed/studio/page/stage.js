// @ts-check
// The operator's picture with the hand in it, and what moves the hand: in the pane of a run, and for the subject of a study.

import { $, element } from "./dom.js";
import { hand, operate, seen, shown, tone } from "./hand.js";
import { offerHeadset, wear } from "./xr.js";

const WIDE = 480; // of the drawing over the picture
const PX_N = 9; // length of the arrow for each N

const STAGE = `
<div id="stage" tabindex="0" role="application" aria-label="The operator's picture: move the pointer to move the hand; keys W A S D, Q E">
  <canvas id="picture" width="640" height="480"></canvas>
  <svg aria-hidden="true"><line id="spring"/><circle id="wish" r="5"/><circle id="held" r="9"/><path id="arrow"/></svg>
  <div id="mark" hidden></div>
  <p id="hint">Move the pointer over the picture: the robot follows it.</p>
  <p id="reads" role="status" hidden><span id="reads-text">This page only shows: another one moves the hand. Close that one, then load this one again.</span><button id="take" type="button" hidden></button></p>
  <p id="alarm" role="status" hidden></p>
</div>
<figcaption id="caption"></figcaption>
<div class="acts"><button id="sound" type="button">Hear the force</button><button id="wear" type="button" hidden>Enter the headset</button>
  <label id="follows" hidden><input type="checkbox" id="with-head"> The picture goes with the head</label>
  <details><summary>Pointer, keys, gamepad</summary><p>Pointer: right and left, up and down. Left button held: up and down is away and back, and the
  button is pressed. Wheel: notches. Keys: A D, W S, Q E; space is the button. Gamepad: sticks and trigger; it rumbles with the force.
  <span id="how-to-mark" hidden>Shift and the left button: mark what matters in the picture.</span></p></details></div>`;

/** Text without empty space between tags, as elements. @param {string} html */
export function made(html) {
  const template = document.createElement("template");
  template.innerHTML = html.replace(/>\s+</g, "><").trim();
  return template.content;
}

/** @param {string} id @param {string} text */
export function write(id, text) {
  if ($(id).textContent !== text) $(id).textContent = text;
}

/** What is wrong, by what it is about: the first is shown. @type {Record<string, string>} */
const wrong = { line: "", hand: "", lag: "", headset: "", robot: "" };

/** @param {string} about @param {string} text empty: nothing is wrong */
export function alarm(about, text) {
  wrong[about] = text;
  const worst = Object.values(wrong).find(Boolean) ?? "";
  write("alarm", worst);
  $("alarm").hidden = !worst;
}

/**
 * Builds it and connects it to the console.
 * @param {HTMLElement} place
 * @param {{marks?: boolean, key?: string, told?: (message: any) => void, felt?: () => void, draw?: () => void, pad?: (name: string) => void, state?: (text: string, gone: boolean) => void}} given
 */
export function stand(place, { marks, felt, draw, ...given }) {
  const figure = element("figure", { className: "operator" });
  figure.append(made(STAGE));
  place.prepend(figure);
  let loudness = (/** @type {number} */ _) => {};
  $("sound").onclick = () => { loudness = tone(); $("sound").disabled = true; };
  $("how-to-mark").hidden = !marks;
  $("take").onpointerdown = (/** @type {Event} */ event) => event.stopPropagation(); // the stage would capture the pointer
  operate({
    stage: $("stage"), picture: $("picture"), mark: marks ? $("mark") : null, wear,
    state: (/** @type {string} */ text, /** @type {boolean} */ gone) => alarm("line", gone ? text : ""),
    control: (/** @type {boolean} */ mine) => { $("reads").hidden = mine; $("stage").classList.toggle("reads", !mine); },
    ...given,
    felt: (/** @type {number} */ size) => { loudness(size); felt?.(); },
    draw: () => { drawHand(); draw?.(); },
  });
  offerHeadset((/** @type {string} */ text) => alarm("headset", text));
}

let high = 0;

/** Gives the stage the shape of the picture without the code along its upper edge. */
function shape() {
  const visible = shown.height - shown.top, now = (WIDE * visible) / shown.width;
  if (now === high) return;
  high = now;
  $("stage").style.setProperty("--ratio", `${shown.width / visible}`);
  $("picture").style.height = `${(100 * shown.height) / visible}%`;
  $("stage").querySelector("svg").setAttribute("viewBox", `0 0 ${WIDE} ${high}`);
}

const toX = (/** @type {number} */ x) => ((1 + x) * WIDE) / 2, toY = (/** @type {number} */ y) => ((1 - y) * high) / 2;

function drawHand() {
  shape();
  $("hint").hidden = seen.events > 0 || !$("reads").hidden;
  const wish = [toX(hand.x), toY(hand.y)], held = seen.held ? [toX(seen.held[0]), toY(seen.held[1])] : wish;
  set($("wish"), { cx: wish[0], cy: wish[1] });
  set($("held"), { cx: held[0], cy: held[1], r: seen.held || $("reads").hidden ? 9 : 0 }); // another page's hand is known where force moves it
  set($("spring"), { x1: wish[0], y1: wish[1], x2: held[0], y2: held[1] });
  const [, left, up] = seen.vector; // a force that moves the hand has its directions; others may have their own
  const path = seen.held && seen.force > 0.2 ? arrow(held[0], held[1], -left * PX_N, -up * PX_N) : "";
  if ($("arrow").getAttribute("d") !== path) $("arrow").setAttribute("d", path);
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
