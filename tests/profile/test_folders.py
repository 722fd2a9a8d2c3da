"""Folders that are one profile: Nsight Systems' table folders, and a profile for each GPU."""

import json
import sqlite3
from pathlib import Path

import polars as pl
import pytest

from simt.errors import ProfileError, TraceError
from simt.profile import read_profile
from support.profiles import kineto_events, kineto_text, nsys_database, nsys_statements


def table_folder(folder: Path, statements: list[str], suffix: str = ".parquet", stream: bool = False) -> Path:
    """The tables of a database as a file each."""
    folder.mkdir()
    database = sqlite3.connect(nsys_database(folder.parent / "tables.sqlite", statements))
    for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        rows = database.execute(f"SELECT * FROM {name}")
        columns = [each[0] for each in rows.description]
        frame = pl.DataFrame(rows.fetchall(), schema=columns, orient="row", infer_schema_length=None)
        if suffix == ".parquet":
            frame.write_parquet(folder / f"{name}.parquet")
        else:
            write = frame.write_ipc_stream if stream else frame.write_ipc
            write(folder / f"{name}{suffix}")
    database.close()
    return folder


@pytest.mark.parametrize(("suffix", "stream"), [(".parquet", False), (".arrow", False), (".arrow", True)])
def test_table_folders_are_read_like_the_sqlite_export(tmp_path: Path, suffix: str, stream: bool) -> None:
    folder = table_folder(tmp_path / "run_pqtdir", nsys_statements(), suffix, stream)
    profile, expected = read_profile(folder), read_profile(tmp_path / "tables.sqlite")
    assert profile.launches.to_dicts() == expected.launches.to_dicts()
    assert (profile.gpu, profile.left_out, profile.warnings) == (
        expected.gpu,
        expected.left_out,
        expected.warnings,
    )
    assert read_profile(folder, process=123).launches.to_dicts() == expected.launches.to_dicts()


def test_damaged_table_folders(tmp_path: Path) -> None:
    folder = table_folder(tmp_path / "tables", nsys_statements())
    (folder / "StringIds.parquet").write_bytes(b"PAR1 damaged PAR1")
    with pytest.raises(ProfileError, match=r"StringIds\.parquet: not a readable table"):
        read_profile(folder)
    (folder / "StringIds.parquet").unlink()
    with pytest.raises(ProfileError, match="is not in StringIds"):
        read_profile(folder)
    pl.DataFrame({"id": [1.5], "value": [b"\xff"]}).write_parquet(folder / "StringIds.parquet")
    with pytest.raises(ProfileError, match=r"StringIds\.parquet: not a readable table"):
        read_profile(folder)
    pl.DataFrame({"id": [1], "value": ["f"]}).write_parquet(folder / "StringIds.parquet")
    (folder / "CUPTI_ACTIVITY_KIND_KERNEL.parquet").unlink()
    with pytest.raises(ProfileError, match="no table CUPTI_ACTIVITY_KIND_KERNEL"):
        read_profile(folder)


def test_a_profile_for_each_rank(tmp_path: Path) -> None:
    """Rank 10 follows rank 2; devices are numbered through, and what was left out is added up."""
    second = [{**x, "args": {**x.get("args", {}), "device": 5}} if x.get("cat") == "kernel" else x
              for x in kineto_events()]  # fmt: skip
    for rank, events in ((10, kineto_events()), (2, second)):
        (tmp_path / f"rank{rank}.json").write_text(kineto_text(events))
    (tmp_path / "notes.txt").write_text("no profile")
    profile = read_profile(tmp_path)
    one = read_profile(tmp_path / "rank2.json")
    assert profile.launches["launch"].to_list() == [0, 1, 2, 3, 4, 5]
    assert profile.launches["name"].to_list() == 2 * one.launches["name"].to_list()
    assert profile.launches["device"].to_list() == [0, 0, 0, 1, 1, 1]
    assert profile.launches["start_ns"].to_list() == 2 * one.launches["start_ns"].to_list()
    assert profile.launches["annotation"].to_list() == 2 * one.launches["annotation"].to_list()
    (copies,) = profile.left_out
    assert (copies.launches, copies.duration_ns) == (2, 2 * one.left_out[0].duration_ns)
    assert copies.share == pytest.approx(one.left_out[0].share)
    assert any("2 profiles (rank2.json, rank10.json)" in line for line in profile.warnings)
    assert len(profile.kernels()) == 6


def test_a_damaged_rank_is_named(tmp_path: Path) -> None:
    (tmp_path / "rank0.json").write_text(kineto_text())
    (tmp_path / "rank1.json").write_text(json.dumps({"no": "trace"}))
    with pytest.raises(ProfileError, match=r"rank1\.json: JSON without `traceEvents`"):
        read_profile(tmp_path)


def test_a_folder_without_profiles(tmp_path: Path) -> None:
    pytest.importorskip("simt._engine")
    (tmp_path / "notes.txt").write_text("no profile")
    with pytest.raises(TraceError, match="expected a launch list"):
        read_profile(tmp_path)
