"""Triton's profiler Proton in simulated time: what its Python code calls in C++.

A session is a tree of the scopes that a program enters. A launch belongs to the innermost scope, under
Triton's own name where Proton's hook for launches is in use. Times are those of the kernels alone, as CUPTI's
are.
"""

from __future__ import annotations

import itertools
import json
import threading
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from triton._C.libproton import proton as library

from . import gpus
from .profiling import NoDeviceTimeWarning, Timeline

_SUFFIX = ".hatchet"


class _Node:
    """A scope or a kernel, with its metrics and what it contains."""

    def __init__(self) -> None:
        self.metrics: dict[str, Any] = {}
        self.children: dict[str, _Node] = {}
        self.launches: list[tuple[gpus.SimulatedGpu, gpus.Profiled]] = []

    def at(self, path: Iterable[str]) -> _Node:
        found = self
        for name in path:
            found = found.children.setdefault(name, _Node())
        return found

    def add(self, metrics: dict[str, Any]) -> None:
        """Metrics of one name are added up."""
        for name, value in metrics.items():
            if isinstance(value, Sequence) and not isinstance(value, str):
                before = self.metrics.get(name, [0] * len(value))
                self.metrics[name] = [a + b for a, b in zip(before, value, strict=True)]
            else:
                self.metrics[name] = self.metrics.get(name, 0) + value

    def literal(self, name: str, timelines: dict[gpus.SimulatedGpu, Timeline]) -> dict[str, Any]:
        """As Hatchet reads it."""
        metrics = dict(self.metrics)
        if self.launches:
            found = self.launches[0][0]
            metrics |= {
                "count": len(self.launches),
                "time (ns)": sum(timelines[gpu].duration(row) for gpu, row in self.launches),
                "device_id": str(found.index),
                "device_type": "CUDA",
            }
        children = [child.literal(key, timelines) for key, child in self.children.items()]
        return {"frame": {"name": name, "type": "function"}, "metrics": metrics, "children": children}


class _Session:
    def __init__(self, name: str) -> None:
        self.place, self.active, self.root = Path(name + _SUFFIX), True, _Node()

    def literal(self) -> list[Any]:
        """The tree, and what Proton says of the devices."""
        for found in gpus.made():
            found.synchronize()
        timelines = {found: Timeline(found) for found in gpus.made()}
        root = self.root.literal("ROOT", timelines)
        root["metrics"] = {"count": 0, "time (ns)": 0} | root["metrics"]
        devices = {}
        for found in gpus.made():
            spec = found.gpu.spec
            devices[str(found.index)] = {
                "arch": found.gpu.arch.removeprefix("sm_").rstrip("a"),
                "num_sms": spec.sm.count,
                "clock_rate": round(spec.clock.core_mhz * 1000),
                "memory_clock_rate": 0,
                "bus_width": 0,
            }
        return [root, {"CUDA": devices}]


_sessions: dict[int, _Session] = {}
_numbers, _scopes = itertools.count(), itertools.count()
_nodes: dict[int, list[tuple[_Session, _Node]]] = {}
"""Of each scope that was entered: its places in the trees."""


class _Here(threading.local):
    def __init__(self) -> None:
        self.path: list[str] = []
        self.operators = 0


_here = _Here()


def _seen(found: gpus.SimulatedGpu, row: gpus.Profiled) -> None:
    if row.transfer is not None:
        return
    path = _here.path if _here.operators else [*_here.path, row.name]
    for session in _sessions.values():
        if session.active:
            session.root.at(path).launches.append((found, row))


def start(name: str, context: str, data: str, backend: str, mode: str) -> int:
    wanted = {
        "context": (context, "shadow"),
        "data": (data, "tree"),
        "backend": (backend, "cupti"),
        "mode": (mode, ""),
    }
    for what, (given, known) in wanted.items():
        if given != known:
            raise NotImplementedError(f"simt.torch: Proton with {what} {given!r}; {known!r} is supported")
    if any(found.gpu.functional for found in gpus.gpus()):
        warnings.warn(
            "Proton profiles a GPU without timing: its kernels' times are nan (simt.torch.use(timed=True))",
            NoDeviceTimeWarning,
            stacklevel=3,
        )
    for found in gpus.gpus():
        found.watchers.add(_seen)
    number = next(_numbers)
    _sessions[number] = _Session(name)
    return number


def _of(session: int) -> _Session:
    if session not in _sessions:
        raise ValueError(f"Proton has no session {session}")
    return _sessions[session]


def activate(session: int) -> None:
    _of(session).active = True


def activate_all() -> None:
    for session in _sessions:
        activate(session)


def deactivate(session: int, flushing: bool = False) -> None:
    _of(session).active = False


def deactivate_all(flushing: bool = False) -> None:
    for session in _sessions:
        deactivate(session)


def finalize(session: int, output_format: str = "") -> None:
    """Writes what a session has seen."""
    if output_format not in ("", "hatchet"):
        raise NotImplementedError(f"simt.torch: Proton's format {output_format!r}; 'hatchet' is supported")
    found = _of(session)
    found.place.write_text(json.dumps(found.literal()))
    del _sessions[session]
    if not _sessions:
        _nodes.clear()
        for gpu in gpus.made():
            gpu.watchers.discard(_seen)


def finalize_all(output_format: str = "") -> None:
    for session in list(_sessions):
        finalize(session, output_format)


def get_data(session: int, phase: int = 0) -> str:
    return json.dumps(_of(session).literal())


def enter_scope(scope: int, name: str) -> None:
    _here.path.append(name)
    _nodes[scope] = [(found, found.root.at(_here.path)) for found in _sessions.values() if found.active]


def exit_scope(scope: int, name: str) -> None:
    _here.path.pop()


def enter_op(scope: int, name: str) -> None:
    """A launch by Triton, under the name that it gives it."""
    enter_scope(scope, name)
    _here.operators += 1


def exit_op(scope: int, name: str) -> None:
    _here.operators -= 1
    exit_scope(scope, name)


def enter_state(name: str) -> None:
    _here.path.append(name)


def exit_state() -> None:
    _here.path.pop()


def add_metrics(scope: int, metrics: dict[str, Any], of_tensors: dict[str, Any] | None = None) -> None:
    """of_tensors: Proton's metrics that are on the device."""
    found = metrics | {name: metric._value.tolist() for name, metric in (of_tensors or {}).items()}
    for session, node in _nodes.get(scope, ()):
        if session.active:
            node.add(found)


def get_context_depth(session: int) -> int:
    return len(_here.path)


def install() -> None:
    """Puts these functions in the place of Proton's."""
    named = (start, activate, activate_all, deactivate, deactivate_all, finalize, finalize_all, get_data)
    for function in (
        *named,
        enter_scope,
        exit_scope,
        enter_op,
        exit_op,
        enter_state,
        exit_state,
        add_metrics,
    ):
        setattr(library, function.__name__, function)
    library.get_context_depth = get_context_depth
    library.record_scope = lambda: next(_scopes)
    library.set_metric_kernels = lambda *kernels: None
    for name in ("get_data_msgpack", "advance_data_phase", "is_data_phase_complete", "clear_data"):
        setattr(library, name, _refused(name))


def _refused(name: str) -> Any:
    def refuse(*arguments: Any) -> Any:
        raise NotImplementedError(f"simt.torch: Proton's {name}")

    return refuse
