"""The Perfetto export, against the rules of Chrome's Trace Event Format."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import simt
from simt.result import Result, perfetto
from simt.result.transfer import Transfer
from support.fake_gpu import installed
from support.launches import MACHINE, launch


@pytest.fixture
def trace(tmp_path: Path) -> dict[str, Any]:
    with installed():
        result = simt.simulate("input", timeline=250)
    perfetto.write(result, tmp_path / "trace.json")
    return json.loads((tmp_path / "trace.json").read_text())


def check_format(trace: dict[str, Any]) -> None:
    """Chrome's Trace Event Format for the events that the trace has; slices of a track nest."""
    assert isinstance(trace["traceEvents"], list) and trace["displayTimeUnit"] in ("ms", "ns")
    processes = {e["pid"] for e in trace["traceEvents"] if e["name"] == "process_name"}
    threads = {(e["pid"], e["tid"]) for e in trace["traceEvents"] if e["name"] == "thread_name"}
    open_until: dict[tuple[int, int], list[float]] = {}
    for event in trace["traceEvents"]:
        assert event["ph"] in ("X", "C", "M")
        assert isinstance(event["name"], str) and event["name"]
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name") and event["args"]["name"]
            continue
        assert isinstance(event["ts"], (int, float)) and event["ts"] >= 0
        assert event["pid"] in processes
        if event["ph"] == "X":
            track = event["pid"], event["tid"]
            assert event["dur"] > 0 and track in threads
            start, end, stack = event["ts"], event["ts"] + event["dur"], open_until.setdefault(track, [])
            while stack and stack[-1] <= start + 1e-9:
                stack.pop()
            assert not stack or end <= stack[-1] + 1e-9
            stack.append(end)
        else:
            assert event["args"] and all(isinstance(v, (int, float)) for v in event["args"].values())
    times = [e["ts"] for e in trace["traceEvents"] if e["ph"] != "M"]
    assert times == sorted(times)


def test_every_event_follows_the_format(trace: dict[str, Any]) -> None:
    check_format(trace)


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
    gpu = {"IPC", "occupancy", "L1 hits", "L2 hits", "DRAM utilisation", "DRAM efficiency"}
    assert names == {*gpu, "state", "channel"}
    series = {(e["pid"], name) for e in trace["traceEvents"] if e["ph"] == "C" for name in e["args"]}
    assert {name for pid, name in series if pid == 3} == set("01234567")
    # A track holds its value until the next event: each event changes one.
    shown: dict[tuple[str, str], float] = {}
    for event in (e for e in trace["traceEvents"] if e["ph"] == "C"):
        for name, value in event["args"].items():
            assert shown.get((event["name"], name)) != value
            shown[event["name"], name] = value
    assert set(shown.values()) == {0}  # nothing runs after the end


def test_streams_are_tracks_and_shared_samples_appear_once() -> None:
    with installed():
        provenance = simt.simulate("input").provenance
    one = launch(0, ctas=2, interval=500, stream=0)
    two = launch(1, ctas=2, interval=500, stream=0x7F)
    events = perfetto.events(Result((one, two), MACHINE, provenance))["traceEvents"]
    tracks = {e["args"]["name"]: e["tid"] for e in events if e["name"] == "thread_name"}
    assert tracks == {"stream 0": 1, "stream 127": 2}
    assert {e["tid"] for e in events if e["ph"] == "X"} == {1, 2}
    times = [e["ts"] for e in events if e["name"] == "DRAM efficiency"]
    assert times == sorted(set(times))


def test_transfers_are_slices_of_their_stream() -> None:
    with installed():
        provenance = simt.simulate("input").provenance
    transfers = (Transfer("host_to_device", 7, 4096, 0, 1000), Transfer("device", None, 64, 500, 700))
    trace = perfetto.events(
        Result((launch(0, start=1000, stream=7),), MACHINE, provenance, transfers=transfers)
    )
    check_format(trace)
    copies = [e for e in trace["traceEvents"] if e.get("cat") == "copy"]
    assert [(e["name"], e["tid"], e["ts"], e["dur"]) for e in copies] == [
        ("copy to the device", 1, 0.0, 1.0),
        ("copy within the device", 2, 0.5, 0.2),
    ]
    assert copies[0]["args"] == {"bytes over the link": 4096, "cycles": 1000}


def test_counters_of_long_timelines_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    with installed():
        result = simt.simulate("input", timeline=50)
    whole = [e for e in perfetto.events(result)["traceEvents"] if e["name"] == "IPC"]
    monkeypatch.setattr(perfetto, "MAX_VALUES", 1000)
    trace = perfetto.events(result)
    check_format(trace)
    assert sum(len(e["args"]) for e in trace["traceEvents"] if e["ph"] == "C") <= 1000 + 21
    merged = [e for e in trace["traceEvents"] if e["name"] == "IPC"]
    assert (
        len(merged) < len(whole) and merged[0]["ts"] == whole[0]["ts"] and merged[-1]["ts"] == whole[-1]["ts"]
    )


@pytest.mark.slow
def test_ten_thousand_launches_stay_small() -> None:
    with installed():
        provenance = simt.simulate("input").provenance
    template = launch(0, ctas=2, interval=500)
    assert template.timeline is not None
    launches = tuple(
        replace(
            template,
            index=i,
            id=i,
            name=f"kernel{i % 40}",
            stream=i % 3,
            start_cycle=3000 * i,
            end_cycle=3000 * i + template.cycles,
            timeline={**template.timeline, "cycle": [c + 3000 * i for c in template.timeline["cycle"]]},
        )
        for i in range(10_000)
    )
    copies = tuple(Transfer("host_to_device", 5, 64, 3000 * i, 3000 * i + 900) for i in range(10_000))
    trace = perfetto.events(Result(launches, MACHINE, provenance, transfers=copies))
    check_format(trace)
    assert len(json.dumps(trace, separators=(",", ":"))) < 30_000_000
