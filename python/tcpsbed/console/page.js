// The console's own page: readings beside the picture, a study, a headset. The hand and the pictures are in hand.js.
"use strict";

import { hand, operate, seen, send, tone } from "./hand.js";
import { studied } from "./study.js";
import { offerHeadset, wear } from "./xr.js";

const $ = (id) => document.getElementById(id);
const gauge = $("gauge").getContext("2d");
const stage = $("stage");
Object.assign(window, { seen, hand }); // for whoever looks at the page from outside
let loudness = () => {};

operate({
  host: location.host, token: new URLSearchParams(location.search).get("token"),
  stage, picture: $("picture"), mark: $("mark"),
  state: say, told, felt: (size) => loudness(size), pad: (name) => { $("pad").textContent = name.slice(0, 24); }, wear, draw: show,
});
offerHeadset(say);

function say(text, gone) {
  $("state").textContent = text;
  $("state").classList.toggle("gone", gone);
}

function told(message) {
  if (message.k === "study") studied(message, send);
  if (message.k === "trip") {
    write("trip", `${message.ms.toFixed(1)} ms`);
    if (seen.took) write("took", `${seen.took[0].toFixed(1)} (${seen.took[1].toFixed(1)}) ms`);
  }
}

$("sound").onclick = () => {
  loudness = tone();
  $("sound").disabled = true;
};

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
