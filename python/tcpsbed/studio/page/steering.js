// @ts-check
// Changes by hand: sliders and presets of a link, what runs and lives, and who may change it.

import { $, button, counted, element, percent, rate, short } from "./dom.js";
import { ask } from "./events.js";
import { meanJitter, named, settings, switches } from "./links.js";
import { bothWays, may, on, run, send } from "./run.js";
import { save } from "./save.js";

/**
 * `queue` is a limit as a scenario has it; `jitter` a distribution, absent: exponential with the mean `jitter_ms`.
 * @typedef {{rate_bps: number | null, delay_ms: number, jitter_ms: number | null, jitter?: any, loss: number, queue: string | null}} Way
 * @typedef {{name: string, about: string, forward: Way, backward: Way, not_set: string[]}} Preset
 */
/** @type {Preset[]} */ let presets = [];
let steered = false, chosen = "";

/** Sliders, from 0 to 100, logarithmic above a least value below which there is 0. */
const SCALES = {
  delay: { least: 0.1, most: 1000, unit: "ms", of: (/** @type {any} */ s) => s.delay_ms, event: (/** @type {number} */ v) => `${v} ms`, zero: true },
  loss: { least: 0.01, most: 50, unit: "%", of: (/** @type {any} */ s) => 100 * s.loss, event: (/** @type {number} */ v) => `${v} %`, zero: true },
  jitter: { least: 0.1, most: 1000, unit: "ms", of: (/** @type {any} */ s) => s.jitter_ms, event: (/** @type {number} */ v) => exponential(v), zero: true },
  rate: { least: 0.01, most: 1000, unit: "Mbit/s", of: (/** @type {any} */ s) => (s.rate_bps ? s.rate_bps / 1e6 : null), event: (/** @type {number} */ v) => `${Math.round(v * 1e6)} bit/s`, zero: false },
};

/** The limit of a queue, in the unit in which the link has it. */
const LIMITS = {
  limit_packets: { least: 1, most: 10000, unit: "packets", of: (/** @type {any} */ s) => s.limit_packets, event: (/** @type {number} */ v) => `${Math.max(Math.round(v), 1)} packets`, zero: false },
  limit_bytes: { least: 1, most: 10000, unit: "kB", of: (/** @type {any} */ s) => (s.limit_bytes ? s.limit_bytes / 1e3 : null), event: (/** @type {number} */ v) => `${Math.max(Math.round(1e3 * v), 1)} B`, zero: false },
};
const scales = () => ({ ...SCALES, queue: LIMITS[settings[here()?.at[0] ?? 0]?.limit_bytes ? "limit_bytes" : "limit_packets"] });
/** Extra delay of packets with this mean, as an event has it. @param {number} ms */
const exponential = (ms) => ({ kind: "exponential", mean: `${ms} ms` });

/** Where a scale begins: below lies 0, where it may be that. @param {any} scale */
const first = (scale) => (scale.zero ? 1 : 0);
/** @param {any} scale @param {number | null} value */
const position = (scale, value) => (value === null ? 100 : value < scale.least ? 0 : Math.min(first(scale) + ((100 - first(scale)) * Math.log(value / scale.least)) / Math.log(scale.most / scale.least), 100));
/** @param {any} scale @param {number} at */
const value_at = (scale, at) => (at < first(scale) ? 0 : +(scale.least * (scale.most / scale.least) ** ((at - first(scale)) / (100 - first(scale)))).toPrecision(at >= 100 ? 4 : 2));

export async function load() {
  try {
    presets = await (await fetch(`presets.json${location.search}`)).json();
  } catch {
    presets = [];
  }
  if (run.plan) build();
}

on("plan", () => {
  chosen = bothWays().find(({ link }) => link.queue)?.name ?? bothWays()[0]?.name ?? "";
  build();
});
on("steered", (told) => {
  steered = told.by;
  $("why").textContent = told.why;
  $("why").hidden = steered;
  Object.assign($("save"), { onclick: keep, textContent: `Save as ${run.saves}` });
  $("save").hidden = !steered;
  if (run.plan) build();
  control();
});
/** Hands what was done over as a file: by the page itself, as browsers load no file from where the certificate is self-made. */
async function keep() {
  const told = await fetch(`/${run.saves}.toml${location.search}`).catch(() => null), name = run.saves === "profile" ? "profile.toml" : "steered.toml";
  if (told?.ok) save(await told.blob(), name);
  $("save").textContent = told?.ok ? `Saved as ${name}. Save again` : "Not saved: the page's server did not answer. Try again";
}

on("viewers", control);
on("set", () => values());
on("over", () => {
  $("steer").hidden = true;
  document.querySelector("main")?.classList.add("over");
});
on("chosen", ({ name }) => {
  chosen = name;
  build();
  $("link").focus();
});

/** Who steers, and the buttons to take or to hand over control. */
function control() {
  const { you, steers, here, asking, watching } = run.viewers ?? { you: 1, steers: null, here: [1], asking: [], watching: 0 };
  const hand = document.querySelector("#pane") !== null, watched = watching ? ` ${counted(watching, "viewer")} at the other address only ${watching === 1 ? "watches" : "watch"}.` : "";
  $("hand").disabled = !(steered && may());
  const others = here.length > 1 ? ` of ${here.length}` : "";
  /** @type {(Node | string)[]} */ let told;
  if (run.over || !steered) told = [];
  else if (you === null) told = [element("b", {}, "You watch."), ` This address changes nothing. ${steers === null ? "Nobody steers." : `Viewer ${steers} steers.`}`];
  else if (steers === null) told = [`You are viewer ${you}${others}. The first change takes control${hand ? ", and so does the button; the hand does not" : ""}. `, ...(hand ? [button("Take control", () => send({ k: "ask" }))] : [])];
  else if (steers !== you) told = [element("b", {}, `Viewer ${steers} steers.`), ` You are viewer ${you}${others}. `, asking.includes(you) ? "You have asked for control." : button("Ask for control", () => send({ k: "ask" }))];
  else told = [element("b", {}, `You steer`), `${hand ? ", and move the hand" : ""} (viewer ${you}${others}).${watched} `, ...(here.length > 1 ? [button("Let go", () => send({ k: "give", to: null }))] : [])];
  if (steers === you && !run.over) for (const one of asking) told.push(element("p", { className: "asks" }, `Viewer ${one} asks for control. `, button("Hand over", () => send({ k: "give", to: one })), " ", button("Keep", () => send({ k: "keep" }))));
  $("control").replaceChildren(...told);
}

const here = () => bothWays().find(({ name }) => name === chosen);

function build() {
  const link = $("link");
  link.replaceChildren(...bothWays().map(({ name }) => element("option", { value: name, selected: name === chosen }, name)));
  link.onchange = () => { chosen = link.value; build(); };
  $("way").onchange = () => values();
  $("sliders").replaceChildren(...(here() ? Object.entries(scales()).map(([key, scale]) => slider(key, scale)) : []));
  $("acts").replaceChildren(...(here() ? [cut(), button("Cut for 1 s", briefly)] : []));
  $("presets").replaceChildren(...(here() ? [original(), ...presets].map(choice) : []));
  lives();
  values();
}

/** A slider of the chosen link, and the same as a number. @param {string} key @param {any} scale */
function slider(key, scale) {
  const input = element("input", { type: "range", min: 0, max: 100, step: 1, id: `slide-${key}`, "aria-label": `${key} of ${chosen}` });
  const number = element("input", { type: "number", min: 0, max: scale.most, step: "any", id: `number-${key}`, placeholder: "no limit", "aria-label": `${key} of ${chosen} in ${scale.unit}` });
  const set = (/** @type {number} */ v) => change({ [key]: scale.event(v) }, `${key === "jitter" ? "mean jitter" : key} ${v} ${scale.unit}`);
  input.oninput = () => {
    number.value = value_at(scale, +input.value);
    input.setAttribute("aria-valuetext", `${number.value} ${scale.unit}`);
  };
  input.onchange = () => set(value_at(scale, +input.value));
  input.onblur = () => values();
  number.onchange = () => (number.value === "" || !number.checkValidity() ? values() : set(+number.value));
  return element("div", { className: "slide" }, element("span", { className: "soft" }, key), input, number, element("small", { className: "soft" }, scale.unit));
}

/** Sets the chosen link in the chosen direction. @param {Record<string, any>} keys @param {string} text */
async function change(keys, text) {
  const link = here();
  if (!link) return;
  const name = named(link.name, link.at, $("way").value);
  const told = await ask({ link: name, ...keys }, `${name}: ${text}`);
  if (told.refused) values(true);
  return told;
}

function cut() {
  const made = button("Cut", () => change({ up: !settings[here()?.at[0] ?? 0].up }, settings[here()?.at[0] ?? 0].up ? "cut" : "restored"), { id: "cut", className: "danger" });
  return made;
}

/** Two events: their distance is exact, whenever the first takes place. */
async function briefly() {
  const told = await change({ up: false }, "cut for 1 s");
  if (told && !told.refused) change({ up: true, at: `${told.at_ns / 1e9 + 1} s` }, "restored");
}

/** The numbers of the scenario or the profile itself as a preset. @returns {Preset} */
function original() {
  const way = (/** @type {number} */ at) => {
    const link = run.plan.network.links[at];
    const { limit_bytes: bytes, limit_packets: packets } = link.queue ?? {};
    return { rate_bps: link.rate_bps ?? null, delay_ms: (link.delay_ns ?? 0) / 1e6, jitter_ms: meanJitter(link.jitter), jitter: asGiven(link.jitter), loss: link.loss?.p ?? 0, queue: packets ? `${packets} packets` : bytes ? `${bytes} B` : null };
  };
  const [a, b] = here()?.at ?? [0];
  return { name: run.saves, about: "The numbers with which the run began.", forward: way(a), backward: way(b ?? a), not_set: [] };
}

/** A jitter of the plan as an event has it; undefined where it is none or from a file. @param {any} jitter */
function asGiven(jitter) {
  if (!jitter || Object.values(jitter.delay).some((one) => typeof one === "object")) return undefined;
  return { ...Object.fromEntries(Object.entries(jitter.delay).map(([key, value]) => (key.endsWith("_ns") ? [key.slice(0, -3), `${value} ns`] : [key, value]))), reorder: jitter.reorder ?? false };
}

/** Where a link had no limit, it gets the largest rate that a slider has. */
const UNLIMITED_BPS = SCALES.rate.most * 1e6;
const numbers = (/** @type {Way} */ way) => [way.rate_bps ? rate(way.rate_bps) : "no limit", `${short(way.delay_ms)}${way.jitter_ms ? ` + ${short(+way.jitter_ms.toPrecision(2))}` : ""} ms`, percent(+way.loss.toPrecision(2))].map((text) => text.replaceAll(" ", "\u00a0")).join(" · ");

/** A preset with its numbers: one line where both directions have the same. @param {Preset} preset */
function choice(preset) {
  const same = numbers(preset.forward) === numbers(preset.backward);
  const lines = same ? [`⇄\u00a0${numbers(preset.forward)}`] : [`→\u00a0${numbers(preset.forward)}`, `←\u00a0${numbers(preset.backward)}`];
  const left = preset.not_set.length ? ` An event cannot set its ${preset.not_set.join(", ")}.` : "";
  const made = button(preset.name, () => take(preset), { className: "chip preset" });
  made.append(element("span", { className: "unseen" }, ` ${lines.join("; ")}`));
  made.dataset.preset = preset.name;
  const explain = () => explained(preset, lines, left);
  Object.assign(made, { onmouseenter: explain, onfocus: explain });
  return made;
}

/** The numbers of a preset, and its source, below all of them. @param {Preset} preset @param {string[]} lines @param {string} left */
function explained(preset, lines, left) {
  $("told").replaceChildren(element("b", {}, preset.name), ...lines.map((line) => element("span", { className: "line" }, line)), element("small", {}, `${preset.about}${left}`));
}

/** @param {Preset} preset */
function take(preset) {
  const link = here();
  if (!link) return;
  [preset.forward, preset.backward].slice(0, link.at.length).forEach((way, n) => {
    const own = run.plan.network.links[link.at[n]], limited = way.rate_bps !== null || settings[link.at[n]].rate_bps !== null;
    const event = { link: own.name, delay: `${+way.delay_ms.toFixed(4)} ms`, loss: `${+(100 * way.loss).toFixed(4)} %`, jitter: way.jitter ?? exponential(+(way.jitter_ms ?? 0).toFixed(4)), ...(limited ? { rate: `${way.rate_bps ?? UNLIMITED_BPS} bit/s` } : {}), ...(way.queue ? { queue: way.queue } : {}) };
    ask(event, `${own.name}: preset ${preset.name}`);
  });
}

/** Flows, cross traffic and components, each with a switch; of the user's own programs only the cross traffic between them. */
function lives() {
  const traffic = new Map();
  run.plan.network.traffic.forEach((/** @type {any} */ one, /** @type {number} */ at) => traffic.set(one.name.split(".")[0], at));
  const ours = run.saves === "scenario" ? run.plan : { flows: [], components: [] };
  const rows = [
    ["Flows", ours.flows.map((/** @type {any} */ f, /** @type {number} */ at) => toggle("flow", f.name, at, "running"))],
    ["Cross traffic", [...traffic].map(([name, at]) => toggle("traffic", name, at, "running"))],
    ["Components", ours.components.map((/** @type {any} */ c, /** @type {number} */ at) => toggle("component", c.name, at, "alive"))],
  ];
  $("switches").replaceChildren(...rows.filter(([, all]) => all.length).map(([title, all]) => element("div", { role: "group", "aria-label": title }, element("h3", {}, title), element("div", { className: "chips" }, ...all))));
}

/** @param {string} kind @param {string} name @param {number} at @param {string} key */
function toggle(kind, name, at, key) {
  const made = button(name, () => {
    const on_ = made.getAttribute("aria-pressed") !== "true";
    const words = key === "alive" ? ["killed", "restarted"] : ["stopped", "started"];
    ask({ [kind]: name, [key]: on_ }, `${kind} ${name} ${words[+on_]}`);
  }, { className: "chip switch" });
  made.dataset.switch = `${kind} ${at}`;
  return made;
}

/** Puts all controls where the run is, but for a slider that is being moved: earlier positions of it may still take effect. */
function values(all = false) {
  const link = here();
  if (link) {
    const set = settings[$("way").value === "backward" ? link.at.at(-1) ?? 0 : link.at[0]];
    for (const [key, scale] of Object.entries(scales())) {
      const [input, number, value] = [$(`slide-${key}`), $(`number-${key}`), scale.of(set)];
      if (document.activeElement === input && !all) continue;
      if (document.activeElement !== number) number.value = value === null ? "" : +value.toPrecision(4);
      input.value = Math.round(position(scale, value));
      input.setAttribute("aria-valuetext", value === null ? "no limit" : `${number.value} ${scale.unit}`);
    }
    $("cut").textContent = set.up ? "Cut" : "Restore";
    for (const made of /** @type {NodeListOf<any>} */ (document.querySelectorAll("#presets button"))) {
      const before = made.getAttribute("aria-pressed"), now = `${isSet(made.dataset.preset, link.at)}`;
      made.setAttribute("aria-pressed", now);
      if (now === "true" && before !== now) made.onfocus();
    }
  }
  for (const made of document.querySelectorAll("[data-switch]")) made.setAttribute("aria-pressed", `${switches.get(/** @type {any} */ (made).dataset.switch) ?? true}`);
}

/** Whether a link has what a preset gives it. @param {string} name @param {number[]} at */
function isSet(name, at) {
  const preset = name === run.saves ? original() : presets.find((one) => one.name === name);
  return preset && at.every((number, n) => {
    const [way, set] = [n ? preset.backward : preset.forward, settings[number]];
    const bps = set.rate_bps === UNLIMITED_BPS ? null : set.rate_bps;
    return bps === way.rate_bps && Math.abs(set.delay_ms - way.delay_ms) < 1e-3 && Math.abs((set.jitter_ms ?? 0) - (way.jitter_ms ?? 0)) < 1e-3 && Math.abs(set.loss - way.loss) < 1e-5;
  });
}
