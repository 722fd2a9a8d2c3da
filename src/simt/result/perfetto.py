"""A Result as a trace for Perfetto's viewer (ui.perfetto.dev), in Chrome's Trace Event Format.

Streams are tracks with a slice per launch and, inside it, one for its launch latency; copies and memsets are
slices of their stream. Annotated launches have a second track with a slice per annotation, as operators have
in PyTorch's profiler. The timeline becomes counter tracks. Times are microseconds at the core clock.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simt.files import write_text
from simt.result import energy_page
from simt.result.files import dump
from simt.result.launch import without_nan
from simt.result.summary import bottleneck

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from simt.result.launch import LaunchResult
    from simt.result.result import Result
    from simt.result.transfer import Transfer

# Of counter tracks together: of a longer timeline, neighbouring intervals are merged.
MAX_VALUES = 1_000_000

_GPU, _SCHEDULERS, _DRAM, _POWER = 1, 2, 3, 4  # processes
_Track = tuple[int, str, str]  # process, name, series
_TRACKS: tuple[_Track, ...] = (
    (_GPU, "IPC", "warp instructions per SM and cycle"),
    (_GPU, "occupancy", "%"),
    (_GPU, "L1 hits", "%"),
    (_GPU, "L2 hits", "%"),
    (_GPU, "DRAM utilisation", "%"),
    (_GPU, "DRAM efficiency", "%"),
)
_FACTS = ("ipc", "occupancy", "l1_hit_rate", "l2_hit_rate", "dram_busy", "dram_efficiency")  # of a Sample
_SHOWN = (
    "smsp__inst_executed.sum",
    "sm__inst_executed.avg.per_cycle_elapsed",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "l1tex__t_sector_hit_rate.pct",
    "lts__t_sector_hit_rate.pct",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
)
_LINKS = {
    "host_to_device": "copy to the device",
    "device_to_host": "copy to the host",
    "device": "copy within the device",
    "peer_to_device": "copy from another device",
    "device_to_peer": "copy to another device",
}


def events(result: Result) -> dict[str, Any]:
    """The trace as one JSON object."""
    scale = 1e3 / result.machine.core_khz
    streams = {x.stream for x in result.launches} | {x.stream for x in result.transfers}
    ordered = sorted(streams, key=lambda stream: (stream is None, stream or 0))
    threads = {stream: i + 1 for i, stream in enumerate(ordered)}
    meta = [_metadata("process_name", _GPU, 0, f"GPU {result.machine.name}")]
    meta += [
        _metadata("thread_name", _GPU, tid, "no stream" if stream is None else f"stream {stream}")
        for stream, tid in threads.items()
    ]
    timed: list[dict[str, Any]] = []
    labels = result.labels(80)
    for launch in result.launches:
        timed += _slices(launch, labels[launch.name], threads[launch.stream])
    annotated = [s for s in threads if any(x.annotation for x in result.launches if x.stream == s)]
    for tid, stream in enumerate(annotated, len(threads) + 1):
        meta.append(_metadata("thread_name", _GPU, tid, f"operators of stream {stream}"))
        timed += _annotations([x for x in result.launches if x.stream == stream], tid, scale)
    timed += [_transfer(transfer, threads[transfer.stream], scale) for transfer in result.transfers]
    counters = list(_counters(result, scale))
    named = {
        _SCHEDULERS: "warp schedulers, % of their cycles",
        _DRAM: "DRAM utilisation, %",
        _POWER: "power, W",
    }
    used = {event["pid"] for event in counters}
    meta += [_metadata("process_name", pid, 0, name) for pid, name in named.items() if pid in used]
    timed += counters
    timed.sort(key=lambda event: (event["ts"], -event.get("dur", 0.0)))
    return {
        "traceEvents": meta + timed,
        "displayTimeUnit": "ns",
        "otherData": {"producer": f"simt {result.provenance.version}", "input": result.provenance.input},
    }


def write(result: Result, path: Path) -> None:
    """Writes the trace. Raises ResultError."""
    write_text(path, dump(events(result)))


def _metadata(name: str, pid: int, tid: int, value: str) -> dict[str, Any]:
    return {"ph": "M", "pid": pid, "tid": tid, "name": name, "args": {"name": value}}


def _slice(tid: int, category: str, name: str, start: int, end: int, scale: float) -> dict[str, Any]:
    begin = _time(start * scale)
    duration = _time(_time(end * scale) - begin)
    return {"ph": "X", "pid": _GPU, "tid": tid, "ts": begin, "cat": category, "name": name, "dur": duration}


def _time(microseconds: float) -> float:
    return round(microseconds, 4)


def _slices(launch: LaunchResult, label: str, tid: int) -> list[dict[str, Any]]:
    scale = 1e3 / launch.clock_khz
    args: dict[str, Any] = {
        "id": launch.id,
        "name": launch.name,
        "grid": list(launch.grid),
        "block": list(launch.block),
        "cycles": launch.cycles,
        "bound by": bottleneck(launch).kind,
    }
    if launch.annotation:
        args["operator"] = launch.annotation
    known = without_nan(launch.counters)  # not all are known for a projected launch
    args |= {name: known[name] for name in _SHOWN if known[name] is not None}
    start = launch.start_cycle
    found = [{**_slice(tid, "launch", label, start, launch.end_cycle, scale), "args": args}]
    if 0 < launch.launch_latency <= launch.cycles:
        latency = _slice(tid, "launch", "launch latency", start, start + launch.launch_latency, scale)
        found.append({**latency, "args": {}})
    return found


def _annotations(launches: Sequence[LaunchResult], tid: int, scale: float) -> list[dict[str, Any]]:
    """A slice for consecutive launches of the same annotation. launches: of one stream, in order."""
    found = []
    for text, group in itertools.groupby(launches, lambda launch: launch.annotation):
        if text:
            members = list(group)
            whole = _slice(tid, "operator", text, members[0].start_cycle, members[-1].end_cycle, scale)
            args = {"launches": len(members), "cycles": sum(x.cycles for x in members)}
            found.append({**whole, "args": args})
    return found


def _transfer(transfer: Transfer, tid: int, scale: float) -> dict[str, Any]:
    args = {"bytes over the link": transfer.nbytes, "cycles": transfer.cycles}
    name = _LINKS[transfer.link]
    return {**_slice(tid, "copy", name, transfer.start_cycle, transfer.end_cycle, scale), "args": args}


def _counters(result: Result, scale: float) -> Iterator[dict[str, Any]]:
    import numpy as np

    tracks, starts, ends, values = _samples(result)
    if not len(values):
        return
    step = -(-values.size // MAX_VALUES)
    groups = np.arange(0, len(values), step)
    weights = np.where(np.isnan(values), 0, np.maximum(1, ends - starts)[:, None])
    weight = np.add.reduceat(weights, groups)
    total = np.add.reduceat(np.where(weights > 0, values, 0) * weights, groups)
    means = np.full(total.shape, np.nan)
    np.divide(total, weight, out=means, where=weight > 0)
    starts, ends = starts[groups], ends[np.minimum(groups + step, len(ends)) - 1]
    shown = [math.nan] * len(tracks)
    for i, row in enumerate(means):
        yield from _changed(tracks, row.tolist(), shown, _time(starts[i] * scale))
        if i + 1 == len(means) or starts[i + 1] > ends[i]:  # nothing runs after it
            yield from _changed(tracks, [0.0] * len(tracks), shown, _time(ends[i] * scale))


def _changed(
    tracks: Sequence[_Track], values: Sequence[float], shown: list[float], ts: float
) -> Iterator[dict[str, Any]]:
    """An event per name, with the series that change; values of NaN, which are not known, do not."""
    found: dict[tuple[int, str], dict[str, float]] = {}
    for i, (pid, name, series) in enumerate(tracks):
        value = round(values[i], 3 if name == "IPC" else 1)
        if value == value and value != shown[i]:
            found.setdefault((pid, name), {})[series] = shown[i] = value
    for (pid, name), args in found.items():
        yield {"ph": "C", "pid": pid, "tid": 0, "ts": ts, "name": name, "args": args}


def _samples(
    result: Result,
) -> tuple[list[_Track], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Tracks, start and end of the timeline's intervals in ascending order, and their values by track."""
    import numpy as np

    timed = [
        (launch, launch.samples(), launch.dram_activity(), energy_page.power_by_group(launch))
        for launch in result.launches
    ]
    groups = tuple(energy_page.GROUPS) if result.energies is not None else ()
    states = tuple(dict.fromkeys(state for _, own, *_ in timed for sample in own for state in sample.stalls))
    tracks = [
        *_TRACKS,
        *((_SCHEDULERS, "state", state.replace("_", " ")) for state in states),
        *((_DRAM, "channel", str(channel)) for channel in range(result.machine.dram_channels)),
        *((_POWER, "component", group) for group in groups),
    ]
    # A timeline is of the whole GPU, so launches that run at the same time hold the same samples.
    rows: dict[int, tuple[int, NDArray[np.float64]]] = {}
    for _, own, dram, power in timed:
        if dram is None:
            continue
        for i, (sample, channels) in enumerate(zip(own, dram.utilisation, strict=True)):
            if sample.start in rows:
                continue
            watts = np.full(len(groups), np.nan) if power is None else power[i]
            facts = (
                *(getattr(sample, name) for name in _FACTS),
                *(sample.stalls.get(state) for state in states),
            )
            rows[sample.start] = sample.end, np.concatenate([np.array(facts, float), channels, watts])
    order = sorted(rows)
    ends = np.array([rows[start][0] for start in order], np.int64)
    values = np.array([rows[start][1] for start in order]).reshape(len(order), len(tracks))
    return tracks, np.array(order, np.int64), ends, values
