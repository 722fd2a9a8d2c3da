"""The HTML page: self-contained, complete, bounded."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import simt
from simt.result import Result, report
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


def test_page_holds_what_the_result_says(result: Result) -> None:
    data = data_of(report.page(result))
    assert data["totals"]["cycles"] == 17_000
    assert [x["name"] for x in data["launches"]] == [x.name for x in result.launches]
    assert data["kernels"][0] == {
        "name": "gemm_128x64",
        "short": "gemm_128x64",
        "launches": 1,
        "cycles": 8500,
        "latency": 500,
    }
    assert data["launches"][1]["pcs"][0]["opcode"] == "FFMA"
    timeline = data["launches"][1]["timeline"]
    assert len(timeline["ipc"]) <= report.MAX_POINTS
    assert timeline["start"][0] == 0 and timeline["end"][-1] == 8500
    assert len(timeline["channels"][0]) == 8


EVIL = ["</script><script>alert(1)</script>", "<!--<script>", "]]>", "/*DATA*/null", "\0\u2028\udcff", "&lt;"]


@pytest.mark.parametrize("evil", EVIL)
def test_names_cannot_break_the_page(result: Result, evil: str) -> None:
    page = report.page(Result((launch(name=evil),), MACHINE, replace(result.provenance, input=evil)))
    reader = Scripts()
    reader.feed(page)
    reader.close()
    assert len(reader.scripts) == 1 and "<" not in page.split("const D = ")[1].splitlines()[0]
    assert data_of(page)["launches"][0]["name"] == evil
    assert data_of(page)["input"] == evil


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


def test_page_of_many_launches_is_bounded(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MAX_ROWS", 5)
    monkeypatch.setattr(report, "MAX_DETAILED", 2)
    many = tuple(launch(i, ctas=1 + i, interval=100) for i in range(8))
    data = data_of(report.page(Result(many, MACHINE, result.provenance)))
    assert [x["id"] for x in data["launches"]] == [4, 5, 6, 7, 8]
    assert data["left_out"] == 3
    assert [x["id"] for x in data["launches"] if x["timeline"]] == [7, 8]


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
@pytest.mark.parametrize("launches", [True, False])
def test_page_draws_in_a_browser(result: Result, tmp_path: Path, launches: bool) -> None:
    if not launches:
        result = Result((), MACHINE, result.provenance, ("nothing ran",), "max_cycles", (0,))
    report.write(result, tmp_path / "report.html")
    command = [
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    command += ["--virtual-time-budget=1000", "--dump-dom", (tmp_path / "report.html").as_uri()]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    body = run.stdout[run.stdout.index("<main") : run.stdout.index("<script>\n")]
    assert "Provenance" in body
    if launches:
        assert "gemm_128x64" in body and body.count("<svg") == 4 and "<canvas" in body
        assert "Instructions at which warps wait longest" in body
    else:
        assert "No launch finished." in body and "nothing ran" in body
