"""Two Results side by side: what is matched, what is not, and the page that shows it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import simt
from simt.cli import app
from simt.result import Result
from simt.result.compare import ResultComparison
from simt.result.compare_page import page
from simt.result.difference import difference
from simt.result.matrix import ResultMatrix
from simt.result.stack import times
from support.fake_gpu import installed
from support.launches import MACHINE, launch


def results() -> tuple[Result, Result]:
    """Launches of 1,000 and 500 cycles per CTA: `gemm` three times and twice, `old` only in the first, `new`
    only in the second.
    """
    with installed():
        provenance = simt.simulate("input").provenance

    def result(*kernels: tuple[str, int]) -> Result:
        launches, start = [], 0
        for i, (name, ctas) in enumerate(kernels):
            launches.append(launch(i, name, start=start, ctas=ctas))
            start = launches[-1].end_cycle
        return Result(tuple(launches), MACHINE, provenance)

    first = result(("gemm", 4), ("add", 1), ("gemm", 4), ("old", 2), ("gemm", 1))
    second = result(("new", 1), ("gemm", 2), ("add", 1), ("gemm", 2))
    return first, second


def test_kernels_and_launches_are_matched_by_name_and_turn() -> None:
    found = ResultComparison(*results())
    by_name = {k.name: k for k in found.kernels}
    gemm = by_name["gemm"]
    assert gemm.cycles == (4500 + 4500 + 1500, 2500 + 2500) and gemm.ratio == pytest.approx(5000 / 10500)
    assert gemm.totals[0].counters["smsp__inst_executed.sum"] == 9 * 640
    assert by_name["old"].ratio is None and by_name["new"].ratio is None
    assert [(p.first.id, p.second.id, p.ratio) for p in found.launches] == [
        (1, 2, 2500 / 4500),
        (2, 3, 1.0),
        (3, 4, 2500 / 4500),
    ]
    assert [[x.id for x in only] for only in found.unmatched] == [[4, 5], [1]]
    assert found.ratio == pytest.approx((1500 + 2500 + 1500 + 2500) / (4500 + 1500 + 4500 + 2500 + 1500))
    assert sum(k.cycles[0] for k in found.kernels) == found.first.totals.cycles


def test_the_text_names_all() -> None:
    text = str(ResultComparison(*results()))
    assert "A: input on toy at 1,000 MHz (trace): 14.5 µs (14,500 cycles) in 5 launches" in text
    assert (
        "B: input on toy at 1,000 MHz (trace): 8 µs (8,000 cycles) in 4 launches, 0.552 times the time"
        in text
    )
    assert "only in the first: 2 launches (old, gemm)" in text
    assert "only in the second: 1 launch (new)" in text
    assert "gemm differs in these parts of its longest launch's time:" in text


def test_parts_add_up_to_the_difference() -> None:
    gemm = next(k for k in ResultComparison(*results()).kernels if k.name == "gemm")
    assert sum(y - x for _, x, y in gemm.parts) == pytest.approx((2500 - 4500) / 1e9, rel=0.05)
    assert next(name for name, _, _ in gemm.parts) != "launch"  # which both have


def test_the_page_shows_both() -> None:
    first, second = results()
    evil = "<!--<script>alert(1)</script>"
    shown = page(
        ResultComparison(replace(first, launches=(*first.launches, launch(9, evil, start=20_000))), second)
    )
    assert shown.count("<script>") == 1 and shown.count("</script>") == 1 and "http" not in shown
    for text in (
        "10,500",
        "5,000",
        "0.476",
        "Only in A",
        "Only in B",
        "--state-long_scoreboard",
        "&lt;!--&lt;script",
    ):
        assert text in shown
    assert shown.count('class="bars"') == 2  # gemm and add


def test_simt_report_compares(tmp_path: Path) -> None:
    for name, result in zip(("a", "b"), results(), strict=True):
        result.save(tmp_path / name)
    places = [str(tmp_path / name) for name in ("a", "b", "page.html")]
    done = CliRunner().invoke(app, ["report", *places[:2], "-o", places[2]], catch_exceptions=False)
    assert done.exit_code == 0 and "only in the second: 1 launch (new)" in done.stdout
    assert "compared with" in (tmp_path / "page.html").read_text()


def test_time_leads_where_clocks_differ() -> None:
    first, second = results()
    faster = replace(second.machine, core_khz=2 * second.machine.core_khz, name="quick")
    second = replace(
        second,
        machine=faster,
        launches=tuple(replace(x, machine=faster, clock_khz=faster.core_khz) for x in second.launches),
    )
    found = ResultComparison(first, second)
    gemm = next(k for k in found.kernels if k.name == "gemm")
    assert gemm.ratio == pytest.approx(5000 / 10500 / 2)
    assert found.ratio == pytest.approx(8000 / 14500 / 2)
    assert found.launches[0].ratio == pytest.approx(2500 / 4500 / 2)
    assert "on quick at 2,000 MHz" in found.sides[1]
    apart = difference(first.launches[0], second.launches[1])
    assert apart.speedup == pytest.approx(2 * 4500 / 2500)
    assert str(apart).startswith("gemm on quick is 3.60 times as fast as gemm on toy.")


def test_the_times_of_a_difference_are_those_of_the_launches() -> None:
    first = results()[0].launches[0]
    second = replace(first, stalls={}, warp_stalls={})
    assert sum(times(first).values()) == pytest.approx(first.seconds)
    assert not times(replace(second, machine=None))
    assert not difference(first, first).parts


def test_a_matrix_has_every_kernel_in_every_result(tmp_path: Path) -> None:
    first, second = results()
    found = ResultMatrix((first, second, first))
    assert found.columns == ["1: toy", "2: toy", "3: toy"]
    assert [e and e.seconds for e in found.entries["gemm"]] == pytest.approx([10.5e-6, 5e-6, 10.5e-6])
    assert found.entries["old"][1] is None
    frame = found.to_polars()
    assert frame.height == 3 + 3 + 3 and set(frame["gpu"]) == {"toy"}
    paths = [result.save(tmp_path / f"{i}.json") for i, result in enumerate((first, second, first))]
    table, page_ = tmp_path / "times.parquet", tmp_path / "matrix.html"
    arguments = ["report", *map(str, paths), "--parquet", str(table), "-o", str(page_)]
    run = CliRunner().invoke(app, arguments)
    assert run.exit_code == 0 and "14.5 µs" in run.output, run.output
    assert pl.read_parquet(table).equals(frame) and "Kernels" in page_.read_text()
    told = CliRunner().invoke(app, ["report", *map(str, paths[:2]), "--json", "-"])
    assert json.loads(told.stdout)["ratio"] == pytest.approx(8000 / 14500)


def test_lines_takes_one_result(tmp_path: Path) -> None:
    first, second = results()
    paths = [str(result.save(tmp_path / f"{i}.json")) for i, result in enumerate((first, second))]
    run = CliRunner().invoke(app, ["report", *paths, "--lines"])
    assert run.exit_code == 1 and "--lines takes one Result, not 2" in str(run.exception)
