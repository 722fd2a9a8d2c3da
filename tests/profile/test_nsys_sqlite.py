"""Nsight Systems' SQLite exports."""

import gzip
from pathlib import Path

import pytest

from simt.errors import ProfileError
from simt.profile import LeftOut, read_profile
from support.profiles import OTHER_PID, PID, nsys_database, nsys_statements


@pytest.mark.parametrize(
    ("name", "launches", "gpu"),
    [("a100_cloverleaf", 1312, "NVIDIA A100-SXM4-80GB"), ("h100_2gpu_llm_training", 4010, None)],
)
def test_real_exports(shared_data: Path, name: str, launches: int, gpu: str | None) -> None:
    profile = read_profile(shared_data / "profiles" / f"{name}.nsys.sqlite.gz")
    assert len(profile) == launches
    assert profile.gpu == gpu
    assert profile.launches["launch"].to_list() == list(range(launches))
    assert profile.launches["grid_x"].null_count() == 0


@pytest.mark.slow
def test_processes_of_a_real_export(shared_data: Path) -> None:
    path = shared_data / "profiles" / "h100_2gpu_llm_training.nsys.sqlite.gz"
    both = read_profile(path)
    assert any("2 processes" in line for line in both.warnings)
    parts = [read_profile(path, process=pid) for pid in (144, 145)]
    assert sum(map(len, parts)) == len(both)
    assert sum(part.left_out[0].launches for part in parts) == both.left_out[0].launches == 1289
    assert [part.launches["device"].unique().to_list() for part in parts] == [[0], [1]]
    # PyTorch names its ranges; without the running numbers they are operators.
    assert both.launches["annotation"].drop_nulls().n_unique() < 100
    with pytest.raises(ProfileError, match="no launches of process 7, found 144, 145"):
        read_profile(path, process=7)


def test_every_column(tmp_path: Path) -> None:
    profile = read_profile(nsys_database(tmp_path / "x", nsys_statements()))
    assert profile.gpu == "NVIDIA A100"
    # In the order of the launching calls, although g started first.
    assert profile.launches.to_dicts() == [
        {
            "launch": 0, "name": "void f<int>(int)", "start_ns": 200.0, "duration_ns": 1000.0,
            "grid_x": 10, "grid_y": 1, "grid_z": 1, "block_x": 256, "block_y": 1, "block_z": 1,
            "registers": 32, "stream": 7, "device": 0, "shared_bytes": 0, "annotation": "step",
        },
        {
            "launch": 1, "name": "g(float*)", "start_ns": 0.0, "duration_ns": 500.0,
            "grid_x": 2, "grid_y": 3, "grid_z": 4, "block_x": 32, "block_y": 1, "block_z": 1,
            "registers": 40, "stream": 13, "device": 0, "shared_bytes": 1040,
            "annotation": "aten::mm, sizes = [[2]]",
        },
    ]  # fmt: skip
    assert profile.left_out == (LeftOut("copy", 2, 500.0, 0.25),)


def test_compressed_and_named_anyhow(tmp_path: Path) -> None:
    plain = nsys_database(tmp_path / "x", nsys_statements())
    packed = tmp_path / "profile.txt"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_profile(packed).launches.equals(read_profile(plain).launches)


def test_oldest_schema(tmp_path: Path) -> None:
    """Only names as text, no processes, no calls: column names have changed as well."""
    path = nsys_database(
        tmp_path / "x.sqlite",
        [
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL"
            " (start INTEGER, end INTEGER, deviceId INTEGER, name TEXT)",
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (30, 40, 0, 'b'), (10, 15, 0, 'a')",
        ],
    )
    profile = read_profile(path)
    assert profile.launches["name"].to_list() == ["a", "b"]
    assert profile.launches["duration_ns"].to_list() == [5.0, 10.0]
    assert not profile.has("grid_x")
    assert profile.gpu is None


def test_names_fall_back(tmp_path: Path) -> None:
    statements = nsys_statements()
    statements[1] = "INSERT INTO StringIds VALUES (2, 'f'), (3, 'g(float*)'), (5, 'step')"
    profile = read_profile(nsys_database(tmp_path / "x.sqlite", statements))
    assert profile.launches["name"].to_list() == ["f", "g(float*)"]
    statements[1] = "INSERT INTO StringIds VALUES (5, 'step')"
    with pytest.raises(ProfileError, match="row 1: the name 3 is not in StringIds"):
        read_profile(nsys_database(tmp_path / "x.sqlite", statements))


def test_correlation_ids_are_of_a_process(tmp_path: Path) -> None:
    statements = [
        *nsys_statements(),
        f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES"
        f" (5000, 5010, 1, 7, 11, {OTHER_PID}, 1, 2, 32, 1, 1, 1, 32, 1, 1, 0, 0, NULL)",
        f"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (4000, 4001, {OTHER_PID | 6}, 11, 2)",
    ]
    path = nsys_database(tmp_path / "x.sqlite", statements)
    profile = read_profile(path)
    assert profile.launches["annotation"].to_list() == ["step", "aten::mm, sizes = [[2]]", None]
    assert profile.launches["device"].to_list() == [0, 0, 1]
    assert len(profile.warnings) == 2
    assert len(read_profile(path, process=512)) == 1
    assert PID >> 24 & 0xFFFFFF == 123
    assert len(read_profile(path, process=123)) == 2


def test_graphs_traced_as_wholes_are_said_and_left_out(tmp_path: Path) -> None:
    statements = [
        *nsys_statements(),
        "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, globalPid INTEGER)",
        f"INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (0, 2000, {PID})",
    ]
    profile = read_profile(nsys_database(tmp_path / "x.sqlite", statements))
    assert profile.left_out[1] == LeftOut("graph", 1, 2000.0, 0.5)
    assert "--cuda-graph-trace=node" in profile.warnings[0]


def test_kernels_of_a_graph_share_the_call_that_launched_it(tmp_path: Path) -> None:
    statements = nsys_statements()
    statements[3] = statements[3].replace(", 12, ", ", 11, ")
    profile = read_profile(nsys_database(tmp_path / "x.sqlite", statements))
    assert profile.launches["name"].to_list() == ["g(float*)", "void f<int>(int)"]  # by time within the call
    assert profile.launches["annotation"].to_list() == ["step", "step"]


def test_what_is_no_such_export(tmp_path: Path) -> None:
    path = nsys_database(tmp_path / "x.sqlite", ["CREATE TABLE other (a INTEGER)"])
    with pytest.raises(ProfileError, match=r"no table CUPTI_ACTIVITY_KIND_KERNEL, found other; expected"):
        read_profile(path)
    statements = nsys_statements()
    statements[3] = statements[3].replace("(1000,", "('soon',")
    with pytest.raises(
        ProfileError, match=r"CUPTI_ACTIVITY_KIND_KERNEL.start holds 'soon', expected an integer"
    ):
        read_profile(nsys_database(path, statements))


def test_the_file_is_only_read(tmp_path: Path) -> None:
    path = nsys_database(tmp_path / "x.sqlite", nsys_statements())
    before = path.read_bytes()
    path.chmod(0o444)
    read_profile(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["x.sqlite"]
