"""The folder of results: whatever happens at whatever moment, its rows are those that were added."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from simt import Study
from simt.errors import StudyError
from simt.study import store as store_module
from simt.study.simulation import DONE, PointOutcome, failed
from simt.study.space import StudyPoint
from simt.study.store import Store
from support.study_programs import write_program


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path / "cache"))


def make(folder: Path, values: int = 12, **keys: object) -> tuple[Study, list[StudyPoint], Store]:
    write_program(folder)
    study = Study(
        inputs=["small.py"],
        gpus=["qv100"],
        set={"l1.latency": list(range(20, 20 + values))},
        results="out",
        folder=folder,
        **keys,
    )
    return study, study.points, study._store


def outcome(cycles: float) -> PointOutcome:
    return PointOutcome(
        DONE, values={"cycles": cycles, "launches": 1}, wall_seconds=0.5, host="here", finished="now"
    )


@pytest.fixture
def few_parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(store_module, "_MERGED", 4)
    yield


def test_rows_are_those_that_were_added(tmp_path: Path, few_parts: None) -> None:
    study, points, store = make(tmp_path)
    with study.session(points):
        for i in reversed(range(12)):
            store.add([(points[i], outcome(100 + i))])
    assert study.table()["cycles"].to_list() == [100 + i for i in range(12)]
    assert study.table()["l1.latency"].to_list() == list(range(20, 32))
    assert len(list((study.results / "points").glob("*.parquet"))) == 3  # merged by four
    # as others read them
    assert len(pl.read_parquet(study.results / "points" / "*.parquet")) == 12


def test_a_merge_that_is_cut_short_neither_loses_nor_doubles_rows(
    tmp_path: Path, few_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, points, store = make(tmp_path, 4)
    unlink, left = Path.unlink, [2]

    def killed(path: Path, missing_ok: bool = False) -> None:
        if path.name.startswith("part-"):
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
        unlink(path, missing_ok=missing_ok)

    with pytest.raises(KeyboardInterrupt), study.session(points):
        monkeypatch.setattr(Path, "unlink", killed)
        for i, point in enumerate(points):
            store.add([(point, outcome(i))])
    monkeypatch.undo()
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path / "cache"))
    assert len(list((study.results / "points").glob("*.parquet"))) == 3  # the merged one, and two that it has
    assert study.table()["cycles"].to_list() == [0, 1, 2, 3]
    with study.session(points):
        assert len(list((study.results / "points").glob("*.parquet"))) == 1
    assert study.table()["cycles"].to_list() == [0, 1, 2, 3]


def test_rows_are_read_while_a_run_merges_parts(
    tmp_path: Path, few_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, points, store = make(tmp_path, 4)
    with study.session(points):
        for i, point in enumerate(points[:3]):
            store.add([(point, outcome(i))])
        real = store_module._read

        def merging(part: Path) -> pl.DataFrame:
            monkeypatch.setattr(store_module, "_read", real)
            Store(study.results, study.space.axes)._append(
                pl.DataFrame([store._row(points[3], outcome(3))], schema=store.schema)
            )
            store._merge(store._parts())
            return real(part)

        monkeypatch.setattr(store_module, "_read", merging)
        assert sorted(store.rows()["cycles"]) == [0, 1, 2, 3]


def test_a_success_goes_before_a_failure(tmp_path: Path) -> None:
    study, points, store = make(tmp_path, 2)
    with study.session(points):
        store.add([(points[0], failed("first")), (points[1], failed("first"))])
        assert store.status(points[0]) == "failed"
        store.add([(points[0], outcome(7))])
        assert store.status(points[0]) == DONE
    assert study.table().select("status", "error", "cycles").rows() == [
        ("done", None, 7.0),
        ("failed", "first", None),
    ]


def test_a_changed_study_keeps_what_it_still_has(tmp_path: Path) -> None:
    study, points, store = make(tmp_path, 4)
    with study.session(points):
        store.add([(point, outcome(i)) for i, point in enumerate(points)])
    changed = Study(
        inputs=["small.py"],
        gpus=["qv100"],
        set={"l1.latency": [22, 23, 40], "sm.count": [80]},
        results="out",
        folder=tmp_path,
    )
    with changed.session(changed.points):
        pass
    assert changed.table().select("l1.latency", "sm.count", "cycles").rows() == [(22, 80, 2.0), (23, 80, 3.0)]
    assert len(pl.read_parquet(study.results / "former" / "*.parquet")) == 2
    # and back again: nothing is lost, even without the cache
    for file in (tmp_path / "cache" / "points").iterdir():
        file.unlink()
    back = make(tmp_path, 4)[0]
    with back.session(back.points) as session:
        assert session.run(back.points, lambda _: None, retry=False).simulated == 0
    assert back.table()["cycles"].to_list() == [0, 1, 2, 3]


def test_points_that_another_study_has_done_are_taken_over(tmp_path: Path) -> None:
    study, points, store = make(tmp_path, 3, share="shared")
    with study.session(points):
        store.add([(points[0], outcome(5)), (points[1], failed("mine alone")), (points[2], outcome(6))])
    assert len(list((tmp_path / "shared").glob("*.parquet"))) == 1
    for file in (tmp_path / "cache" / "points").iterdir():
        file.unlink()
    other = Study(
        inputs=["small.py"],
        gpus=["qv100"],
        set={"l1.latency": [22, 20]},
        results="other",
        share="shared",
        folder=tmp_path,
    )
    with other.session(other.points) as session:
        ran = session.run(other.points, lambda _: None, retry=False)
    assert (ran.simulated, ran.reused) == (0, 2)
    assert other.table().select("l1.latency", "cycles", "host").rows() == [
        (22, 6.0, "here"),
        (20, 5.0, "here"),
    ]


def test_broken_shared_files_are_passed_over(tmp_path: Path) -> None:
    study, points, store = make(tmp_path, 1, share="shared")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "broken.parquet").write_bytes(b"PAR1 not")
    with study.session(points):
        assert store.find(points) == 0
        store.add([(points[0], outcome(1))])
    assert len(study.table()) == 1


def test_two_runs_do_not_write_to_one_folder(tmp_path: Path) -> None:
    study, points, _ = make(tmp_path, 1)
    with study.session(points):
        code = (
            "import fcntl, sys; f = open(sys.argv[1])\n"
            "try: fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
            "except OSError: print('held')"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(study.results / "lock")], capture_output=True, text=True
        )
        assert done.stdout == "held\n"
    with open(study.results / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with (
            pytest.raises(StudyError, match=f"another run writes here .process {os.getpid()}"),
            study.session(),
        ):
            pass


def test_columns_have_the_types_of_their_values(tmp_path: Path) -> None:
    write_program(tmp_path)
    study = Study(
        inputs=["small.py"],
        set={"clock.dram_mhz": [800, 850.5], "l2.copies_fill": [True, False]},
        folder=tmp_path,
        results="out",
    )
    schema = study._store.schema
    assert (schema["clock.dram_mhz"], schema["l2.copies_fill"]) == (pl.Float64, pl.Boolean)
    with study.session(study.points):
        study._store.add([(point, outcome(1)) for point in study.points])
    assert study.table()["clock.dram_mhz"].to_list() == [800.0, 800.0, 850.5, 850.5]
    assert_frame_equal(study.table(), Study.load(study.results).table())


def test_a_file_that_is_no_part_is_named(tmp_path: Path) -> None:
    study, points, store = make(tmp_path, 1)
    with study.session(points):
        store.add([(points[0], outcome(1))])
    (study.results / "points" / "part-000000.parquet").write_bytes(b"nothing")
    with pytest.raises(StudyError, match=r"part-000000.parquet: no part of a study"):
        study.table()
