"""A Result as a trace for Perfetto's viewer (ui.perfetto.dev), in Chrome's Trace Event Format.

Streams are tracks with a slice per launch and, inside it, one for its launch latency; the timeline becomes
counter tracks. Times are microseconds at the core clock.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from simt.files import write_text
from simt.result.files import dump
from simt.result.launch import without_nan
from simt.result.summary import bottleneck

if TYPE_CHECKING:
    from simt.result.launch import LaunchResult
    from simt.result.result import Result

_PID = 1
_SHOWN = (
    "smsp__inst_executed.sum",
    "sm__inst_executed.avg.per_cycle_elapsed",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "l1tex__t_sector_hit_rate.pct",
    "lts__t_sector_hit_rate.pct",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
)


def events(result: Result) -> dict[str, Any]:
    """The trace as one JSON object."""
    streams = sorted({launch.stream for launch in result.launches})
    threads = {stream: i + 1 for i, stream in enumerate(streams)}
    meta = [_metadata("process_name", 0, f"GPU {result.machine.name}")]
    meta += [_metadata("thread_name", tid, f"stream {stream}") for stream, tid in threads.items()]
    timed: list[dict[str, Any]] = []
    labels = result.labels(80)
    for launch in result.launches:
        timed += _slices(launch, labels[launch.name], threads[launch.stream])
    timed += _counters(result)
    timed.sort(key=lambda event: (event["ts"], -event.get("dur", 0.0)))
    return {
        "traceEvents": meta + timed,
        "displayTimeUnit": "ns",
        "otherData": {"producer": f"simt {result.provenance.version}", "input": result.provenance.input},
    }


def write(result: Result, path: Path) -> None:
    """Writes the trace. Raises ResultError."""
    write_text(path, dump(events(result)))


def _metadata(name: str, tid: int, value: str) -> dict[str, Any]:
    return {"ph": "M", "pid": _PID, "tid": tid, "name": name, "args": {"name": value}}


def _slices(launch: LaunchResult, label: str, tid: int) -> list[dict[str, Any]]:
    scale = 1e3 / launch.clock_khz
    start = launch.start_cycle * scale
    shared = {"ph": "X", "pid": _PID, "tid": tid, "ts": start, "cat": "launch"}
    args: dict[str, Any] = {
        "id": launch.id,
        "name": launch.name,
        "grid": list(launch.grid),
        "block": list(launch.block),
        "cycles": launch.cycles,
        "bound by": bottleneck(launch).kind,
    }
    known = without_nan(launch.counters)  # not all are known for a projected launch
    args |= {name: known[name] for name in _SHOWN if known[name] is not None}
    found = [{**shared, "name": label, "dur": launch.cycles * scale, "args": args}]
    if 0 < launch.launch_latency <= launch.cycles:
        found.append({**shared, "name": "launch latency", "dur": launch.launch_latency * scale, "args": {}})
    return found


def _counters(result: Result) -> list[dict[str, Any]]:
    # A timeline is of the whole GPU, so launches that run at the same time hold the same samples.
    samples = {sample.start: sample for launch in result.launches for sample in launch.samples()}
    scale = 1e3 / result.machine.core_khz
    found = []
    for sample in samples.values():
        for name, unit, value in (
            ("IPC", "warp instructions per SM and cycle", sample.ipc),
            ("occupancy", "%", sample.occupancy),
            ("L1 hits", "%", sample.l1_hit_rate),
            ("L2 hits", "%", sample.l2_hit_rate),
            ("DRAM bus", "%", sample.dram_busy),
        ):
            if value is not None:
                found.append(
                    {
                        "ph": "C",
                        "pid": _PID,
                        "tid": 0,
                        "ts": sample.start * scale,
                        "name": name,
                        "args": {unit: value},
                    }
                )
    return found
