"""CSV tables of Nsight Systems, Nsight Compute, rocprofv3 and Accel-Sim."""

import gzip
from pathlib import Path

import pytest

from simt.errors import ProfileError
from simt.profile import Profile, read_profile
from simt.profile.csv_table import base_unit
from support.profiles import (
    EXEC_TRACE,
    GET_STATS,
    GPU_TRACE,
    NCU_DETAILS,
    NCU_RAW,
    ROCPROF_CSV,
    SEMICOLONS,
    TRACER_STATS,
)


def read(tmp_path: Path, text: str, process: int | None = None) -> Profile:
    path = tmp_path / "table"
    path.write_text(text)
    return read_profile(path, process=process)


def test_units() -> None:
    assert [base_unit(u) for u in ("ns", "us", "msecond", "s", "second", "usecond")] == [
        1,
        1e3,
        1e6,
        1e9,
        1e9,
        1e3,
    ]
    assert [base_unit(u) for u in ("byte", "Kbyte", "Mbyte", "Gbyte", "KiB", "MB", "B")] == [
        1, 1e3, 1e6, 1e9, 1024, 1e6, 1,
    ]  # fmt: skip
    assert base_unit("Gbyte/second") == 1e9
    assert base_unit("byte/usecond") == pytest.approx(1e6)
    assert base_unit("cycle/nsecond") == pytest.approx(1e9)
    assert [base_unit(u) for u in ("hz", "Mhz", "GHz")] == [1, 1e6, 1e9]
    assert [base_unit(u) for u in ("%", "", "inst", "register/thread", "inst/cycle", "block",
    "Kbyte/block")] == [
        1, 1, 1, 1, 1, 1, 1e3,
    ]  # fmt: skip


def test_gpu_trace(tmp_path: Path) -> None:
    profile = read(tmp_path, GPU_TRACE)
    assert profile.gpu == "NVIDIA GeForce RTX 3060"
    assert profile.launches.to_dicts() == [
        {"launch": 0, "name": "g()", "start_ns": 0.0, "duration_ns": 2000.0, "grid_x": 8, "grid_y": 1,
         "grid_z": 1,
         "block_x": 128, "block_y": 1, "block_z": 1, "registers": 16, "stream": 14, "shared_bytes": 0,
         "device": 0},
        {"launch": 1, "name": "void f<int, 2>(int, int)", "start_ns": 500.0, "duration_ns": 1250.0,
         "grid_x": 4,
         "grid_y": 2, "grid_z": 1, "block_x": 256, "block_y": 1, "block_z": 1, "registers": 40, "stream": 7,
         "shared_bytes": 50152, "device": 0},
    ]  # fmt: skip
    (copies,) = profile.left_out
    assert (copies.launches, copies.duration_ns, copies.share) == (1, 500.0, 500 / 3750)


def test_kern_exec_trace(tmp_path: Path) -> None:
    profile = read(tmp_path, EXEC_TRACE, process=42)
    assert profile.launches["name"].to_list() == ["first_launched(int, float)", "second_on_gpu"]
    assert profile.launches["duration_ns"].to_list() == [400.0, 300.0]
    assert profile.launches.select("grid_x", "grid_y", "grid_z", "block_x").rows() == [
        (4, 3, 2, 64),
        (2, 1, 1, 32),
    ]
    with pytest.raises(ProfileError, match="no launches of process 1, found 42"):
        read(tmp_path, EXEC_TRACE, process=1)


def test_summary_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="expected one row per launch: nsys stats -r cuda_gpu_trace"):
        read(tmp_path, "Time (%),Total Time (ns),Instances,Avg (ns),Name\n54.5,600,120,5,f\n")


def test_ncu_raw(tmp_path: Path) -> None:
    profile = read(tmp_path, NCU_RAW)
    assert profile.launches.to_dicts() == [
        {"launch": 0, "name": "void f<int, 2>(int, int)", "grid_x": 1024, "grid_y": 2, "grid_z": 1,
         "block_x": 256,
         "block_y": 1, "block_z": 1, "stream": 7, "device": 0, "registers": 40, "shared_bytes": 48016,
         "duration_ns": pytest.approx(12340.0), "dram__bytes_read.sum": 1.5e6,
         "gpu__time_duration.sum": pytest.approx(12340.0), "launch__registers_per_thread": 40.0,
         "launch__shared_mem_per_block_dynamic": 48000.0, "launch__shared_mem_per_block_static": 16.0,
         "sm__cycles_elapsed.avg.per_second": pytest.approx(1.41e9), "smsp__inst_executed.sum": 1234567.0},
        {"launch": 1, "name": "g()", "grid_x": 7, "grid_y": 1, "grid_z": 1, "block_x": 32, "block_y": 4,
         "block_z": 2,
         "stream": 13, "device": 0, "registers": 255, "shared_bytes": 0, "duration_ns": 1000500.0,
         "dram__bytes_read.sum": None, "gpu__time_duration.sum": 1000500.0,
         "launch__registers_per_thread": 255.0,
         "launch__shared_mem_per_block_dynamic": 0.0, "launch__shared_mem_per_block_static": 0.0,
         "sm__cycles_elapsed.avg.per_second": pytest.approx(1.4e9), "smsp__inst_executed.sum": 32.0},
    ]  # fmt: skip
    assert profile.warnings == ("metrics that are not numbers: derived__text",)


def test_ncu_details_are_one_row_a_metric(tmp_path: Path) -> None:
    profile = read(tmp_path, NCU_DETAILS)
    assert profile.launches["name"].to_list() == ["f(int)", "g(int)"]
    assert profile.launches["duration_ns"].to_list() == [pytest.approx(211940.0), 1.5e6]
    assert profile.launches["dram__bytes.sum"].to_list() == [2e9, None]
    assert profile.launches["grid_x"].to_list() == [16384, 1]


def test_ncu_several_passes_of_a_launch_become_one(tmp_path: Path) -> None:
    """Two runs with the same columns, one after the other: each measured what the other did not."""
    header, units = '"ID","Kernel Name","a__x.sum","gpu__time_duration.sum"', '"","","Kbyte","us"'
    text = f'{header}\n{units}\n"0","f","1","n/a"\n"1","g","2","n/a"\n'
    text += f'{header}\n"","","byte","ns"\n"0","f","n/a","7"\n'
    profile = read(tmp_path, text + '"1","g","n/a","9"\n')
    assert profile.launches["a__x.sum"].to_list() == [1000.0, 2000.0]
    assert profile.launches["duration_ns"].to_list() == [7.0, 9.0]
    with pytest.raises(ProfileError, match=r"ID 1 is both 'g' and 'h'; .*several reports in one file"):
        read(tmp_path, text + '"1","h","n/a","9"\n')


def test_ncu_subset_without_time(tmp_path: Path) -> None:
    profile = read(tmp_path, '"ID","Kernel Name","smsp__inst_executed.sum"\n"","","inst"\n"0","f","1,000"\n')
    assert profile.counters == ["smsp__inst_executed.sum"]
    assert not profile.has("duration_ns")
    assert "gpu__time_duration.sum" in profile.warnings[0]


def test_ncu_with_decimal_commas(tmp_path: Path) -> None:
    text = (
        '"ID","Kernel Name","dram__bytes.sum","gpu__time_duration.sum","sm__x.pct"\n"","","byte","ns","%"\n'
        '"0","f","27.595.520","117.344","65,77"\n'
    )
    row = read(tmp_path, text).launches.row(0, named=True)
    assert (row["dram__bytes.sum"], row["duration_ns"], row["sm__x.pct"]) == (27595520.0, 117344.0, 65.77)


def test_real_ncu_report(shared_data: Path) -> None:
    profile = read_profile(shared_data / "profiles" / "vectoradd_100.ncu.csv")
    assert len(profile) == 3  # rows with the ids 0, 1 and 2
    assert profile.gpu == "NVIDIA GeForce GTX 1080"
    assert profile.launches["duration_ns"].to_list() == [2720.0, 2720.0, 2720.0]
    assert profile.launches["block_x"].to_list() == [1024, 1024, 1024]
    assert profile.column("dram__frequency")[0] == 5458823529.41
    assert len(profile.counters) > 200


def test_rocprof_csv(tmp_path: Path) -> None:
    profile = read(tmp_path, ROCPROF_CSV)
    assert profile.launches.to_dicts() == [
        {"launch": 0, "name": "void f<float>(float*, int)", "start_ns": 0.0, "duration_ns": 11040.0,
         "grid_x": 16,
         "grid_y": 1024, "grid_z": 1, "block_x": 64, "block_y": 1, "block_z": 1, "registers": 8,
         "shared_bytes": 0,
         "stream": 1, "device": 4},
        {"launch": 1, "name": "g(float*, int)", "start_ns": 14520.0, "duration_ns": 11040.0, "grid_x": 2,
         "grid_y": 3,
         "grid_z": 1, "block_x": 64, "block_y": 2, "block_z": 1, "registers": 12, "shared_bytes": 64,
         "stream": 1,
         "device": 4},
    ]  # fmt: skip


def test_tracer_stats(tmp_path: Path) -> None:
    profile = read(tmp_path, TRACER_STATS)
    assert profile.launches["name"].to_list() == ["_Z6vecAddPKfS0_Pfi", "_Z1gv"]
    assert profile.launches["grid_y"].to_list() == [2, 1]
    assert profile.column("smsp__inst_executed.sum").tolist() == [524288, 100]
    assert not profile.has("duration_ns")


def test_get_stats(tmp_path: Path) -> None:
    profile = read(tmp_path, GET_STATS)
    assert profile.launches["name"].to_list() == ["_Z6vecAddPKfS0_Pfi"] * 2
    assert profile.launches["gpc__cycles_elapsed.max"].to_list() == [5501.0, 5402.0]
    assert profile.launches["smsp__inst_executed.sum"].to_list() == [26601.0, None]
    rows = GET_STATS.replace(",NA", ",1").splitlines()
    header = "CFG," + ",".join(row.split(",")[0] for row in rows[8:10])
    as_rows = "\n".join([*rows[5:7], header, "QV100-SASS,5501.0,5402", "RTX3070-SASS,1,2"])
    turned = read(tmp_path, as_rows)
    assert turned.launches["gpc__cycles_elapsed.max"].to_list() == [5501.0, 5402.0]
    assert "2 configurations; only the first, QV100-SASS, is read" in turned.warnings[0]
    with pytest.raises(ProfileError, match=r"expected statistics per kernel: get_stats\.py -k -K"):
        read(tmp_path, "\n".join(rows[:4]))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize("packed", [False, True])
def test_utf_16(tmp_path: Path, encoding: str, packed: bool) -> None:
    """As PowerShell's `>` writes what `ncu --csv` prints, also without its byte order mark."""
    path = tmp_path / "x"
    path.write_text(NCU_RAW)
    expected = read_profile(path)
    data = NCU_RAW.replace("\n", "\r\n").replace("output of", "sortie \u00e9\U0001f600 of").encode(encoding)
    path.write_bytes(gzip.compress(data) if packed else data)
    assert read_profile(path).launches.to_dicts() == expected.launches.to_dicts()


def test_damaged_utf_16(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(NCU_RAW.encode("utf-16")[:-1])
    with pytest.raises(ProfileError, match="damaged text in UTF-16"):
        read_profile(path)


def test_semicolons_and_decimal_commas(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(SEMICOLONS)
    profile = read_profile(path)
    assert profile.launches["name"].to_list() == ["f(float *, int)", "g()"]
    assert profile.launches["duration_ns"].to_list() == [1234560.0, 12000.0]
    assert profile.launches["dram__bytes.sum"].to_list() == [500000.0, 1250000.0]
    assert profile.launches["smsp__inst_executed.sum"].to_list() == [1234.0, 1234567.0]
    # Decimal points stay what they are where there is no decimal comma.
    path.write_text("name;duration_ns;a__b.sum\nf;1.234;0.5\n")
    profile = read_profile(path)
    assert profile.launches["duration_ns"].to_list() == [1.234]
    path.write_text("name\tduration_ns\nf<a, b>\t1.5\n")
    assert read_profile(path).launches["name"].to_list() == ["f<a, b>"]
