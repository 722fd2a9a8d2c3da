"""Profiles of AMD's tools other than rocprofv3's JSON: rocpd databases, and tables of three generations."""

from pathlib import Path

import pytest

from simt.errors import ProfileError
from simt.profile import read_profile
from support.profiles import (
    ROCPROF_COUNTERS,
    ROCPROF_V1,
    ROCPROF_V2,
    nsys_database,
    rocpd_statements,
)


@pytest.mark.parametrize("schema", [3, 4])
@pytest.mark.parametrize("run", ["", "_0001"])
def test_rocpd(tmp_path: Path, schema: int, run: str) -> None:
    profile = read_profile(nsys_database(tmp_path / "x", rocpd_statements(schema, run)))
    assert profile.gpu == "AMD Instinct MI300X"
    assert profile.warnings == ()
    assert profile.launches.to_dicts() == [
        {"launch": 0, "name": "f(int)", "grid_x": 1, "grid_y": 1, "grid_z": 1, "block_x": 256, "block_y": 1,
         "block_z": 1, "registers": 16, "shared_bytes": 0, "stream": 7, "device": 1, "start_ns": 0.0,
         "duration_ns": 100.0, "SQ_WAVES": 11.5, "GRBM_COUNT": None},
        {"launch": 1, "name": "g()", "grid_x": 8, "grid_y": 3, "grid_z": 1, "block_x": 128, "block_y": 2,
         "block_z": 1, "registers": 8, "shared_bytes": 64, "stream": 7, "device": 1, "start_ns": 500.0,
         "duration_ns": 200.0, "SQ_WAVES": None, "GRBM_COUNT": 7.0},
    ]  # fmt: skip
    (copies,) = profile.left_out
    assert (copies.kind, copies.launches, copies.duration_ns, copies.share) == ("copy", 1, 40.0, 40 / 340)


def test_rocpd_of_several_runs(tmp_path: Path) -> None:
    """`rocpd merge` keeps the tables of each run under its id."""
    other = [
        text.replace("4242", "4243")
        .replace("'g()'", "'h()'")
        .replace("VIEW IF NOT EXISTS `rocpd", "VIEW `more")
        for text in rocpd_statements(4, "_0002")
    ]
    path = nsys_database(tmp_path / "x", [*rocpd_statements(3, "_0001"), *other])
    profile = read_profile(path)
    assert sorted(profile.launches["name"]) == ["f(int)", "f(int)", "g()", "h()"]
    assert any("2 processes" in line for line in profile.warnings)
    assert [(x.kind, x.launches) for x in profile.left_out] == [("copy", 2)]
    assert read_profile(path, process=4243).launches["name"].to_list() == ["f(int)", "h()"]
    with pytest.raises(ProfileError, match="no launches of process 1, found 4242, 4243"):
        read_profile(path, process=1)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1, 'g', '_Z1fi.kd'", "11, 'g', '_Z1fi.kd'", "kernel 1 is not in"),
        (
            "kernel_name, display_name, arch_vgpr_count, accum_vgpr_count, extdata",
            "a, b, arch_vgpr_count, accum_vgpr_count, e",
            "no column for the kernel's name",
        ),
        ("'SQ_WAVES'", "'duration_ns'", "a counter called 'duration_ns'"),
        (f"{(1 << 60) + 700}, 64", "3, 64", "a record from"),
        ("start, end, group", "start, stop, group", "neither start and end nor their ids"),
        ("dispatch_id, stream_id", "dispatched, stream_id", "no column dispatch_id"),
    ],
)
def test_rocpd_damage(tmp_path: Path, old: str, new: str, message: str) -> None:
    statements = rocpd_statements()
    assert any(old in text for text in statements)
    statements = [text.replace(old, new) for text in statements]
    with pytest.raises(ProfileError, match=message):
        read_profile(nsys_database(tmp_path / "x", statements))


def test_rocpd_without_dispatches(tmp_path: Path) -> None:
    statements = [text for text in rocpd_statements() if "INSERT INTO `rocpd_kernel_dispatch" not in text]
    with pytest.raises(ProfileError, match="without kernel dispatches; run rocprofv3 with --kernel-trace"):
        read_profile(nsys_database(tmp_path / "x", statements))


def test_counter_collection(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(ROCPROF_COUNTERS)
    profile = read_profile(path)
    assert profile.launches["name"].to_list() == ["void f<float>(float*, int)", "g(float*, int)"]
    assert profile.launches["grid_x"].to_list() == [16, 16]  # 4,096 of 256; 1,000 of 64, rounded up
    assert profile.launches["block_x"].to_list() == [256, 64]
    assert profile.launches["start_ns"].to_list() == [0.0, 14520.0]
    assert profile.launches["registers"].to_list() == [8, 12]
    assert profile.launches["SQ_WAVES"].to_list() == [70.0, 16.0]  # 64 and 6 in two rows
    assert profile.launches["OccupancyPercent"].to_list() == [4.34259040e-02, None]
    assert any("totals" in line for line in profile.warnings)
    path.write_text(
        ROCPROF_COUNTERS.replace('1,1,4,1,77,77,4096,10,"void f<float>', '1,1,4,1,77,77,4096,10,"h<', 1)
    )
    with pytest.raises(ProfileError, match="dispatch 1 is both"):
        read_profile(path)
    path.write_text(ROCPROF_COUNTERS.replace('"OccupancyPercent"', '"name"'))
    with pytest.raises(ProfileError, match="a counter called 'name'"):
        read_profile(path)
    path.write_text(ROCPROF_COUNTERS.replace("16.000000", "many"))
    with pytest.raises(ProfileError, match="column `Counter_Value`, row 1: 'many' is not a number"):
        read_profile(path)


def test_older_tables(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(ROCPROF_V2)
    profile = read_profile(path)
    assert profile.launches["name"].to_list() == ["void f<float>(float*, int)", "g"]
    assert profile.launches["duration_ns"].to_list() == [300.0, 500.0]
    assert profile.launches["registers"].to_list() == [72, 16]
    assert profile.counters == ["SQ_WAVES"]
    assert profile.launches["SQ_WAVES"].to_list() == [64.0, None]
    assert "columns without a value in any row: SQ_IDLE" in profile.warnings
    path.write_text(ROCPROF_V1)
    (row,) = read_profile(path).launches.to_dicts()
    assert row == {
        "launch": 0, "name": "f(float*)", "grid_x": 4, "grid_y": 1, "grid_z": 1, "block_x": 128, "block_y": 1,
        "block_z": 1, "registers": 12, "shared_bytes": 0, "stream": 0, "device": 1, "start_ns": 0.0,
        "duration_ns": 100.0, "SQ_WAVES": 8.0,
    }  # fmt: skip
