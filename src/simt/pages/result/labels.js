/* Texts in charts: marks of axes, and names that keep clear of each other. */
/* The marks of an axis from `low` to `high`, as [value, text]: at most `most` steps of 1, 2 or 5 times a power of ten, none below `least`. The text is exact. */
function ticks(low, high, most, least = 0) {
  const rough = Math.max((high - low) / most, least, Number.MIN_VALUE), power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(m => m * power >= rough * (1 - 1e-9)), largest = Math.max(Math.abs(low), Math.abs(high));
  let [, unit, name] = [[1e9, 1e9, " G"], [1e6, 1e6, " M"], [1e5, 1e3, " K"]].find(([from]) => largest >= from) ?? [0, 1, ""];
  if (step < unit / 100) [unit, name] = [1, ""]; // more than two digits behind the point
  const digits = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9)), marks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k) marks.push([k * step, k ? (k * step / unit).toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits}) + name : "0"]);
  return marks;
}
let ruler = null;
function textWidth(text, size) {
  ruler ??= document.createElement("canvas").getContext("2d");
  ruler.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  return ruler.measureText(text).width;
}
/* Places within a frame that nothing else has. `take` takes boxes, [left, top, right, bottom], if all are free; `place` finds the first place of a list, [x, y of the base line, anchor], for a text of `size` px, or null. */
function placer(left, top, right, bottom) {
  const taken = [], crosses = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
  const take = boxes => {
    if (boxes.some(a => a[0] < left || a[1] < top || a[2] > right || a[3] > bottom || taken.some(b => crosses(a, b)))) return false;
    taken.push(...boxes);
    return true;
  };
  return {
    keep: box => taken.push(box),
    take,
    place: (text, size, places) => {
      const wide = textWidth(text, size), from = (x, anchor) => x - (anchor === "end" ? wide : anchor === "middle" ? wide / 2 : 0);
      const found = places.find(([x, y, anchor]) => take([[from(x, anchor) - 2, y - size, from(x, anchor) + wide + 2, y + size / 4]]));
      return found ? {x: found[0], y: found[1], "text-anchor": found[2]} : null;
    },
  };
}
