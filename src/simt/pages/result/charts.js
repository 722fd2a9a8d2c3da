let redraw = [], themed = []; // what is drawn in the colours of the theme: of the chosen launch, of the page
/* A place whose chart is drawn for its width, so that texts have the same size on a phone. */
function sized(draw) {
  const place = el("div");
  let drawn = 0;
  const show = wide => { if (wide && wide !== drawn) { drawn = wide; place.replaceChildren(draw(wide)); } };
  show(560);
  new ResizeObserver(([entry]) => show(Math.round(entry.contentRect.width))).observe(place);
  return place;
}
/* A chart over cycles with a cross-hair; `paint` adds the marks, `rows` the text for an interval. x = {start, end} of each interval. */
function timeChart(title, x, top, names, paint, rows) {
  return el("div", {class: "chart"}, el("h3", {}, title), sized(W => timeAxes(W, x, top, paint, rows)), ...(names.length > 1 ? [legend(names)] : []));
}
function timeAxes(W, x, top, paint, rows) {
  const H = 150, L = 38, B = 20, T = 8;
  const last = x.end[x.end.length - 1], first = x.start[0];
  const px = v => L + (W - L) * (v - first) / Math.max(1, last - first), py = v => T + (H - T - B) * (1 - Math.min(v, top) / top);
  const root = svg("svg", {viewBox: `0 0 ${W} ${H}`});
  for (const [v, text] of ticks(0, top, 5)) {
    root.append(svg("line", {x1: L, x2: W, y1: py(v), y2: py(v), stroke: "var(--grid)"}));
    root.append(svg("text", {x: L - 6, y: py(v) + 4, "text-anchor": "end"}, text));
  }
  ticks(first, last, Math.max(1, Math.floor((W - L) / 80)), 1).forEach(([v, text], i) => {
    const shown = i ? text : text + " cycles", right = px(v) + textWidth(shown, 11) / 2 > W;
    root.append(svg("line", {x1: px(v), x2: px(v), y1: H - B, y2: H - B + 4, stroke: "var(--faint)"}), svg("text", {x: right ? W : px(v), y: H - 4, "text-anchor": right ? "end" : "middle"}, shown));
  });
  paint(root, px, py);
  const cross = svg("line", {y1: T, y2: H - B, stroke: "var(--faint)", "stroke-dasharray": "3 3", visibility: "hidden"});
  root.append(cross);
  root.onmousemove = e => {
    const box = root.getBoundingClientRect(), at = first + ((e.clientX - box.left) / box.width * W - L) / (W - L) * (last - first);
    let i = x.end.findIndex(v => v > at); if (i < 0) i = x.end.length - 1;
    const mid = px((x.start[i] + x.end[i]) / 2);
    cross.setAttribute("x1", mid); cross.setAttribute("x2", mid); cross.setAttribute("visibility", "visible");
    showTip(e, [["", `cycles ${num(x.start[i])} to ${num(x.end[i])}`], ...rows(i)]);
  };
  root.onmouseleave = () => { tip.style.display = "none"; cross.setAttribute("visibility", "hidden"); };
  return root;
}
/* Series = [name, values, colour]. */
function lineChart(title, x, series, top, unit) {
  return timeChart(title, x, top, series.map(s => [s[0], s[2]]), (root, px, py) => {
    for (const [, values, c] of series) {
      let d = "", pen = false;
      values.forEach((v, i) => { if (v == null) { pen = false; return; } d += `${pen ? "L" : "M"}${px((x.start[i] + x.end[i]) / 2).toFixed(1)} ${py(v).toFixed(1)}`; pen = true; });
      root.append(svg("path", {d, fill: "none", stroke: c, "stroke-width": 2, "stroke-linejoin": "round", "stroke-linecap": "round"}));
    }
  }, i => series.map(([n, v, c]) => [c, n, v[i] == null ? "–" : num(v[i], top < 10 ? 2 : 1) + unit]));
}
/* Shares of all schedulers' cycles, one on the other; what is missing from the top are schedulers without a warp. */
function stackChart(title, x, table) {
  const known = ORDER.filter(r => table[r]), rest = Object.keys(table).filter(r => !ORDER.includes(r));
  const parts = known.map(r => [label(r), table[r], color(r)]);
  if (rest.length) parts.push(["other", x.end.map((_, i) => sum(rest.map(r => table[r][i]))), "var(--faint)"]);
  return stackedChart(title, x, parts, 100, v => pct(v, 1));
}
/* Parts = [name, values, colour], one on the other. */
function stackedChart(title, x, parts, top, text) {
  return timeChart(title, x, top, parts.map(p => [p[0], p[2]]), (root, px, py) => {
    const below = x.end.map(() => 0);
    for (const [, values, c] of parts) {
      const edge = x.end.map((end, i) => `${px(x.start[i]).toFixed(1)} ${py(below[i] + values[i]).toFixed(1)}L${px(end).toFixed(1)} ${py(below[i] + values[i]).toFixed(1)}`);
      const back = x.end.map((end, i) => `${px(end).toFixed(1)} ${py(below[i]).toFixed(1)}L${px(x.start[i]).toFixed(1)} ${py(below[i]).toFixed(1)}`).reverse();
      root.append(svg("path", {d: `M${edge.join("L")}L${back.join("L")}Z`, fill: c}));
      values.forEach((v, i) => { below[i] += v; });
    }
  }, i => [...parts].reverse().filter(p => p[1][i] >= .05).map(([n, v, c]) => [c, n, text(v[i])]));
}
const percentTop = values => [5, 10, 20, 50, 100].find(top => Math.max(0, ...values.filter(v => v != null)) <= top) ?? 100;
const rgb = name => { const c = getComputedStyle(document.documentElement).getPropertyValue(name).trim().slice(1); return [0, 2, 4].map(i => parseInt(c.slice(i, i + 2), 16)); };
/* A map of characters: a row per entry of `rows`, a column per interval; name(i) names a row. */
const LEVELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
function heatCanvas(x, rows, {most, cells}, name, unit) {
  const wide = x.end.length, last = x.end[wide - 1], first = x.start[0], canvas = el("canvas", {width: Math.min(800, Math.max(wide, 400)), height: rows.length});
  const at = (r, i) => { const level = LEVELS.indexOf(cells[r * wide + i]); return level < 0 ? null : level / (LEVELS.length - 1); };
  const interval = f => { const cycle = first + f * (last - first), i = x.end.findIndex(end => end > cycle); return i < 0 ? wide - 1 : i; };
  const draw = () => {
    const g = canvas.getContext("2d"), image = g.createImageData(canvas.width, rows.length), cold = rgb("--cold"), hot = rgb("--hot"), none = rgb("--card");
    for (let p = 0; p < canvas.width; ++p) {
      const i = interval((p + .5) / canvas.width);
      for (let r = 0; r < rows.length; ++r) {
        const f = at(r, i), to = 4 * (r * canvas.width + p);
        for (let k = 0; k < 3; k++) image.data[to + k] = f === null ? none[k] : cold[k] + (hot[k] - cold[k]) * f;
        image.data[to + 3] = 255;
      }
    }
    g.putImageData(image, 0, 0);
  };
  draw(); redraw.push(draw);
  canvas.onmousemove = e => {
    const box = canvas.getBoundingClientRect(), i = interval(Math.min(1, Math.max(0, (e.clientX - box.left) / box.width)));
    const r = Math.min(rows.length - 1, Math.max(0, Math.floor((e.clientY - box.top) / box.height * rows.length))), f = at(r, i);
    showTip(e, [["", `cycles ${num(x.start[i])} to ${num(x.end[i])}`], ["", name(rows[r]), f === null ? "no request" : "about " + num(f * most, most < 10 ? 1 : 0) + unit]]);
  };
  canvas.onmouseleave = () => tip.style.display = "none";
  return {canvas, scale: el("div", {class: "scale"}, "0", el("i"), num(most, most < 10 ? 2 : 0) + unit, el("span", {}, `0 to ${num(last - first)} cycles, ${name(rows[0])} on top`))};
}
function heatMap(title, x, rows, map, name, unit) {
  const {canvas, scale} = heatCanvas(x, rows, map, name, unit);
  return el("div", {class: "chart"}, el("h3", {}, title), canvas, scale);
}
/* Lines of source, or instructions, over time: each row with its text. */
function lineMap(m) {
  if (!m) return [];
  const place = el("div"), kinds = [["Warps waiting", m.waiting, " warps"], ["Issued", m.issued, " warp instructions per cycle"]];
  const name = row => m.by === "line" ? `line ${row[0]}` : row.join(" ");
  const buttons = kinds.map(([n, map, unit]) => el("button", {onclick: () => show(n, map, unit)}, n));
  function show(shown, map, unit) {
    buttons.forEach((b, k) => b.className = kinds[k][0] === shown ? "on" : "");
    const {canvas, scale} = heatCanvas(m, m.rows, map, name, unit);
    canvas.style.height = `${15 * m.rows.length}px`;
    place.replaceChildren(el("div", {class: "linemap"}, el("div", {}, ...m.rows.map(([at, text]) => el("div", {class: "mono", title: text}, el("span", {}, at), text))), canvas), scale);
  }
  show(...kinds[0]);
  return [section(m.by === "line" ? "Lines over time" : "Instructions over time", `The launch's own warps on all SMs. Warps waiting: mean, sampled every ${num(m.interval)} cycles.` + (m.left_out ? ` ${num(m.left_out)} more ${m.by}s, at which warps wait less, are left out.` : ""), el("div", {class: "tabs"}, ...buttons), place)];
}
function dramMaps(maps) {
  return maps.flatMap(m => ["utilisation", "efficiency"].map(kind => heatMap(
    `DRAM ${kind} by ${m.by}` + (m.left_out ? ` (the ${num(m.rows.length / D.banks)} busiest channels)` : ` (${num(m.rows.length)} ${m.by}s)`), m, m.rows, m[kind],
    row => m.by === "channel" ? `channel ${row}` : `channel ${Math.floor(row / D.banks)}, bank ${row % D.banks}`, " %")));
}
