/* Operations a second over operations per byte, both logarithmic, under the roofs of the specification. */
function roofline() {
  const {roofs, points} = D.roofline, levels = roofs.filter(r => r.bandwidth), flat = roofs.filter(r => !r.bandwidth);
  if (!points.length || !levels.length || !flat.length) return null;
  const COLOR = {dram: "var(--blue)", l2: "var(--aqua)"};
  const dots = points.flatMap(p => levels.map(r => ({p, level: r.level, bytes: r.level === "dram" ? p.dram_bytes : p.l2_bytes, roof: r})))
    .filter(d => d.bytes > 0).map(d => ({...d, x: d.p.flops / d.bytes, y: d.p.flops / d.p.seconds}));
  if (!dots.length) return null;
  const top = Math.max(...flat.map(r => r.value)), log = Math.log10;
  const x0 = Math.floor(log(Math.min(.1, ...dots.map(d => d.x)))), x1 = Math.ceil(log(Math.max(top / Math.min(...levels.map(r => r.value)) * 2, ...dots.map(d => d.x))));
  const y0 = Math.floor(log(Math.min(top / 1e4, ...dots.map(d => d.y)))), y1 = Math.ceil(log(top) + .1);
  const W = 1000, H = 380, left = 64, bottom = 36, px = v => left + (W - left - 12) * (log(v) - x0) / (x1 - x0), py = v => 10 + (H - bottom - 10) * (y1 - log(v)) / (y1 - y0);
  const root = svg("svg", {viewBox: `0 0 ${W} ${H}`}), per = v => ["", "K", "M", "G", "T", "P"][Math.min(5, Math.floor(log(v) / 3))];
  const amount = v => (v / 1000 ** Math.min(5, Math.floor(log(v) / 3))).toPrecision(3) + " " + per(v);
  for (let e = x0; e <= x1; ++e) root.append(svg("line", {x1: px(10 ** e), x2: px(10 ** e), y1: 10, y2: H - bottom, stroke: "var(--grid)"}), svg("text", {x: px(10 ** e), y: H - bottom + 15, "text-anchor": "middle"}, e < 0 ? (10 ** e).toFixed(-e) : num(10 ** e)));
  for (let e = y0; e <= y1; ++e) root.append(svg("line", {x1: left, x2: W - 12, y1: py(10 ** e), y2: py(10 ** e), stroke: "var(--grid)"}), svg("text", {x: left - 6, y: py(10 ** e) + 4, "text-anchor": "end"}, amount(10 ** e).replace(/\.0+ /, " ")));
  root.append(svg("text", {x: W - 12, y: H - 4, "text-anchor": "end"}, "floating-point operations per byte"), svg("text", {x: left + 6, y: 20}, "operations/s"));
  for (const r of levels) {
    const from = Math.max(10 ** x0, 10 ** y0 / r.value), knee = top / r.value;
    root.append(svg("line", {x1: px(from), y1: py(from * r.value), x2: px(Math.min(knee, 10 ** x1)), y2: py(Math.min(knee, 10 ** x1) * r.value), stroke: COLOR[r.level], "stroke-width": 1.6}));
    const at = from * 1.6;
    root.append(svg("text", {x: px(at) + 6, y: py(at * r.value) - 8, class: "roof", style: `fill:${COLOR[r.level]}`}, `${r.name} ${amount(r.value)}B/s`));
  }
  for (const r of flat) root.append(svg("line", {x1: px(r.value / Math.max(...levels.map(l => l.value))), x2: W - 12, y1: py(r.value), y2: py(r.value), stroke: "var(--soft)", "stroke-width": 1.6}),
    svg("text", {x: W - 14, y: py(r.value) - 5, "text-anchor": "end", class: "roof"}, `${r.name} ${amount(r.value)}FLOP/s`));
  const most = Math.max(...points.map(p => p.seconds));
  for (const d of dots) {
    const k = D.kernels[d.p.kernel], peak = Math.min(d.x * d.roof.value, top);
    root.append(tipped(svg("circle", {cx: px(d.x), cy: py(d.y), r: 4 + 6 * Math.sqrt(d.p.seconds / most), fill: COLOR[d.level], "fill-opacity": .65, stroke: "var(--card)"}), () => [[COLOR[d.level], k.short],
      ["", `operations per byte of ${d.roof.name}`, d.x.toPrecision(3)], ["", "operations/s", amount(d.y)], ["", "of what the roofs allow", pct(100 * d.y / peak, 1)]]));
  }
  const named = [];
  for (const d of dots) {
    const p = d.p, y = py(d.y), clear = named.length < 8 && named.every(([u, v, k]) => k !== p.kernel && (Math.abs(u - px(d.x)) > 150 || Math.abs(v - y) > 14));
    if (clear) named.push([px(d.x), y, p.kernel]);
    if (clear) root.append(svg("text", {x: px(d.x) + 11, y: py(d.y) + 4, class: "roof"}, D.kernels[p.kernel].short));
  }
  return el("div", {}, root, legend(levels.map(r => [`by bytes of ${r.name}`, COLOR[r.level]])));
}
