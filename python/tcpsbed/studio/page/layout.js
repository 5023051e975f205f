// @ts-check
// Where the places of a network are drawn and how its links run between them: one row for what is in line, a band of rows for
// each connected part. A link's labels have the room between two columns to themselves.

/**
 * @typedef {{x: number, y: number, height: number, row: number, column: number}} Place
 * @typedef {{from: number, to: number}} Pair
 * @typedef {{line: string, label: {x: number, y: number, anchor: string} | null, run: {x1: number, x2: number, y: number} | null}} Edge
 */

/** Room for the lines of text below a link, and between two rows. */
const BELOW = 92, BETWEEN = 26, LANE = 9;

/**
 * Columns by the distance from the first place of each part, rows such that a chain stays in one.
 * @param {number} count @param {Pair[]} links @param {number[]} heights
 * @param {{box: number, step: number, port: number, top?: number, below?: number, between?: number}} sizes
 */
export function laidOut(count, links, heights, { box, step, port, top = 14, below = BELOW, between = BETWEEN }) {
  const near = Array.from({ length: count }, () => /** @type {number[]} */ ([]));
  for (const { from, to } of links) {
    if (!near[from].includes(to)) near[from].push(to);
    if (!near[to].includes(from)) near[to].push(from);
  }
  /** @type {Place[]} */ const places = new Array(count);
  let next = 0;
  for (const first of Array.from({ length: count }, (_, v) => v).sort((a, b) => Number(!near[a].length) - Number(!near[b].length)))
    if (!places[first]) next = part(first, next);

  /** Places what is connected with a vertex below the rows that are taken; the next free row. @param {number} first @param {number} above */
  function part(first, above) {
    const distance = new Map([[first, 0]]), order = [first], parent = new Map();
    for (const here of order)
      for (const there of near[here])
        if (!distance.has(there)) {
          distance.set(there, (distance.get(here) ?? 0) + 1);
          parent.set(there, here);
          order.push(there);
        }
    /** How far a chain goes on from a vertex: the longest one keeps the row. @type {Map<number, number>} */
    const depth = new Map();
    for (const v of order.toReversed()) depth.set(v, 1 + Math.max(0, ...near[v].filter((w) => parent.get(w) === v).map((w) => depth.get(w) ?? 0)));
    const taken = new Set();
    let lowest = above;
    const put = (/** @type {number} */ v, /** @type {number} */ wish) => {
      const column = distance.get(v) ?? 0;
      let row = wish;
      while (taken.has(`${column} ${row}`)) row++;
      taken.add(`${column} ${row}`);
      lowest = Math.max(lowest, row);
      places[v] = { x: 2 + column * step, y: 0, height: heights[v], row, column };
      const children = near[v].filter((w) => parent.get(w) === v).sort((a, b) => (depth.get(b) ?? 0) - (depth.get(a) ?? 0) || a - b);
      for (const child of children) put(child, row);
    };
    put(first, above);
    return lowest + 1;
  }

  const tall = new Array(next).fill(0);
  places.forEach((place) => (tall[place.row] = Math.max(tall[place.row], place.height)));
  links.forEach(({ from, to }) => [from, to].forEach((v) => (tall[places[v].row] = Math.max(tall[places[v].row], below))));
  const tops = tall.map((_, row) => top + tall.slice(0, row).reduce((sum, one) => sum + one + between, 0));
  for (const place of places) place.y = tops[place.row];
  const width = Math.max(...places.map((p) => p.x)) + box + 2, height = Math.max(...places.map((p) => p.y + tall[p.row])) + 4;

  /** Rooms for labels that are taken: between which columns, in which row. */
  const rooms = new Set();
  const room = (/** @type {number} */ column, /** @type {number} */ row) => {
    const key = `${column} ${row}`, free = !rooms.has(key);
    rooms.add(key);
    return free;
  };
  const flat = links.map(({ from, to }) => [places[from], places[to]].sort((p, q) => p.x - q.x || p.y - q.y));
  flat.forEach(([a, b]) => a.row === b.row && b.column === a.column + 1 && room(a.column, a.row));
  const fans = (/** @type {Place} */ place, /** @type {number} */ side) => flat.filter((pair) => pair[side] === place && pair[0].column !== pair[1].column).length;
  const edges = flat.map(([a, b]) => edge(a, b));

  /** @param {Place} a @param {Place} b @returns {Edge} */
  function edge(a, b) {
    const y1 = a.y + port, y2 = b.y + port;
    if (a.column === b.column) {
      const x = a.x + box / 2, direct = b.row === a.row + 1;
      if (direct) return { line: `M${x} ${a.y + a.height}V${b.y}`, label: { x: x + 10, y: b.y - between - 12, anchor: "start" }, run: null };
      return { line: `M${a.x + box} ${y1}h${LANE + 8}V${y2}h${-LANE - 8}`, label: null, run: null };
    }
    const x1 = a.x + box, x2 = b.x;
    if (a.row === b.row) return { line: `M${x1} ${y1}H${x2}`, label: { x: (x1 + x2) / 2, y: y1, anchor: "middle" }, run: { x1, x2, y: y1 } };
    const atEnd = fans(b, 1) <= 1 || fans(a, 0) > 1;
    const [row, y, lane] = atEnd ? [b.row, y2, x1 + LANE] : [a.row, y1, x2 - LANE];
    const run = atEnd ? { x1: lane, x2, y } : { x1, x2: lane, y };
    const label = room(a.column, row) ? { x: (run.x1 + run.x2) / 2, y, anchor: "middle" } : null;
    return { line: `M${x1} ${y1}H${lane}V${y2}H${x2}`, label, run };
  }
  return { places, edges, width, height };
}
