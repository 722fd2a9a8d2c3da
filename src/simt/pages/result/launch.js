/* Everything about the launch that was chosen. */
function details(i) {
  redraw = [];
  const x = D.details[i], k = kernelOf(i);
  const facts = [...(k.short === k.name ? [] : [["name", k.name]]), ["stream", L.stream[i]], ["grid", L.grid[i]], ["block", L.block[i]], ["cycles", (L.sampled[i] ? "~" : "") + num(L.cycles[i])], ["launch latency", num(L.latency[i])],
    ...(x ? [["registers", x.registers], ["shared memory", num(x.shared) + " B"], ["CTAs per SM", `${x.ctas_per_sm} (limited by ${x.limited_by})`], ["issue slots used", pct(x.issue, 1)], ...(x.sampled ? [["sampled", x.sampled]] : [])] : [])];
  const shown = el("div", {class: "facts"}, ...facts.map(([n, v]) => el("span", {}, n + " ", el("b", {}, String(v)))));
  const title = `Launch ${L.id[i]}: ${k.short}`;
  if (!x) {
    const like = Object.keys(D.details).map(Number).find(j => L.kernel[j] === L.kernel[i]);
    return [section(title, `Bound by ${L.bound[i]}. Timeline, lines and maps are kept for the longest launches only${like === undefined ? "" : `; for this kernel, see launch ${L.id[like]}`}.`, shown)];
  }
  const parts = [section(title, `Bound by ${L.bound[i]}: ${x.why}.`, shown, ...partsOfTime(x), ...stalls(x))], t = x.timeline;
  if (t) {
    const most = Math.max(.01, ...t.ipc.filter(v => v != null)), top = most > 2 ? Math.ceil(most) : most > 1 ? 2 : most > .5 ? 1 : most > .2 ? .5 : .2;
    parts.push(section("Timeline", "Cycles since the launch, of the whole GPU. DRAM utilisation: the share of all cycles in which the data bus moves data; efficiency: of the cycles with a request pending (white: none).", el("div", {class: "charts"},
      lineChart("Warp instructions per SM and cycle", t, [["IPC", t.ipc, "var(--blue)"]], top, ""),
      ...(Object.keys(t.stalls).length ? [stackChart("Schedulers: issuing, or why not, % of their cycles", t, t.stalls)] : []),
      lineChart("Occupancy, % of the warps that fit", t, [["occupancy", t.occupancy, "var(--violet)"]], percentTop(t.occupancy), " %"),
      lineChart("Cache hit rates, %", t, [["L1", t.l1, "var(--aqua)"], ["L2", t.l2, "var(--orange)"]], 100, " %"),
      lineChart("DRAM, %", t, [["utilisation", t.dram, "var(--blue)"], ["efficiency", t.efficiency, "var(--yellow)"]], percentTop([...t.dram, ...t.efficiency]), " %"),
      lineChart("Active threads per warp instruction", t, [["threads", t.lanes, "var(--magenta)"]], Math.max(32, ...t.lanes.filter(v => v != null)), ""),
      ...(x.energy?.timeline ? [powerChart(x.energy.timeline)] : []),
      ...dramMaps(x.dram))));
  }
  if (x.energy) parts.push(energySection("Energy of the launch", x.energy));
  return [...parts, ...lines(x.lines, x.energy?.lines), ...lineMap(x.line_map), ...maps(x)];
}
/* Where its time goes: parts that add up to 100 %. */
function partsOfTime(x) {
  if (!x.parts.length) return [];
  const colour = i => `var(--${PALETTE[i] ?? "faint"})`;
  return [el("div", {class: "bars"}, el("span", {class: "n"}, "Time: where it goes"),
    el("div", {class: "bar"}, ...x.parts.map(([n, v, why], i) => tipped(el("i", {style: `width:${v}%;background:${colour(i)}`}), () => [[colour(i), n, pct(v, 1)], ["", why]]))), el("span", {class: "v"}, "100 %")),
    el("div", {class: "legend"}, ...x.parts.map(([n, v, why], i) => el("span", {title: why}, el("i", {style: `background:${colour(i)}`}), `${n} ${pct(v, 1)}`)))];
}
function stalls(x) {
  const rows = [["Warps: what each is doing", reasonParts(x.states)], ["Schedulers: issuing, or why not", reasonParts(x.schedulers)]].filter(r => r[1].length);
  if (!rows.length) return [];
  return [el("div", {class: "bars"}, ...rows.flatMap(([n, parts]) => {
    const total = sum(parts.map(p => p[1]));
    return [el("span", {class: "n"}, n), bar(parts, total), el("span", {class: "v"}, short(total) + " cycles")];
  })), legend(uniqueParts(rows.map(r => r[1])))];
}
