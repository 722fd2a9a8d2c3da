/* Source lines and instructions of a launch, each with what its warps waited for. */
function stalledAt(x, at) {
  const found = {};
  for (const [reason, row] of Object.entries(x.stalled)) { const n = sum(at.map(i => row[i])); if (n) found[reason] = n; }
  return found;
}
function lineRows(x) {
  const t = D.listings[x.listing], rows = new Map();
  t.line.forEach((line, i) => { if (line) { const key = `${t.file[i] ?? ""}\u0000${line}`; if (!rows.has(key)) rows.set(key, []); rows.get(key).push(i); } });
  return [...rows.values()].sort((a, b) => { const f = t.file[a[0]] ?? "", g = t.file[b[0]] ?? ""; return f < g ? -1 : f > g ? 1 : t.line[a[0]] - t.line[b[0]]; });
}
/* energy: J of each instruction, of a run with power. */
function lines(x, energy) {
  if (!x) return [];
  const t = D.listings[x.listing], sources = lineRows(x), hasPtx = t.ptx.some(p => p), every = sum(Object.values(x.stalled).flat());
  const lanes = at => { const n = sum(at.map(i => x.issued[i])); return x.threads && n ? num(sum(at.map(i => x.threads[i])) / n, 1) : "–"; };
  const place = el("div"), kinds = [...(sources.length ? [["Source", bySource]] : []), ["Instructions", byInstruction], ["Hottest", hottest]];
  const cells = (at, most) => { const table = stalledAt(x, at), n = sum(Object.values(table));
    return [el("td", {}, num(sum(at.map(i => x.issued[i])))), el("td", {}, lanes(at)), el("td", {}, every ? pct(100 * n / every, 1) : "–"), ...(energy ? [el("td", {}, joules(sum(at.map(i => energy[i]))))] : []), el("td", {class: "t"}, bar(reasonParts(table), most))]; };
  const mostOf = groups => Math.max(1, ...groups.map(at => sum(Object.values(stalledAt(x, at)))));
  const heat = (at, most) => `--heat:${Math.round(55 * sum(Object.values(stalledAt(x, at))) / most)}%`;
  const head = names => el("thead", {}, el("tr", {}, ...names.map(([n, c]) => el("th", {class: c ?? "", style: "cursor:default"}, n))));
  const counts = [["issued"], ["lanes"], ["waiting"], ...(energy ? [["dynamic energy"]] : []), ["by reason", "t"]];
  const legendOf = groups => legend(uniqueParts(groups.map(at => reasonParts(stalledAt(x, at)))));
  function bySource() {
    const most = mostOf(sources), body = el("tbody");
    let file = null, last = 0;
    for (const at of sources) {
      const i = at[0];
      if ((t.file[i] ?? "") !== file) { file = t.file[i] ?? ""; last = 0; body.append(el("tr", {class: "file"}, el("td", {colspan: counts.length + 2, class: "t"}, file || "source"))); }
      if (last && t.line[i] > last + 1) body.append(el("tr", {class: "gap"}, el("td", {}, "⋮"), el("td", {colspan: counts.length + 1})));
      last = t.line[i];
      const row = el("tr", {class: "open", style: heat(at, most)}, el("td", {class: "mono"}, String(t.line[i])), el("td", {class: "t mono code"}, t.source[i] || "–"), ...cells(at, most));
      let inner = null;
      row.onclick = () => { if (inner) { inner.forEach(r => r.remove()); inner = null; } else { inner = at.map(j => instructionRow(j, most, "inner")); row.after(...inner); } };
      body.append(row);
    }
    return [el("table", {class: "pcs"}, head([["line"], ["source: a click opens its instructions", "t"], ...counts]), body), legendOf(sources)];
  }
  function instructionRow(i, most, name = "") {
    return el("tr", {class: name, style: heat([i], most)}, el("td", {class: "mono"}, t.pc[i]), el("td", {class: "t mono code"}, t.text[i], ...(t.ptx[i] ? [el("span", {class: "ptx"}, t.ptx[i])] : [])), ...cells([i], most));
  }
  function table(order) {
    const groups = order.map(i => [i]), most = mostOf(groups);
    let shown = 400;
    const body = el("tbody");
    const draw = () => body.replaceChildren(...order.slice(0, shown).map(i => instructionRow(i, most)), ...(order.length > shown ? [el("tr", {class: "others", onclick: () => { shown = order.length; draw(); }}, el("td"), el("td", {class: "t"}, `${num(order.length - shown)} more: show`), el("td", {colspan: counts.length}))] : []));
    draw();
    return [el("table", {class: "pcs"}, head([["PC"], ["machine code" + (hasPtx ? ", and the PTX that it stands for" : ""), "t"], ...counts]), body), legendOf(groups)];
  }
  function byInstruction() { return table(t.pc.map((_, i) => i)); }
  function hottest() { const waits = i => sum(Object.values(stalledAt(x, [i]))); return table(t.pc.map((_, i) => i).sort((a, b) => waits(b) - waits(a)).slice(0, 40)); }
  const buttons = kinds.map(([name, make]) => el("button", {onclick: () => show(name, make)}, name));
  function show(name, make) {
    buttons.forEach((b, k) => b.className = kinds[k][0] === name ? "on" : "");
    const [node, below] = make();
    place.replaceChildren(el("div", {class: "scroll lines"}, node), below);
  }
  show(...kinds[0]);
  return [section("Lines, and where warps wait", `How often a warp was found waiting to issue the instruction, sampled every ${x.interval} cycles. Lanes: active threads per warp instruction.` + (x.left_out ? ` ${num(x.left_out)} instructions without waiting are left out.` : ""), el("div", {class: "tabs"}, ...buttons), place)];
}
