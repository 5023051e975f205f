// @ts-check
// A chart as a picture or as numbers: what its window shows, with its title and the names of its lines.

import { button, colour, drawn, element } from "./dom.js";

const HEAD = 24, FOOT = 24, FONT = "system-ui, sans-serif";

/**
 * Buttons that save a chart.
 * @param {string} title @param {any} plot @param {string[]} labels @param {string} x @param {(line: number) => number} [bridge] gap that a line goes over
 * @param {() => void} [draw] draws what is new: the file has the window and the values of the moment at which it is saved
 */
export function saves(title, plot, labels, x, bridge = () => Infinity, draw = () => {}) {
  const name = title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").toLowerCase();
  const drawnNow = async () => {
    draw();
    await new Promise((done) => setTimeout(done)); // uPlot takes a new window after this turn
  };
  const as = (/** @type {string} */ kind, /** @type {() => void} */ act) => button(kind, () => drawnNow().then(act), { className: "plain soft", "aria-label": `Save ${title} as ${kind}` });
  return element("span", { className: "saves" },
    as("PNG", () => png(title, plot, labels).toBlob((/** @type {any} */ blob) => save(blob, `${name}.png`))),
    as("SVG", () => save(new Blob([svg(title, plot, labels, bridge)], { type: "image/svg+xml" }), `${name}.svg`)),
    as("CSV", () => save(new Blob([csv(plot, labels, x)], { type: "text/csv" }), `${name}.csv`)));
}

/** Hands a file to the browser to keep. @param {Blob} blob @param {string} name */
export function save(blob, name) {
  const address = URL.createObjectURL(blob);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** Numbers of lines that are shown. @param {any} plot @param {string[]} labels */
const lines = (plot, labels) => labels.map((label, n) => ({ label, n: n + 1 })).filter(({ n }) => plot.series[n].show);

/** @param {any} plot @param {number} n */
const paint = (plot, n) => (typeof plot.series[n].stroke === "function" ? plot.series[n].stroke(plot, n) : plot.series[n].stroke);

/** Positions of points in the window, and one before and after. @param {any} plot */
function within(plot) {
  const { min, max } = plot.scales.x, xs = plot.data[0];
  const first = Math.max(xs.findIndex((/** @type {number} */ x) => x >= min) - 1, 0), end = xs.findIndex((/** @type {number} */ x) => x > max);
  return [first, end < 0 ? xs.length : end + 1];
}

/** @param {string} title @param {any} plot @param {string[]} labels */
function png(title, plot, labels) {
  const dots = devicePixelRatio || 1, from = plot.ctx.canvas, made = element("canvas", { width: from.width, height: from.height + (HEAD + FOOT) * dots });
  const pen = made.getContext("2d");
  pen.fillStyle = colour("--panel");
  pen.fillRect(0, 0, made.width, made.height);
  pen.drawImage(from, 0, HEAD * dots);
  pen.fillStyle = colour("--ink");
  pen.font = `600 ${13 * dots}px ${FONT}`;
  pen.fillText(title, 8 * dots, 16 * dots);
  pen.font = `${11 * dots}px ${FONT}`;
  let left = 8 * dots;
  for (const { label, n } of lines(plot, labels)) {
    pen.fillStyle = paint(plot, n);
    pen.fillRect(left, made.height - 15 * dots, 9 * dots, 9 * dots);
    pen.fillStyle = colour("--ink");
    pen.fillText(label, left + 13 * dots, made.height - 7 * dots);
    left += pen.measureText(label).width + 30 * dots;
  }
  return made;
}

/** @param {string} title @param {any} plot @param {string[]} labels @param {(line: number) => number} bridge */
function svg(title, plot, labels, bridge) {
  const dots = devicePixelRatio || 1, [left, top, width, height] = ["left", "top", "width", "height"].map((key) => plot.bbox[key] / dots);
  const place = (/** @type {number} */ v, /** @type {string} */ key) => +(plot.valToPos(v, key) + (key === "x" ? left : top + HEAD)).toFixed(2);
  const text = (/** @type {string} */ inside, /** @type {Record<string, any>} */ keys) => drawn("text", { fill: colour("--soft"), "font-size": 11, ...keys }, inside);
  const made = drawn("svg", { xmlns: "http://www.w3.org/2000/svg", width: plot.width, height: plot.height + HEAD + FOOT, viewBox: `0 0 ${plot.width} ${plot.height + HEAD + FOOT}`, "font-family": FONT },
    drawn("rect", { width: "100%", height: "100%", fill: colour("--panel") }), text(title, { x: 8, y: 16, fill: colour("--ink"), "font-size": 13, "font-weight": 600 }),
    drawn("clipPath", { id: "c" }, drawn("rect", { x: left, y: top + HEAD, width, height })));
  plot.axes.forEach((/** @type {any} */ axis, /** @type {number} */ n) => (axis._splits ?? []).forEach((/** @type {number} */ at, /** @type {number} */ k) => {
    const along = n === 0, value = axis._values?.[k], [x, y] = along ? [place(at, "x"), top + HEAD + height] : [left, at == null ? 0 : place(at, "y")];
    if (at == null || value == null || value === "") return;
    made.append(drawn("path", { d: along ? `M${x} ${top + HEAD}V${y}` : `M${left} ${y}H${left + width}`, stroke: colour("--faint") }), text(value, along ? { x, y: y + 15, "text-anchor": "middle" } : { x: left - 6, y: y + 4, "text-anchor": "end" }));
  }));
  const [first, end] = within(plot);
  let under = 8;
  for (const { label, n } of lines(plot, labels)) {
    let line = "", last = NaN, height_ = 0;
    for (let k = first; k < end; k++) {
      const [t, v] = [plot.data[0][k], plot.data[n][k]];
      if (v == null) continue;
      const [x, y] = [place(t, "x"), place(v, "y")];
      line += !(t - last <= bridge(n - 1)) ? `M${x} ${y}` : plot.series[n].steps ? `H${x}V${y}` : `L${x} ${y}`;
      [last, height_] = [t, y];
    }
    if (plot.series[n].steps && height_) line += `H${left + width}`;
    made.append(drawn("path", { d: line, fill: "none", stroke: paint(plot, n), "stroke-width": plot.series[n].width, "clip-path": "url(#c)" }),
      drawn("rect", { x: under, y: plot.height + HEAD + 9, width: 9, height: 9, fill: paint(plot, n) }), text(label, { x: under + 13, y: plot.height + HEAD + 17 }));
    under += 34 + 6.2 * label.length;
  }
  return new XMLSerializer().serializeToString(made);
}

/** The lines and the window that are seen. @param {any} plot @param {string[]} labels @param {string} x */
function csv(plot, labels, x) {
  const shown = lines(plot, labels), { min, max } = plot.scales.x, cell = (/** @type {any} */ v) => (v == null ? "" : /[",\n]/.test(`${v}`) ? `"${`${v}`.replaceAll('"', '""')}"` : `${v}`);
  const rows = plot.data[0].flatMap((/** @type {number} */ at, /** @type {number} */ k) => (at < min || at > max ? [] : [[at, ...shown.map(({ n }) => plot.data[n][k])].map(cell).join(",")]));
  return [[x, ...shown.map(({ label }) => label)].map(cell).join(","), ...rows].join("\n") + "\n";
}
