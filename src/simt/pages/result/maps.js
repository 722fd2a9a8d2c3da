/* A square per SM or L2 slice, coloured from least to most. */
function map(title, unit, values, rows) {
  const most = Math.max(0, ...values.filter(v => v != null)), mean = sum(values.map(v => v ?? 0)) / values.length;
  const cell = (v, i) => tipped(el("i", {style: `background:color-mix(in srgb, var(--hot) ${most && v != null ? Math.round(100 * v / most) : 0}%, var(--cold))`}),
    () => [["", `${unit} ${i}`, num(v, most < 10 ? 2 : 0)], ...rows(i)]);
  return el("div", {class: "chart"}, el("h3", {}, title), el("div", {class: "map"}, ...values.map(cell)),
    el("div", {class: "scale"}, "0", el("i"), num(most, most < 10 ? 2 : 0), el("span", {}, `mean ${num(mean, most < 10 ? 2 : 0)}` + (mean ? `, most ${num(most / mean, 2)} times it` : ""))));
}
function maps(x) {
  const sm = x.spread.sm, slice = x.spread.l2_slice;
  if (!sm || !sm.warp_instructions.length) return [];
  const ipc = sm.warp_instructions.map((n, i) => sm.active_cycles[i] ? n / sm.active_cycles[i] : null);
  const rate = slice.lookups.map((n, i) => n ? 100 * slice.hits[i] / n : null), about = i => [["", "active cycles", num(sm.active_cycles[i])], ["", "warp instructions", num(sm.warp_instructions[i])], ["", "IPC while active", num(ipc[i], 2)]];
  const hits = i => [["", "sector look-ups", num(slice.lookups[i])], ["", "hits", pct(rate[i], 1)]];
  return [section("Maps", `The launch's work by SM (${sm.warp_instructions.length}) and by L2 slice (${slice.lookups.length}), in their order.`, el("div", {class: "charts"},
    map("Cycles with a resident warp, by SM", "SM", sm.active_cycles, about), map("Warp instructions, by SM", "SM", sm.warp_instructions, about),
    map("Sector look-ups, by L2 slice", "slice", slice.lookups, hits), map("Hits, %, by L2 slice", "slice", rate, hits)))];
}
