"""Labels of the report's charts: marks of axes say where they stand, and no name lies on another."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

import simt
from simt.result import report
from support.fake_gpu import installed

LABELS = files(simt).joinpath("pages", "result", "labels.js")
_NODE = shutil.which("node")

# Marks of an axis, each from its own bounds and number of steps.
AXES = [
    ((0, 5, 5), ["0", "1", "2", "3", "4", "5"]),
    ((0, 5, 2), ["0", "5"]),
    ((0, 5, 3), ["0", "2", "4"]),
    ((0, 0.2, 5), ["0", "0.05", "0.10", "0.15", "0.20"]),
    ((0, 1, 2), ["0", "0.5", "1.0"]),
    ((0, 3, 2), ["0", "2"]),
    ((0, 32, 5), ["0", "10", "20", "30"]),
    ((1234, 1238, 9, 1), ["1,234", "1,235", "1,236", "1,237", "1,238"]),
    ((0, 1, 5, 1), ["0", "1"]),
    ((7, 7, 5, 1), ["7"]),
    ((0, 19_267, 4), ["0", "5,000", "10,000", "15,000"]),
    ((0, 250_000, 3), ["0", "100 K", "200 K"]),
    ((0, 2_500_000, 5), ["0", "0.5 M", "1.0 M", "1.5 M", "2.0 M", "2.5 M"]),
    ((12_345_600, 12_345_700, 2), ["12,345,600", "12,345,650", "12,345,700"]),
    ((-0.3, 0.3, 3), ["-0.2", "0", "0.2"]),
]


@pytest.mark.skipif(_NODE is None, reason="node is not installed")
def test_marks_of_an_axis_are_exact() -> None:
    axes = json.dumps([axis for axis, _ in AXES])
    code = f"{LABELS.read_text()}console.log(JSON.stringify({axes}.map(a => ticks(...a))))"
    run = subprocess.run([str(_NODE), "-e", code], capture_output=True, text=True, check=True)
    for (axis, expected), marks in zip(AXES, json.loads(run.stdout), strict=True):
        assert [text for _, text in marks] == expected, axis
        for value, text in marks:
            number, _, unit = text.replace(",", "").partition(" ")
            shown = float(number) * {"": 1, "K": 1e3, "M": 1e6, "G": 1e9}[unit]
            assert shown == pytest.approx(value, abs=1e-9), axis
            assert axis[0] - 1e-9 <= value <= axis[1] + 1e-9


# For each chart, pairs of its upright texts that cross, and texts that stick out of the page.
MEASURE = """<script>setTimeout(() => {
  const found = [];
  for (const chart of document.querySelectorAll("svg")) {
    const upright = [...chart.querySelectorAll("text:not([transform])")];
    const texts = upright.map(t => [t.textContent, t.getBoundingClientRect()]);
    texts.forEach(([a, p], i) => {
      if (p.left < 0 || p.right > innerWidth) found.push(a + " outside");
      for (const [b, q] of texts.slice(i + 1))
        if (p.left < q.right && q.left < p.right && p.top + 2 < q.bottom && q.top + 2 < p.bottom)
          found.push(a + " on " + b);
    });
  }
  const svg = document.querySelector("svg");
  const size = parseFloat(getComputedStyle(svg.querySelector("text")).fontSize);
  main.dataset.found = JSON.stringify(found);
  main.dataset.size = String(size * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width);
  main.dataset.wide = String(document.documentElement.scrollWidth - innerWidth);
}, 300)</script>"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
@pytest.mark.parametrize("width", [500, 800, 1200])  # the first is the narrowest window there is
def test_labels_do_not_collide(tmp_path: Path, width: int) -> None:
    path = tmp_path / "report.html"
    with installed():
        report.write(simt.simulate("input", timeline=10), path)
    path.write_text(path.read_text().replace("</body>", f"{MEASURE}</body>"))
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=2000", "--dump-dom"]
    run = subprocess.run([*command, path.as_uri()], capture_output=True, text=True, timeout=60, check=True)
    (main,) = re.findall(r"<main [^>]*>", run.stdout)
    values = dict(re.findall(r'data-(\w+)="([^"]*)"', main))
    assert values["found"] == "[]"
    assert float(values["size"]) == pytest.approx(11, abs=0.5)  # px, however narrow
    assert float(values["wide"]) <= 0  # no scrolling sideways
