// @ts-check
// The start page: cards of scenarios, the folder of runs. Messages of gallery.py in, wishes out.

import { $, button, element } from "./dom.js";

/** @typedef {{name: string, line: string, command: string, startable: boolean}} Card */
/** @typedef {{folder: string, scenario: string, world: string, seed: number | null, duration_s: number | null, ended: number, verdict: string, shown: boolean}} Run */

/** @type {{title: string, cards: Card[]}[]} */ let shelves = [];
/** @type {Run[]} */ let runs = [];
/** What was asked for and has no answer yet. @type {Set<string>} */ const waiting = new Set();

const socket = new WebSocket(`ws://${location.host}/live${location.search}`);
socket.onclose = () => { $("state").textContent = "no connection: is the command still running?"; };
socket.onmessage = (message) => {
  const told = JSON.parse(message.data);
  if (told.k === "shelves") shelves = told.shelves;
  if (told.k === "runs") { runs = told.rows; $("folder").textContent = `in ${told.folder}`; }
  if (told.k === "started") onStarted(told);
  draw();
};

/** @param {{id: string, address?: string, refused?: string}} told */
function onStarted(told) {
  waiting.delete(told.id);
  $("state").textContent = "";
  if (told.address) location.href = told.address;
  $("wrong").textContent = told.refused ?? "";
  $("wrong").hidden = !told.refused;
  if (told.refused) $("wrong").scrollIntoView({ block: "nearest" });
}

/** @param {Record<string, string>} wish @param {string} what */
function ask(wish, what) {
  const id = crypto.randomUUID();
  waiting.add(id);
  $("state").textContent = `starting ${what} …`;
  $("wrong").hidden = true;
  socket.send(JSON.stringify({ ...wish, id }));
  draw();
}

/** Whether each word of the search is in a text. @param {string} text */
const wanted = (text) => $("search").value.toLowerCase().split(/\s+/).every((/** @type {string} */ word) => text.toLowerCase().includes(word));

function draw() {
  const cards = shelves.map(({ title, cards }, n) => {
    const found = cards.filter((card) => wanted(`${title} ${card.name} ${card.line}`)).map(drawCard);
    return found.length ? element("section", { "aria-labelledby": `shelf-${n}` }, element("h2", { id: `shelf-${n}` }, title), element("div", { className: "cards" }, ...found)) : "";
  });
  replace($("shelves"), cards, "No scenario has these words.");
  replace($("runs"), runs.filter((run) => wanted(`${run.folder} ${run.scenario} ${run.world} ${run.verdict}`)).map(drawRun), runs.length ? "No run has these words." : "No runs yet: start a scenario.");
}

/** Redraws a place, unless nothing is in it; keeps the focus. @param {any} place @param {(Node | string)[]} inside @param {string} empty */
function replace(place, inside, empty) {
  const at = document.activeElement?.getAttribute("data-at");
  const shown = inside.filter((one) => one !== "");
  place.replaceChildren(...(shown.length ? shown : [element("p", { className: "soft" }, empty)]));
  if (at) /** @type {any} */ (document.querySelector(`[data-at="${CSS.escape(at)}"]`))?.focus();
}

/** @param {Card} card */
function drawCard(card) {
  const start = (/** @type {string} */ world, /** @type {string} */ text, /** @type {string} */ about) =>
    button(text, () => ask({ k: "start", card: card.name, world }, card.name), { disabled: waiting.size > 0, title: about, "data-at": `${card.name} ${world}`, "aria-label": `${card.name}: ${text}` });
  const acts = card.startable ? [start("virtual", "Virtual time", "as on a clock, simulated: nothing disturbs it"), start("real", "On sockets", "on this machine's network stack")] : [];
  return element("article", { className: "card" }, element("h3", {}, card.name), element("p", {}, card.line), element("code", {}, card.command), ...(acts.length ? [element("div", { className: "acts" }, ...acts)] : []));
}

/** @param {Run} run */
function drawRun(run) {
  const facts = [run.world, run.duration_s === null ? "" : `${+run.duration_s.toPrecision(3)} s`, run.seed === null ? "" : `seed ${run.seed}`, new Date(1000 * run.ended).toLocaleString()];
  const good = run.verdict === "ok";
  const head = element("div", {}, element("b", {}, run.scenario || run.folder), " ", element("span", { className: good ? "ok" : "bad" }, run.verdict));
  const about = element("span", { className: "soft", title: run.folder }, facts.filter(Boolean).join(" · "));
  const show = run.shown ? button("Show", () => ask({ k: "show", folder: run.folder }, run.folder), { disabled: waiting.size > 0, "data-at": run.folder, "aria-label": `Show ${run.folder}` }) : element("span", {});
  return element("div", { className: "run" }, head, show, about);
}

$("search").oninput = draw;
