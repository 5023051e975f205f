// The operator in a browser: the line to the console, pictures, and the hand by pointer, wheel, keys and gamepad.

import { socketAt } from "./dom.js";

export const hand = { x: 0, y: 0, z: 0, button: 0, wheel: 0 };
export const seen = {
  pictures: [], near: [], forces: [], glass: null, came: null, side: null, trip: null, offset: null, took: null, events: 0, force: 0,
  vector: [0, 0, 0], made: null, predicted: null, held: null, gone: 0, marking: null, runOffset: null,
};
export const shown = { width: 640, height: 480, top: 0 }; // size of the picture, and how much of it is the code
/** What the page is: its key at the server, if it has one; elements `stage` and `mark` (where regions can be marked); and
    functions: `state(text, gone)`, `told(message)`, `felt(force)`, `pad(name)`, `wear(bitmap, eyes)`, `draw()` once a frame,
    `control(mine)` when the hand becomes that of this page, or of another one. */
const page = { key: "", state() {}, told() {}, felt() {}, pad() {}, wear() {}, draw() {}, control() {} };
/** A page that says nothing for so long has no hand until it says something again (presence.py). */
const SILENT_MS = 3000, PING_MS = 250;
const workers = [];
let socket = null;
let over = false;
let mine = false; // whether this page moves the hand
/** When the pings were sent that have no answer. @type {number[]} */ let waits = [];
let latest = 0; // the last round trip, ms

/** Begins; `picture` is a canvas. */
export function operate({ picture, ...given }) {
  Object.assign(page, given);
  watch(picture, "pictures", onPicture);
  listen(page.stage);
  let pinged = performance.now();
  setInterval(() => {
    const now = performance.now();
    if (mine && now - pinged > SILENT_MS) page.told({ k: "silent", ms: now - pinged });
    if (waits.length && now - waits[0] > latest) page.told({ k: "trip", ms: now - waits[0] });
    if (send({ k: "ping", t: (pinged = now) })) waits.push(now);
  }, PING_MS);
  connect();
  requestAnimationFrame(tick);
}

/** Shows the robot's own side on a canvas. */
export const besides = (canvas) => watch(canvas, "near", onNear);

/** Ends: the run is over. */
export function close() {
  over = true;
  socket.close();
  workers.forEach((worker) => worker.terminate());
}

/** Whether the page wants the pictures themselves. */
export const want = (wanted) => workers[0].postMessage({ wanted });

// --- the line to the console ---------------------------------------------------------------------------------------

function connect() {
  socket = new WebSocket(socketAt("ws", page.key && `&page=${page.key}`));
  socket.onopen = () => page.state("connected", false);
  socket.onclose = () => {
    waits = [];
    latest = 0;
    if (over) return;
    page.state("connection to the console lost; reconnecting …", true);
    setTimeout(connect, 1000);
  };
  socket.onmessage = (event) => heard(JSON.parse(event.data));
}

export function send(message) {
  if (!mine && message.k !== "ping") return false;
  if (!socket || socket.readyState !== WebSocket.OPEN) return false;
  socket.send(JSON.stringify(message));
  return true;
}

function heard(message) {
  if (over) return;
  if (message.k === "force") onForce(message.f, message.p);
  else if (message.k === "control") page.control((mine = message.mine));
  else if (message.k === "held") seen.held = message.p;
  else if (message.k === "pong") onPong(message);
  else page.told(message);
}

function onPong(message) {
  const now = performance.now();
  const trip = (latest = now - message.t);
  waits = waits.filter((sent) => sent > message.t);
  // The shortest round trip bounds the offset of the clocks best.
  if (seen.trip === null || trip <= seen.trip) seen.offset = message.s - (message.t + trip / 2);
  seen.trip = seen.trip === null ? trip : Math.min(seen.trip * 1.01, trip);
  if (message.took.length) seen.took = message.took;
  page.told({ k: "trip", ms: trip });
}

// The console's clock now, in ms; unknown (left out of messages) before the first answer.
export const clock = () => (seen.offset === null ? undefined : performance.now() + seen.offset);

// --- pictures: a thread of their own draws them (pictures.js) ---------------------------------------------------------

function watch(canvas, path, act) {
  const worker = new Worker("pictures.js");
  const drawn = canvas.transferControlToOffscreen();
  worker.postMessage({ canvas: drawn, address: socketAt(path) }, [drawn]);
  worker.onmessage = ({ data }) => act(data, data.at - performance.timeOrigin);
  workers.push(worker);
}

function kept(times, at) {
  times.push(at);
  while (times[0] < at - 2000) times.shift();
}

function onPicture(data, at) {
  Object.assign(shown, { width: data.width, height: data.height, top: Math.max(shown.top, data.top) });
  kept(seen.pictures, at);
  seen.came = at;
  seen.runOffset = data.runOffsetMs;
  if (data.taken !== null && seen.offset !== null) {
    seen.glass = at + seen.offset - data.runOffsetMs - data.taken.ms;
    // A picture whose number has been shown is not one that came: it is made of that one.
    seen.made = seen.number === data.taken.number ? seen.glass : null;
    seen.number = data.taken.number;
  }
  if (data.bitmap) page.wear(data.bitmap, data.eyes);
}

// The robot's own side carries the time of its state only; the run's clock is known from the pictures that were sent.
function onNear(data, at) {
  kept(seen.near, at);
  if (data.taken !== null && seen.offset !== null && seen.runOffset !== null) {
    seen.side = at + seen.offset - seen.runOffset - data.taken.ms;
  }
}

// --- force ---------------------------------------------------------------------------------------------------------

// `age` in ms: what it was predicted from; null: it came.
function onForce(force, age) {
  const size = Math.hypot(...force);
  Object.assign(seen, { force: size, vector: force, predicted: age });
  seen.forces = [...seen.forces.slice(-255), { size, predicted: age !== null, at: performance.now() }];
  page.felt(size);
  rumble(Math.min(size / 10, 1));
}

function rumble(strength) {
  const pad = gamepad();
  const motor = pad && pad.vibrationActuator;
  if (motor && strength > 0.02) {
    motor.playEffect("dual-rumble", { duration: 40, strongMagnitude: strength, weakMagnitude: strength }).catch(() => {});
  }
}

/** A tone whose loudness is the force; browsers allow it after a click only. */
export function tone() {
  const context = new AudioContext();
  const gain = new GainNode(context, { gain: 0 });
  const oscillator = new OscillatorNode(context, { type: "triangle", frequency: 110 });
  oscillator.connect(gain).connect(context.destination);
  oscillator.start();
  return (size) => gain.gain.setTargetAtTime(Math.min(size / 20, 0.3), context.currentTime, 0.02);
}

// --- the hand: pointer, wheel, keys, gamepad -----------------------------------------------------------------------

let pointed = 0; // what the pointer presses
let pressed = 0; // what key or gamepad press
const clamp = (v) => Math.min(1, Math.max(-1, v));

function place(event) {
  const box = page.stage.getBoundingClientRect();
  hand.x = clamp((2 * (event.clientX - box.left)) / box.width - 1);
  const y = clamp(1 - (2 * (event.clientY - box.top)) / box.height);
  // The left button turns up and down into nearer and further.
  if (event.buttons & 1) hand.z = y;
  else hand.y = y;
}

function point(stamp) {
  return [performance.now() - stamp, hand.x, hand.y, hand.z, hand.button, hand.wheel];
}

function moved(events) {
  const points = events.map((event) => {
    place(event);
    pointed = event.buttons & 1;
    hand.button = Math.max(pointed, pressed);
    return point(event.timeStamp);
  });
  sendPoints(points);
}

function sendPoints(points) {
  if (!mine) return;
  send({ k: "hand", s: clock(), p: points.slice(-256) });
  seen.events += points.length;
}

const coalesced = (event) => {
  const list = event.getCoalescedEvents ? event.getCoalescedEvents() : [];
  return list.length ? list : [event];
};

function listen(stage) {
  stage.addEventListener("onpointerrawupdate" in window ? "pointerrawupdate" : "pointermove", (e) => {
    if (seen.marking) mark(e, false);
    else moved(coalesced(e));
  });
  stage.addEventListener("pointerdown", (e) => {
    stage.setPointerCapture(e.pointerId);
    if (e.shiftKey && e.button === 0 && page.mark) mark(e, false);
    else if (!seen.marking) moved([e]);
  });
  stage.addEventListener("pointerup", (e) => {
    if (seen.marking) mark(e, true);
    else moved([e]);
  });
  stage.addEventListener("pointercancel", (e) => { // the system has taken the pointer: nothing is marked or pressed
    unmark();
    pointed = 0;
    hand.button = pressed; // where it is, the event does not say
    sendPoints([point(e.timeStamp)]);
  });
  stage.addEventListener("wheel", (e) => {
    e.preventDefault();
    hand.wheel += Math.sign(e.deltaY);
    sendPoints([point(e.timeStamp)]);
  }, { passive: false });
  addEventListener("keydown", (e) => {
    const own = e.code === "Space" ? "input, select, button, a, summary" : "input, select"; // those have their own use
    if (over || e.ctrlKey || e.metaKey || e.altKey || e.target.matches?.(own)) return;
    keys.add(e.code);
    if (e.code === "Space") e.preventDefault(); // it would scroll
  });
  addEventListener("keyup", (e) => keys.delete(e.code));
  addEventListener("blur", () => {
    keys.clear();
    press(0); // now: a page that is hidden has no more frames
  });
}

// Shift and the left button draw a region of the picture, a click with Shift names a place in it: what matters there.
// `seen.marking` is where it began, in shares of the picture.

function inPicture(event) {
  const box = page.stage.getBoundingClientRect(); // it is as high as what is below the code
  const share = (at, from, whole) => Math.min(1, Math.max(0, (at - from) / whole));
  const hidden = shown.top / shown.height;
  return [share(event.clientX, box.left, box.width), hidden + (1 - hidden) * share(event.clientY, box.top, box.height)];
}

function mark(event, done) {
  const at = inPicture(event);
  const from = seen.marking = seen.marking || { at, x: event.clientX, y: event.clientY };
  const box = page.stage.getBoundingClientRect();
  const [left, top] = [Math.min(from.x, event.clientX), Math.min(from.y, event.clientY)];
  Object.assign(page.mark.style, {
    left: `${left - box.left}px`, top: `${top - box.top}px`,
    width: `${Math.abs(event.clientX - from.x)}px`, height: `${Math.abs(event.clientY - from.y)}px`,
  });
  page.mark.hidden = false;
  if (!done) return;
  const [x, y] = [0, 1].map((i) => Math.min(at[i], from.at[i]));
  const [width, height] = [0, 1].map((i) => Math.abs(at[i] - from.at[i]));
  send({ k: "mark", s: clock(), p: [[performance.now() - event.timeStamp, x, y, width, height]] });
  unmark();
}

function unmark() {
  seen.marking = null;
  if (page.mark) page.mark.hidden = true;
}

const keys = new Set();

function press(button) {
  if (button === pressed) return;
  pressed = button;
  hand.button = Math.max(pointed, pressed);
  sendPoints([point(performance.now())]);
}

function gamepad() {
  return navigator.getGamepads ? navigator.getGamepads().find((pad) => pad) : null;
}

const quiet = (v) => (Math.abs(v) < 0.1 ? 0 : v);
let before = performance.now();
function tick(now) {
  if (over) return;
  const step = Math.min(now - before, 100) / 1000;
  before = now;
  const pad = gamepad();
  const down = (code) => (keys.has(code) ? 1 : 0);
  const push = [down("KeyD") - down("KeyA"), down("KeyW") - down("KeyS"), down("KeyE") - down("KeyQ")];
  if (pad) {
    page.pad(pad.id);
    push[0] += quiet(pad.axes[0] || 0);
    push[1] -= quiet(pad.axes[1] || 0);
    push[2] -= quiet(pad.axes[3] || 0);
  }
  press(down("Space") || (pad && pad.buttons[7] ? pad.buttons[7].value : 0));
  if (push.some((v) => v)) {
    [hand.x, hand.y, hand.z] = [hand.x, hand.y, hand.z].map((v, i) => clamp(v + push[i] * step));
    sendPoints([point(now)]);
  }
  page.draw();
  requestAnimationFrame(tick);
}
