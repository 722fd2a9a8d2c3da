/* Energy and power: bars by component, power over time. */
const SCALES = [[1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
const joules = v => { const [f, p] = SCALES.find(([f]) => v >= f) ?? [1e-12, "p"]; return num(v / f, v / f < 10 ? 2 : 1) + " " + p + "J"; };
const GROUP_COLOUR = ["var(--blue)", "var(--aqua)", "var(--orange)", "var(--violet)", "var(--gray)"];
const groupColour = name => GROUP_COLOUR[Object.keys(D.energy.groups).indexOf(name)];
/* Rows of one bar each: components of each group, then instruction classes. */
function energyBars(e) {
  const most = Math.max(...Object.values(e.components), ...Object.values(e.classes));
  const row = (name, value, c) => [el("span", {class: "n"}, name), el("div", {class: "bar"}, tipped(el("i", {style: `width:${100 * value / most}%;background:${c}`}), () => [[c, name, joules(value)], ["", "average", num(value / e.seconds, 1) + " W"]])),
    el("span", {class: "v"}, `${joules(value)}  ·  ${pct(100 * value / e.joules, 1)}  ·  ${num(value / e.seconds, 1)} W`)];
  const parts = Object.entries(D.energy.groups).flatMap(([group, names]) => names.filter(n => e.components[n]).map(n => row(n, e.components[n], groupColour(group))));
  const classes = Object.entries(e.classes).map(([n, v]) => row(n.replaceAll("_", " "), v, "var(--magenta)"));
  return el("div", {class: "charts"}, el("div", {class: "chart"}, el("h3", {}, "By component"), el("div", {class: "bars"}, ...parts.flat()), legend(Object.keys(D.energy.groups).map(g => [g, groupColour(g)]))),
    el("div", {class: "chart"}, el("h3", {}, "Instructions, within the SMs' pipelines"), el("div", {class: "bars"}, ...classes.flat())));
}
function energySection(title, e) {
  const facts = [["energy", `${joules(e.joules)} (${joules(e.low)} to ${joules(e.high)})`], ["average power", num(e.watts, 1) + " W"], ...(e.peak ? [["peak", num(e.peak, 1) + " W"]] : []),
    ["energy-delay product", (e.joules * e.seconds).toExponential(2) + " J s"], ...(e.projected ? [["whole program", `${joules(e.projected.joules)} ± ${num(100 * e.projected.relative, 1)} %`]] : [])];
  return section(title, `Energies of ${D.energy.energies}. The range is what the uncertainties of the energies allow (95 %).`,
    el("div", {class: "facts"}, ...facts.map(([n, v]) => el("span", {}, n + " ", el("b", {}, v)))), energyBars(e));
}
function powerChart(t) {
  const parts = Object.entries(t.watts).map(([n, v]) => [n, v, groupColour(n)]), total = t.end.map((_, i) => sum(parts.map(p => p[1][i])));
  const top = Math.ceil(Math.max(1, ...total) / 50) * 50;
  return stackedChart("Power, W", t, parts.reverse(), top, v => num(v, 1) + " W");
}
