"""Traces of the PyTorch profiler (Kineto): Chrome trace JSON.

Source: libkineto's output_json.cpp names the categories and arguments; their case has changed over the years.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
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
from simt.profile.source import ProfileSource

_KERNEL = {"kernel"}
_COPIES = {"gpu_memcpy", "gpu_memset", "memcpy", "memset"}
_CALLS = {"cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver", "runtime"}
# Categories that annotate a launch, in order of preference.
_RANGES = {"cpu_op": 0, "operator": 0, "user_annotation": 1, "python_function": 2}
_SCALARS = (
    ("registers", "registers per thread"), ("shared_bytes", "shared memory"), ("stream", "stream"),
    ("device", "device"),
)  # fmt: skip
# HIP calls that take the grid in threads, as OpenCL does, rather than in CTAs.
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
    tensors: Any = msgspec.field(name="Input Dims", default=None)


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


def read_kineto(source: ProfileSource, process: int | None) -> Profile:
    """Kernel launches in the order of their launching calls, with the operator around each call.

    Raises ProfileError if the file is not such a trace, is damaged, or ends too early.
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
    """The data kept from the events: numbers in arrays, and each distinct text and launch shape once."""

    def __init__(self, source: str) -> None:
        self.findings = Findings(source)
        self.source = source
        self.names: dict[str, int] = {}  # of kernels
        self.shapes: dict[tuple[Any, ...], int] = {}  # grid, block, registers, shared memory, stream, device
        self.name, self.shape, self.correlation, self.external = (array("q") for _ in range(4))
        self.start, self.dur = array("d"), array("d")
        self.calls = _Ranges()
        self.ranges = (_Ranges(), _Ranges(), _Ranges())
        self.labels: dict[tuple[str, str], int] = {}  # names of intervals, with operators' tensors
        self.threads: dict[tuple[Any, Any], int] = {}
        self.copies = 0
        self.copy_ns = 0.0
        self.kinds: dict[str, _Ranges | str | None] = {}  # handlers by event category

    def add(self, event: _Event) -> None:
        category = event.cat
        if event.ph != "X" or not isinstance(category, str):
            return
        try:
            kind = self.kinds[category]
        except KeyError:
            kind = self.kinds[category] = self._kind(category.lower())
        if kind is None:
            return
        if kind == "kernel":
            self._kernel(event)
        elif kind == "copy":
            self.copies += 1
            self.copy_ns += 1000 * self._number(event, "dur", event.dur)
        elif isinstance(kind, _Ranges):
            args = event.args
            key = None if args is None else args.correlation if kind is self.calls else args.external
            tensors = None if args is None or kind is not self.ranges[0] else args.tensors
            self._interval(
                kind, event, key, "" if tensors is None else json.dumps(tensors, separators=(",", ":"))
            )

    def _kind(self, category: str) -> _Ranges | str | None:
        if category in _RANGES:
            return self.ranges[_RANGES[category]]
        if category in _CALLS:
            return self.calls
        return "kernel" if category in _KERNEL else "copy" if category in _COPIES else None

    def _interval(self, into: _Ranges, event: _Event, key: Any, tensors: str) -> None:
        name = event.name if isinstance(event.name, str) else ""
        try:
            thread = self.threads.setdefault((event.pid, event.tid), len(self.threads))
        except TypeError as error:
            raise ProfileError(
                f"{self.source}: event {name!r}: pid or tid is neither a number nor text"
            ) from error
        label = self.labels.setdefault((name, tensors), len(self.labels))
        start = self._number(event, "ts", event.ts)
        dur = 0.0 if event.dur is None else self._number(event, "dur", event.dur)
        into.add(thread, label, _id(key), start, dur)

    def _kernel(self, event: _Event) -> None:
        name, args = event.name, event.args or _Args()
        if not isinstance(name, str) or not name:
            raise ProfileError(f"{self.source}: a kernel without a name, at ts {event.ts!r}")
        try:
            grid = None if args.grid is None else tuple(args.grid)
            block = None if args.block is None else tuple(args.block)
            shape = (grid, block, args.registers, args.shared, args.stream, args.device)
            self.shape.append(self.shapes.setdefault(shape, len(self.shapes)))
        except TypeError as error:
            raise ProfileError(
                f"{self.source}: kernel {name!r}: its arguments are {msgspec.to_builtins(args)}, expected "
                f"three integers for grid and block, and integers"
            ) from error
        self.name.append(self.names.setdefault(name, len(self.names)))
        self.start.append(self._number(event, "ts", event.ts))
        self.dur.append(self._number(event, "dur", event.dur))
        self.correlation.append(_id(args.correlation))
        self.external.append(_id(args.external))

    def _number(self, event: _Event, field: str, value: Any) -> float:
        if type(value) is float or (type(value) is int and abs(value) < 1 << 63):
            return value
        try:
            if isinstance(value, str):
                return float(value)
        except ValueError:
            pass
        raise ProfileError(
            f"{self.source}: event {event.name!r}: `{field}` is {value!r}, expected a number of microseconds"
        )

    def profile(self, rest: _Rest, process: int | None) -> Profile:
        """The added events as a Profile."""
        findings = self.findings
        findings.process = process
        findings.left_out.append((COPY, self.copies, self.copy_ns))
        if not self.name:
            findings.warnings.append("no kernel in the trace; profile with ProfilerActivity.CUDA")
        thread, label, key, start, end = self.calls.arrays()
        call = _lookup(key, np.array(self.correlation))
        found = call >= 0
        own = np.array(self.start)
        order = own.copy()
        order[found] = start[call[found]]
        in_threads = np.zeros(len(self.labels) + 1, bool)
        in_threads[[code for (name, _), code in self.labels.items() if name in _GRID_IN_THREADS]] = True
        divide = found & in_threads[np.append(label, len(self.labels))[call]]
        frame = pl.DataFrame(
            {
                "name": pl.Series(list(self.names), dtype=pl.String).gather(np.array(self.name)),
                "start_ns": _nanoseconds(own - own.min() if len(own) else own),
                "duration_ns": _nanoseconds(np.array(self.dur)),
                **self._shape_columns(divide),
                **self._annotations(found, call, thread, start, end),
                "order": order,
            }
        )
        findings.gpu = self._gpu(rest, frame)
        return assemble(frame, findings, ("order", "start_ns"))

    def _shape_columns(self, in_threads: npt.NDArray[np.bool_]) -> dict[str, pl.Series]:
        """Columns from the distinct shapes. in_threads: launches whose grid is counted in threads."""
        shapes = list(zip(*self.shapes, strict=True)) or [()] * 6
        of = np.array(self.shape)
        grid, block = (_triples(shapes[i], self.source, what)[of] for i, what in ((0, "grid"), (1, "block")))
        whole = in_threads[:, None] & (block > 0) & (grid >= 0)
        grid = np.where(whole, -(-grid // np.maximum(block, 1)), grid)
        columns = {}
        for what, values in (("grid", grid), ("block", block)):
            for i, axis in enumerate("xyz"):
                column = pl.Series(values[:, i])
                columns[f"{what}_{axis}"] = column.set(column < 0, None)
        for i, (column_name, what) in enumerate(_SCALARS, start=2):
            columns[column_name] = _integers(shapes[i], self.source, what).gather(of)
        return columns

    def _annotations(
        self,
        found: npt.NDArray[np.bool_],
        call: npt.NDArray[np.int64],
        thread: npt.NDArray[np.int64],
        start: npt.NDArray[np.float64],
        end: npt.NDArray[np.float64],
    ) -> dict[str, pl.Series]:
        """The best range around each launching call, its tensors; without a call, the operator of its id."""
        none = len(self.labels)
        chosen = np.full(len(found), none, np.int64)  # index of a label, or one past the last for none
        calls = call[found]
        at_thread, at = thread[calls], (start[calls] + end[calls]) / 2
        for ranges in self.ranges:
            of_thread, label, key, begin, finish = ranges.arrays()
            inner = innermost(of_thread, begin, finish, at_thread, at)
            labels = np.append(label, none)[inner]
            part = chosen[found]
            chosen[found] = np.where(part == none, labels, part)
            if ranges is self.ranges[0] and not found.all():
                by_id = np.append(label, none)[_lookup(key, np.array(self.external))]
                chosen[~found] = by_id[~found]
        texts: dict[str, list[str | None]] = {"annotation": [*(name for name, _ in self.labels), None]}
        if any(tensors for _, tensors in self.labels):
            texts["tensors"] = [*(tensors or None for _, tensors in self.labels), None]
        return {
            column: pl.Series(column, pl.Series(values, dtype=pl.String).gather(chosen), pl.Categorical)
            for column, values in texts.items()
        }

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
    """Kineto's times have at most nanosecond resolution: removes what float64 adds to them."""
    return np.round(microseconds * 1000)


def _lookup(keys: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each wanted key the index of its first occurrence in `keys`; -1 for none or a negative key."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(keys, kind="stable")
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    index = order[at]
    return np.where((keys[index] == wanted) & (wanted >= 0), index, -1)


def _id(value: Any) -> int:
    """A correlation or external id, which some versions write as text; -1 for none."""
    if type(value) is str and value.isdecimal() and len(value) < 19:
        return int(value)
    return value if type(value) is int and 0 <= value < 1 << 63 else -1


def _integers(values: Sequence[Any], source: str, what: str) -> pl.Series:
    converted = []
    for value in values:
        number = int(value) if isinstance(value, str) and value.isdecimal() else value
        if number is not None and not (type(number) is int and abs(number) < 1 << 63):
            raise ProfileError(f"{source}: `{what}` is {value!r}, expected an integer")
        converted.append(number)
    return pl.Series(converted, dtype=pl.Int64)


def _triples(values: Sequence[Any], source: str, what: str) -> npt.NDArray[np.int64]:
    """Rows of three, -1 where unknown."""
    rows = []
    for value in values:
        if value is None:
            rows.append((-1, -1, -1))
        elif len(value) == 3 and all(type(v) is int and 0 <= v < 1 << 32 for v in value):
            rows.append(value)
        else:
            raise ProfileError(f"{source}: `{what}` is {list(value)!r}, expected three integers")
    return np.array(rows, np.int64).reshape(-1, 3)
