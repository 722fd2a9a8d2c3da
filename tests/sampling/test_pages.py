"""Plots, pages and fragments of Plans, Profiles and Comparisons."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from simt.errors import PlanError
from simt.formatting import percent
from simt.plots import save
from simt.profile import Profile
from simt.profile.kernel_table import left_out_sentences
from simt.sampling import Random, compare, plan_tables, plots, report
from simt.sampling.checks import example_profile


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.05, "5 %"), (0.12345, "12.35 %"), (0.0, "0 %"), (1e-7, "< 0.01 %"), (None, "-"), (14.6, "1,460 %")],
)
def test_percent(value: float | None, text: str) -> None:
    assert percent(value) == text


@pytest.mark.slow
def test_the_page_holds_every_table_and_escapes_names(tmp_path: Path) -> None:
    profile = example_profile()
    sampler = Random(p=0.2).fit(profile)
    path = tmp_path / "plan.html"
    report.write(sampler.plan_, profile, sampler.strata_, path)
    page = path.read_text()
    assert "<script src" not in page and "http://" not in re.sub('xmlns[:a-z]*="http[^"]*"', "", page)
    assert "void kernel_0&lt;float&gt;" in page and "kernel_0<float>" not in page
    assert page.count("<svg") == 1 and "var(--blue)" in page
    rows = re.search(r"Chosen launches.*?<tbody>(.*?)</tbody>", page, re.S)
    assert rows is not None and rows[1].count("<tr>") == len(sampler.plan_)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["one launch", "equal times", "zero times", "a wide range"])
def test_strata_of_odd_profiles_are_drawn(case: str, tmp_path: Path) -> None:
    frame = example_profile(30).launches
    if case == "one launch":
        frame = frame[:1]
    elif case == "a wide range":
        frame = frame.with_columns(duration_ns=pl.lit(10.0) ** (pl.int_range(30) % 7))
    else:
        frame = frame.with_columns(duration_ns=pl.lit(0.0 if case == "zero times" else 3.0))
    profile = Profile(frame)
    sampler = Random(p=0.5).fit(profile)
    figure = plots.strata_figure(profile, sampler.plan_, sampler.strata_)
    for suffix in ("png", "svg"):
        path = tmp_path / f"strata.{suffix}"
        save(figure, path)
        assert path.stat().st_size > 1000
    with pytest.raises(PlanError, match=r"\.png, \.svg, \.pdf"):
        save(figure, tmp_path / "strata.gif")
    assert sorted(x.name for x in tmp_path.iterdir()) == ["strata.png", "strata.svg"]


@pytest.mark.slow
def test_the_comparison_is_drawn_the_same_every_time(tmp_path: Path) -> None:
    found = compare(example_profile(), [Random(p=0.1), Random(p=0.3)], 4)
    for name in ("a.svg", "b.svg"):
        save(plots.comparison_figure(found), tmp_path / name)
    assert (tmp_path / "a.svg").read_text() == (tmp_path / "b.svg").read_text()


def test_notebook_fragments() -> None:
    profile = example_profile()
    assert "240 launches of 6 kernels on made up" in profile._repr_html_()
    assert "48 of 240" in Random(size=48).fit_plan(profile)._repr_html_()
    assert "random p=0.3" in compare(profile, [Random(), Random(p=0.3)], 2)._repr_html_()


def test_strata_beyond_the_limit_are_summed_up() -> None:
    plan = Random(p=0.5).fit_plan(example_profile())
    strata = pl.concat(
        [
            plan.strata.with_columns(
                pl.lit(number).alias("stratum"), time_ns=pl.lit(float(t)), draws=pl.lit(t)
            )
            for number, t in enumerate((1, 3, 6))
        ]
    )

    (_, rows), more = plan_tables.strata_rows(replace(plan, strata=strata, population_ns=10.0), limit=1)
    assert [row[3] for row in rows] == ["60 %"]
    assert more == "... and 2 more strata with 40 % of the time and 4 draws"


def test_what_is_left_out_is_said() -> None:
    frame = pl.DataFrame(
        {"launch": [1, 2, 3], "name": ["k", "ncclKernel", "Memset"], "duration_ns": [5.0, 3e3, 2e3]}
    )
    assert left_out_sentences(Profile(frame).kernels()) == [
        "Left out: 1 copy or fill launch, 2 µs, 40 % of the time in the profile.",
        "Left out: 1 communication launch, 3 µs, 59.9 % of the time in the profile.",
    ]
