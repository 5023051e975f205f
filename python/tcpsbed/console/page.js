// The console in the browser: shows pictures and force, sends what the hand does. No library, no build step.
"use strict";

const $ = (id) => document.getElementById(id);
const token = new URLSearchParams(location.search).get("token");
const picture = $("picture").getContext("2d", { willReadFrequently: true });
const gauge = $("gauge").getContext("2d");
const hand = { x: 0, y: 0, z: 0, button: 0, wheel: 0 };
const seen = { pictures: [], forces: [], glass: null, trip: null, offset: null, events: 0, force: 0 };
window.seen = seen; // for whoever looks at the page from outside
let socket = null;
let tone = null;

// --- the line to the console ---------------------------------------------------------------------------------------

function connect() {
  socket = new WebSocket(`ws://${location.host}/ws?token=${encodeURIComponent(token)}`);
  socket.binaryType = "arraybuffer";
  socket.onopen = () => say("connected", false);
  socket.onclose = () => {
    say("the console has gone; trying again …", true);
    setTimeout(connect, 1000);
  };
  socket.onmessage = (event) => (typeof event.data === "string" ? told(JSON.parse(event.data)) : showPicture(event.data));
}

function say(text, gone) {
  $("state").textContent = text;
  $("state").classList.toggle("gone", gone);
}

function send(message) {
  if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

function told(message) {
  if (message.k === "force") showForce(message.f);
  if (message.k === "pong") {
    const now = performance.now();
    const trip = now - message.t;
    // The shortest round trip bounds the offset of the clocks best.
    if (seen.trip === null || trip <= seen.trip) seen.offset = message.s - (message.t + trip / 2);
    seen.trip = seen.trip === null ? trip : Math.min(seen.trip * 1.01, trip);
    $("trip").textContent = `${trip.toFixed(1)} ms`;
  }
}

// --- pictures ------------------------------------------------------------------------------------------------------

async function showPicture(data) {
  const head = new DataView(data);
  const runOffsetMs = Number(head.getBigInt64(8, true)) / 1e6;
  const bitmap = await createImageBitmap(new Blob([new Uint8Array(data, 16)], { type: "image/jpeg" }));
  const canvas = picture.canvas;
  if (canvas.width !== bitmap.width || canvas.height !== bitmap.height) {
    canvas.width = bitmap.width;
    canvas.height = bitmap.height;
  }
  picture.drawImage(bitmap, 0, 0);
  bitmap.close();
  const now = performance.now();
  seen.pictures.push(now);
  while (seen.pictures[0] < now - 2000) seen.pictures.shift();
  const taken = readCode();
  if (taken !== null && seen.offset !== null) {
    seen.glass = now + seen.offset - runOffsetMs - taken.ms;
    seen.number = taken.number;
    $("glass").textContent = `${seen.glass.toFixed(1)} ms`;
  }
  $("fps").textContent = (seen.pictures.length / 2).toFixed(0);
}

// The code along the upper edge (tcpsbed/media/picture_code.py): 2 rows of 40 blocks, time in us, number, CRC-16.
function readCode() {
  const side = Math.floor(picture.canvas.width / 40);
  if (side < 4 || picture.canvas.height < 2 * side) return null;
  const { data, width } = picture.getImageData(0, 0, 40 * side, 2 * side);
  const bytes = new Uint8Array(10);
  const margin = Math.floor(side / 4);
  for (let bit = 0; bit < 80; bit++) {
    const left = (bit % 40) * side;
    const top = Math.floor(bit / 40) * side;
    let sum = 0;
    let n = 0;
    for (let y = top + margin; y < top + side - margin; y++) {
      for (let x = left + margin; x < left + side - margin; x++) {
        const at = 4 * (y * width + x);
        sum += data[at] + data[at + 1] + data[at + 2];
        n += 3;
      }
    }
    if (sum / n > 127.5) bytes[bit >> 3] |= 0x80 >> (bit & 7);
  }
  let crc = 0xffff;
  for (let i = 0; i < 8; i++) {
    crc ^= bytes[i] << 8;
    for (let k = 0; k < 8; k++) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
  }
  if (crc !== ((bytes[8] << 8) | bytes[9])) return null;
  let us = 0;
  for (let i = 0; i < 5; i++) us = us * 256 + bytes[i];
  return { ms: us / 1000, number: (bytes[5] << 16) | (bytes[6] << 8) | bytes[7] };
}

// --- force: picture, sound, rumble ---------------------------------------------------------------------------------

function showForce(force) {
  const size = Math.hypot(...force);
  seen.force = size;
  seen.forces.push(size);
  if (seen.forces.length > 256) seen.forces.shift();
  $("newton").textContent = `${size.toFixed(2)} N`;
  const { width, height } = gauge.canvas;
  const top = Math.max(1, ...seen.forces);
  gauge.clearRect(0, 0, width, height);
  gauge.strokeStyle = "#d9541e";
  gauge.beginPath();
  seen.forces.forEach((f, i) => gauge.lineTo(i, height - 2 - (height - 4) * (f / top)));
  gauge.stroke();
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
  return [performance.now() - stamp + (seen.trip || 0) / 2, hand.x, hand.y, hand.z, hand.button, hand.wheel];
}

function moved(events) {
  const points = events.map((event) => {
    place(event);
    hand.button = event.buttons & 1;
    return point(event.timeStamp);
  });
  sendPoints(points);
}

function sendPoints(points) {
  seen.events += points.length;
  $("events").textContent = seen.events;
  $("hand").style.left = `${50 + 50 * hand.x}%`;
  $("hand").style.top = `${50 - 50 * hand.y}%`;
  send({ k: "hand", p: points.slice(-256) });
}

const coalesced = (event) => {
  const list = event.getCoalescedEvents ? event.getCoalescedEvents() : [];
  return list.length ? list : [event];
};
stage.addEventListener("onpointerrawupdate" in window ? "pointerrawupdate" : "pointermove", (e) => moved(coalesced(e)));
stage.addEventListener("pointerdown", (e) => {
  stage.setPointerCapture(e.pointerId);
  moved([e]);
});
stage.addEventListener("pointerup", (e) => moved([e]));
stage.addEventListener("wheel", (e) => {
  e.preventDefault();
  hand.wheel += Math.sign(e.deltaY);
  sendPoints([point(e.timeStamp)]);
}, { passive: false });

const keys = new Set();
addEventListener("keydown", (e) => keys.add(e.code));
addEventListener("keyup", (e) => keys.delete(e.code));
addEventListener("blur", () => keys.clear());

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
  if (push.some((v) => v) || (keys.size && button !== hand.button) || (pad && button !== hand.button && button > 0)) {
    [hand.x, hand.y, hand.z] = [hand.x, hand.y, hand.z].map((v, i) => clamp(v + push[i] * step));
    hand.button = button;
    sendPoints([point(now)]);
  }
  requestAnimationFrame(tick);
}

setInterval(() => send({ k: "ping", t: performance.now() }), 250);
connect();
requestAnimationFrame(tick);
