// @ts-check
// The page of a run that goes on: messages of server.py in, events out. Each panel is a module that asks for its messages (run.js).

import { $, element } from "./dom.js";
import "./bins.js";
import "./links.js";
import "./path.js";
import { span } from "./waterfall.js";
import "./events.js";
import "./curves.js";
import "./overview.js";
import "./health.js";
import "./plots.js";
import "./theme.js";
import "./beside.js";
import { load as loadPresets } from "./steering.js";
import { load as loadTerms } from "./terms.js";
import { poll, talks } from "./poll.js";
import { connect, on, run, tell } from "./run.js";

/** A run whose plan is this long, ns, ends when somebody ends it. */
const OPEN_NS = 1e15;
const length = (/** @type {any} */ plan) => (plan.duration_ns < OPEN_NS ? `${plan.duration_ns / 1e9} s` : "");

/** @param {string} text @param {boolean} live */
function state(text, live = false) {
  $("state-text").textContent = text;
  $("state").classList.toggle("on", live);
}

on("open", () => state("waiting for the run"));
on("closed", ({ again }) => {
  state(run.over ? "over; this page's server has ended" : again ? "connection lost; connecting again …" : "no connection: the run's process has ended");
  $("report").hidden = true;
});
on("plan", ({ plan }) => {
  document.title = `${plan.name} · tcpsbed studio`;
  $("name").textContent = plan.name;
  $("facts").textContent = [`seed ${plan.seed}`, length(plan)].filter(Boolean).join(" · ");
  state("live", true);
});
on("now", ({ t_s, partial }) => {
  $("span").textContent = `${span()}${partial ? ", incomplete: this page is too slow to show all of it" : ""}`;
  $("clock").textContent = [`${t_s.toFixed(1)} s`, length(run.plan)].filter(Boolean).join(" of ");
  $("progress").style.width = `${Math.min((100 * t_s * 1e9) / run.plan.duration_ns, 100)}%`;
});
on("over", ({ report = true }) => {
  state("over");
  $("report").href = `/report${location.search}`;
  $("report").hidden = !report;
  finish();
});

/** The page becomes its report: the tables and distributions come, the sliders go. */
async function finish() {
  const told = await fetch(`more.json${location.search}`).catch(() => null);
  if (!told?.ok) return;
  const more = await told.json();
  if (more.refused) return $("banners").replaceChildren(element("div", { className: "banner doubt" }, element("strong", {}, "The tables of this run cannot be read"), element("p", {}, more.refused)));
  for (const [place, inside] of Object.entries(more.html)) $(place).innerHTML = inside; // made by this page's server, names escaped
  document.documentElement.classList.add("over");
  tell(more);
}

$("pause").onclick = () => {
  run.paused = !run.paused;
  $("pause").textContent = run.paused ? "Resume view" : "Pause view";
  $("pause").setAttribute("aria-pressed", `${run.paused}`);
  if (!run.paused && run.now) tell(run.now);
};

const MUTE = "This browser has no WebSocket: the page shows the run, with a new look every 2 s, and changes nothing.";

/** As `connect`, for a browser without WebSocket. */
function look() {
  tell({ k: "open" });
  poll((told) => tell(told.k === "steered" ? { ...told, by: false, why: MUTE } : told), () => tell({ k: "closed" }));
}

loadTerms().then(talks ? connect : look).then(loadPresets);
