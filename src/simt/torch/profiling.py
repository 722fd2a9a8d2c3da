"""`torch.profiler` with the device's activity: kernels and copies in simulated time, and the operators of the
host that they belong to.

PyTorch's profiler collects events in C++, which knows no simulated GPU. When it stops, its results are given
further events: of what was launched meanwhile. Such an event begins when the profiler started plus the
simulated time since then; it belongs to the innermost operator of the host at whose time it was launched.
"""

from __future__ import annotations

import json
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.autograd import profiler

from . import gpus

_TYPES = torch._C._autograd.DeviceType
_TRACKS = 1 << 20
"""Added to a device's number for its process in Chrome's traces: smaller numbers are those of processes."""
_ELSEWHERE: dict[str, Any] = {
    **dict.fromkeys(("start_thread_id", "end_thread_id", "fwd_thread_id", "scope", "flops", "nbytes"), 0),
    **dict.fromkeys(("flow_id", "flow_type", "external_id", "debug_handle", "cuda_elapsed_us"), 0),
    **dict.fromkeys(("python_id", "python_parent_id", "python_module_id", "privateuse1_elapsed_us"), 0),
    **dict.fromkeys(("is_async", "is_user_annotation", "is_python_function", "is_hidden_event"), False),
    **dict.fromkeys(("shapes", "stack", "dtypes", "concrete_inputs", "module_hierarchy"), ()),
    **dict.fromkeys(("structured_input_shapes", "structured_input_strides"), ()),
    **dict.fromkeys(("overload_name", "backend"), ""),
    **{key: {} for key in ("kwinputs", "extra_meta")},
    "flow_start": False,
    "sequence_nr": -1,
    "metadata_json": "{}",
}
"""What PyTorch asks of every event, as far as it says nothing of a kernel."""


class NoDeviceTimeWarning(UserWarning):
    """A GPU without timing was profiled."""


@dataclass(frozen=True)
class ProfiledEvent:
    """A kernel or a copy, with the methods of PyTorch's `_KinetoEvent`. Times are in ns.

    operator: the number of the event of the host that launched it, 0 if there is none.
    """

    what: str
    kind: str
    start: int
    duration: int
    index: int
    stream: int
    operator: int
    number: int

    def name(self) -> str:
        return self.what

    def start_ns(self) -> int:
        return self.start

    def end_ns(self) -> int:
        return self.start + self.duration

    def duration_ns(self) -> int:
        return self.duration

    def device_type(self) -> Any:
        return _TYPES.CUDA if _device == "cuda" else _TYPES.PrivateUse1

    def device_index(self) -> int:
        return self.index

    def device_resource_id(self) -> int:
        return self.stream

    def linked_correlation_id(self) -> int:
        return self.operator

    def correlation_id(self) -> int:
        return self.number

    def activity_type(self) -> str:
        return self.kind

    def __getattr__(self, name: str) -> Callable[[], Any]:
        if name not in _ELSEWHERE:
            raise AttributeError(name)
        return lambda: _ELSEWHERE[name]


class _WithDevices:
    """The results of PyTorch's profiler, with events of the devices."""

    def __init__(self, results: Any, host: list[Any], found: list[ProfiledEvent]) -> None:
        self._results, self._host, self._found = results, host, found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._results, name)

    def events(self) -> list[Any]:
        return [*self._host, *self._found]

    def save(self, path: str) -> None:
        """Writes Chrome's trace."""
        self._results.save(path)
        trace = json.loads(Path(path).read_text())
        base = int(trace.get("baseTimeNanoseconds", 0))
        rows = trace["traceEvents"]
        for index in sorted({event.index for event in self._found}):
            name = {"name": f"GPU {index}: simulated time"}
            rows.append({"ph": "M", "pid": _TRACKS + index, "tid": 0, "name": "process_name", "args": name})
        rows.extend(
            {
                "ph": "X",
                "cat": event.kind,
                "name": event.what,
                "pid": _TRACKS + event.index,
                "tid": event.stream,
                "ts": (event.start - base) / 1000,
                "dur": event.duration / 1000,
                "args": {"device": event.index, "stream": event.stream, "External id": event.operator},
            }
            for event in self._found
        )
        Path(path).write_text(json.dumps(trace))


_device = "cuda"
_begun: dict[int, int] = {}
"""Of each device that is profiled: the cycle at which the profiler started."""
_seen: dict[int, list[gpus.Profiled]] = {}
"""Of each device that is profiled: what was launched since then."""


class Timeline:
    """When a device did what a profiler has seen, once everything has run."""

    def __init__(self, found: gpus.SimulatedGpu) -> None:
        self._launches = {launch.id: launch for launch in found.gpu.launches}
        self.ns_per_cycle = 1e3 / found.gpu.spec.clock.core_mhz

    def cycles(self, row: gpus.Profiled) -> tuple[int, int] | None:
        """Of its begin and end; None without timing."""
        timed = row.transfer or self._launches.get(row.launch)
        if timed is None or timed.start_cycle is None or timed.end_cycle is None:
            return None
        return timed.start_cycle, timed.end_cycle

    def duration(self, row: gpus.Profiled) -> float:
        """In ns; nan without timing."""
        found = self.cycles(row)
        return (found[1] - found[0]) * self.ns_per_cycle if found is not None else float("nan")


def _watch(found: gpus.SimulatedGpu, row: gpus.Profiled) -> None:
    _seen[found.index].append(row)


def _start(enable: Callable[..., Any]) -> Callable[..., Any]:
    def start(settings: Any, activities: Any, *others: Any) -> Any:
        _begun.clear()
        if activities - {torch.profiler.ProfilerActivity.CPU}:
            for found in gpus.gpus():
                if found.capture is None:
                    found.synchronize()
                _seen[found.index] = []
                found.watchers.add(_watch)
                _begun[found.index] = found.gpu.last_cycle
                if found.gpu.functional:
                    warnings.warn(
                        "a GPU without timing is profiled: its kernels take no time "
                        "(simt.torch.use(timed=True))",
                        NoDeviceTimeWarning,
                        stacklevel=3,
                    )
        return enable(settings, activities, *others)

    return start


def _stop(disable: Callable[[], Any]) -> Callable[[], Any]:
    def stop() -> Any:
        results = disable()
        if not _begun or not hasattr(results, "events"):
            return results
        host = list(results.events())
        operators = _Operators(host)
        found = [
            event
            for index, cycle in _begun.items()
            for event in _events(gpus.gpu_of(index), cycle, results.trace_start_ns(), operators)
        ]
        _begun.clear()
        return _WithDevices(results, host, found)

    return stop


def _events(
    found: gpus.SimulatedGpu, cycle: int, begin: int, operators: _Operators
) -> Iterator[ProfiledEvent]:
    """What a device did. cycle: at which the profiler started, at `begin` ns."""
    found.synchronize()
    found.watchers.discard(_watch)
    timeline = Timeline(found)
    for number, row in enumerate(_seen.pop(found.index), 1):
        first, last = timeline.cycles(row) or (cycle, cycle)
        yield ProfiledEvent(
            row.name,
            "kernel" if row.transfer is None else "gpu_memcpy",
            begin + round((first - cycle) * timeline.ns_per_cycle),
            round((last - first) * timeline.ns_per_cycle),
            found.index,
            row.stream,
            operators.at(row.time),
            operators.last + number,
        )


class _Operators:
    """Events of the host, by time."""

    def __init__(self, events: Sequence[Any]) -> None:
        kept = [
            event
            for event in events
            if event.device_type() == _TYPES.CPU
            and not event.linked_correlation_id()
            and not event.is_async()
            and not event.is_python_function()
        ]
        kept.sort(key=lambda event: event.start_ns())
        self._kept, self._starts = kept, [event.start_ns() for event in kept]
        self.last = max((event.correlation_id() for event in events), default=0)

    def at(self, time: int) -> int:
        """The number of the innermost event at a time in ns; 0 if there is none."""
        for place in range(bisect_right(self._starts, time) - 1, -1, -1):
            if self._kept[place].end_ns() >= time:
                return int(self._kept[place].correlation_id())
        return 0


def install(type: str) -> None:
    """Gives PyTorch's profiler the activity of the devices. type: "cuda" or "simt"."""
    global _device
    _device = type
    activity = torch.profiler.ProfilerActivity
    known = {activity.CPU, activity.CUDA if type == "cuda" else activity.PrivateUse1}
    for module in (profiler, torch.autograd, torch.profiler):
        module._supported_activities = lambda: known
    profiler._enable_profiler = _start(profiler._enable_profiler)
    profiler._disable_profiler = _stop(profiler._disable_profiler)
