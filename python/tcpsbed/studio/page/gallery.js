// @ts-check
// The start page: cards of scenarios, the folder of runs. Messages of gallery.py in, wishes out.

import { $, button, drawn, element, ms, percent, socketAt } from "./dom.js";
import { laidOut } from "./layout.js";
import { poll, talks } from "./poll.js";

/** @typedef {{name: string, line: string, command: string, startable: boolean}} Card */
/** @typedef {{folder: string, scenario: string, world: string, seed: number | null, duration_s: number | null, ended: number, verdict: string, shown: boolean}} Run */

/** @type {{title: string, cards: Card[]}[]} */ let shelves = [];
/** @type {Run[]} */ let runs = [];
/** What was asked for and has no answer yet. @type {Set<string>} */ const waiting = new Set();

/** Networks of cards. @type {Map<string, {places: string[], pairs: number[][], nodes: number}>} */ const networks = new Map();
/** Runs that are marked, at most two. @type {string[]} */ let marked = [];

/** @type {WebSocket | null} */ let socket = null;
const gone = () => void ($("state").textContent = "no connection: is the command still running?");
/** Asks for the drawings of cards that come into sight. */
const sight = new IntersectionObserver((found) => found.forEach(({ isIntersecting, target }) => {
  if (!isIntersecting || socket?.readyState !== 1) return;
  sight.unobserve(target);
  socket.send(JSON.stringify({ k: "draw", card: /** @type {any} */ (target).dataset.draw }));
}));
if (talks) {
  socket = new WebSocket(socketAt("live"));
  socket.onclose = gone;
  socket.onmessage = (message) => take(JSON.parse(message.data));
} else {
  $("state").textContent = "This browser has no WebSocket: start a scenario in a shell, with the command of its card.";
  poll(take, gone);
}

/** @param {any} told */
function take(told) {
  if (told.k === "drawn") return place(told);
  if (told.k === "compared") return pair(told);
  if (told.k === "shelves") shelves = told.shelves;
  if (told.k === "runs") { runs = told.rows; $("folder").textContent = `in ${told.folder}`; }
  if (told.k === "started") onStarted(told);
  draw();
}

/** @param {any} told */
function place(told) {
  networks.set(told.card, told);
  for (const at of /** @type {NodeListOf<any>} */ (document.querySelectorAll("[data-draw]"))) if (at.dataset.draw === told.card) at.replaceChildren(...small(told));
}

/** The path of a scenario, small: filled places run programs. @param {{places: string[], pairs: number[][], nodes: number}} network */
function small({ places, pairs, nodes }) {
  if (!places.length) return [];
  const known = new Set(), links = (pairs.length ? pairs : places.slice(1).map((_, n) => [n, n + 1])).filter(([a, b]) => !known.has(`${a} ${b}`) && !known.has(`${b} ${a}`) && known.add(`${a} ${b}`)).map(([from, to]) => ({ from, to }));
  const { places: at, edges, width, height } = laidOut(places.length, links, places.map(() => 14), { box: 26, step: 58, port: 7, top: 2, below: 14, between: 9 });
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Network of ${places.length} places and ${links.length} links` });
  svg.style.cssText = `width:${width}px;max-width:100%;max-height:84px`;
  svg.append(...edges.map(({ line }) => drawn("path", { d: line, class: pairs.length ? "wire" : "wire any" })), ...at.map(({ x, y }, v) => drawn("g", { class: v < nodes ? "box node" : "box router" }, drawn("title", {}, places[v]), drawn("rect", { x, y, width: 26, height: 14, rx: 4 }))));
  return [svg];
}

/** Two runs side by side: for each flow the numbers of both, and how much the second is above the first. @param {any} told */
function pair(told) {
  if (told.folders.join("\n") !== marked.join("\n")) return; // others are marked by now
  refuse(told);
  if (told.refused) return;
  const shown = (/** @type {string} */ key, /** @type {any} */ v) => (v === null || v === undefined ? "–" : key === "loss" ? percent(v) : key === "delivered" ? `${v}` : ms(v));
  const heads = told.folders.map((/** @type {string} */ folder) => element("th", { scope: "col" }, folder.split("/").at(-1)));
  const rows = told.flows.flatMap((/** @type {{flow: string, numbers: Record<string, any[]>}} */ { flow, numbers }) => [
    element("tr", { className: "of" }, element("th", { scope: "rowgroup", colSpan: 4 }, flow)),
    ...Object.entries(numbers).map(([key, [a, b]]) => element("tr", {}, element("th", { scope: "row" }, key), element("td", {}, shown(key, a)), element("td", {}, shown(key, b)), element("td", { className: "soft" }, a && b !== null && b !== undefined ? `${b >= a ? "+" : "−"}${Math.abs((100 * (b - a)) / a).toFixed(0)} %` : ""))),
  ]);
  $("pair").replaceChildren(element("div", { className: "wide", tabIndex: 0, role: "region", "aria-label": "Two runs side by side" }, element("table", {}, element("caption", { className: "unseen" }, "Two runs side by side"), element("thead", {}, element("tr", {}, element("th", { scope: "col" }, element("span", { className: "unseen" }, "number")), ...heads, element("th", { scope: "col" }, "change"))), element("tbody", {}, ...rows))));
  $("pair").hidden = false;
}

/** Marks a run, or no longer. @param {string} folder @param {boolean} on */
function mark(folder, on) {
  marked = on ? [...marked, folder].slice(-2) : marked.filter((one) => one !== folder);
  $("pair").hidden = $("wrong").hidden = true;
  if (marked.length === 2) socket?.send(JSON.stringify({ k: "compare", id: crypto.randomUUID(), folders: marked }));
  draw();
}

/** @param {{id: string, address?: string, refused?: string}} told */
function onStarted(told) {
  waiting.delete(told.id);
  $("state").textContent = "";
  if (told.address) location.href = told.address;
  refuse(told);
}

/** Says why something was refused, or nothing. @param {{refused?: string}} told */
function refuse({ refused }) {
  $("wrong").textContent = refused ?? "";
  $("wrong").hidden = !refused;
  if (refused) $("wrong").scrollIntoView({ block: "nearest" });
}

/** @param {Record<string, string>} wish @param {string} what */
function ask(wish, what) {
  const id = crypto.randomUUID();
  waiting.add(id);
  $("state").textContent = `starting ${what} …`;
  $("wrong").hidden = true;
  socket?.send(JSON.stringify({ ...wish, id }));
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
  const drawing = element("div", { className: "drawing", "data-draw": card.name }, ...(networks.has(card.name) ? small(/** @type {any} */ (networks.get(card.name))) : []));
  if (!networks.has(card.name)) sight.observe(drawing);
  const acts = card.startable && talks ? [start("virtual", "Virtual time", "as on a clock, simulated: nothing disturbs it"), start("real", "On sockets", "on this machine's network stack")] : [];
  return element("article", { className: "card" }, element("h3", {}, card.name), drawing, element("p", {}, card.line), element("code", {}, card.command), ...(acts.length ? [element("div", { className: "acts" }, ...acts)] : []));
}

/** @param {Run} run */
function drawRun(run) {
  const facts = [run.world, run.seed === null ? "" : `seed ${run.seed}`, run.duration_s === null ? "" : `${+run.duration_s.toPrecision(3)} s`, new Date(1000 * run.ended).toLocaleString()];
  const good = run.verdict === "ok";
  const head = element("div", {}, element("b", {}, run.scenario || run.folder), " ", element("span", { className: good ? "ok" : "bad" }, run.verdict));
  const about = element("span", { className: "soft", title: run.folder }, facts.filter(Boolean).join(" · "));
  const box = run.shown && talks ? element("input", { type: "checkbox", checked: marked.includes(run.folder), "aria-label": `Mark ${run.folder}`, "data-at": `mark ${run.folder}`, onchange: (/** @type {any} */ event) => mark(run.folder, event.target.checked) }) : element("span", {});
  const show = run.shown && talks ? button("Show", () => ask({ k: "show", folder: run.folder }, run.folder), { disabled: waiting.size > 0, "data-at": run.folder, "aria-label": `Show ${run.folder}` }) : element("span", {});
  return element("div", { className: "run" }, box, head, show, about);
}

$("search").oninput = draw;
