/* The page. */
function build() {
  const t = D.totals;
  const tiles = [[t.cycles < 1e7 ? num(t.cycles) : short(t.cycles), "cycles"], [t.time, "at the core clock"], [num(t.launches), t.launches === 1 ? "launch" : "launches"], [short(t.instructions), "warp instructions"], [num(t.ipc, 2), "IPC per SM"],
    [pct(t.occupancy), "occupancy"], [pct(t.l2), "L2 hits"], [pct(t.dram), "DRAM bus busy"],
    ...(D.energy ? [[joules(D.energy.joules), "energy"], [num(D.energy.watts, 1) + " W", "average power"]] : [])];
  const theme = () => { const root = document.documentElement; root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark"; [...redraw, ...themed].forEach(f => f()); };
  main.append(el("header", {}, el("h1", {}, D.program + " ", el("span", {}, "on " + D.gpu)), el("span", {class: "input", title: D.input}, D.input), el("button", {onclick: theme}, "light / dark")));
  main.append(el("div", {class: "tiles"}, ...tiles.map(([v, n]) => el("div", {class: "tile"}, el("b", {}, v), el("span", {}, n)))));
  if (D.sentences.length) main.append(el("section", {class: "say"}, ...D.sentences.map(s => el("p", {}, s))));
  if (D.warnings.length) main.append(el("section", {class: "warn"}, el("h2", {}, "Warnings"), el("ul", {}, ...D.warnings.map(w => el("li", {}, w)))));
  if (N) {
    const place = el("div"), pick = i => { table.choose(i); over?.choose(i); place.replaceChildren(...details(i)); };
    const table = launchTable(pick), over = N > 1 || C.link.length ? streams(pick) : null;
    if (over) main.append(section("Time by kernel", "Cycles in which several launches run are divided among them.", kernelBars()),
      section("Launches over time", "One row per stream, with its copies and memsets below the launches" + (C.left_out ? ` (${num(C.left_out)} short ones are left out)` : "") + ". Drag to move, use the wheel to zoom, double-click to show all, click to select.", over.node));
    if (D.energy) main.append(energySection("Energy", D.energy));
    const roof = roofline();
    if (roof) main.append(section("Roofline", "Kernels by operations per byte, against the peaks of the specification; larger circles take longer.", roof));
    main.append(section("Launches", "Select one to see its stalls, lines and maps. Click a column's head to sort.", table.node), place);
    pick(L.cycles.reduce((best, c, i) => c > L.cycles[best] ? i : best, 0));
    main.append(...explained(D.explanation));
  } else main.append(section("Launches", "No launch finished."));
  const terms = pairs => el("dl", {}, ...pairs.flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v)]));
  if (D.confidence.length) main.append(section("How sure", "By the errors of like runs that were compared with real GPUs.", terms(D.confidence)));
  main.append(section("Provenance", null, terms(D.provenance)));
}
document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
build();
