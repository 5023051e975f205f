/* Draws the charts described in the page's data with uPlot: events as dashed marks, disturbed windows shaded. */
(() => {
  "use strict";
  const page = JSON.parse(document.getElementById("data").textContent);
  const HEIGHT = 220;
  const PRINTED = { width: 338, height: 170 };
  const FONT = "11px system-ui, 'Liberation Sans', Arial, sans-serif";
  const dots = window.devicePixelRatio || 1;

  /* Disturbed windows and the warm-up, behind the lines. */
  function shade(u) {
    const { ctx, bbox } = u;
    const box = (from, to, color) => {
      const left = Math.max(u.valToPos(from, "x", true), bbox.left);
      const right = Math.min(u.valToPos(to, "x", true), bbox.left + bbox.width);
      if (right <= left) return;
      ctx.fillStyle = color;
      ctx.fillRect(left, bbox.top, Math.max(right - left, dots), bbox.height);
    };
    ctx.save();
    if (page.warmup) box(0, page.warmup, "rgba(120,130,140,0.13)");
    for (const w of page.windows) box(w.from, w.to, "rgba(176,0,32,0.16)");
    ctx.restore();
  }

  /* Scenario events: a dashed line with the event's number, or its name where there is room. */
  function mark(u) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.strokeStyle = "#1b1f24";
    ctx.fillStyle = "#1b1f24";
    ctx.lineWidth = dots;
    ctx.setLineDash([4 * dots, 3 * dots]);
    ctx.font = 10 * dots + "px system-ui, 'Liberation Sans', Arial, sans-serif";
    ctx.textBaseline = "top";
    ctx.textAlign = "left";
    let taken = -Infinity;
    page.events.forEach((event, index) => {
      const x = u.valToPos(event.t, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) return;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const text = String(index + 1);
      const start = x + 3 * dots;
      if (start < taken) return;
      ctx.fillText(text, start, bbox.top + dots);
      taken = start + ctx.measureText(text).width + 3 * dots;
    });
    ctx.restore();
  }

  /* Confidence intervals as vertical whiskers. */
  function whiskers(chart) {
    return (u) => {
      const { ctx } = u;
      ctx.save();
      ctx.lineWidth = 1.2 * dots;
      chart.whiskers.forEach((half, line) => {
        ctx.strokeStyle = chart.lines[line].color;
        half.forEach((h, i) => {
          const y = u.data[line + 1][i];
          if (h == null || y == null) return;
          const x = u.valToPos(u.data[0][i], "x", true);
          const low = u.valToPos(y - h, "y", true);
          const high = u.valToPos(y + h, "y", true);
          ctx.beginPath();
          ctx.moveTo(x, low);
          ctx.lineTo(x, high);
          for (const end of [low, high]) {
            ctx.moveTo(x - 4 * dots, end);
            ctx.lineTo(x + 4 * dots, end);
          }
          ctx.stroke();
        });
      });
      ctx.restore();
    };
  }

  /* A number with as many digits as it needs. */
  function short(value) {
    if (value == null) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
    return String(+value.toPrecision(5));
  }

  function tick(value) {
    if (value == null) return "";
    return value === 0 ? "0" : Math.abs(value) < 1e-3 ? value.toExponential(0) : String(+value.toPrecision(6));
  }

  /* On a logarithmic scale only powers of ten have a line and a number. */
  const isPower = (v) => v > 0 && Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-9;
  const powersOnly = (u, splits) => splits.map((v) => (isPower(v) ? v : null));
  const raised = (n) => String(n).replace("-", "⁻").replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]);
  function power(v) {
    if (v == null) return "";
    return v >= 0.01 && v <= 100 ? tick(+v.toPrecision(3)) : "10" + raised(Math.round(Math.log10(v)));
  }

  /* Length on the x axis of a stretch of the canvas. */
  const span = (u, left, right) => u.posToVal(right, "x", true) - u.posToVal(left, "x", true);

  function lineOf(chart, line) {
    const lost = line.label === "lost";
    const few = chart.whiskers.length > 0;
    return {
      label: line.label,
      stroke: line.color,
      width: line.thin ? 0.6 : 1.6,
      dash: line.dashed ? [6, 4] : undefined,
      points: { show: lost || few, size: lost ? 4 : 6, fill: line.color },
      paths: lost ? () => null : chart.steps ? uPlot.paths.stepped({ align: 1 }) : undefined,
      spanGaps: !chart.time,
      gaps: (u, i, from, to, gaps) => gaps.filter(([left, right]) => span(u, left, right) > line.bridge),
      scale: lost ? "lost" : "y",
      value: (u, v) => short(v),
    };
  }

  /* Names at whole numbers only, each turned so that it leaves its neighbours room. */
  function slanted(names) {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = FONT;
    const widest = Math.max(...names.map((name) => pen.measureText(name).width));
    return { incrs: [1], space: 1, rotate: -40, size: Math.ceil(24 + 0.65 * widest) };
  }

  function axesOf(chart) {
    const look = { font: FONT, labelFont: FONT, labelSize: 18, stroke: "#3c454e", grid: { stroke: "#e6e9ed", width: 1 }, ticks: { stroke: "#c3cad1", width: 1 } };
    const names = chart.categories;
    const named = (v) => (names.length ? (Number.isInteger(v) && names[v] !== undefined ? names[v] : "") : tick(v));
    const axes = [
      { ...look, label: chart.xLabel, size: 34, values: (u, vs) => vs.map(named), ...(names.length ? slanted(names) : {}) },
      chart.log
        ? { ...look, label: chart.yLabel, size: 52, filter: powersOnly, grid: { ...look.grid, filter: powersOnly }, ticks: { ...look.ticks, filter: powersOnly }, values: (u, vs) => vs.map(power) }
        : { ...look, label: chart.yLabel, size: 52, values: (u, vs) => vs.map(tick) },
    ];
    if (chart.lines.some((line) => line.label === "lost")) {
      axes.push({ ...look, scale: "lost", side: 1, label: "lost (samples per bin)", size: 40, stroke: "#b00020", grid: { show: false }, values: (u, vs) => vs.map((v) => (Number.isInteger(v) ? tick(v) : "")) });
    }
    return axes;
  }

  function scalesOf(chart) {
    const reach = chart.whiskers.flatMap((half, line) => half.map((h, i) => (chart.data[line + 1][i] ?? 0) + (h ?? 0)));
    const rising = (u, low, high) => [0, Math.max(high, ...reach) > 0 ? Math.max(high, ...reach) * 1.05 : 1];
    const fromStart = (u, low, high) => [low <= u.data[0][0] ? 0 : low, high];
    const roomy = (u, low, high) => [low - (high - low || 1) * 0.05, high + (high - low || 1) * 0.05];
    return {
      x: { time: false, range: chart.whiskers.length ? roomy : chart.time ? fromStart : undefined },
      y: chart.log ? { distr: 3, log: 10 } : { range: rising },
      lost: { range: (u, low, high) => [0, Math.max(high, 1) * 1.1] },
    };
  }

  function draw(holder) {
    const chart = page.charts[+holder.dataset.chart];
    const bands = chart.lines.flatMap((line, i) =>
      line.fillTo == null ? [] : [{ series: [i + 1, line.fillTo], fill: line.color + "2e" }]
    );
    const options = {
      width: holder.clientWidth,
      height: HEIGHT,
      pxAlign: 0,
      cursor: chart.time ? { sync: { key: "time", setSeries: false }, y: false } : { y: false },
      legend: { markers: { width: 0, fill: (u, i) => chart.lines[i - 1].color } },
      scales: scalesOf(chart),
      axes: axesOf(chart),
      series: [{ label: chart.xLabel, value: (u, v) => short(v) }, ...chart.lines.map((line) => lineOf(chart, line))],
      bands,
      hooks: { drawClear: chart.time ? [shade] : [], draw: [...(chart.time ? [mark] : []), ...(chart.whiskers.length ? [whiskers(chart)] : [])] },
    };
    holder.plot = new uPlot(options, chart.data, holder); // for the browser's console too
    return { holder, plot: holder.plot };
  }

  const drawn = [...document.querySelectorAll(".chart")].map(draw);
  const fit = () => drawn.forEach(({ holder, plot }) => plot.setSize({ width: holder.clientWidth, height: HEIGHT }));
  window.addEventListener("resize", fit);

  /* On paper everything is open, and charts are as wide as half a page. */
  const folded = [...document.querySelectorAll("details:not([open])")];
  window.addEventListener("beforeprint", () => {
    folded.forEach((d) => (d.open = true));
    drawn.forEach(({ plot }) => plot.setSize(PRINTED));
  });
  window.addEventListener("afterprint", () => {
    folded.forEach((d) => (d.open = false));
    fit();
  });
})();
