/* Names, colours, numbers, elements. */
const MEANING = {selected:"issued an instruction",issued:"issued an instruction",async_copy:"waits for asynchronous copies",not_selected:"ready, but another warp was chosen",
  long_scoreboard:"waits for global, local or texture memory",short_scoreboard:"waits for shared memory or special functions",
  wait:"waits for an arithmetic result",math_pipe_throttle:"waits for a busy execution unit",lg_throttle:"waits for room in the pipeline of global and local memory",mio_throttle:"waits for room in the pipeline of shared memory",
  barrier:"waits at a CTA barrier",membar:"waits at a memory barrier",
  no_instruction:"has no fetched instruction",sleeping:"sleeps",imc_miss:"waits for a constant operand",drain:"has exited, waits for its stores",warpgroup_arrive:"waits for products or warps of its warp group",other:"all smaller ones"};
const ORDER = ["selected","not_selected","long_scoreboard","short_scoreboard","async_copy","wait","math_pipe_throttle","lg_throttle","mio_throttle","barrier","membar","no_instruction"];
const color = r => `var(--state-${r},var(--faint))`;
const label = r => r === "selected" ? "issued" : r.replaceAll("_", " ");
const num = (v, d = 0) => v == null ? "–" : v.toLocaleString("en", {minimumFractionDigits: d, maximumFractionDigits: d});
const pct = (v, d = 0) => v == null ? "–" : num(v, d) + " %";
const short = v => v >= 1e9 ? num(v / 1e9, 2) + " G" : v >= 1e6 ? num(v / 1e6, 2) + " M" : v >= 1e5 ? num(v / 1e3) + " K" : num(v);
const sum = a => a.reduce((x, y) => x + y, 0);
const main = document.getElementById("main"), tip = document.getElementById("tip");

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes)) k === "style" ? node.style.cssText = v : k.startsWith("on") ? node[k] = v : node.setAttribute(k, v);
  node.append(...children);
  return node;
}
function svg(tag, attributes = {}, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(attributes)) node.setAttribute(k, v);
  if (text !== undefined) node.textContent = text;
  return node;
}
function showTip(event, rows) {
  tip.replaceChildren(...rows.map(([c, a, b]) => el("div", {}, el("span", {}, ...(c ? [el("i", {style: `background:${c}`})] : []), a), el("b", {}, b ?? ""))));
  tip.style.display = "block";
  tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
  tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8) + "px";
}
function tipped(node, rows) {
  node.onmousemove = e => showTip(e, rows());
  node.onmouseleave = () => tip.style.display = "none";
  return node;
}
const section = (title, note, ...children) => el("section", {}, el("h2", {}, title), ...(note ? [el("p", {class: "note"}, note)] : []), ...children);

