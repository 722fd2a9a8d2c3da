"""Whole studies: on processes, threads and hosts; killed, crashed, spread over workers; searched."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import simt
from simt import Study
from simt.errors import StudyError
from simt.study.study import _Tracker
from simt.workloads import WORKLOADS
from support.study_programs import CRASHING, write_program
from support.tiny import dependent, write_kernel

pytest.importorskip("parsl")
COMMAND = [sys.executable, "-c", "import simt.cli; simt.cli.main()", "study"]
GPUS = ["qv100", "a100", "h100", "rtx3070", "titanv"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path / "cache"))


def forget(folder: Path) -> None:
    """Removes what studies have shared through the cache."""
    for file in (folder / "cache" / "points").glob("*"):
        file.unlink()


def test_a_study_on_threads_gives_what_single_runs_give(tmp_path: Path) -> None:
    trace = write_kernel(tmp_path / "trace", [[dependent(50)]] * 4)
    study = Study(
        inputs=[write_program(tmp_path), "trace", {"input": "saxpy", "name": "given"}],
        gpus=["qv100"],
        set={"sm.count": [40, 80]},
        workers={"kind": "threads", "count": 2},
        run={"power": True, "results": True},
        results="out",
        folder=tmp_path,
    )
    seen = []
    ran = study.run(progress=seen.append)
    assert (ran.points, ran.simulated, ran.failed) == (6, 6, 0)
    assert (seen[-1].done, seen[-1].total) == (6, 6)
    table = study.table()
    alone = simt.simulate(trace, "qv100", set={"sm.count": 40}, power=True)
    row = table.filter(pl.col("input") == "trace", pl.col("sm.count") == 40).row(0, named=True)
    assert row["cycles"] == alone.totals.cycles
    assert row["joules"] == alone.totals.counters["simt__energy.sum"] > 0
    assert row["spec_hash"] == alone.provenance.spec_hash
    for name, value in alone.totals.counters.items():
        assert row[name] == (None if value is None else float(value)), name
    kept = simt.Result.load(study.results / "results" / f"{row['point']}.json")
    assert [x.cycles for x in kept.launches] == [x.cycles for x in alone.launches]
    assert study.run().simulated == 0


@pytest.mark.slow
def test_failures_are_rows_and_the_rest_goes_on(tmp_path: Path) -> None:
    study = Study(
        inputs=[write_program(tmp_path, "crashing", CRASHING)],
        seeds=list(range(12)),
        workers={"count": 2},
        results="out",
        folder=tmp_path,
    )
    ran = study.run()
    assert (ran.points, ran.simulated, ran.failed) == (12, 12, 3)
    errors = dict(study.table().select("seed", "error").iter_rows())
    assert "process that simulated it died" in errors[1]
    assert errors[2] == "ValueError: two"
    assert errors[3] == "SystemExit: 3"
    assert [seed for seed, error in errors.items() if error is None] == [0, *range(4, 12)]
    assert study.run().simulated == 0
    assert study.run(retry=True).simulated == 3


def kill_at_random(folder: Path, kills: int) -> int:
    """Runs the study in a folder, killed after random numbers of further points, until it is whole.

    Returns how often it was killed before it ended.
    """
    chance, study, done = random.Random(kills), Study.load(folder / "study.toml"), 0
    for _ in range(kills):
        wanted = len(study.table()) + chance.randint(0, 6)
        child = subprocess.Popen([*COMMAND, "study.toml", "-q"], cwd=folder)
        while len(study.table()) < wanted and child.poll() is None:
            time.sleep(0.3)  # reading the table takes time from what is watched
        time.sleep(chance.uniform(0, 0.05))
        if child.poll() is not None:
            break
        child.send_signal(signal.SIGKILL)
        child.wait()
        done += 1
    subprocess.run([*COMMAND, "study.toml", "-q"], cwd=folder, check=True)
    return done


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_study_that_is_killed_is_that_of_one_run(tmp_path: Path) -> None:
    """With more points and kills: `python docs/records/scripts/study.py kills`."""
    names = [write_program(tmp_path, f"p{i}", launches=1 + i, steps=40 * (1 + i)) for i in range(3)]
    (tmp_path / "study.toml").write_text(
        f"inputs = {names}\ngpus = {GPUS}\n[set]\nl1.latency = {[20, 24, 28, 32]}\n"
        "[workers]\ncount = 2\nbatch_seconds = 0.1\n"
    )
    tables = []
    for kills in (0, 4):
        assert kill_at_random(tmp_path, kills) >= kills / 2
        study = Study.load(tmp_path / "study.toml")
        tables.append(study.table(how=False))
        study.results.rename(tmp_path / f"killed-{kills}")
        forget(tmp_path)
    assert len(tables[0]) == 60 and set(tables[0]["status"]) == {"done"}
    assert tables[0].equals(tables[1])
    assert tables[0]["cycles"].n_unique() > 15


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    write_program(tmp_path)
    (tmp_path / "slow.py").write_text(
        "import runpy, time\nsmall = runpy.run_path(__file__.replace('slow', 'small'))\n"
        "def main(gpu, seed=0):\n    time.sleep(0.3)\n    small['main'](gpu, seed)\n"
    )
    (tmp_path / "study.toml").write_text(
        f'inputs = ["slow.py"]\nseeds = {list(range(400))}\n[workers]\ncount = 2\n'
    )
    child = subprocess.Popen([*COMMAND, "study.toml"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    study = Study.load(tmp_path / "study.toml")
    deadline = time.monotonic() + 120
    while not list((study.results / "points").glob("part*")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 130, errors
    assert "the same command goes on" in errors
    assert 1 <= len(study.table()) < 400
    running = subprocess.run(["ps", "ax", "-o", "args"], capture_output=True, text=True).stdout
    assert str(study.results) not in running  # Parsl's processes have its folder among their arguments


@pytest.mark.slow
def test_hosts_are_reached_by_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ssh of this test notes the host, and runs the command here."""
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "ssh"
    fake.write_text(f'#!/bin/sh\nshift 2\necho "$1" >> {tmp_path}/hosts\nshift\nexec sh -c "$*"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    study = Study(
        inputs=[write_program(tmp_path)],
        seeds=list(range(6)),
        workers={"kind": "hosts", "hosts": ["one", "two"], "count": 1},
        results="out",
        folder=tmp_path,
    )
    assert study.run().failed == 0
    assert sorted((tmp_path / "hosts").read_text().split()) == ["one", "two"]


@pytest.mark.slow
@pytest.mark.skipif(
    "SIMT_SLURM" not in os.environ, reason="SIMT_SLURM=1 says that there is a Slurm to test with"
)
@pytest.mark.timeout(600)
def test_slurm_gives_the_table_of_this_machine(tmp_path: Path) -> None:
    name, tables = write_program(tmp_path), []
    options = {"walltime": "00:10:00", "exclusive": False, "max_blocks": 1}
    for workers in ({"count": 2}, {"kind": "slurm", "count": 2, "options": options}):
        study = Study(
            inputs=[name],
            gpus=["qv100", "a100"],
            seeds=list(range(5)),
            set={"l1.latency": [20, 35]},
            workers=workers,
            results=str(workers.get("kind", "here")),
            folder=tmp_path,
        )
        assert study.run().simulated == 20
        tables.append(study.table(how=False))
        forget(tmp_path)
    assert set(tables[0]["status"]) == {"done"}
    assert tables[0].equals(tables[1])


@pytest.mark.parametrize(
    ("workers", "message"),
    [
        ({"kind": "slum"}, r"workers.kind: found 'slum', .*; did you mean slurm"),
        (
            {"kind": "slurm", "options": {"partitions": "x"}},
            "workers.options.partitions: unknown key; did you mean",
        ),
        ({"kind": "slurm", "launcher": "Srun"}, "workers.launcher: found 'Srun', expected one of"),
        ({"kind": "processes", "options": {"walltime": "1"}}, "options and launcher are for clusters"),
        ({"kind": "no.such:thing"}, "workers.kind: no.such:thing: no such function"),
    ],
)
def test_workers_that_there_are_not(tmp_path: Path, workers: dict[str, object], message: str) -> None:
    study = Study(inputs=[write_program(tmp_path)], workers=workers, results="out", folder=tmp_path)
    with pytest.raises(StudyError, match=message):
        study.run()


def test_ones_own_configuration_of_parsl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_workers.py").write_text(
        "from parsl.config import Config\nfrom parsl.executors import ThreadPoolExecutor\n"
        "def config():\n"
        "    return Config(executors=[ThreadPoolExecutor(max_threads=2)], initialize_logging=False)\n"
        "def wrong():\n    return 3\n"
    )
    monkeypatch.chdir(tmp_path)
    name = write_program(tmp_path)
    study = Study(inputs=[name], workers={"kind": "own_workers:config"}, results="out")
    assert study.run().failed == 0
    with pytest.raises(StudyError, match=r"returned int, expected a parsl\.Config"):
        Study(inputs=[name], seeds=[9], workers={"kind": "own_workers:wrong"}, results="wrong").run()


def test_a_worker_with_another_simt_ends_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from simt.study import study as module

    monkeypatch.setattr(module, "identity", lambda: "another")
    study = Study(
        inputs=[write_program(tmp_path)], workers={"kind": "threads"}, results="out", folder=tmp_path
    )
    with pytest.raises(StudyError, match="simt is another version or build"):
        study.run()


# --- spread -------------------------------------------------------------------------------------------------


def many_kernels(folder: Path, count: int = 7) -> Path:
    for number in range(1, count + 1):
        write_kernel(folder, [[dependent(20 * number)]], number, name=f"k{number % 2}")
    return folder


def spread_study(folder: Path, launches: int | None, **keys: object) -> Study:
    method = {"name": "spread", "spread": launches} if launches else "full"
    return Study(
        inputs=["trace"],
        gpus=["qv100"],
        methods=[method],
        workers={"kind": "threads", "count": 2},
        folder=folder,
        **{"results": f"out-{launches}", **keys},
    )


@pytest.mark.parametrize("launches", [1, 3, 7, 100])
def test_a_spread_launch_list_is_its_launches_one_after_the_other(tmp_path: Path, launches: int) -> None:
    trace = many_kernels(tmp_path / "trace")
    study = spread_study(tmp_path, launches, run={"results": True})
    assert study.run().failed == 0
    (row,) = study.table().to_dicts()
    alone = simt.simulate(trace, "qv100")
    assert row["launches"] == 7
    assert row["cycles"] == sum(x.cycles for x in alone.launches)
    assert row["smsp__inst_executed.sum"] == alone.totals.warp_instructions
    result = simt.Result.load(study.results / "results" / f"{row['point']}.json")
    assert [x.name for x in result.launches] == [x.name for x in alone.launches]
    assert not (study.results / "pieces").exists() or not list((study.results / "pieces").iterdir())


def test_finished_pieces_are_not_simulated_again(tmp_path: Path) -> None:
    many_kernels(tmp_path / "trace")
    whole = spread_study(tmp_path, 1)
    whole.run()
    forget(tmp_path)
    study = spread_study(tmp_path, 1, results="again")

    def pieces() -> list[Path]:
        return list((study.results / "pieces").rglob("*.json"))

    def stop(_: object) -> None:
        if pieces():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study.run(progress=stop)
    assert 1 <= len(pieces()) < 7
    times = {piece: piece.stat().st_mtime_ns for piece in pieces()}
    jobs = _Tracker(study._store).jobs(study.points)
    assert len(jobs) == 7 - len(times)
    study.run()
    assert not pieces()
    assert study.table(how=False).equals(whole.table(how=False))


def test_a_piece_that_fails_fails_the_point(tmp_path: Path) -> None:
    trace = many_kernels(tmp_path / "trace", 3)
    kernel = trace / "kernel-2.traceg"
    kernel.write_text(kernel.read_text().replace("FFMA", "FFMA 17 R"))
    study = spread_study(tmp_path, 1)
    ran = study.run()
    assert (ran.points, ran.failed) == (1, 1)
    assert "kernel-2.traceg" in study.table()["error"][0]


@pytest.mark.slow
def test_the_launches_of_a_plan_are_spread(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    from simt.profile import Profile
    from simt.sampling import Random

    many_kernels(tmp_path / "trace", 12)
    names = [f"k{number % 2}" for number in range(1, 13)]
    times = {"launch": range(12), "name": names, "duration_ns": [100.0 + i for i in range(12)]}
    plan = Random(size=6, seed=0).fit_plan(Profile(pl.DataFrame(times)))
    (tmp_path / "plan.json").write_text(plan.to_json())
    rows = []
    for launches in (None, 2):
        method = {"name": "planned", "plan": "plan.json", **({"spread": launches} if launches else {})}
        study = Study(
            inputs=["trace"],
            methods=[method],
            workers={"kind": "threads", "count": 2},
            results=f"out-{launches}",
            folder=tmp_path,
        )
        study.run()
        rows.append(study.table().row(0, named=True))
    assert rows[0]["status"] == rows[1]["status"] == "done", rows[1]["error"]
    assert rows[0]["launches"] == rows[1]["launches"] == 12
    assert rows[1]["cycles"] == pytest.approx(rows[0]["cycles"], rel=1e-3)
    assert rows[1]["error_bound"] == pytest.approx(rows[0]["error_bound"], rel=0.05)


# --- search -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["tpe", "nsga2"])
def test_a_search_finds_the_optimum_of_a_swept_space(tmp_path: Path, sampler: str) -> None:
    write_program(tmp_path, steps=40)
    keys = {
        "inputs": ["small.py"],
        "set": {
            "l1.latency": [20, 24, 28, 32, 36, 40],
            "sm.count": [20, 40, 60, 80],
            "sm.units.int.latency": [2, 4, 6, 8],
        },
        "search": {
            "minimise": ["cycles * sm.count"],
            "within": ["sm.count + l1.latency >= 66"],
            "trials": 40,
            "sampler": sampler,
        },
        "workers": {"kind": "threads", "count": 2},
        "folder": tmp_path,
    }
    swept = Study(**keys, results="swept")
    assert swept.run().points == 96
    inside = swept.table().filter(pl.col("sm.count") + pl.col("l1.latency") >= 66)
    best = (
        inside.with_columns((pl.col("cycles") * pl.col("sm.count")).alias("cost"))
        .sort("cost")
        .row(0, named=True)
    )
    forget(tmp_path)
    searched = Study(**keys, results="searched")
    found = searched.optimise()
    assert found.size == 96
    assert found.simulated <= 40
    (trial,) = found.best
    # TPE finds it; NSGA-II, which has 40 trials for 96 assignments, comes within 1 %.
    assert trial.objectives[0] == pytest.approx(best["cost"], rel=1e-9 if sampler == "tpe" else 0.01)
    assert all(
        t.status == "outside" for t in found.trials if t.values["sm.count"] + t.values["l1.latency"] < 66
    )
    again = Study(**keys, results="searched").optimise()
    assert again.simulated == 0
    assert again.trials == found.trials and again.best == found.best


def test_a_search_with_two_objectives_gives_a_front(tmp_path: Path) -> None:
    write_program(tmp_path)
    study = Study(
        inputs=["small.py"],
        set={"l1.latency": [20, 30, 40], "sm.count": [40, 80]},
        search={
            "minimise": ["cycles", "40 - l1.latency"],
            "within": ["cycles > 0"],
            "sampler": "random",
            "together": 3,
        },
        workers={"kind": "threads", "count": 2},
        results="out",
        folder=tmp_path,
    )
    found = study.optimise()
    assert len(found.trials) == found.size == 6
    assert sorted(t.values["l1.latency"] for t in found.best) == [20, 30, 40]
    assert study.run().simulated == 0  # the sweep finds all points there
    assert found.table().filter(pl.col("best"))["l1.latency"].n_unique() == 3


def test_what_cannot_be_searched(tmp_path: Path) -> None:
    name = write_program(tmp_path)
    with pytest.raises(StudyError, match="search: missing"):
        Study(inputs=[name], folder=tmp_path).optimise()
    with pytest.raises(StudyError, match="nothing to search"):
        Study(inputs=[name], folder=tmp_path, search={"minimise": "cycles"}).optimise()


def test_assignments_that_no_gpu_can_have_are_outside(tmp_path: Path) -> None:
    study = Study(
        inputs=[write_program(tmp_path)],
        set={"sm.count": [0, 80]},
        search={"minimise": "cycles", "sampler": "random"},
        workers={"kind": "threads", "count": 1},
        results="out",
        folder=tmp_path,
    )
    found = study.optimise()
    assert {t.values["sm.count"]: t.status for t in found.trials} == {0: "outside", 80: "done"}
    assert WORKLOADS  # examples and workloads are inputs, too
