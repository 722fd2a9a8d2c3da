"""Traces of the PyTorch profiler."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from simt.errors import ProfileError
from simt.profile import Profile, json_arrays, read_profile, source
from support.profiles import event, kineto_events, kineto_text


def read(tmp_path: Path, text: str) -> Profile:
    path = tmp_path / "trace"
    path.write_text(text)
    return read_profile(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "launches", "copies", "gpu"),
    [
        ("v100_training", 19370, 2920, "Tesla V100-SXM2-32GB"),
        ("rtx2080ti_resnet_training", 9628, 485, "NVIDIA GeForce RTX 2080 Ti"),
        ("h100_owlv2_inference", 4330, 835, "NVIDIA H100 80GB HBM3"),
        ("mi300x_owlv2_inference", 4255, 85, "AMD Instinct MI300X VF"),
    ],
)
def test_real_traces(shared_data: Path, name: str, launches: int, copies: int, gpu: str) -> None:
    profile = read_profile(shared_data / "profiles" / f"{name}.kineto.json.gz")
    assert len(profile) == launches
    assert profile.gpu == gpu
    assert (profile.left_out[0].kind, profile.left_out[0].launches) == ("copy", copies)
    assert profile.launches["annotation"].null_count() == 0
    assert profile.launches["grid_x"].null_count() == 0


@pytest.mark.slow
def test_two_gpus_run_the_same_operators(shared_data: Path) -> None:
    """The same program on two GPUs: its launches align by the sequence of framework operators."""
    sequences = []
    for name in ("h100", "mi300x"):
        profile = read_profile(shared_data / "profiles" / f"{name}_owlv2_inference.kineto.json.gz")
        sequences.append(profile.launches["annotation"].cast(pl.String))
    codes = {op: code for code, op in enumerate(pl.concat(sequences).unique())}
    first, second = (np.array([codes[op] for op in sequence]) for sequence in sequences)
    common = np.zeros(len(second) + 1, int)  # lengths of the longest common subsequence, row by row
    for op in first:
        longer = np.where(second == op, common[:-1] + 1, 0)
        common[1:] = np.maximum.accumulate(np.maximum(common[1:], longer))
    assert common[-1] >= 3695  # the number in the data's README


def test_every_column(tmp_path: Path) -> None:
    profile = read(tmp_path, kineto_text())
    assert profile.gpu == "Tesla V100"  # device 1 ran the kernels
    size = {"grid_x": 3, "grid_y": 2, "grid_z": 1, "block_x": 128, "block_y": 1, "block_z": 1}
    rest = {"registers": 32, "shared_bytes": 48, "stream": 7, "device": 1}
    assert profile.launches.to_dicts() == [
        {"launch": 0, "name": 'void f<"\\\\">(int)', "start_ns": 9875.0,
         "duration_ns": 2001.0, **size, **rest,
         "annotation": "aten::addmm"},
        {"launch": 1, "name": "g()", "start_ns": 0.0, "duration_ns": 1500.0, **size, **rest,
         "annotation": "ProfilerStep#1"},
        {"launch": 2, "name": "h()", "start_ns": 599875.0, "duration_ns": 4000.0, **size, **rest,
         "annotation": "aten::relu"},  # by its external id, since its call is missing
    ]  # fmt: skip
    (copies,) = profile.left_out
    assert (copies.kind, copies.launches, copies.duration_ns) == ("copy", 1, 3000.0)


def test_tensors_of_the_operator_around_a_launch(tmp_path: Path) -> None:
    events = kineto_events()
    shapes = {"aten::addmm": [[4], [8, 16], []], "aten::linear": [[1, 1]], "aten::relu": [[[2, 3], [5]]]}
    for each in events:
        if each.get("cat") == "cpu_op":
            each["args"]["Input Dims"] = shapes[each["name"]]
    profile = read(tmp_path, kineto_text(events))
    assert profile.launches["tensors"].to_list() == ["[[4],[8,16],[]]", None, "[[[2,3],[5]]]"]
    path = tmp_path / "profile.parquet"
    profile.save(path)
    assert read_profile(path).launches["tensors"].to_list() == profile.launches["tensors"].to_list()


def test_first_versions(tmp_path: Path) -> None:
    """Upper-case categories, ids as text, whole microseconds."""
    events = kineto_events()
    for item in events:
        if "cat" in item:
            item["cat"] = {"cpu_op": "Operator", "cuda_runtime": "Runtime"}.get(
                item["cat"], item["cat"].capitalize()
            )
        if item.get("cat") == "Kernel":
            item["args"]["device"] = str(item["args"]["device"])
            item["args"]["stream"] = str(item["args"]["stream"])
    events.append(event("Memset", "Memset (Device)", 2, 1))
    profile = read(tmp_path, json.dumps({"traceEvents": events}))
    assert profile.launches["name"].to_list() == ['void f<"\\\\">(int)', "h()", "g()"] or len(profile) == 3
    assert profile.launches["device"].to_list() == [1, 1, 1]
    assert profile.gpu is None


def test_hip_launches_that_count_threads(tmp_path: Path) -> None:
    """hipExtModuleLaunchKernel takes its grid in work-items, hipLaunchKernel in workgroups."""
    sizes = {"grid": [1000, 6, 1], "block": [256, 2, 1]}
    events = [
        event("cuda_runtime", "hipExtModuleLaunchKernel", 0, 1, correlation=1),
        event("cuda_runtime", "hipLaunchKernel", 2, 1, correlation=2),
        event("kernel", "f", 10, 1, correlation=1, **sizes),
        event("kernel", "f", 12, 1, correlation=2, **sizes),
    ]
    launches = read(tmp_path, kineto_text(events)).launches
    assert launches.select("grid_x", "grid_y", "grid_z").rows() == [(4, 3, 1), (1000, 6, 1)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1000])
def test_pieces_of_any_size_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    whole = read(tmp_path, kineto_text())
    pieces = source.ProfileSource.pieces
    monkeypatch.setattr(source.ProfileSource, "pieces", lambda self: pieces(self, size))
    monkeypatch.setattr(json_arrays, "_GAP", 64)
    assert read(tmp_path, kineto_text()).launches.equals(whole.launches)


def test_keys_in_any_order_and_odd_numbers(tmp_path: Path) -> None:
    text = kineto_text()
    data = json.loads(text)
    behind = json.dumps(
        {"note": 'a "traceEvents": [ in a string', **data, "deviceProperties": data["deviceProperties"]}
    )
    broken = text.replace('"shared memory": 48', '"shared memory": 48, "warps per SM": inf, "x": -NaN')
    expected = read(tmp_path, text).launches
    assert read(tmp_path, behind).launches.equals(expected)
    assert read(tmp_path, broken).launches.equals(expected)


def test_cut_off_while_it_was_written(tmp_path: Path) -> None:
    text = kineto_text()
    cut = text.index('"h()"')
    with pytest.raises(
        ProfileError,
        match=rf"ends at byte {len(text[:cut].encode())}, in the middle of `traceEvents`, after 10 complete",
    ):
        read(tmp_path, text[:cut])
    packed = tmp_path / "trace.json.gz"
    packed.write_bytes(gzip.compress(text.encode())[:-30])
    with pytest.raises(ProfileError, match="gz data ends too early"):
        read_profile(packed)


def test_damage_is_placed(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"`traceEvents` from byte \d+ on: .*malformed"):
        read(tmp_path, kineto_text().replace('"dur": 100', '"dur" 100'))
    with pytest.raises(ProfileError, match=r"`dur` is 'long', expected a number of microseconds"):
        read(tmp_path, kineto_text().replace('"dur": 4,', '"dur": "long",'))
    with pytest.raises(ProfileError, match=r"`grid` is \[3\], expected three integers"):
        events = [event("kernel", "f", 1, 1, grid=[3])]
        read(tmp_path, kineto_text(events))
    with pytest.raises(ProfileError, match="JSON without `traceEvents`; expected"):
        read(tmp_path, '{"a": 1}')


def test_a_trace_of_the_cpu_alone(tmp_path: Path) -> None:
    profile = read(tmp_path, kineto_text([event("cpu_op", "aten::mm", 1, 2)]))
    assert len(profile) == 0
    assert "ProfilerActivity.CUDA" in profile.warnings[0]


@pytest.mark.slow
def test_memory_stays_bounded_by_the_largest_event(tmp_path: Path) -> None:
    """A gzip bomb with a single event is refused before it fills memory."""
    path = tmp_path / "bomb.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b'{"traceEvents": [{"name": "')
        block = b"x" * (1 << 20)
        for _ in range(100):
            file.write(block)
    with pytest.raises(ProfileError, match="an element of `traceEvents` is larger than 64 MiB"):
        read_profile(path)


def test_progress_is_told(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text(kineto_text())
    told: list[Any] = []
    read_profile(path, progress=told.append)
    assert told[-1].fraction == 1.0
    assert told[-1].launches_done == 3
