// The page of a run that goes on: messages of server.py in, events out.
// @ts-check
/* global uPlot */

const $ = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id));
const PALETTE = ["#0072B2", "#D55E00", "#009E73", "#8E4B87", "#B07D00", "#7a7a7a", "#56B4E9", "#CC79A7"];
const HEIGHT = 170;
const SVG = "http://www.w3.org/2000/svg";

/** @type {any} */ let plan = null;
/** @type {any} */ let curves = null;
let steered = false, why = "", paused = false, over = false;
/** @type {Map<string, (told: any) => void>} */
const waiting = new Map();
/** @type {any[]} */ const charts = [];
/** @type {string[]} */ const byHand = [];
/** @type {Map<string, any>} */ const byLink = new Map();
/** @type {{t: number, text: string, bad?: boolean}[]} */ const said = [];
let now_s = 0;

const socket = new WebSocket(`ws://${location.host}/live${location.search}`);
socket.onopen = () => state("waiting for the run", false);
socket.onclose = () => { if (!over) state("no connection", false); };
socket.onmessage = (message) => {
  const told = JSON.parse(message.data);
  const act = /** @type {Record<string, (told: any) => void>} */ ({ plan: onPlan, steered: onSteered, bins: onBins, now: onNow, asked: onAsked, over: onOver })[told.k];
  if (act) act(told);
};

function state(/** @type {string} */ text, /** @type {boolean} */ on) {
  $("state-text").textContent = text;
  $("state").classList.toggle("on", on);
}

function element(/** @type {string} */ name, /** @type {Record<string, any>} */ keys = {}, /** @type {any[]} */ ...inside) {
  const made = /** @type {any} */ (document.createElement(name));
  for (const [key, value] of Object.entries(keys)) key in made ? (made[key] = value) : made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

function drawn(/** @type {string} */ name, /** @type {Record<string, any>} */ keys, /** @type {string} */ text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(keys)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

const ms = (/** @type {number} */ v) => (v < 9.95 ? v.toFixed(2) : v < 99.5 ? v.toFixed(1) : v.toFixed(0));
const rate = (/** @type {number} */ bps) => (bps >= 1e6 ? `${+(bps / 1e6).toPrecision(3)} Mbit/s` : `${+(bps / 1e3).toPrecision(3)} kbit/s`);

/** Colours of causes; others have that of components. @type {Record<string, string>} */
const CAUSES = { queueing: "wait", serialisation: "wire", propagation: "wire", radio: "again", retransmission: "again", held: "again" };

// ---------------------------------------------------------------- plan

function onPlan(/** @type {any} */ told) {
  plan = told.plan;
  document.title = `${plan.name} · tcpsbed studio`;
  $("name").textContent = plan.name;
  $("facts").textContent = `${plan.duration_ns / 1e9} s · seed ${plan.seed}`;
  state("live", true);
  curves = { width_s: 0.1, generation: -1, bins: 0 };
  drawPath();
  drawCharts();
}

/** Links without their direction, with both numbers in the plan. */
function bothWays() {
  /** @type {Map<string, {name: string, at: number[], link: any}>} */
  const found = new Map();
  plan.network.links.forEach((/** @type {any} */ link, /** @type {number} */ at) => {
    const name = link.name.replace(/\.(forward|backward)$/, "");
    const one = found.get(name) ?? { name, at: [], link };
    one.at.push(at);
    found.set(name, one);
  });
  return [...found.values()];
}

// ---------------------------------------------------------------- path

/** Vertices in columns by their distance from the first node, edges between them. */
function drawPath() {
  const { vertices, links } = plan.network;
  const distance = vertices.map(() => Infinity);
  distance[0] = 0;
  for (let round = 0; round < vertices.length; round++)
    for (const { from, to } of links) distance[to] = Math.min(distance[to], distance[from] + 1);
  const far = Math.max(...distance.filter(Number.isFinite), 0);
  const column = distance.map((/** @type {number} */ d) => (Number.isFinite(d) ? d : far + 1));
  /** @type {number[]} */ const filled = [];
  const place = vertices.map((/** @type {string} */ _, /** @type {number} */ v) => {
    const row = (filled[column[v]] = (filled[column[v]] ?? -1) + 1);
    return { x: 2 + column[v] * 290, y: 6 + row * 84 };
  });
  const width = Math.max(...column) * 290 + 136, height = Math.max(...filled.map((n) => n + 1)) * 84 - 20;
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, style: `width:100%;min-width:${Math.min(width, 620)}px;max-width:${width}px`, role: "img", "aria-label": `Network of ${vertices.length} nodes and ${bothWays().length} links` });
  for (const { name, at, link } of bothWays()) {
    const [a, b] = [place[link.from], place[link.to]].sort((p, q) => p.x - q.x || p.y - q.y);
    const [x1, y1, x2, y2] = a.x === b.x ? [a.x + 65, a.y + 50, b.x + 65, b.y] : [a.x + 130, a.y + 25, b.x, b.y + 25];
    svg.append(drawn("line", { x1, y1, x2, y2, stroke: "var(--line)", "stroke-width": 3, id: `edge-${at[0]}` }));
    const steep = y1 !== y2, near = steep ? { x: x2 - 8, "text-anchor": "end" } : { x: (x1 + x2) / 2, "text-anchor": "middle" };
    svg.append(drawn("text", { ...near, class: "s", y: (steep ? y2 : y1) - 8, id: `name-${at[0]}` }, name), drawn("text", { ...near, class: "s", y: (steep ? y2 : y1) + 16, id: `told-${at[0]}` }, settings(link)));
  }
  vertices.forEach((/** @type {string} */ name, /** @type {number} */ v) => {
    const { x, y } = place[v], here = plan.nodes.findIndex((/** @type {any} */ n) => n.name === name);
    const inside = plan.components.filter((/** @type {any} */ c) => c.node === here && here >= 0).map((/** @type {any} */ c) => c.name);
    const box = drawn("g", {});
    box.append(drawn("rect", { x, y, width: 130, height: 50, rx: 9, fill: "var(--faint)", stroke: here >= 0 ? "var(--component)" : "var(--line)" }));
    box.append(drawn("text", { x: x + 65, y: y + 21, "text-anchor": "middle", style: "font-weight:600" }, name));
    box.append(drawn("text", { x: x + 65, y: y + 38, "text-anchor": "middle", class: "s" }, here < 0 ? "router" : inside.length > 1 ? `${inside.length} components` : inside[0] ?? "node"));
    box.append(drawn("title", {}, [name, ...inside].join("\n")));
    svg.append(box);
  });
  $("path").replaceChildren(svg);
}

/** Rate, delay and loss of a link, as set last. */
function settings(/** @type {any} */ link) {
  const { rate: by, delay, loss, up } = /** @type {any} */ (byLink.get(link.name.replace(/\.(forward|backward)$/, "")) ?? {});
  const told = [by ?? (link.rate_bps && rate(link.rate_bps)), delay ?? (link.delay_ns && `${ms(link.delay_ns / 1e6)} ms`), loss && !loss.startsWith("0 ") && `loses ${loss}`];
  return up === false ? "cut" : told.filter(Boolean).join(", ");
}

/** A queue that fills makes its link thick and red. */
function fillPath() {
  for (const { name, at, link } of bothWays()) {
    const edge = $(`edge-${at[0]}`), limit = link.queue?.limit_bytes;
    if (!edge || !limit) continue;
    const waits = Math.max(...at.map((l) => last(curves.queued_bytes?.[l]) ?? 0));
    const share = Math.min(waits / limit, 1);
    edge.setAttribute("stroke-width", `${3 + 9 * share}`);
    edge.setAttribute("stroke", share > 0.9 ? "var(--lost)" : share > 0.05 ? "var(--link)" : "var(--line)");
    $(`name-${at[0]}`).textContent = `${name}: ${(waits / 1e3).toFixed(1)} of ${+(limit / 1e3).toPrecision(3)} kB wait`;
  }
}

const last = (/** @type {any[]|undefined} */ list) => list?.findLast((v) => v !== null);

// ---------------------------------------------------------------- curves

const KEYS = ["mean_ms", "least_ms", "most_ms", "rate_bps", "sent", "delivered", "queued_bytes"];

function onBins(/** @type {any} */ told) {
  if (!curves) return;
  if (told.generation !== curves.generation) curves = { generation: told.generation };
  for (const key of KEYS)
    curves[key] = told[key].map((/** @type {any[]} */ more, /** @type {number} */ i) => [...(curves[key]?.[i] ?? []).slice(0, told.first), ...more]);
  curves.width_s = told.width_s;
  curves.bins = told.first + (told.mean_ms[0]?.length ?? 0);
  if (!paused) redraw();
}

/** The charts: one a flow for its delay, one for rates, one for queues that there are. */
function drawCharts() {
  $("charts").replaceChildren();
  charts.length = 0;
  const flows = plan.flows.map((/** @type {any} */ f) => f.name);
  flows.forEach((/** @type {string} */ name, /** @type {number} */ f) =>
    chart(`Delay of ${name} (ms): mean, minimum to maximum`, [
      { label: "largest", paint: PALETTE[f % 8], soft: true, of: () => curves.most_ms?.[f] },
      { label: "mean", paint: PALETTE[f % 8], of: () => curves.mean_ms?.[f] },
      { label: "least", paint: PALETTE[f % 8], soft: true, of: () => curves.least_ms?.[f] },
    ]));
  chart("Rate delivered (kbit/s)", flows.map((/** @type {string} */ label, /** @type {number} */ f) => ({ label, paint: PALETTE[f % 8], of: () => curves.rate_bps?.[f]?.map((/** @type {number} */ v) => v / 1e3) })));
  const queues = plan.network.links.map((/** @type {any} */ link, /** @type {number} */ at) => ({ link, at })).filter((/** @type {any} */ q) => q.link.queue);
  if (queues.length) chart("Queue (kB, largest)", queues.map((/** @type {any} */ q, /** @type {number} */ n) => ({ label: q.link.name, paint: PALETTE[n % 8], of: () => curves.queued_bytes?.[q.at]?.map((/** @type {any} */ v) => v && v / 1e3) })));
}

function chart(/** @type {string} */ title, /** @type {any[]} */ lines) {
  const figure = element("figure", {}, element("figcaption", { textContent: title }));
  $("charts").append(figure);
  const ink = getComputedStyle(document.body).getPropertyValue("color");
  const axis = { stroke: ink, grid: { stroke: "#8884", width: 1 }, ticks: { stroke: "#8884" }, font: "11px system-ui" };
  const made = { lines, zoomed: false, plot: /** @type {any} */ (null) };
  const options = {
    width: Math.max(figure.clientWidth, 280), height: HEIGHT,
    cursor: { sync: { key: "studio" }, drag: { x: true, y: false } },
    scales: { x: { time: false }, y: { range: (/** @type {any} */ _, /** @type {number} */ lo, /** @type {number} */ hi) => [Math.min(0, lo ?? 0), hi ? hi * 1.05 : 1] } },
    axes: [{ ...axis, size: 28, values: (/** @type {any} */ _, /** @type {number[]} */ at) => at.map((t) => `${+t.toFixed(3)} s`) }, { ...axis, size: 48 }],
    legend: { show: lines.length > 1 && !lines[0].soft },
    series: [{ label: "s" }, ...lines.map((l) => ({ label: l.label, stroke: l.paint, width: l.soft ? 0.6 : 1.5, alpha: l.soft ? 0.6 : 1, points: { show: false }, spanGaps: true, value: (/** @type {any} */ _, /** @type {any} */ v) => (v == null ? "–" : (+v).toPrecision(4)) }))],
    bands: lines[0].soft ? [{ series: [1, 3], fill: lines[0].paint + "2b" }] : [],
    hooks: { setSelect: [() => { made.zoomed = true; }], draw: [marks] },
  };
  // @ts-ignore
  made.plot = new uPlot(options, [[], ...lines.map(() => [])], figure);
  made.plot.over.addEventListener("dblclick", () => { made.zoomed = false; redraw(); });
  new ResizeObserver(() => made.plot.setSize({ width: Math.max(figure.clientWidth, 280), height: HEIGHT })).observe(figure);
  charts.push(made);
}

/** Events as dashed lines. */
function marks(/** @type {any} */ plot) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.setLineDash([4, 4]);
  ctx.strokeStyle = getComputedStyle(document.body).color;
  ctx.globalAlpha = 0.45;
  for (const { t } of said) {
    const x = plot.valToPos(t, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
  }
  ctx.restore();
}

function redraw() {
  if (!curves?.bins) return;
  const x = Array.from({ length: curves.bins }, (_, i) => +((i + 0.5) * curves.width_s).toFixed(3));
  for (const { plot, lines, zoomed } of charts) plot.setData([x, ...lines.map((/** @type {any} */ l) => l.of() ?? x.map(() => null))], !zoomed);
  fillPath();
}

// ---------------------------------------------------------------- now

function onNow(/** @type {any} */ told) {
  now_s = told.t_s;
  $("clock").textContent = `${told.t_s.toFixed(1)} s of ${plan.duration_ns / 1e9} s`;
  for (const { t_s, number } of told.events) {
    const name = plan.events[number]?.name ?? byHand[number - plan.events.length] ?? `event ${number}`;
    if (!said.some((s) => s.t === t_s && s.text === name)) note(name, t_s);
  }
  if (paused) return;
  const longest = Math.max(...told.flows.map((/** @type {any} */ f) => f.mean_ms ?? 0), 1e-6);
  $("fall").replaceChildren(...told.flows.map((/** @type {any} */ f) => bar(f, longest)));
  sentence(told.flows);
  health(told);
}

function bar(/** @type {any} */ flow, /** @type {number} */ longest) {
  const parts = flow.parts.filter((/** @type {any} */ p) => p.ms > 0).map((/** @type {any} */ p) => {
    const share = p.ms / flow.mean_ms;
    return element("i", { className: p.what, style: `width:${(100 * share).toFixed(2)}%`, title: `${p.name}: ${ms(p.ms)} ms, ${(100 * share).toFixed(1)} %`, textContent: share > 0.18 ? p.name.replace(" -> ", " → ") : "" });
  });
  const told = flow.mean_ms === undefined ? "–" : `${ms(flow.mean_ms)} ms`;
  const long = `width:${(100 * (flow.mean_ms ?? 0)) / longest}%`;
  const bars = [element("div", { className: "bar", style: long }, ...parts)];
  if (flow.causes.length) bars.push(element("div", { className: "bar causes", style: long }, ...causes(flow)));
  return element("div", { className: "row" }, element("b", { textContent: flow.name, title: flow.name }), element("span", { textContent: told }), element("div", {}, ...bars));
}

/** The same delay by cause: virtual time knows it for every sample. */
function causes(/** @type {any} */ flow) {
  const whole = flow.causes.reduce((/** @type {number} */ sum, /** @type {any} */ c) => sum + c.ms, 0);
  $("causes").hidden = false;
  return flow.causes.map((/** @type {any} */ c) => element("i", { className: CAUSES[c.name] ?? "component", style: `width:${((100 * c.ms) / whole).toFixed(2)}%`, title: `${c.name}: ${ms(c.ms)} ms, ${((100 * c.ms) / whole).toFixed(1)} %`, textContent: c.ms / whole > 0.18 ? c.name : "" }));
}

function sentence(/** @type {any[]} */ flows) {
  const known = flows.filter((f) => f.mean_ms !== undefined);
  if (!known.length) { $("sentence").textContent = "Nothing arrived in the last 2 s."; return; }
  const worst = known.reduce((a, b) => (b.p99_ms > a.p99_ms ? b : a));
  const parts = worst.causes.length ? worst.causes : worst.parts, whole = parts.reduce((/** @type {number} */ sum, /** @type {any} */ p) => sum + p.ms, 0);
  const part = parts.reduce((/** @type {any} */ a, /** @type {any} */ b) => (b.ms > (a?.ms ?? 0) ? b : a), null);
  const lost = flows.filter((f) => f.loss > 0.0005);
  const about = part ? `${((100 * part.ms) / whole).toFixed(0)} % of the delay of ${worst.name} is ${part.name.replace(" -> ", " → ")}` : `${worst.name} takes ${ms(worst.mean_ms)} ms`;
  $("sentence").textContent = `${about}; ${lost.length ? lost.map((f) => `${(100 * f.loss).toFixed(1)} % of ${f.name} is lost`).join(", ") : "nothing is lost"}.`;
  const tile = (/** @type {string} */ value, /** @type {string} */ what) => element("div", {}, element("strong", { textContent: value }), element("small", { textContent: what }));
  $("big").replaceChildren(...known.slice(0, 4).map((f) => tile(`${ms(f.p99_ms)} ms`, `${f.name}, p99`)));
}

function health(/** @type {any} */ told) {
  const line = (/** @type {boolean} */ good, /** @type {string} */ text) => element("li", {}, element("span", { className: good ? "ok" : "bad", textContent: good ? "ok" : "!" }), text);
  const gaps = told.gaps.slice(-3).map((/** @type {any[]} */ [t, node, long]) => line(false, `${node} stalled for ${ms(long)} ms at ${t.toFixed(1)} s`));
  const rows = line(!told.left_out, told.left_out ? `${told.left_out} of ${told.rows + told.left_out} rows not shown: this page's process was too slow` : `all ${told.rows} rows shown`);
  $("health").replaceChildren(...(gaps.length ? gaps : [line(true, "no node stalled over 1 ms")]), rows);
}

function note(/** @type {string} */ text, /** @type {number} */ t, bad = false) {
  said.push({ t, text, bad });
  $("events").replaceChildren(...said.slice(-40).reverse().map((s) => element("li", {}, element("time", { textContent: `${s.t.toFixed(2)} s` }), element("span", { textContent: s.text, className: s.bad ? "bad" : "" }))));
}

// ---------------------------------------------------------------- steering

function onSteered(/** @type {any} */ told) {
  [steered, why] = [told.by, told.why];
  $("why").hidden = steered;
  $("save").href = `/scenario.toml${location.search}`;
  $("save").hidden = !steered;
  $("why").textContent = why;
  $("links").replaceChildren(...(steered ? bothWays().map(sliders) : []));
}

/** Sliders of a link; both directions take what they say. */
function sliders(/** @type {{name: string, link: any}} */ { name, link }) {
  const box = element("div", { className: "linkbox" }, element("b", { textContent: name }));
  const add = (/** @type {string} */ key, /** @type {number} */ value, /** @type {number} */ least, /** @type {number} */ most, /** @type {number} */ step, /** @type {(v: number) => string} */ shown, /** @type {(v: number) => any} */ said) => {
    const out = element("output", { textContent: shown(value) });
    const input = element("input", { type: "range", min: least, max: most, step, value, "aria-label": `${key} of ${name}` });
    input.oninput = () => { out.textContent = shown(+input.value); };
    input.onchange = () => ask({ link: name, [key]: said(+input.value) }, `${name}: ${key} ${shown(+input.value)}`);
    box.append(element("label", { className: "slide" }, element("span", { className: "soft", textContent: key }), input, out));
  };
  const in_ms = (/** @type {number} */ v) => `${ms(v)} ms`;
  add("delay", (link.delay_ns ?? 0) / 1e6, 0, 300, 0.5, in_ms, (v) => `${v} ms`);
  add("loss", 100 * (link.loss?.share ?? 0), 0, 30, 0.1, (v) => `${v.toFixed(1)} %`, (v) => `${v} %`);
  if (link.rate_bps) add("rate", Math.log10(link.rate_bps), 4, 9, 0.02, (v) => rate(10 ** v), (v) => `${Math.round(10 ** v)} bit/s`);
  const cut = element("button", { type: "button", textContent: "Cut", "aria-pressed": "false" });
  cut.onclick = () => {
    const down = cut.getAttribute("aria-pressed") !== "true";
    ask({ link: name, up: !down }, `${name} ${down ? "cut" : "restored"}`, () => { cut.setAttribute("aria-pressed", `${down}`); cut.textContent = down ? "Restore" : "Cut"; });
  };
  box.append(element("div", { className: "acts" }, cut));
  return box;
}

export function ask(/** @type {any} */ event, /** @type {string} */ text, /** @type {() => void} */ done = () => {}) {
  const id = crypto.randomUUID();
  waiting.set(id, (told) => {
    if (told.refused) note(`${text}: refused: ${told.refused}`, now_s, true);
    else done();
  });
  socket.send(JSON.stringify({ k: "event", id, event: { ...event, name: `${text} (by hand)` } }));
}

function onAsked(/** @type {any} */ told) {
  if (!told.refused) {
    byHand.push(told.event.name);
    byLink.set(told.event.link, { ...byLink.get(told.event.link), ...told.event });
    for (const { name, at, link } of bothWays()) if (name === told.event.link) $(`told-${at[0]}`).textContent = settings(link);
  }
  waiting.get(told.id)?.(told);
  waiting.delete(told.id);
}

// ---------------------------------------------------------------- end

function onOver(/** @type {any} */ told) {
  over = true;
  state("over", false);
  for (const input of document.querySelectorAll("#links input, #links button")) /** @type {any} */ (input).disabled = true;
  for (const text of [...told.errors, ...told.disturbances]) note(text, now_s, true);
  $("report").href = `/report${location.search}`;
  $("report").hidden = false;
}

$("pause").onclick = () => {
  paused = !paused;
  $("pause").textContent = paused ? "Resume view" : "Pause view";
  if (!paused) redraw();
};
