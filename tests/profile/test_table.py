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


def test_processes_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("launch,name,duration_ns,process\n5,f,1,10\n6,g,2,11\n")
    both = read_profile(path)
    assert both.launches["launch"].to_list() == [5, 6]
    assert "2 processes" in both.warnings[0]
    assert read_profile(path, process=11).launches["name"].to_list() == ["g"]
    with pytest.raises(ProfileError, match="no launches of process 12, found 10, 11"):
        read_profile(path, process=12)


def test_ten_thousand_names_and_an_enum_of_more(tmp_path: Path) -> None:
    """Names no longer used by any launch are dropped, and codes stay in lexical order."""
    names = [f"k{i:05}" for i in range(10_000)]
    whole = Profile(
        pl.DataFrame({"launch": range(10_000), "name": names[::-1], "duration_ns": [1.0] * 10_000})
    )
    part = whole.take(pl.col("launch") < 3)
    assert part.names == ("k09997", "k09998", "k09999")
    assert part.name_codes.tolist() == [2, 1, 0]
    again = read_profile(part.save(tmp_path / "p.parquet"))
    assert again.names == part.names


def test_what_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("name,duration_ns\nf,1\ng,fast\n")
    with pytest.raises(ProfileError, match=r"column `duration_ns`, row 2: 'fast' is not a number"):
        read_profile(path)


def test_neusight_tables_are_read_by_a_mapping(shared_data: Path) -> None:
    path = shared_data / "profiles" / "neusight_gpt2_large-inf-1024-4.csv.zst"
    profile = read_profile(path, columns={"name": "name", "duration_ns": "Tesla_T4|fw_ms:ms"})
    with zstandard.open(path, "rb") as file:
        table = pl.read_csv(file.read())
    assert len(profile) == len(table) > 100
    assert profile.total_ns == pytest.approx(table["Tesla_T4|fw_ms"].sum() * 1e6)
