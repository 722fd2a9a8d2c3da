"""`simt sample`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from simt.cli import main
from simt.sampling import Plan
from simt.sampling.checks import example_profile


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Run]:
    """Runs `simt sample` in a directory with profile.parquet and table.csv."""
    monkeypatch.chdir(tmp_path)
    profile = example_profile()
    profile.save("profile.parquet")
    streams = pl.Series("stream", [7, 9] * 120)
    names = (
        pl.when(pl.col("launch") % 10 == 3)
        .then(pl.lit("ncclDevKernel"))
        .otherwise(pl.col("name").cast(pl.String))
    )
    table = profile.launches.select(names.alias("Kernel"), pl.col("duration_ns").alias("T"), streams)
    table.write_csv("table.csv")

    def call(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["simt", "sample", *arguments])
        try:
            main()
            status = 0
        except SystemExit as stop:
            status = int(stop.code or 0)
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    yield call


def test_file_alone_and_plan_are_the_same(run: Run) -> None:
    done = run("profile.parquet", "--method", "random", "--set", "p=0.1")
    assert done.status == 0, done.err
    assert (
        "all launches" in done.out and "distinct speedup" in done.out and "error on the profile" in done.out
    )
    assert run("plan", "profile.parquet", "--method", "random", "--set", "p=0.1").out == done.out
    assert run("--method", "random", "--set", "p=0.1", "profile.parquet").out == done.out


def test_json_on_standard_output_is_the_plan_and_nothing_else(run: Run) -> None:
    five = ("-m", "random", "--set", "size=5")
    done = run(
        "profile.parquet", "-m", "random", "--seed", "3", "--set", "size=5", "--json", "-", "-o", "plan.json"
    )
    assert done.status == 0
    plan = Plan.from_json(done.out)
    assert len(plan) == 5 and plan.seed == 3
    assert Plan.load("plan.json").to_json() == plan.to_json()
    assert "chosen" in done.err
    assert run("profile.parquet", *five, "--json", "-", "-q").err == ""


@pytest.mark.slow
def test_every_file_is_written(run: Run, tmp_path: Path) -> None:
    done = run(
        "profile.parquet", "-m", "random", "--set", "size=9", "-q", "--csv", "deep/a.csv",
        "--html", "deep/a.html", "--plot", "deep/a.png",
    )  # fmt: skip
    assert (done.status, done.out, done.err) == (0, "", "")
    assert len(pl.read_csv("deep/a.csv")) == 9
    assert {x.name for x in (tmp_path / "deep").iterdir()} == {"a.csv", "a.html", "a.png"}


def test_columns_communication_and_filters(run: Run) -> None:
    columns = ("--columns", "name=Kernel,duration_ns=T,stream=stream")
    done = run("table.csv", "-m", "random", "--set", "p=1", *columns)
    assert done.status == 0, done.err
    assert "Left out: 48 communication launches" in done.out and "--include-communication" in done.out
    whole = run("table.csv", "-m", "random", "--set", "p=1", *columns, "--include-communication")
    assert "240 of 240" in whole.out and "Left out" not in whole.out
    one = run("table.csv", "-m", "random", *columns, "--stream", "9")
    assert "of 96 launches" in one.out, one.err
    missing = run("table.csv", "-m", "random", *columns, "--stream", "8")
    assert missing.status == 2 and "no launch on stream 8, there are 7, 9" in missing.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing.sqlite", "-m", "random"), "nothing.sqlite: cannot be read"),
        (("profile.parquet", "-m", "rot"), "no method 'rot'"),
        (("profile.parquet", "-m", "random", "--error", "0.1"), "random has no parameter 'error'"),
        (("profile.parquet", "-m", "random", "--set", "p=2"), "p"),
        (("profile.parquet", "-m", "random", "--process", "7"), "process 7"),
        (("profile.parquet", "-m", "pks", "--set", 'features=["x"]'), "x"),
        (("table.csv", "-m", "random", "--columns", "name"), "expected OURS=THEIRS"),
        (("compare", "profile.parquet", "--methods", "random", "-o", "x.txt"), "ends in .parquet"),
        (("compare", "profile.parquet", "--methods", "random q=1"), "no parameter 'q'"),
    ],
)
def test_bad_input_is_one_line(run: Run, arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    done = run(*arguments)
    assert done.status == 2 and done.out == ""
    assert done.err.startswith("error: ") and done.err.count("\n") == 1 and words in done.err
    assert sorted(tmp_path.iterdir()) == before


def test_compare_prints_a_row_a_method_and_plots(run: Run, tmp_path: Path) -> None:
    done = run("compare", "profile.parquet", "--methods", "random p=0.1, random p=0.5", "--seeds", "3",
               "--plot", "c.png", "-o", "c.parquet", "--json", "-")  # fmt: skip
    assert done.status == 0, done.err
    assert [x["method"] for x in json.loads(done.out)["summary"]] == ["random p=0.1", "random p=0.5"]
    assert "random p=0.5" in done.err and (tmp_path / "c.png").exists()
    assert len(pl.read_parquet("c.parquet")) == 6
    crossed = run(
        "compare", "profile.parquet", "--truth", "profile.parquet", "--methods", "random", "--seeds", "2"
    )
    assert "240 launches aligned launch by launch: 100 % of the time" in crossed.out


def test_lists_and_scripts_for_other_tools(run: Run, tmp_path: Path) -> None:
    numbers = range(1, 3 + 2 * 240)
    (tmp_path / "kernelslist.g").write_text("".join(f"kernel-{i}.traceg\n" for i in numbers))
    done = run(
        "profile.parquet", "-m", "random", "--set", "size=4", "-o", "plan.json",
        "--kernelslist", "some.g", "--ncu", "ncu.sh", "--program", "python 'my train.py'", "--tracer", "-q",
    )  # fmt: skip
    assert done.status == 0, done.err
    # The launches have ids 3, 5, 7, ...; tools count kernels from 1.
    kernels = [(int(i) - 3) // 2 + 1 for i in Plan.load("plan.json").launches["launch"]]
    assert (tmp_path / "some.g").read_text().split() == [f"kernel-{i}.traceg" for i in kernels]
    script = (tmp_path / "ncu.sh").read_text().splitlines()
    assert all(line.startswith("ncu ") and line.endswith("python 'my train.py'") for line in script[2:])
    assert done.out.startswith('DYNAMIC_KERNEL_RANGE="') and str(kernels[0]) in done.out
    missing = run("profile.parquet", "--ncu", "x.sh")
    assert missing.status == 2 and "--program" in missing.err


def test_totals_from_values_of_the_chosen(run: Run) -> None:
    run("profile.parquet", "-m", "random", "--set", "size=50", "-o", "plan.json", "-q")
    done = run("estimate", "plan.json", "profile.parquet", "--metrics", "duration_ns", "--kernels", "2")
    assert done.status == 0, done.err
    assert [line.split()[0] for line in done.out.splitlines()[:4]] == ["metric"] + ["duration_ns"] * 3
    assert "50 of 50" in done.out
    data = json.loads(run("estimate", "plan.json", "profile.parquet", "--json", "-").out)
    assert data["schema"] == "simt.estimate/1"
    wrong = run("estimate", "plan.json", "profile.parquet", "--metrics", "nothing")
    assert wrong.status == 2 and "nothing" in wrong.err


@pytest.mark.slow
def test_adaptive_asks_for_more_until_it_holds(run: Run) -> None:
    """Values vary more than the profile's times suggest, so the pilot is not enough."""
    frame = pl.read_parquet("profile.parquet").select("launch", "duration_ns")
    factor = 1 + (pl.col("launch") * 37 % 11).cast(pl.Float64) / 10
    truth = frame.with_columns(duration_ns=pl.col("duration_ns") * factor)
    run("profile.parquet", "-m", "adaptive", "-o", "plan.json", "-q")
    for _ in range(12):
        truth.filter(pl.col("launch").is_in(Plan.load("plan.json").launches["launch"])).write_csv(
            "results.csv"
        )
        done = run("profile.parquet", "-m", "adaptive", "--results", "results.csv", "-o", "plan.json")
        assert done.status == 0, done.err
        if "nothing more to measure" in done.out:
            break
        assert "measure next:" in done.out
    else:
        raise AssertionError("it never stops")
    assert "round 2:" in done.out and "±" in done.out
    refused = run("profile.parquet", "-m", "root", "--results", "results.csv")
    assert refused.status == 2 and "adaptive" in refused.err


def test_methods_lists_parameters(run: Run) -> None:
    done = run("methods")
    assert done.status == 0
    assert any(line.startswith("random ") and "p=0.001" in line for line in done.out.splitlines())


@pytest.mark.parametrize("arguments", [("--help",), ("plan", "--help"), ("compare", "--help"), ()])
def test_help_shows_examples(run: Run, arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert "--method" in done.out + done.err or "--truth" in done.out + done.err


@pytest.mark.slow
def test_nothing_of_the_engine_is_imported(run: Run) -> None:
    code = (
        "import sys; sys.argv = ['simt', 'sample', 'profile.parquet', '-m', 'random', '-q']\n"
        "sys.modules['simt._engine'] = None\n"
        "import simt.profile, simt.sampling, simt.cli; simt.cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
