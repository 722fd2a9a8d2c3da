"""Traces of the PyTorch profiler (Kineto): Chrome trace JSON.

Source: libkineto's output_json.cpp names the categories and arguments; they changed case over the years.
"""

from __future__ import annotations

from array import array
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from simt.errors import ProfileError
from simt.profile.assemble import Findings, assemble
from simt.profile.json_arrays import JsonArrays
from simt.profile.profile import COPY, Profile
from simt.profile.ranges import innermost
from simt.profile.source import Source

_KERNEL = {"kernel"}
_COPIES = {"gpu_memcpy", "gpu_memset", "memcpy", "memset"}
_CALLS = {"cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver", "runtime"}
# What annotates a launch, the best first.
_RANGES = {"cpu_op": 0, "operator": 0, "user_annotation": 1, "python_function": 2}
# HIP's calls that take the grid in threads, as OpenCL does, and not in CTAs.
_GRID_IN_THREADS = ("hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel")


class _Args(msgspec.Struct, gc=False):
    external: Any = msgspec.field(name="External id", default=None)
    correlation: Any = None
    device: Any = None
    stream: Any = None
    grid: Any = None
    block: Any = None
    registers: Any = msgspec.field(name="registers per thread", default=None)
    shared: Any = msgspec.field(name="shared memory", default=None)


class _Event(msgspec.Struct, gc=False):
    ph: Any = None
    cat: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: Any = None
    dur: Any = None
    args: _Args | None = None


class _Device(msgspec.Struct):
    name: Any = None
    id: Any = None


class _Rest(msgspec.Struct):
    deviceProperties: list[_Device] | None = None
    traceEvents: Any = None


def read_kineto(source: Source, process: int | None) -> Profile:
    """Kernel launches in the order of their launching calls, with the operator around each call.

    Raises ProfileError where the file is no such trace, is damaged, or ends too early.
    """
    stream = JsonArrays(source, ("traceEvents",))
    decoder = msgspec.json.Decoder(list[_Event])
    events = _Events(source.name)
    for batch in stream:
        for event in stream.decode(batch, decoder):
            events.add(event)
    rest = stream.decode_rest(_Rest)
    if rest.traceEvents is None:
        raise ProfileError(
            f"{source.name}: JSON without `traceEvents`; expected a trace of the PyTorch profiler, of "
            f"rocprofv3, or a saved Result"
        )
    return events.profile(rest, process)


class _Ranges:
    """Intervals of CPU time: of one kind of annotation, or of the calls that launch."""

    def __init__(self) -> None:
        self.thread, self.label, self.key = array("q"), array("q"), array("q")
        self.start, self.dur = array("d"), array("d")

    def add(self, thread: int, label: int, key: int, start: float, dur: float) -> None:
        self.thread.append(thread)
        self.label.append(label)
        self.key.append(key)
        self.start.append(start)
        self.dur.append(dur)

    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        start = np.array(self.start)
        return (
            np.array(self.thread),
            np.array(self.label),
            np.array(self.key),
            start,
            start + np.array(self.dur),
        )


class _Events:
    def __init__(self, source: str) -> None:
        self.findings = Findings(source)
        self.source = source
        self.rows: dict[str, list[Any]] = {
            name: []
            for name in (
                "name", "start", "dur", "grid", "block", "registers", "shared", "stream", "device",
                "correlation", "external",
            )
        }  # fmt: skip
        self.calls = _Ranges()
        self.ranges = (_Ranges(), _Ranges(), _Ranges())
        self.labels: dict[str, int] = {}
        self.threads: dict[tuple[Any, Any], int] = {}
        self.copies = 0
        self.copy_ns = 0.0

    def add(self, event: _Event) -> None:
        category = event.cat
        if event.ph != "X" or not isinstance(category, str):
            return
        category = category.lower()
        rank = _RANGES.get(category)
        if rank is not None:
            self._interval(self.ranges[rank], event, event.args.external if event.args else None)
        elif category in _CALLS:
            self._interval(self.calls, event, event.args.correlation if event.args else None)
        elif category in _KERNEL:
            self._kernel(event)
        elif category in _COPIES:
            self.copies += 1
            self.copy_ns += 1000 * self._number(event, "dur", event.dur)

    def _interval(self, into: _Ranges, event: _Event, key: Any) -> None:
        name = event.name if isinstance(event.name, str) else ""
        thread = self.threads.setdefault((str(event.pid), str(event.tid)), len(self.threads))
        label = self.labels.setdefault(name, len(self.labels))
        start = self._number(event, "ts", event.ts)
        dur = 0.0 if event.dur is None else self._number(event, "dur", event.dur)
        into.add(thread, label, key if isinstance(key, int) and abs(key) < 1 << 62 else -1, start, dur)

    def _kernel(self, event: _Event) -> None:
        args = event.args or _Args()
        rows = self.rows
        if not isinstance(event.name, str) or not event.name:
            raise ProfileError(f"{self.source}: a kernel without a name, at ts {event.ts!r}")
        rows["name"].append(event.name)
        rows["start"].append(self._number(event, "ts", event.ts))
        rows["dur"].append(self._number(event, "dur", event.dur))
        for name in ("grid", "block", "registers", "shared", "stream", "device", "correlation", "external"):
            rows[name].append(getattr(args, name))

    def _number(self, event: _Event, field: str, value: Any) -> float:
        if type(value) is float or type(value) is int:
            return value
        try:
            if isinstance(value, str):
                return float(value)
        except (ValueError, OverflowError):
            pass
        raise ProfileError(
            f"{self.source}: event {event.name!r}: `{field}` is {value!r}, expected a number of microseconds"
        )

    def profile(self, rest: _Rest, process: int | None) -> Profile:
        """All that was added, as a Profile."""
        findings, rows = self.findings, self.rows
        findings.process = process
        findings.left_out.append((COPY, self.copies, self.copy_ns))
        count = len(rows["name"])
        if not count:
            findings.warnings.append("no kernel in the trace; profile with ProfilerActivity.CUDA")
        thread, label, key, start, end = self.calls.arrays()
        correlation = _integers(rows["correlation"], self.source, "correlation").fill_null(-1).to_numpy()
        call = _lookup(key, correlation)
        found = call >= 0
        own = np.array(rows["start"], np.float64)
        order = own.copy()
        order[found] = start[call[found]]
        names = list(self.labels)
        grid = _triples(rows["grid"], self.source, "grid")
        block = _triples(rows["block"], self.source, "block")
        in_threads = np.zeros(len(names) + 1, bool)
        in_threads[[code for name, code in self.labels.items() if name in _GRID_IN_THREADS]] = True
        divide = found & in_threads[np.where(found, label[call] if len(label) else -1, -1)]
        frame = pl.DataFrame(
            {
                "name": pl.Series(rows["name"], dtype=pl.String),
                "start_ns": _nanoseconds(own - own.min() if count else own),
                "duration_ns": _nanoseconds(np.array(rows["dur"], np.float64)),
                **_dimensions(grid, block, divide),
                "registers": _integers(rows["registers"], self.source, "registers per thread"),
                "shared_bytes": _integers(rows["shared"], self.source, "shared memory"),
                "stream": _integers(rows["stream"], self.source, "stream"),
                "device": _integers(rows["device"], self.source, "device"),
                "annotation": self._annotations(names, found, call, thread, start, end),
                "order": order,
            }
        )
        findings.gpu = self._gpu(rest, frame)
        return assemble(frame, findings, ("order", "start_ns"))

    def _annotations(
        self,
        names: list[str],
        found: npt.NDArray[np.bool_],
        call: npt.NDArray[np.int64],
        thread: npt.NDArray[np.int64],
        start: npt.NDArray[np.float64],
        end: npt.NDArray[np.float64],
    ) -> pl.Series:
        """The label of the best range around each launching call; without a call, the operator of its id."""
        chosen = np.full(len(found), len(names), np.int64)  # a label, or one behind the last: none
        calls = call[found]
        at_thread, at = thread[calls], (start[calls] + end[calls]) / 2
        for ranges in self.ranges:
            of_thread, label, key, begin, finish = ranges.arrays()
            inner = innermost(of_thread, begin, finish, at_thread, at)
            labels = np.append(label, len(names))[inner]
            part = chosen[found]
            chosen[found] = np.where(part == len(names), labels, part)
            if ranges is self.ranges[0] and not found.all():
                external = (
                    _integers(self.rows["external"], self.source, "External id").fill_null(-1).to_numpy()
                )
                by_id = np.append(label, len(names))[_lookup(key, external)]
                chosen[~found] = by_id[~found]
        labels_or_none = pl.Series("annotation", [*names, None], pl.String)
        return pl.Series("annotation", labels_or_none.gather(chosen), pl.Categorical)

    def _gpu(self, rest: _Rest, frame: pl.DataFrame) -> str | None:
        """The name of the devices that ran kernels; of all devices where ids do not match."""
        devices = rest.deviceProperties or []
        used = set(frame["device"].drop_nulls().unique().to_list())
        names = {str(d.name) for d in devices if d.name and d.id in used} or {
            str(d.name) for d in devices if d.name
        }
        if len(names) > 1:
            self.findings.warnings.append(f"the trace names several kinds of GPU: {', '.join(sorted(names))}")
        return names.pop() if len(names) == 1 else None


def _nanoseconds(microseconds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Kineto writes whole nanoseconds at most; what a float64 adds to them goes."""
    return np.round(microseconds * 1000)


def _lookup(keys: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each wanted key the index of its first occurrence in `keys`, -1 for none or a negative key."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(keys, kind="stable")
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    index = order[at]
    return np.where((keys[index] == wanted) & (wanted >= 0), index, -1)


def _integers(values: list[Any], source: str, what: str) -> pl.Series:
    try:
        return pl.Series(values, dtype=pl.Int64, strict=True)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        pass
    try:
        converted = [None if v is None else int(v) for v in values]
        return pl.Series(converted, dtype=pl.Int64, strict=True)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        bad = next((v for v in values if not isinstance(v, int | None)), values[:1])
        raise ProfileError(f"{source}: `{what}` is {bad!r}, expected an integer") from error


def _triples(values: list[Any], source: str, what: str) -> npt.NDArray[np.int64]:
    """Rows of three, -1 where unknown."""
    for value in values:
        if value is None:
            continue
        if not (
            isinstance(value, list)
            and len(value) == 3
            and all(isinstance(v, int) and 0 <= v < 1 << 32 for v in value)
        ):
            raise ProfileError(f"{source}: `{what}` is {value!r}, expected three integers")
    rows = [(-1, -1, -1) if value is None else value for value in values]
    return np.array(rows, np.int64).reshape(-1, 3)


def _dimensions(
    grid: npt.NDArray[np.int64], block: npt.NDArray[np.int64], in_threads: npt.NDArray[np.bool_]
) -> dict[str, pl.Series]:
    grid = np.where(in_threads[:, None] & (block > 0) & (grid >= 0), -(-grid // np.maximum(block, 1)), grid)
    columns = {}
    for what, values in (("grid", grid), ("block", block)):
        for i, axis in enumerate("xyz"):
            column = pl.Series(values[:, i])
            columns[f"{what}_{axis}"] = column.set(column < 0, None)
    return columns
