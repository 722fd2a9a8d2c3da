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
  const per = v => Math.max(0, Math.min(5, Math.floor(log(v) / 3 + 1e-9))), amount = v => (v / 1000 ** per(v)).toPrecision(3) + " " + ["", "K", "M", "G", "T", "P"][per(v)];
  const draw = W => {
    const H = 380, left = 64, right = W - 12, head = 10, foot = H - 36, px = v => left + (right - left) * (log(v) - x0) / (x1 - x0), py = v => head + (foot - head) * (y1 - log(v)) / (y1 - y0);
    const root = svg("svg", {viewBox: `0 0 ${W} ${H}`}), names = placer(left, head, W, foot), every = Math.ceil(52 * (x1 - x0) / (right - left));
    for (let e = x0; e <= x1; ++e) {
      root.append(svg("line", {x1: px(10 ** e), x2: px(10 ** e), y1: head, y2: foot, stroke: "var(--grid)"}));
      if ((e - x0) % every === 0) root.append(svg("text", {x: px(10 ** e), y: foot + 15, "text-anchor": "middle"}, e < 0 ? (10 ** e).toFixed(-e) : num(10 ** e)));
    }
    for (let e = y0; e <= y1; ++e) root.append(svg("line", {x1: left, x2: right, y1: py(10 ** e), y2: py(10 ** e), stroke: "var(--grid)"}), svg("text", {x: left - 6, y: py(10 ** e) + 4, "text-anchor": "end"}, amount(10 ** e).replace(/\.0+ /, " ")));
    root.append(svg("text", {x: right, y: H - 4, "text-anchor": "end"}, "floating-point operations per byte"), svg("text", {x: left + 6, y: 22}, "operations/s"));
    names.keep([left, head, left + 80, 26]);
    const most = Math.max(...points.map(p => p.seconds)), radius = d => 4 + 6 * Math.sqrt(d.p.seconds / most);
    for (const d of dots) names.keep([px(d.x) - radius(d), py(d.y) - radius(d), px(d.x) + radius(d), py(d.y) + radius(d)]);
    const fastest = Math.max(...levels.map(r => r.value));
    for (const r of levels) { // its name lies along its line, outside the two
      const from = Math.max(10 ** x0, 10 ** y0 / r.value), to = Math.min(top / r.value, 10 ** x1), a = [px(from), py(from * r.value)], b = [px(to), py(to * r.value)];
      root.append(svg("line", {x1: a[0], y1: a[1], x2: b[0], y2: b[1], stroke: COLOR[r.level], "stroke-width": 1.6}));
      const above = r.value === fastest, turn = Math.atan2(b[1] - a[1], b[0] - a[0]), long = Math.hypot(b[0] - a[0], b[1] - a[1]), text = `${r.name} ${amount(r.value)}B/s`, wide = textWidth(text, 12);
      const along = d => [a[0] + d * Math.cos(turn), a[1] + d * Math.sin(turn)], part = d => { const [x, y] = along(d); return [x - 3, y - (above ? 18 : 0), x + 6, y + (above ? 0 : 18)]; };
      const at = [.05, .2, .35, .5, .65].map(f => f * long).find(d => d + wide < long && names.take(Array.from({length: Math.ceil(wide / 8)}, (_, i) => part(d + 8 * i))));
      if (at === undefined) continue;
      const [x, y] = along(at);
      root.append(svg("text", {x, y, dy: above ? -6 : 15, class: "roof", style: `fill:${COLOR[r.level]}`, transform: `rotate(${180 / Math.PI * turn} ${x} ${y})`}, text));
    }
    const write = (text, places) => { const at = names.place(text, 12, places); if (at) root.append(svg("text", {...at, class: "roof"}, text)); };
    for (const r of flat) {
      const y = py(r.value), knee = Math.max(left, px(r.value / fastest)), text = `${r.name} ${amount(r.value)}FLOP/s`;
      root.append(svg("line", {x1: knee, x2: right, y1: y, y2: y, stroke: "var(--soft)", "stroke-width": 1.6}));
      write(text, [[right - 2, y - 5, "end"], [right - 2, y + 14, "end"], [(knee + right) / 2, y - 5, "end"], [(knee + right) / 2, y + 14, "end"], [knee - 4, y - 5, "end"]]);
    }
    for (const d of dots) {
      const k = D.kernels[d.p.kernel], peak = Math.min(d.x * d.roof.value, top), x = px(d.x), y = py(d.y), r = radius(d);
      root.append(tipped(svg("circle", {cx: x, cy: y, r, fill: COLOR[d.level], "fill-opacity": .65, stroke: "var(--card)"}), () => [[COLOR[d.level], k.short],
        ["", `operations per byte of ${d.roof.name}`, d.x.toPrecision(3)], ["", "operations/s", amount(d.y)], ["", "of what the roofs allow", pct(100 * d.y / peak, 1)]]));
    }
    const named = new Set();
    for (const d of dots) {
      if (named.has(d.p.kernel) || named.size === 8) continue;
      named.add(d.p.kernel);
      const x = px(d.x), y = py(d.y), r = radius(d);
      write(D.kernels[d.p.kernel].short, [[x + r + 3, y + 4, "start"], [x - r - 3, y + 4, "end"], [x, y - r - 5, "middle"], [x, y + r + 13, "middle"]]);
    }
    return root;
  };
  return el("div", {}, sized(draw), legend(levels.map(r => [`by bytes of ${r.name}`, COLOR[r.level]])));
}
