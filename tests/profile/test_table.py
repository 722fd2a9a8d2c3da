"""CSV and Parquet tables, our own and others'."""

from pathlib import Path

import polars as pl
import pytest
import zstandard

from simt.errors import ProfileError
from simt.profile import Profile, read_profile


def test_own_parquet_comes_back_whole(tmp_path: Path) -> None:
    profile = Profile(
        pl.DataFrame(
            {
                "launch": [3, 7],
                "name": ["void f<int>(int)", "g"],
                "grid_x": [1, 2],
                "duration_ns": [10.0, 20.5],
                "annotation": ["aten::mm", None],
                "instructions": [100.0, None],
            }
        ),
        gpu="NVIDIA A100",
        warnings=("one", "two"),
    )
    again = read_profile(profile.save(tmp_path / "p.parquet"))
    assert again.launches.equals(profile.launches)
    assert again.launches.schema == profile.launches.schema
    assert (again.gpu, again.warnings, again.counters) == ("NVIDIA A100", ("one", "two"), ["instructions"])


def test_csv_by_naming_columns(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text('kernel,t,insts,note\n"f(int, int)",1.5,"1,000",x\ng,2,n/a,y\n')
    profile = read_profile(
        path, columns={"name": "kernel", "duration_ns": "t:us", "smsp__inst_executed.sum": "insts"}
    )
    assert profile.launches["name"].to_list() == ["f(int, int)", "g"]
    assert profile.launches["duration_ns"].to_list() == [1500.0, 2000.0]
    assert profile.launches["smsp__inst_executed.sum"].to_list() == [1000.0, None]
    assert profile.launches["launch"].to_list() == [0, 1]
    assert profile.warnings == ("columns not used: note",)


def test_column_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("kernel,t\nf,1\n")
    with pytest.raises(ProfileError, match=r"no column `time` to take `duration_ns` from, found kernel, t"):
        read_profile(path, columns={"name": "kernel", "duration_ns": "time"})
    with pytest.raises(ProfileError, match="no column `name`"):
        read_profile(path)


def test_what_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("name,duration_ns\nf,1\ng,fast\n")
    with pytest.raises(ProfileError, match=r"column `duration_ns`, row 2: 'fast' is no number"):
        read_profile(path)


def test_neusight_tables_are_read_by_a_mapping(shared_data: Path) -> None:
    path = shared_data / "profiles" / "neusight_gpt2_large-inf-1024-4.csv.zst"
    profile = read_profile(path, columns={"name": "name", "duration_ns": "Tesla_T4|fw_ms:ms"})
    with zstandard.open(path, "rb") as file:
        table = pl.read_csv(file.read())
    assert len(profile) == len(table) > 100
    assert profile.total_ns == pytest.approx(table["Tesla_T4|fw_ms"].sum() * 1e6)
