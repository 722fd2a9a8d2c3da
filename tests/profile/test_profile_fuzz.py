"""Damaged files of every format give a SimtError or a valid Profile, never another exception."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import simt
from simt.errors import SimtError
from simt.profile import Profile, read_profile
from support.fake_gpu import installed
from support.profiles import (
    EXEC_TRACE,
    GET_STATS,
    GPU_TRACE,
    NCU_DETAILS,
    NCU_RAW,
    NVPROF_METRICS,
    NVPROF_TIMES,
    ROCPROF_COUNTERS,
    ROCPROF_CSV,
    ROCPROF_V1,
    ROCPROF_V2,
    SEMICOLONS,
    TRACER_STATS,
    kineto_text,
    nsys_database,
    nsys_statements,
    rocpd_statements,
    rocprof_data,
)


def _sqlite(folder: Path) -> bytes:
    # Small pages, so that damage affects rows and not padding.
    return nsys_database(folder / "made", ["PRAGMA page_size = 512", *nsys_statements()]).read_bytes()


def _rocpd(schema: int) -> Callable[[Path], bytes]:
    small = "PRAGMA page_size = 512"
    return lambda folder: nsys_database(folder / "made", [small, *rocpd_statements(schema)]).read_bytes()


def _parquet(folder: Path) -> bytes:
    frame = pl.DataFrame({"launch": range(50), "name": ["f", "g"] * 25, "duration_ns": range(50)})
    return Profile(frame).save(folder / "made.parquet").read_bytes()


def _result(folder: Path) -> bytes:
    with installed():
        return simt.simulate("input").save(folder / "made.json").read_bytes()


SAMPLES: dict[str, Callable[[Path], bytes]] = {
    "nsys sqlite": _sqlite,
    "nsys gpu_trace": lambda _: GPU_TRACE.encode(),
    "nsys kern_exec_trace": lambda _: EXEC_TRACE.encode(),
    "ncu raw": lambda _: NCU_RAW.encode(),
    "ncu details": lambda _: NCU_DETAILS.encode(),
    "nvprof times": lambda _: NVPROF_TIMES.encode(),
    "nvprof metrics": lambda _: NVPROF_METRICS.encode(),
    "kineto": lambda _: kineto_text().encode(),
    "kineto gz": lambda _: gzip.compress(kineto_text().encode()),
    "rocprof json": lambda _: json.dumps(rocprof_data()).encode(),
    "rocprof csv": lambda _: ROCPROF_CSV.encode(),
    "rocprof counters": lambda _: ROCPROF_COUNTERS.encode(),
    "rocprofv2 csv": lambda _: ROCPROF_V2.encode(),
    "rocprof csv of version 1": lambda _: ROCPROF_V1.encode(),
    "rocpd 3": _rocpd(3),
    "rocpd 4": _rocpd(4),
    "utf-16": lambda _: NCU_RAW.encode("utf-16"),
    "semicolons": lambda _: SEMICOLONS.encode(),
    "tracer stats": lambda _: TRACER_STATS.encode(),
    "get_stats": lambda _: GET_STATS.encode(),
    "parquet": _parquet,
    "result": _result,
    "own csv": lambda _: b"launch,name,duration_ns,grid_x,a__b.sum\n0,f,1.5,2,7\n1,g,2,3,\n",
}

# Position (a fraction of the file), number of bytes removed, and their replacement.
DAMAGE = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.integers(0, 40),
        st.one_of(
            st.binary(max_size=6),
            st.sampled_from(
                [b'"', b",", b"}", b"]", b"\n", b"-1", b"1e999", b"null", b"nan", b"\xff", b"[", b"9" * 25]
            ),
        ),
    ),
    min_size=1,
    max_size=3,
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SAMPLES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=DAMAGE, cut=st.one_of(st.none(), st.floats(0, 1)))
def test_damage(
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    damage: list[tuple[float, int, bytes]],
    cut: float | None,
) -> None:
    folder = _FOLDERS.setdefault(kind, tmp_path_factory.mktemp("fuzz"))
    whole = _CONTENT.setdefault(kind, SAMPLES[kind](folder))
    data = bytearray(whole)
    for place, count, new in damage:
        at = int(place * len(data))
        data[at : at + count] = new
    if cut is not None:
        del data[int(cut * len(data)) :]
    path = folder / "damaged"
    path.write_bytes(data)
    try:
        profile = read_profile(path)
    except SimtError as error:
        assert str(error)
        return
    assert profile.launches["name"].null_count() == 0
    assert profile.launches["launch"].is_sorted()
    if profile.has("duration_ns"):
        assert profile.total_ns >= 0
    profile.kernels()


_FOLDERS: dict[str, Path] = {}
_CONTENT: dict[str, bytes] = {}


@pytest.mark.parametrize("kind", SAMPLES)
def test_whole_files_are_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "whole"
    path.write_bytes(SAMPLES[kind](tmp_path))
    assert len(read_profile(path)) >= 1
