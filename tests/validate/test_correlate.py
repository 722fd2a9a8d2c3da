"""The correlator: pairs, measures, tables, pages."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simt.errors import ProfileError
from simt.profile import Profile
from simt.validate import Correlation, MeasuredProgram, correlate, find_programs, page
from simt.validate.correlation import CYCLES, TIME, measures, read_programs
from simt.validate.published import published, published_path

COUNTER = "lts__t_sectors_srcunit_tex_op_read.sum"


def profile(names: list[str], source: str = "p", **columns: list[float]) -> Profile:
    renamed = {CYCLES if k == "cycles" else COUNTER if k == "reads" else k: v for k, v in columns.items()}
    return Profile(pl.DataFrame({"launch": range(len(names)), "name": names, **renamed}), source=source)


def test_measures_by_hand() -> None:
    found = measures(np.array([110.0, 90.0, 400.0, 5.0]), np.array([100.0, 100.0, 200.0, 0.0]))
    assert found["n"] == 4
    assert found["mae"] == pytest.approx((0.1 + 0.1 + 1.0) / 3)  # without the pair whose measured value is 0
    assert found["nrmse"] == pytest.approx(math.sqrt((100 + 100 + 40000 + 25) / 4) / 100)
    assert found["bias"] == pytest.approx((1.1 * 0.9 * 2.0) ** (1 / 3) - 1)
    assert found["worst"] == 1.0
    assert found["within_10"] == pytest.approx(2 / 3)
    assert found["within_20"] == pytest.approx(2 / 3)
    assert found["within_25"] == pytest.approx(2 / 3)
    assert found["median"] == pytest.approx(0.1)
    assert found["pearson"] == pytest.approx(np.corrcoef([110, 90, 400, 5], [100, 100, 200, 0])[0, 1])
    assert found["spearman"] == pytest.approx(np.corrcoef([3, 2, 4, 1], [2.5, 2.5, 4, 1])[0, 1])


def test_measures_of_nothing_to_correlate() -> None:
    found = measures(np.array([1.0, 2.0, 3.0]), np.array([0.0, 0.0, 0.0]))
    assert found == {
        "n": 3, "mae": None, "nrmse": None, "pearson": None, "spearman": None, "bias": None, "p90": None,
        "median": None, "worst": None, "within_10": None, "within_20": None, "within_25": None,
    }  # fmt: skip
    assert measures(np.array([1.0, 2.0]), np.array([1.0, 2.0]))["pearson"] is None


@pytest.mark.slow
@given(st.lists(st.tuples(st.floats(1, 1e9), st.floats(0.5, 2)), min_size=3, max_size=40))
def test_measures_do_not_depend_on_units(values: list[tuple[float, float]]) -> None:
    m = np.array([v for v, _ in values])
    s = m * np.array([r for _, r in values])
    one, other = measures(s, m), measures(8 * s, 8 * m)
    for name, value in one.items():
        assert (value is None) == (other[name] is None)
        assert value is None or other[name] == pytest.approx(value, rel=1e-6, abs=1e-9)
    assert one["worst"] <= 1.0 + 1e-12


def test_launches_pair_by_function_size_and_occurrence() -> None:
    simulated = profile(
        ["_Z4axpyPf", "_Z3dotPf", "_Z4axpyPf", "_Z4axpyPf"], grid_x=[8, 8, 8, 4], cycles=[10, 20, 30, 40]
    )
    measured = profile(
        ["void axpy(float*)", "void axpy(float*)", "other", "ns::dot<int>(float *)", "void axpy(float*)"],
        "m", grid_x=[4, 8, 8, 8, 8], cycles=[44, 11, 1, 22, 33],
    )  # fmt: skip
    found = correlate([MeasuredProgram("app", simulated, (measured,))])
    assert found.kernels.select("launch", "simulated", "measured").rows() == [
        (0, 10.0, 11.0),
        (1, 20.0, 22.0),
        (2, 30.0, 33.0),
        (3, 40.0, 44.0),
    ]
    assert found.unpaired == ("app: 1 of 5 measured launches were not simulated (m)",)
    assert found.programs.select("simulated", "measured").rows() == [(100.0, 110.0)]


def test_several_runs_give_mean_and_range() -> None:
    runs = tuple(profile(["k"], cycles=[c]) for c in (90.0, 100.0, 140.0))
    found = correlate([MeasuredProgram("app", profile(["k"], cycles=[110.0]), runs)])
    row = found.kernels.row(0, named=True)
    assert (row["measured"], row["measured_low"], row["measured_high"]) == (110.0, 90.0, 140.0)


@pytest.mark.parametrize(
    ("measured", "options", "cycles"),
    [
        ({"gpc__cycles_elapsed.avg": [50.0], CYCLES: [70.0]}, {}, 70.0),
        ({"gpc__cycles_elapsed.avg": [50.0], "sm__cycles_elapsed.max": [60.0]}, {}, 50.0),
        ({"elapsed_cycles_sm": [800.0]}, {"sms": 8}, 100.0),
        ({"duration_ns": [100.0]}, {}, 200.0),  # the simulated clock: 120 cycles in 60 ns
        ({"duration_ns": [100.0]}, {"clock_mhz": 1500.0}, 150.0),
    ],
)
def test_cycles_from_what_was_measured(
    measured: dict[str, list[float]], options: dict[str, float], cycles: float
) -> None:
    simulated = profile(["k"], cycles=[120.0], duration_ns=[60.0])
    program = MeasuredProgram("app", simulated, (profile(["k"], **measured),), sms=options.get("sms"))
    found = correlate([program], options.get("clock_mhz"))
    rows = dict(found.kernels.select("counter", "measured").rows())
    assert rows[CYCLES] == pytest.approx(cycles)
    assert (TIME in rows) == ("duration_ns" in measured)


def test_nothing_in_common_is_refused() -> None:
    with pytest.raises(ProfileError, match=r"m: no launch pairs with p: measured other; simulated k"):
        correlate(
            [MeasuredProgram("app", profile(["k"], cycles=[1.0]), (profile(["other"], "m", cycles=[1.0]),))]
        )
    with pytest.raises(ProfileError, match=r"app: no counter on both sides: simulated .*; measured a__b.sum"):
        correlate(
            [MeasuredProgram("app", profile(["k"], cycles=[1.0]), (profile(["k"], **{"a__b.sum": [1.0]}),))]
        )
    with pytest.raises(ProfileError, match="no x on both sides"):
        one = profile(["k"], cycles=[1.0])
        correlate([MeasuredProgram("app", one, (one,))]).only(["x"])


def _made() -> Correlation:
    stalls = {
        "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio": [1.0, 9.0],
        "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": [3.0, 1.0],
    }
    simulated = profile(["a<b>", "c"], cycles=[100.0, 300.0], reads=[0.0, 5.0], **stalls)
    measured = profile(["a<b>", "c"], cycles=[100.0, 200.0], reads=[0.0, 4.0])
    return correlate([MeasuredProgram("app", simulated, (measured,), "suite")])


def test_outliers_name_what_warps_wait_for() -> None:
    worst = _made().outliers(most=1).row(0, named=True)
    assert (worst["name"], worst["error"], worst["stall"]) == ("c", 0.5, "barrier 90 %")


def test_versions_are_compared() -> None:
    now = _made()
    before = Correlation(
        now.kernels.with_columns(
            simulated=pl.when(pl.col("name") == "c").then(210.0).otherwise(pl.col("simulated"))
        ),
        now.programs,
    )
    change = now.against(before).rows(named=True)
    assert [row["name"] for row in change] == ["c", "a<b>"]
    assert change[0]["before"] == pytest.approx(0.05)
    assert change[0]["change"] == pytest.approx(0.45)
    assert change[1]["change"] == 0.0


@pytest.mark.slow
def test_page_escapes_names_and_draws_every_pair(tmp_path: Path) -> None:
    found = _made()
    page.write(found, tmp_path / "page.html", "here <there>", found)
    text = (tmp_path / "page.html").read_text()
    assert "here &lt;there&gt;" in text
    assert "<b>" not in text.split("<svg", 1)[1]
    points = re.findall(r'<use [^>]* x="([\d.]+)" y="([\d.]+)"[^>]*><title>(.*?)</title>', text)
    assert len(points) == len(found.kernels)
    assert any(title == "c (suite/app): simulated 300, measured 200, +50.0 %" for *_, title in points)
    # In the plot of cycles, 300 against 200 is above the line; 100 against 100 is on it.
    (x, y, _), (high_x, high_y, _) = points[:2]
    assert float(y) - float(high_y) > float(high_x) - float(x) > 0


def test_folders_are_paired_by_name(tmp_path: Path) -> None:
    for folder in ("new/s1", "hw/s1/x", "hw/s1", "new/s2", "hw/s2"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    row = "launch,name,{}\n0,k,{}\n"
    (tmp_path / "new/s1/x.csv").write_text(row.format(CYCLES, 10))
    (tmp_path / "new/s2/y.csv").write_text(row.format(CYCLES, 30))
    (tmp_path / "new/s2/z.csv").write_text(row.format(CYCLES, 30))
    for run, cycles in (("1", 8), ("2", 12)):
        (tmp_path / f"hw/s1/x/{run}.csv").write_text(row.format(CYCLES, cycles))
    (tmp_path / "hw/s2/y.csv").write_text(row.format(CYCLES, 20))
    found = correlate(find_programs(tmp_path / "new", tmp_path / "hw"))
    assert found.kernels.select("suite", "program", "simulated", "measured").rows() == [
        ("s1", "x", 10.0, 10.0),
        ("s2", "y", 30.0, 20.0),
    ]
    with pytest.raises(ProfileError, match="no Result has a measurement of the same name"):
        find_programs(tmp_path / "new/s1", tmp_path / "hw/s2")
    with pytest.raises(ProfileError, match="there is no such file"):
        find_programs(tmp_path / "nothing", tmp_path / "hw")


def test_published_tables_reproduce_the_paper() -> None:
    """ISCA'20 section V: Accel-Sim's cycles in SASS mode are within 15 % of a QV100's, r = 1.00; with PTX 34
    %.
    """
    assert len(published()) >= 4
    silicon = published_path(Path("accel-sim-isca20-silicon"))
    found = {
        mode: correlate(find_programs(published_path(Path(f"accel-sim-isca20-{mode}")), silicon))
        for mode in ("sass", "ptx")
    }
    row = {mode: c.agreement().row(0, named=True) for mode, c in found.items()}
    assert row["sass"]["n"] == 71
    assert row["sass"]["mae"] == pytest.approx(0.15, abs=0.02)
    assert row["sass"]["pearson"] == pytest.approx(1.0, abs=0.005)
    assert row["ptx"]["mae"] == pytest.approx(0.34, abs=0.04)


def test_tables_of_programs(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("from somewhere\nsuite,program,cycles,a__b.sum\ns,x,100,\ns,y,200,\n")
    found = read_programs(table)
    assert found is not None
    assert found["s", "y"].launches[CYCLES].to_list() == [200.0]
    assert found["s", "y"].counters == [CYCLES]  # a__b.sum is empty everywhere
    (tmp_path / "run.csv").write_text(f"launch,name,{CYCLES}\n0,k,60\n1,k,50\n")
    (tmp_path / "x.csv").write_text((tmp_path / "run.csv").read_text())
    table.write_text("program,cycles\nx,100\n")
    row = correlate(find_programs(tmp_path / "x.csv", table)).kernels.row(0, named=True)
    assert (row["name"], row["simulated"], row["measured"]) == ("x", 110.0, 100.0)
    table.write_text("program,cycles\nx,100\nx,3\n")
    with pytest.raises(ProfileError, match="row 2: 'x' occurs twice"):
        read_programs(table)
    table.write_text("program,cycles\nx,many\n")
    with pytest.raises(ProfileError, match="'many' is not a number"):
        read_programs(table)
    table.write_text("program,cycles\nother,1\n")
    with pytest.raises(ProfileError, match="contains none of the simulated programs"):
        find_programs(tmp_path / "x.csv", table)


@given(st.text(max_size=60))
def test_damaged_tables(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged-programs.csv"
    path.write_bytes(("program,cycles\n" + text).encode("utf-8", "surrogatepass"))
    try:
        found = read_programs(path)
    except ProfileError as error:
        assert str(path) in str(error)
        return
    assert found is not None and all(len(p) == 1 for p in found.values())


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from simt.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "sim.csv").write_text(f"launch,name,{CYCLES}\n0,k,60\n1,k,50\n")
    (tmp_path / "hw.csv").write_text(f"launch,name,{CYCLES}\n0,k,50\n1,k,50\n")
    monkeypatch.setattr(
        "sys.argv",
        ["simt", "correlate", "sim.csv", "hw.csv", "--csv", "pairs.csv", "--html", "p.html", "--json", "-"],
    )
    with pytest.raises(SystemExit) as exit_:
        main()
    assert not exit_.value.code
    data = json.loads(capsys.readouterr().out)
    assert data["kernels"][0]["mae"] == pytest.approx(0.1)
    assert data["outliers"][0]["error"] == pytest.approx(0.2)
    assert pl.read_csv("pairs.csv")["simulated"].to_list() == [60, 50, 110]
    assert (tmp_path / "p.html").stat().st_size > 1000
