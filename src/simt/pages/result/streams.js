/* All launches and copies over time, a row per stream: drag moves, the wheel zooms, a double click shows all again. */
const L = D.launches, N = (L.id ?? []).length, C = D.transfers;
const LINKS = [["to the device", "var(--ink)"], ["to the host", "var(--soft)"], ["within the device", "var(--gray)"],
  ["from another device", "var(--violet)"], ["to another device", "var(--orange)"]];
const streamName = s => s === null ? "no stream" : `stream ${s}`;
const PALETTE = ["blue", "orange", "aqua", "violet", "yellow", "magenta", "green", "red", "teal"];
const kernelColor = k => `var(--${PALETTE[k] ?? "faint"})`;
const kernelOf = i => D.kernels[L.kernel[i]];
const time = cycles => {
  const s = cycles / (1000 * D.khz);
  for (const [unit, scale] of [["s", 1], ["ms", 1e-3], ["µs", 1e-6]]) if (s >= scale) return `${(s / scale).toPrecision(3)} ${unit}`;
  return `${(s * 1e9).toPrecision(3)} ns`;
};
function launchTip(i) {
  return [[kernelColor(L.kernel[i]), kernelOf(i).short], ["", `launch ${L.id[i]}, stream ${L.stream[i]}`], ["", "cycles", num(L.cycles[i])],
    ["", "begins at", num(L.start[i])], ["", "bound by", L.bound[i]]];
}
function copyTip(i) {
  const [name, c] = LINKS[C.link[i]];
  return [[c, `copy or memset ${name}`], ["", streamName(C.stream[i])], ["", "bytes over the link", num(C.nbytes[i])], ["", "cycles", num(C.cycles[i])], ["", "begins at", num(C.start[i])]];
}
function streams(pick) {
  const rows = [...new Set([...L.stream, ...C.stream])].sort((a, b) => a === null ? 1 : b === null ? -1 : a - b), row = new Map(rows.map((s, r) => [s, r]));
  const high = Math.max(10, Math.min(26, 260 / rows.length)), foot = 18, left = 64;
  const strip = C.link.length ? Math.max(3, high / 4) : 0, tall = high - 2 - strip; // of copies, below the launches
  const all = [[L, N], [C, C.link.length]];
  const first = all.reduce((a, [t]) => t.start.reduce((x, y) => Math.min(x, y), a), Infinity), last = all.reduce((a, [t]) => t.start.reduce((x, s, i) => Math.max(x, s + t.cycles[i]), a), 0);
  let from = first, to = Math.max(last, first + 1), chosen = null;
  const canvas = el("canvas", {class: "streams", style: `height:${rows.length * high + foot}px`});
  const draw = () => {
    const ratio = devicePixelRatio || 1, wide = canvas.clientWidth, g = canvas.getContext("2d"), css = getComputedStyle(document.documentElement);
    const paint = name => css.getPropertyValue(name.slice(4, -1)).trim();
    canvas.width = wide * ratio; canvas.height = (rows.length * high + foot) * ratio;
    g.scale(ratio, ratio); g.font = "11px system-ui, sans-serif";
    const x = cycle => left + (wide - left) * (cycle - from) / (to - from);
    for (let r = 0; r < rows.length; ++r) {
      g.fillStyle = paint("var(--grid)"); g.fillRect(left, r * high + 1, wide - left, high - 2);
      g.fillStyle = paint("var(--soft)"); g.fillText(streamName(rows[r]), 0, (r + .5) * high + 4, left - 6);
    }
    for (let i = 0; i < N; ++i) {
      const a = Math.max(left, x(L.start[i])), b = Math.min(wide, x(L.start[i] + L.cycles[i])), y = row.get(L.stream[i]) * high + 1;
      if (b < left || a > wide) continue;
      g.fillStyle = paint(kernelColor(L.kernel[i])); g.fillRect(a, y, Math.max(.7, b - a - (b - a > 3 ? .7 : 0)), tall);
      if (i === chosen) { g.strokeStyle = paint("var(--ink)"); g.lineWidth = 2; g.strokeRect(a, y, Math.max(2, b - a), tall); }
      if (b - a > 46) { g.fillStyle = "#fff"; g.fillText(fitted(g, kernelOf(i).short, b - a - 8), a + 4, y + tall / 2 + 4); }
    }
    for (let i = 0; i < C.link.length; ++i) {
      const a = Math.max(left, x(C.start[i])), b = Math.min(wide, x(C.start[i] + C.cycles[i])), y = row.get(C.stream[i]) * high + 1 + tall;
      if (b < left || a > wide) continue;
      g.fillStyle = paint(LINKS[C.link[i]][1]); g.fillRect(a, y, Math.max(.7, b - a), strip);
    }
    g.fillStyle = paint("var(--faint)");
    ticks(from, to, Math.max(1, Math.floor((wide - left) / 80)), 1).forEach(([cycle, text], i) => {
      const shown = i ? text : text + " cycles", half = g.measureText(shown).width / 2;
      g.textAlign = "center"; g.fillText(shown, Math.min(x(cycle), wide - half), rows.length * high + 14); g.fillRect(x(cycle), rows.length * high, 1, 3);
    });
  };
  const at = e => {
    const box = canvas.getBoundingClientRect(), cycle = from + (e.clientX - box.left - left) / (box.width - left) * (to - from);
    const stream = rows[Math.floor((e.clientY - box.top) / high)], slack = 2 * (to - from) / box.width;
    const found = all.map(([t, n]) => { for (let i = 0; i < n; ++i) if (t.stream[i] === stream && cycle >= t.start[i] - slack && cycle <= t.start[i] + t.cycles[i] + slack) return i; return null; });
    return {launch: found[0], copy: found[1]};
  };
  let held = null, moved = false;
  canvas.onmousedown = e => { held = e.clientX; moved = false; };
  canvas.onmousemove = e => {
    if (held !== null && e.buttons) {
      const by = (held - e.clientX) / (canvas.clientWidth - left) * (to - from);
      if (Math.abs(held - e.clientX) > 2) { moved = true; from += by; to += by; held = e.clientX; draw(); }
      return;
    }
    const {launch, copy} = at(e);
    if (launch !== null) showTip(e, launchTip(launch)); else if (copy !== null) showTip(e, copyTip(copy)); else tip.style.display = "none";
  };
  canvas.onmouseup = e => { held = null; if (!moved) { const i = at(e).launch; if (i !== null) pick(i); } };
  canvas.onmouseleave = () => { held = null; tip.style.display = "none"; };
  canvas.ondblclick = () => { from = first; to = Math.max(last, first + 1); draw(); };
  canvas.addEventListener("wheel", e => {
    e.preventDefault();
    const box = canvas.getBoundingClientRect(), f = (e.clientX - box.left - left) / (box.width - left), cycle = from + f * (to - from);
    const span = Math.min(last - first + 1, Math.max(20, (to - from) * (e.deltaY > 0 ? 1.3 : 1 / 1.3)));
    from = cycle - f * span; to = from + span; draw();
  }, {passive: false});
  themed.push(draw); addEventListener("resize", draw);
  return {node: el("div", {}, canvas, legend([...D.kernels.slice(0, PALETTE.length).map((k, i) => [k.short, kernelColor(i)]), ...(D.kernels.length > PALETTE.length ? [["other kernels", "var(--faint)"]] : []), ...LINKS.filter((_, k) => C.link.includes(k)).map(([n, c]) => [`copies ${n}`, c])])),
    draw, choose: i => { chosen = i; draw(); }};
}
function fitted(g, text, width) {
  if (g.measureText(text).width <= width) return text;
  while (text && g.measureText(text + "…").width > width) text = text.slice(0, -1);
  return text + "…";
}
