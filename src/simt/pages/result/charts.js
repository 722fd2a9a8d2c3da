let redraw = [], themed = []; // what is drawn in the colours of the theme: of the chosen launch, of the page
/* Line chart; series = [name, values, colour]; x = [start, end] of each interval. */
function lineChart(title, x, series, top, unit) {
  const W = 560, H = 150, L = 38, B = 20, T = 8;
  const last = x.end[x.end.length - 1], first = x.start[0];
  const px = v => L + (W - L) * (v - first) / Math.max(1, last - first), py = v => T + (H - T - B) * (1 - Math.min(v, top) / top);
  const root = svg("svg", {viewBox: `0 0 ${W} ${H}`});
  for (const f of [0, .5, 1]) {
    root.append(svg("line", {x1: L, x2: W, y1: py(f * top), y2: py(f * top), stroke: "var(--grid)"}));
    root.append(svg("text", {x: L - 6, y: py(f * top) + 4, "text-anchor": "end"}, num(f * top, top < 3 ? 2 : 0)));
  }
  for (const f of [0, .5, 1]) root.append(svg("text", {x: px(first + f * (last - first)), y: H - 4, "text-anchor": f === 0 ? "start" : f === 1 ? "end" : "middle"}, short(Math.round(first + f * (last - first))) + (f === 1 ? " cycles" : "")));
  for (const [, values, c] of series) {
    let d = "", pen = false;
    values.forEach((v, i) => { if (v == null) { pen = false; return; } d += `${pen ? "L" : "M"}${px((x.start[i] + x.end[i]) / 2).toFixed(1)} ${py(v).toFixed(1)}`; pen = true; });
    root.append(svg("path", {d, fill: "none", stroke: c, "stroke-width": 2, "stroke-linejoin": "round", "stroke-linecap": "round"}));
  }
  const cross = svg("line", {y1: T, y2: H - B, stroke: "var(--faint)", "stroke-dasharray": "3 3", visibility: "hidden"});
  root.append(cross);
  root.onmousemove = e => {
    const box = root.getBoundingClientRect(), at = first + ((e.clientX - box.left) / box.width * W - L) / (W - L) * (last - first);
    let i = x.end.findIndex(v => v > at); if (i < 0) i = x.end.length - 1;
    const mid = px((x.start[i] + x.end[i]) / 2);
    cross.setAttribute("x1", mid); cross.setAttribute("x2", mid); cross.setAttribute("visibility", "visible");
    showTip(e, [["", `cycles ${num(x.start[i])} to ${num(x.end[i])}`], ...series.map(([n, v, c]) => [c, n, v[i] == null ? "–" : num(v[i], top < 10 ? 2 : 1) + unit])]);
  };
  root.onmouseleave = () => { tip.style.display = "none"; cross.setAttribute("visibility", "hidden"); };
  return el("div", {class: "chart"}, el("h3", {}, title), root, ...(series.length > 1 ? [legend(series.map(s => [s[0], s[2]]))] : []));
}
const percentTop = values => [5, 10, 20, 50, 100].find(top => Math.max(0, ...values.filter(v => v != null)) <= top) ?? 100;
const rgb = name => { const c = getComputedStyle(document.documentElement).getPropertyValue(name).trim().slice(1); return [0, 2, 4].map(i => parseInt(c.slice(i, i + 2), 16)); };
function heatMap(t) {
  const channels = t.channels[0].length, canvas = el("canvas", {width: t.channels.length, height: channels});
  const peak = Math.max(1, ...t.channels.map(row => Math.max(...row)));
  const draw = () => {
    const g = canvas.getContext("2d"), image = g.createImageData(t.channels.length, channels), cold = rgb("--cold"), hot = rgb("--hot");
    t.channels.forEach((row, i) => row.forEach((v, c) => {
      const f = Math.min(1, v / peak), at = 4 * (c * t.channels.length + i);
      for (let k = 0; k < 3; k++) image.data[at + k] = cold[k] + (hot[k] - cold[k]) * f;
      image.data[at + 3] = 255;
    }));
    g.putImageData(image, 0, 0);
  };
  draw(); redraw.push(draw);
  canvas.onmousemove = e => {
    const box = canvas.getBoundingClientRect(), i = Math.min(t.channels.length - 1, Math.max(0, Math.floor((e.clientX - box.left) / box.width * t.channels.length)));
    const c = Math.min(channels - 1, Math.max(0, Math.floor((e.clientY - box.top) / box.height * channels)));
    showTip(e, [["", `cycles ${num(t.start[i])} to ${num(t.end[i])}`], ["", `channel ${c}`, pct(t.channels[i][c], 1)]]);
  };
  canvas.onmouseleave = () => tip.style.display = "none";
  return el("div", {class: "chart"}, el("h3", {}, `DRAM data bus by channel (${channels} channels, 0 on top)`), canvas,
    el("div", {class: "scale"}, "0 %", el("i"), num(peak) + " % busy"));
}
