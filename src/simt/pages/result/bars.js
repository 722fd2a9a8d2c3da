/* Bars of parts, and what states of warps look like in them. */
/* A bar of parts [name, value, colour]; `total` is the value of the full width. */
function bar(parts, total) {
  const node = el("div", {class: "bar"});
  for (const [name, value, c] of parts) {
    if (value <= 0) continue;
    const part = el("i", {style: `width:${100 * value / total}%;background:${c}`});
    node.append(tipped(part, () => [[c, name, num(value)], ["", MEANING[name.replaceAll(" ", "_")] ?? "share", pct(100 * value / sum(parts.map(p => p[1])), 1)]]));
  }
  return node;
}
/* Reasons in a fixed order and colour; those without a colour of their own are one "other". */
function reasonParts(table) {
  const known = ORDER.filter(r => table[r] > 0).map(r => [label(r), table[r], color(r)]);
  const rest = sum(Object.keys(table).filter(r => !ORDER.includes(r)).map(r => table[r]));
  return rest ? [...known, ["other", rest, "var(--faint)"]] : known;
}
function legend(names) {
  return el("div", {class: "legend"}, ...names.map(([n, c]) => el("span", {title: MEANING[n.replaceAll(" ", "_")] ?? ""}, el("i", {style: `background:${c}`}), n)));
}
function uniqueParts(lists) {
  const seen = new Map();
  for (const parts of lists) for (const [n, , c] of parts) seen.set(n, c);
  const order = [...ORDER.map(label), "other"];
  return [...seen].sort((a, b) => order.indexOf(a[0]) - order.indexOf(b[0]));
}

