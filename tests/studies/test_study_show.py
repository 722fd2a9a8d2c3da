"""What a study shows: commands, tables, the Pareto front, effects, the page."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from simt import Study
from simt.cli import app
from simt.errors import SimtError, ToolkitError
from simt.study import Expression
from simt.study.analysis import Objective, across, configurations, effects, front, non_dominated
from simt.study.simulation import DONE, PointOutcome, failed
from support.study_programs import write_program


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """Two programs x 3 latencies x 2 numbers of SMs, whose cycles are (100 or 400) x latency x 80 / SMs; one
    point has failed."""
    for name in ("a", "b"):
        write_program(tmp_path, name)
    (tmp_path / "s.toml").write_text(
        'description = "a test"\ninputs = ["a.py", "b.py"]\ngpus = ["qv100"]\n'
        "[set]\nl1.latency = [20, 30, 40]\nsm.count = [40, 80]\n"
        '[show]\nminimise = ["cycles", "sm.count"]\n'
    )
    study = Study.load(tmp_path / "s.toml")
    rows = []
    for point in study.points:
        latency, sms = point.columns["l1.latency"], point.columns["sm.count"]
        assert isinstance(latency, int) and isinstance(sms, int)
        cycles = {"a": 100, "b": 400}[str(point.columns["input"])] * latency * 80 / sms
        bad = point.columns["input"] == "b" and (latency, sms) == (40, 40)
        rows.append((point, failed("no luck") if bad else PointOutcome(DONE, values={"cycles": cycles})))
    with study.session(study.points):
        study._store.add(rows)
    return study


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["study", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_show_prints_points_the_front_and_failures(study: Study, tmp_path: Path) -> None:
    text = run("show", tmp_path / "s.toml", "--rows", 3)
    lines = [line.split() for line in text.splitlines() if line.strip()]
    assert lines[0] == ["input", "l1.latency", "sm.count", "cycles", "sm.count"]
    assert lines[1] == ["a", "20", "80", "2,000", "80"]  # of each input the best first
    assert "... and 8 more" in text
    assert lines[lines.index(["Pareto", "front", "across", "inputs:", "cycles,", "sm.count"]) + 2 :][:2] == [
        ["20", "80", "4,000", "80"],  # the geometric mean of 2,000 and 8,000
        ["20", "40", "8,000", "40"],
    ]
    assert "failed: b, 40, 40: no luck" in text


def test_show_takes_expressions_and_a_folder(study: Study, tmp_path: Path) -> None:
    (tmp_path / "a.py").unlink()  # the results stand alone
    text = run("show", study.results, "--columns", "cycles / sm.count", "--maximise", "cycles", "--rows", 1)
    assert re.search(r"a +40 +40 +200\b", text)
    run("show", study.results, "--csv", tmp_path / "all.csv")
    assert pl.read_csv(tmp_path / "all.csv")["cycles"].drop_nulls().len() == 11


def test_commands_say_what_is_wrong(study: Study, tmp_path: Path) -> None:
    with pytest.raises(SimtError, match="there is no column 'cycle'; did you mean cycles"):
        run("show", tmp_path / "s.toml", "--columns", "cycle")
    (tmp_path / "new.toml").write_text('inputs = ["a.py"]\n')
    with pytest.raises(SimtError, match=r"no point has ended; `simt study run .*new\.toml` runs the study"):
        run("show", tmp_path / "new.toml")
    with pytest.raises(SimtError, match="search: missing"):
        run("optimise", tmp_path / "s.toml")


def test_list_needs_no_workers(study: Study, tmp_path: Path) -> None:
    text = run(tmp_path / "s.toml", "--list")  # `run` may be left out
    assert text.count("\n") == 13 and text.endswith("12 points\n")
    assert f"{study.points[0].digest[:12]}  a, qv100, l1.latency=20, sm.count=40, full\n" in text


def test_what_is_not_installed_is_said_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(tmp_path)
    keys = {"inputs": ["small.py"], "set": {"sm.count": [40, 80]}, "search": {"minimise": "cycles"}}
    for module in ("parsl", "optuna"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ToolkitError, match=r"pip install 'simt\[study\]'"):
        Study(**keys, folder=tmp_path).run()
    with pytest.raises(ToolkitError, match=r"searching needs optuna, .*pip install 'simt\[study\]'"):
        Study(**keys, folder=tmp_path).optimise()


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.titles: list[str] = []
        self.open: list[str] = []
        self.svgs = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.svgs += tag == "svg"
        for name, value in attrs:
            assert name not in ("src", "href") or (value or "").startswith("#"), "loads something"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("h2", "h3"):
            self.titles.append(data)
            self.open.append("")


def test_the_page_has_plots_tables_and_failures(study: Study, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run("show", tmp_path / "s.toml", "-o", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    page = _Page(text)
    assert page.titles == [
        "Pareto front",
        "Parameters against cycles",
        "l1.latency",
        "sm.count",
        "What cycles depend on",
        "Failed points",
        "Points",
        "Provenance",
    ]
    assert page.svgs == 3
    assert "a test" in text and "no luck" in text
    study.write_page(tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text() == text


def test_effects_are_those_of_the_analysis_of_variance(study: Study) -> None:
    """Of the program without failures: log(cycles) = log(latency) - log(SMs) + constant, so there is no
    interaction, and the shares are those of the two variances."""
    table = study.table().filter(pl.col("input") == "a")
    latency = pl.Series([20.0, 30.0, 40.0]).log().var(ddof=0)
    sms = pl.Series([40.0, 80.0]).log().var(ddof=0)
    assert isinstance(latency, float) and isinstance(sms, float)
    found = {each.names: each.share for each in effects(table, ["l1.latency", "sm.count"])}
    assert found[("l1.latency",)] == pytest.approx(latency / (latency + sms))
    assert found[("sm.count",)] == pytest.approx(sms / (latency + sms))
    assert found[("l1.latency", "sm.count")] == pytest.approx(0, abs=1e-12)


def test_an_interaction_is_found() -> None:
    rows = [(x, y, 2.0 if x == y else 8.0) for x in (0, 1) for y in (0, 1)]
    table = pl.DataFrame(
        {
            "input": ["p"] * 4,
            "x": [r[0] for r in rows],
            "y": [r[1] for r in rows],
            "cycles": [r[2] for r in rows],
        }
    ).with_columns(pl.lit(DONE).alias("status"))
    assert [(each.names, round(each.share, 9)) for each in effects(table, ["x", "y"])] == [
        (("x", "y"), 1.0),
        (("x",), 0.0),
        (("y",), 0.0),
    ]


def test_configurations_with_a_failure_are_not_compared(study: Study) -> None:
    wanted = [Objective(Expression("cycles")), Objective(Expression("sm.count"), maximise=True)]
    found = configurations(study.table(), ["l1.latency", "sm.count"], wanted)
    assert len(found) == 6
    assert [each.values for each in found if each.columns == {"l1.latency": 40, "sm.count": 40}] == [
        (None, None)
    ]
    assert [dict(each.columns) for each in front(found, wanted)] == [{"l1.latency": 20, "sm.count": 80}]


def test_across() -> None:
    assert across("geomean", [2.0, 8.0]) == pytest.approx(4)
    assert across("geomean", [3.7, 3.7]) == 3.7
    assert across("sum", [3.0, 3.0]) == 6
    assert (across("max", [1.0, 2.0]), across("min", [1.0, 2.0]), across("mean", [1.0, 2.0])) == (2, 1, 1.5)
    assert across("mean", [1.0, None]) is None
    assert across("geomean", [0.0, 1.0]) is None


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 3)), max_size=25))
def test_the_front_is_what_nothing_dominates(costs: list[tuple[int, ...]]) -> None:
    """Against the definition; of equal rows the first."""

    def dominates(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
        return a != b and all(x <= y for x, y in zip(a, b, strict=True))

    expected = [
        i
        for i, cost in enumerate(costs)
        if not any(dominates(other, cost) for other in costs) and cost not in costs[:i]
    ]
    assert non_dominated(costs) == expected
