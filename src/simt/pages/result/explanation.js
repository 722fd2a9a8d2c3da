/* Why a launch takes its time: gains without each cause, lower bounds, who waits for whom. */
function explained(e) {
  if (!e) return [];
  const bars = rows => el("div", {class: "bars"}, ...rows.flatMap(([name, share, text, why]) => [
    el("span", {class: "n", title: why}, name), el("div", {class: "bar"}, el("i", {style: `width:${100 * Math.min(1, Math.max(0, share))}%;background:var(--blue)`})), el("span", {class: "v"}, text)]));
  const part = (title, note, ...nodes) => [el("h3", {}, title), el("p", {class: "note"}, note), ...nodes];
  const gains = e.gains.filter(([, saved]) => saved >= .002).map(([name, saved, speedup, where]) => [name, saved, `${pct(100 * saved, 1)} less time, ${num(speedup, 2)} times as fast`, where]);
  const nodes = [...e.sentences.map(s => el("p", {}, s))];
  if (e.gains.length) nodes.push(...part("Simulated without it", "The launch was simulated again without each cause: the time that is saved. Gains do not add up.", bars(gains)));
  if (e.bounds.length) nodes.push(...part("If only this resource existed", "The time that each resource takes at least, of the launch's.", bars(e.bounds.map(([name, share, cycles]) => [name, share, `${num(cycles)} cycles, ${pct(100 * share, 1)}`]))));
  if (e.chains.length) nodes.push(...part("Who waits for whom", "From the instructions at which warps wait longest to those that make them wait, by their share of all waiting.",
    el("dl", {}, ...e.chains.flatMap(([share, text]) => [el("dt", {}, pct(100 * share)), el("dd", {}, text)]))));
  for (const note of e.notes) nodes.push(el("p", {class: "note"}, note));
  return nodes.length ? [section(`Why launch ${e.launch} takes its time`, e.gains.length ? "" : "`simt report RESULT --explain` also simulates it without each cause.", ...nodes)] : [];
}
