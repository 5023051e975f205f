// The console in the browser: shows pictures and force, sends what the hand does. No library, no build step.
"use strict";

const $ = (id) => document.getElementById(id);
const token = new URLSearchParams(location.search).get("token");
const gauge = $("gauge").getContext("2d");
const hand = { x: 0, y: 0, z: 0, button: 0, wheel: 0 };
const seen = { pictures: [], forces: [], glass: null, trip: null, offset: null, took: null, events: 0, force: 0, made: null, predicted: null };
const pictures = new Worker("pictures.js");
window.seen = seen; // for whoever looks at the page from outside
let socket = null;
let tone = null;

// --- the line to the console ---------------------------------------------------------------------------------------

const address = (path) => `ws://${location.host}/${path}?token=${encodeURIComponent(token)}`;

function connect() {
  socket = new WebSocket(address("ws"));
  socket.onopen = () => say("connected", false);
  socket.onclose = () => {
    say("connection to the console lost; reconnecting …", true);
    setTimeout(connect, 1000);
  };
  socket.onmessage = (event) => told(JSON.parse(event.data));
}

function say(text, gone) {
  $("state").textContent = text;
  $("state").classList.toggle("gone", gone);
}

function send(message) {
  if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

function told(message) {
  if (message.k === "force") showForce(message.f, message.p);
  if (message.k === "study") studied(message);
  if (message.k === "pong") {
    const now = performance.now();
    const trip = now - message.t;
    // The shortest round trip bounds the offset of the clocks best.
    if (seen.trip === null || trip <= seen.trip) seen.offset = message.s - (message.t + trip / 2);
    seen.trip = seen.trip === null ? trip : Math.min(seen.trip * 1.01, trip);
    write("trip", `${trip.toFixed(1)} ms`);
    if (message.took.length) {
      seen.took = message.took;
      write("took", `${message.took[0].toFixed(1)} (${message.took[1].toFixed(1)}) ms`);
    }
  }
}

// The console's clock now, in ms; unknown (left out of messages) before the first answer.
const clock = () => (seen.offset === null ? undefined : performance.now() + seen.offset);

// --- pictures: a thread of their own draws them (pictures.js) ---------------------------------------------------------

const shown = { width: 640, height: 480 }; // the picture's size
const canvas = $("picture").transferControlToOffscreen();
pictures.postMessage({ canvas, address: address("pictures") }, [canvas]);
pictures.onmessage = ({ data }) => {
  const at = data.at - performance.timeOrigin;
  Object.assign(shown, { width: data.width, height: data.height });
  seen.pictures.push(at);
  while (seen.pictures[0] < at - 2000) seen.pictures.shift();
  if (data.taken !== null && seen.offset !== null) {
    seen.glass = at + seen.offset - data.runOffsetMs - data.taken.ms;
    // A picture whose number has been shown is not one that came: it is made of that one.
    seen.made = seen.number === data.taken.number ? seen.glass : null;
    seen.number = data.taken.number;
  }
  if (data.bitmap) wear(data.bitmap, data.eyes);
};

// --- force: picture, sound, rumble ---------------------------------------------------------------------------------

// `age` in ms: what it was predicted from; null: it came.
function showForce(force, age) {
  const size = Math.hypot(...force);
  seen.force = size;
  seen.predicted = age;
  seen.forces = [...seen.forces.slice(-255), { size, predicted: age !== null }];
  if (tone) tone.gain.gain.setTargetAtTime(Math.min(size / 20, 0.3), tone.context.currentTime, 0.02);
  rumble(Math.min(size / 10, 1));
}

function rumble(strength) {
  const pad = gamepad();
  const motor = pad && pad.vibrationActuator;
  if (motor && strength > 0.02) {
    motor.playEffect("dual-rumble", { duration: 40, strongMagnitude: strength, weakMagnitude: strength }).catch(() => {});
  }
}

$("sound").onclick = () => {
  const context = new AudioContext();
  const gain = new GainNode(context, { gain: 0 });
  const oscillator = new OscillatorNode(context, { type: "triangle", frequency: 110 });
  oscillator.connect(gain).connect(context.destination);
  oscillator.start();
  tone = { context, gain };
  $("sound").disabled = true;
};

// --- the hand: pointer, wheel, keys, gamepad -----------------------------------------------------------------------

const stage = $("stage");
let pointed = 0; // what the pointer presses
let pressed = 0; // what key or gamepad press
const clamp = (v) => Math.min(1, Math.max(-1, v));

function place(event) {
  const box = stage.getBoundingClientRect();
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
  send({ k: "hand", s: clock(), p: points.slice(-256) });
  seen.events += points.length;
}

const coalesced = (event) => {
  const list = event.getCoalescedEvents ? event.getCoalescedEvents() : [];
  return list.length ? list : [event];
};
stage.addEventListener("onpointerrawupdate" in window ? "pointerrawupdate" : "pointermove", (e) => {
  if (marking) mark(e, false);
  else moved(coalesced(e));
});
stage.addEventListener("pointerdown", (e) => {
  stage.setPointerCapture(e.pointerId);
  if (e.shiftKey && e.button === 0) mark(e, false);
  else if (!marking) moved([e]);
});
stage.addEventListener("pointerup", (e) => {
  if (marking) mark(e, true);
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

// Shift and the left button draw a region of the picture, a click with Shift names a place in it: what matters there.
let marking = null; // where it began, in shares of the picture

function inPicture(event) {
  const box = stage.getBoundingClientRect();
  const scale = Math.min(box.width / shown.width, box.height / shown.height);
  const [wide, high] = [shown.width * scale, shown.height * scale];
  const share = (at, from, whole, part) => Math.min(1, Math.max(0, (at - from - (whole - part) / 2) / part));
  return [share(event.clientX, box.left, box.width, wide), share(event.clientY, box.top, box.height, high)];
}

function mark(event, done) {
  const at = inPicture(event);
  marking = marking || { at, x: event.clientX, y: event.clientY };
  const box = stage.getBoundingClientRect();
  const [left, top] = [Math.min(marking.x, event.clientX), Math.min(marking.y, event.clientY)];
  Object.assign($("mark").style, {
    left: `${left - box.left}px`, top: `${top - box.top}px`,
    width: `${Math.abs(event.clientX - marking.x)}px`, height: `${Math.abs(event.clientY - marking.y)}px`,
  });
  $("mark").hidden = false;
  if (!done) return;
  const [x, y] = [0, 1].map((i) => Math.min(at[i], marking.at[i]));
  const [width, height] = [0, 1].map((i) => Math.abs(at[i] - marking.at[i]));
  send({ k: "mark", s: clock(), p: [[performance.now() - event.timeStamp, x, y, width, height]] });
  unmark();
}

function unmark() {
  marking = null;
  $("mark").hidden = true;
}

const keys = new Set();
addEventListener("keydown", (e) => keys.add(e.code));
addEventListener("keyup", (e) => keys.delete(e.code));
addEventListener("blur", () => {
  keys.clear();
  press(0); // now: a page that is hidden has no more frames
});

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
  const step = Math.min(now - before, 100) / 1000;
  before = now;
  const pad = gamepad();
  const down = (code) => (keys.has(code) ? 1 : 0);
  const push = [down("KeyD") - down("KeyA"), down("KeyW") - down("KeyS"), down("KeyE") - down("KeyQ")];
  if (pad) {
    $("pad").textContent = pad.id.slice(0, 24);
    push[0] += quiet(pad.axes[0] || 0);
    push[1] -= quiet(pad.axes[1] || 0);
    push[2] -= quiet(pad.axes[3] || 0);
  }
  const button = down("Space") || (pad && pad.buttons[7] ? pad.buttons[7].value : 0);
  press(button);
  if (push.some((v) => v)) {
    [hand.x, hand.y, hand.z] = [hand.x, hand.y, hand.z].map((v, i) => clamp(v + push[i] * step));
    sendPoints([point(now)]);
  }
  show();
  requestAnimationFrame(tick);
}

// What changes with every event or picture is written once a frame, and only where it has changed.
function show() {
  write("events", `${seen.events}`);
  write("fps", (seen.pictures.length / 2).toFixed(0));
  if (seen.glass !== null) {
    write("glass", `${seen.glass.toFixed(1)} ms`);
    write("made", seen.made === null ? "live" : `predicted, ${seen.made.toFixed(0)} ms old`, seen.made !== null);
  }
  const [x, y] = [((1 + hand.x) * stage.clientWidth) / 2, ((1 - hand.y) * stage.clientHeight) / 2];
  $("hand").style.transform = `translate(${x}px, ${y}px)`;
  if (seen.forces !== drawn) gauged();
}

function write(id, text, predicted = false) {
  const place = $(id);
  if (place.textContent !== text) place.textContent = text;
  place.classList.toggle("predicted", predicted);
}

let drawn = seen.forces;
function gauged() {
  drawn = seen.forces;
  const age = seen.predicted === null ? "" : `, predicted ${seen.predicted.toFixed(0)} ms`;
  write("newton", `${seen.force.toFixed(2)} N${age}`, seen.predicted !== null);
  const { width, height } = gauge.canvas;
  const top = Math.max(1, ...drawn.map((f) => f.size));
  gauge.clearRect(0, 0, width, height);
  gauge.strokeStyle = "#d9541e";
  gauge.fillStyle = "#d9541e40";
  gauge.beginPath();
  drawn.forEach((f, i) => {
    gauge.lineTo(i, height - 2 - (height - 4) * (f.size / top));
    if (f.predicted) gauge.fillRect(i, 0, 1, height);
  });
  gauge.stroke();
}

setInterval(() => send({ k: "ping", t: performance.now() }), 250);
connect();
requestAnimationFrame(tick);
