/* The table of launches: a head sorts, the box searches; what does not fit is one row of others. */
const PAGE = 100;
function launchTable(pick) {
  const columns = [["id", i => L.id[i]], ["kernel", i => kernelOf(i).short, 1], ["stream", i => L.stream[i]], ["grid", i => L.grid[i], 1], ["cycles", i => L.cycles[i], 0, (v, i) => (L.sampled[i] ? "~" : "") + num(v)],
    ["time", i => L.cycles[i], 0, v => time(v)], ["warp inst", i => L.instructions[i], 0, v => num(v)], ["IPC/SM", i => L.ipc[i], 0, v => num(v, 2)], ["occupancy", i => L.occupancy[i], 0, v => pct(v)],
    ["L1 hits", i => L.l1[i], 0, v => pct(v)], ["L2 hits", i => L.l2[i], 0, v => pct(v)], ["DRAM", i => L.dram[i], 0, v => pct(v)], ["bound by", i => L.bound[i], 1]];
  const body = el("tbody", {class: "pick"}), texts = L.id.map((id, i) => `${id} ${kernelOf(i).name} ${kernelOf(i).short} ${L.bound[i]} stream ${L.stream[i]}`.toLowerCase());
  let order = L.id.map((_, i) => i), by = null, down = false, chosen = null, limit = PAGE;
  const box = el("input", {type: "search", placeholder: "search: kernel, id, bound by …", oninput: () => { limit = PAGE; draw(); }});
  const found = el("span", {class: "found"});
  const draw = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean), rows = order.filter(i => words.every(w => texts[i].includes(w)));
    const others = rows.slice(limit);
    found.textContent = rows.length === N ? `${num(N)} launch${N === 1 ? "" : "es"}` : `${num(rows.length)} of ${num(N)} launches`;
    body.replaceChildren(...rows.slice(0, limit).map(i => el("tr", {...(i === chosen ? {class: "on"} : {}), onclick: () => pick(i)},
      ...columns.map(([n, get, t, form]) => el("td", {class: (t ? "t" : "") + (n === "kernel" ? " name" : ""), ...(n === "kernel" ? {title: kernelOf(i).name} : {})}, form ? form(get(i), i) : String(get(i)))))),
      ...(others.length ? [el("tr", {class: "others", onclick: () => { limit *= 4; draw(); }}, el("td"), el("td", {class: "t"}, `${num(others.length)} others`), el("td"), el("td", {class: "t"}, "show more"),
        el("td", {}, num(sum(others.map(i => L.cycles[i])))), el("td", {}, time(sum(others.map(i => L.cycles[i])))), el("td", {}, num(sum(others.map(i => L.instructions[i] ?? 0)))), ...columns.slice(7).map(() => el("td")))] : []));
  };
  const head = columns.map(([n, get, t]) => el("th", {class: t ? "t" : "", onclick: () => {
    down = by === n ? !down : !t; by = n;
    order.sort((a, b) => { const u = get(a), v = get(b); return (u == null ? -1 : v == null ? 1 : u < v ? -1 : u > v ? 1 : a - b) * (down ? -1 : 1); });
    draw();
  }}, n));
  draw();
  return {node: el("div", {}, el("div", {class: "search"}, box, found), el("div", {class: "scroll tall"}, el("table", {}, el("thead", {}, el("tr", {}, ...head)), body))),
    choose: i => { chosen = i; draw(); }};
}
function kernelBars() {
  const shown = D.kernels.slice(0, 15), rest = D.kernels.slice(15), add = f => sum(rest.map(f));
  const rows = rest.length ? [...shown, {others: true, short: `${num(rest.length)} other kernels`, name: rest.map(k => k.short).join(", ").slice(0, 2000), cycles: add(k => k.cycles), latency: add(k => k.latency), launches: add(k => k.launches)}] : shown;
  const most = Math.max(1, ...shown.map(k => k.cycles)), total = Math.max(1, sum(D.kernels.map(k => k.cycles)));
  return el("div", {}, el("div", {class: "bars"}, ...rows.flatMap(k => [el("span", {class: "n", title: k.name}, k.short),
    k.others ? el("span") : bar([["launch latency", k.latency, "var(--gray)"], ["execution", k.cycles - k.latency, "var(--blue)"]], most),
    el("span", {class: "v"}, `${pct(100 * k.cycles / total)}, ${num(k.cycles)} cycles in ${num(k.launches)} launch${k.launches === 1 ? "" : "es"}`)])),
    legend([["launch latency", "var(--gray)"], ["execution", "var(--blue)"]]));
}
