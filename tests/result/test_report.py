"""The HTML page: self-contained, complete, bounded."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from array import array
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import simt
from simt.result import Result, launch_page, report
from simt.result.timeline import BANKS, ROWS
from simt.result.transfer import Transfer
from support.fake_gpu import installed
from support.launches import MACHINE, launch


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r"^const D = (.*);$", page, re.MULTILINE)
    assert found
    return json.loads(found[1])


@pytest.fixture
def result() -> Result:
    with installed():
        return simt.simulate("input", timeline=10)


def test_page_is_self_contained(result: Result, tmp_path: Path) -> None:
    report.write(result, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    without_namespaces = page.replace("http://www.w3.org/2000/svg", "")
    assert "http" not in without_namespaces
    assert not re.search(r"<(link|img|iframe)\b|\bsrc=|@import|url\(|fetch\(", page)


def test_names_of_the_scripts_are_declared_once(result: Result) -> None:
    """A second declaration is a syntax error, with which the page stays empty."""
    script = report.page(result).split("<script>")[1]
    names = re.findall(r"^(?:const|let|class|function) (\w+)", script, re.MULTILINE)
    assert len(names) > 40 and sorted(names) == sorted(set(names))


def test_page_holds_what_the_result_says(result: Result) -> None:
    page = report.page(result)
    data = data_of(page)
    assert "<title>input on toy - simt</title>" in page
    assert data["program"] == "input" and data["totals"]["cycles"] == 17_000
    assert [data["kernels"][k]["name"] for k in data["launches"]["kernel"]] == [
        x.name for x in result.launches
    ]
    assert data["launches"]["cycles"] == [4500, 8500, 2500, 1500]
    assert data["kernels"][0] == {
        "name": "gemm_128x64",
        "short": "gemm_128x64",
        "launches": 1,
        "cycles": 8500,
        "latency": 500,
    }
    assert sum(kernel["cycles"] for kernel in data["kernels"]) == data["totals"]["cycles"]
    detail = data["details"]["1"]
    listing = data["listings"][detail["lines"]["listing"]]
    assert listing["text"] == ["LDG.E R4, R2", "FFMA R5, R4, R4, R5", "EXIT"]
    assert detail["lines"]["stalled"] == {"long_scoreboard": [10, 900, 0], "wait": [5, 5, 20]}
    assert len(data["listings"]) == 1  # all kernels of the fake have the same instructions
    assert detail["spread"]["sm"]["warp_instructions"] == [2560, 1280, 1280, 0]
    timeline = detail["timeline"]
    assert len(timeline["ipc"]) <= launch_page.MAX_POINTS
    assert timeline["start"][0] == 0 and timeline["end"][-1] == 8500
    channels, banks = detail["dram"]
    assert (channels["rows"], banks["rows"]) == (list(range(8)), list(range(8 * 4)))
    for shown in (channels, banks):
        for kind in ("utilisation", "efficiency"):
            assert len(shown[kind]["cells"]) == len(shown["rows"]) * len(shown["end"])
            assert set(shown[kind]["cells"]) <= set(launch_page._LEVELS + ".")
    lines = detail["line_map"]
    assert lines["by"] == "line" and [row[0] for row in lines["rows"]] == ["12", "13"]
    for kind in ("waiting", "issued"):
        assert len(lines[kind]["cells"]) == 2 * len(lines["end"])
    assert {point["kernel"] for point in data["roofline"]["points"]} == set(range(len(data["kernels"])))


def test_time_of_kernels_that_overlap_adds_up_to_the_total(result: Result) -> None:
    launches = (launch(0, "a", start=0), launch(1, "b", start=1000), launch(2, "a", start=9000))
    data = data_of(report.page(Result(launches, MACHINE, result.provenance)))
    assert data["totals"]["cycles"] == 10_000
    assert {kernel["name"]: kernel["cycles"] for kernel in data["kernels"]} == {"a": 7250, "b": 2750}


EVIL = ["</script><script>alert(1)</script>", "<!--<script>", "]]>", "/*DATA*/null", "\0\u2028\udcff", "&lt;"]


@pytest.mark.parametrize("evil", EVIL)
def test_names_cannot_break_the_page(result: Result, evil: str) -> None:
    page = report.page(Result((launch(name=evil),), MACHINE, replace(result.provenance, input=evil)))
    reader = Scripts()
    reader.feed(page)
    reader.close()
    assert len(reader.scripts) == 1 and "<" not in page.split("const D = ")[1].split("\n")[0]
    legible = evil.encode("utf-8", "replace").decode()
    assert data_of(page)["kernels"][0]["name"] == legible
    assert data_of(page)["input"] == legible


class Scripts(HTMLParser):
    """The scripts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.scripts and self.lasttag == "script":
            self.scripts[-1] += data


@pytest.mark.slow
def test_page_of_many_launches_is_small_and_has_them_all(result: Result) -> None:
    many = tuple(launch(i, f"kernel{i % 70}", start=6000 * i, ctas=1 + i % 5) for i in range(2000))
    page = report.page(Result(many, MACHINE, result.provenance))
    data = data_of(page)
    assert data["launches"]["id"] == [x.id for x in many]
    assert len(data["details"]) == report.MAX_DETAILED
    assert len({data["launches"]["kernel"][int(i)] for i in data["details"]}) == report.MAX_DETAILED
    assert len(page) < 500 * len(many)


@pytest.mark.slow
def test_page_of_ten_thousand_launches_is_at_most_5_mb(result: Result) -> None:
    """Sixty long launches with timelines of many banks, and copies."""
    machine = replace(MACHINE, dram_channels=160, dram_banks=16)
    template = launch(0, ctas=30, interval=100)
    t = template.timeline
    assert t is not None
    for name in ("dram_reads", "dram_writes", "dram_bus_cycles", "dram_pending_cycles"):
        t[name] = [[(7 * i * c) % 50 for c in range(160)] for i in range(len(t["cycle"]))]
    rows = [
        (i, c, b, (i * b) % 50, 50)
        for i in range(0, len(t["cycle"]), 10)
        for c in range(160)
        for b in range(16)
    ]
    t["dram_banks"] = {
        n: array("I", row) for n, row in zip(ROWS[BANKS], zip(*rows, strict=True), strict=True)
    }
    short = launch(0, ctas=1, interval=100)
    launches = tuple(
        replace(
            template if i < 60 else short, index=i, id=i, name=f"kernel{i % 70}<float, int>", machine=machine
        )
        for i in range(10_000)
    )
    copies = tuple(Transfer("host_to_device", 1, 4096, 10 * i, 10 * i + 9) for i in range(30_000))
    page = report.page(Result(launches, machine, result.provenance, transfers=copies))
    assert len(page.encode()) <= report.MAX_BYTES == 5_000_000
    data = data_of(page)
    assert len(data["launches"]["id"]) == 10_000
    assert len(data["transfers"]["start"]) == report.MAX_TRANSFERS and data["transfers"]["left_out"] == 10_000
    banks = data["details"]["0"]["dram"][1]
    assert len(banks["rows"]) == launch_page.MAX_ROWS and banks["left_out"] == 160 * 16 - 256


def drawn(page: Path, tmp_path: Path) -> str:
    """The page's elements after its script has run."""
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=1000", "--dump-dom"]
    run = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=60, check=True)
    return run.stdout[run.stdout.index("<main") : run.stdout.index("<script>\n")]


browser = pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")


@pytest.mark.slow
@browser
def test_page_draws_in_a_browser(result: Result, tmp_path: Path) -> None:
    report.write(result, tmp_path / "report.html")
    body = drawn(tmp_path / "report.html", tmp_path)
    assert "gemm_128x64" in body and body.count("<svg") == 7 and body.count("<canvas") == 6
    for part in (
        "Launches over time",
        "Roofline",
        "Lines, and where warps wait",
        "Lines over time",
        "Maps",
        "Provenance",
    ):
        assert part in body
    assert body.count('class="map"') == 4 and 'type="search"' in body


@pytest.mark.slow
@browser
def test_page_without_launches_draws(result: Result, tmp_path: Path) -> None:
    nothing = Result((), MACHINE, result.provenance, ("nothing ran",), "max_cycles", (0,))
    report.write(nothing, tmp_path / "report.html")
    body = drawn(tmp_path / "report.html", tmp_path)
    assert "No launch finished." in body and "nothing ran" in body and "Provenance" in body


@pytest.mark.slow
@browser
def test_page_of_many_launches_folds_the_rest(result: Result, tmp_path: Path) -> None:
    many = tuple(launch(i, f"kernel{i % 70}", start=6000 * i) for i in range(2000))
    report.write(Result(many, MACHINE, result.provenance), tmp_path / "report.html")
    body = drawn(tmp_path / "report.html", tmp_path)
    assert "1,900 others" in body and "55 other kernels" in body and "Provenance" in body


@pytest.mark.slow
@browser
@pytest.mark.parametrize("evil", EVIL)
def test_page_draws_with_any_name(result: Result, tmp_path: Path, evil: str) -> None:
    x = launch(name=evil)
    x.pc.update(source_text=[evil] * 3, source_file=[evil] * 3, ptx=[evil] * 3)
    report.write(Result((x,), MACHINE, replace(result.provenance, input=evil)), tmp_path / "report.html")
    body = drawn(tmp_path / "report.html", tmp_path)
    assert "Lines, and where warps wait" in body and "Provenance" in body and "<script" not in body
