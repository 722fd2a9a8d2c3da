"""The Perfetto export, against the rules of Chrome's Trace Event Format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import simt
from simt.result import Result, perfetto
from support.fake_gpu import installed
from support.launches import MACHINE, launch


@pytest.fixture
def trace(tmp_path: Path) -> dict[str, Any]:
    with installed():
        result = simt.simulate("input", timeline=250)
    perfetto.write(result, tmp_path / "trace.json")
    return json.loads((tmp_path / "trace.json").read_text())


def test_every_event_follows_the_format(trace: dict[str, Any]) -> None:
    assert isinstance(trace["traceEvents"], list)
    for event in trace["traceEvents"]:
        assert event["ph"] in ("X", "C", "M")
        assert isinstance(event["name"], str) and event["name"]
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name") and event["args"]["name"]
            continue
        assert isinstance(event["ts"], (int, float)) and event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] > 0
        else:
            assert event["args"] and all(isinstance(v, (int, float)) for v in event["args"].values())
    times = [e["ts"] for e in trace["traceEvents"] if e["ph"] != "M"]
    assert times == sorted(times)


def test_slices_of_a_track_nest(trace: dict[str, Any]) -> None:
    open_until: list[float] = []
    for event in (e for e in trace["traceEvents"] if e["ph"] == "X"):
        start, end = event["ts"], event["ts"] + event["dur"]
        while open_until and open_until[-1] <= start + 1e-9:
            open_until.pop()
        assert not open_until or end <= open_until[-1] + 1e-9
        open_until.append(end)


def test_launches_and_counters(trace: dict[str, Any]) -> None:
    slices = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["name"] != "launch latency"]
    assert [(e["name"], e["ts"], e["dur"]) for e in slices] == [
        ("vecadd", 0.0, 4.5),
        ("gemm_128x64", 4.5, 8.5),
        ("gemm_64x64", 13.0, 2.5),
        ("reduce(float*, int)", 15.5, 1.5),
    ]
    assert slices[0]["args"]["cycles"] == 4500
    names = {e["name"] for e in trace["traceEvents"] if e["ph"] == "C"}
    assert names == {"IPC", "occupancy", "L1 hits", "L2 hits", "DRAM bus"}


def test_streams_are_tracks_and_shared_samples_appear_once() -> None:
    with installed():
        provenance = simt.simulate("input").provenance
    one = launch(0, ctas=2, interval=500, stream=0)
    two = launch(1, ctas=2, interval=500, stream=0x7F)
    events = perfetto.events(Result((one, two), MACHINE, provenance))["traceEvents"]
    tracks = {e["args"]["name"]: e["tid"] for e in events if e["name"] == "thread_name"}
    assert tracks == {"stream 0": 1, "stream 127": 2}
    assert {e["tid"] for e in events if e["ph"] == "X"} == {1, 2}
    assert len([e for e in events if e["name"] == "IPC"]) == 5
