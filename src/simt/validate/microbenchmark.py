"""Microbenchmarks: what each determines, how it runs, and the value that a specification predicts for it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import import_module
from pkgutil import iter_modules
from statistics import median
from typing import Any

from simt.errors import SimtError
from simt.hints import did_you_mean
from simt.progress import Progress
from simt.spec import Spec
from simt.validate.device import Device
from simt.version import __version__

SCHEMA = "simt.microbenchmarks/1"
GROUPS = ("system", "core", "instruction", "tensor", "shared", "l1", "l2", "memory", "atomics", "hopper")
_MODULES = "simt.validate.microbenchmarks"
# Relative tolerances of a simulated measurement against the specification.
EXACT, WITHIN_3_PERCENT = 0.0, 0.03


@dataclass(frozen=True)
class Microbenchmark:
    """One measurement.

    determines: path of the value of a GPU specification that it measures, or a description of the result.
    moves: paths of the values that the tuner adjusts until the simulator matches the measurement; each is
        used only if those before it do not suffice; if empty, the beginning of `determines`, if that is a
        path.
    unit: unit of the value.
    sm_version: the lowest compute capability that has the measured feature.
    measure: runs it on a device and returns a number.
    expected: the engine's value for a specification; None if it does not follow from a single value.
    tolerance: allowed error of a simulated measurement, relative to the expected value.
    """

    name: str
    group: str
    summary: str
    determines: str
    unit: str
    measure: Callable[[Device], float]
    expected: Callable[[Spec], float | None] | None
    tolerance: float
    sm_version: int
    moves: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measurement:
    """The result of a microbenchmark.

    value: the median of `runs`; None if it could not run, for the reason in `note`.
    low, high: the minimum and maximum of the runs.
    """

    name: str
    group: str
    determines: str
    value: float | None
    unit: str
    seconds: float
    expected: float | None = None
    note: str = ""
    runs: int = 0
    low: float | None = None
    high: float | None = None

    @property
    def error(self) -> float | None:
        """The error relative to the specification."""
        if self.value is None or self.expected is None:
            return None
        return abs(self.value - self.expected) / abs(self.expected) if self.expected else abs(self.value)


_REGISTRY: dict[str, Microbenchmark] = {}


def microbenchmark(
    group: str,
    determines: str,
    unit: str,
    *,
    expected: Callable[[Spec], float | None] | None = None,
    tolerance: float = EXACT,
    sm_version: int = 0,
    moves: tuple[str, ...] = (),
) -> Callable[[Callable[[Device], float]], Callable[[Device], float]]:
    """Registers a function as the microbenchmark of its name; its docstring's first line is the summary."""
    assert group in GROUPS

    def register(measure: Callable[[Device], float]) -> Callable[[Device], float]:
        summary = (measure.__doc__ or "").strip().split("\n")[0]
        name = measure.__name__
        assert name not in _REGISTRY and summary
        _REGISTRY[name] = Microbenchmark(
            name, group, summary, determines, unit, measure, expected, tolerance, sm_version, moves
        )
        return measure

    return register


def microbenchmarks() -> dict[str, Microbenchmark]:
    """All, by name, in the order of GROUPS."""
    for module in iter_modules(import_module(_MODULES).__path__):
        import_module(f"{_MODULES}.{module.name}")
    return dict(sorted(_REGISTRY.items(), key=lambda item: GROUPS.index(item[1].group)))


def choose(names: Sequence[str] | None) -> list[Microbenchmark]:
    """Those with these names or of these groups; all for None. Raises SimtError for an unknown name."""
    every = microbenchmarks()
    if not names:
        return list(every.values())
    for name in names:
        if name not in every and name not in GROUPS:
            hint = did_you_mean(name, [*GROUPS, *every]) or f"; the groups are {', '.join(GROUPS)}."
            raise SimtError(f"no microbenchmark or group {name!r}{hint} `simt bench list` shows all")
    return [b for b in every.values() if b.name in names or b.group in names]


def run_microbenchmarks(
    device: Device,
    names: Sequence[str] | None = None,
    *,
    spec: Spec | None = None,
    repeats: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> list[Measurement]:
    """Runs microbenchmarks one after the other.

    spec: of a simulated device, for the expected values.
    repeats: runs of each, of which the median is used; if there are several, one additional run comes first
        and is discarded.

    A microbenchmark that cannot run on this device gives a Measurement without a value.
    """
    chosen, found, start = choose(names), [], time.monotonic()
    for i, benchmark in enumerate(chosen):
        if progress is not None:
            elapsed = time.monotonic() - start
            progress(Progress(benchmark.name, i / len(chosen), elapsed, i, len(chosen)))
        found.append(_run(benchmark, device, spec, repeats))
    return found


def _run(benchmark: Microbenchmark, device: Device, spec: Spec | None, repeats: int) -> Measurement:
    before = time.monotonic()
    values: list[float] = []
    note = ""
    if device.sm_version < benchmark.sm_version:
        need = f"{benchmark.sm_version // 10}.{benchmark.sm_version % 10}"
        note = f"needs compute capability {need}"
    else:
        try:
            for _ in range(repeats + (repeats > 1)):
                values.append(float(benchmark.measure(device)))
        except SimtError as error:
            values, note = [], str(error).split("\n")[0]
        except (ArithmeticError, ValueError) as error:
            values, note = [], f"the measurements give no answer: {error}"
    values = values[1:] if repeats > 1 else values
    expected = benchmark.expected(spec) if benchmark.expected is not None and spec is not None else None
    return Measurement(
        benchmark.name,
        benchmark.group,
        benchmark.determines,
        median(values) if values else None,
        benchmark.unit,
        round(time.monotonic() - before, 3),
        expected,
        note,
        len(values),
        min(values, default=None),
        max(values, default=None),
    )


def to_json(measurements: Iterable[Measurement], device: Device) -> str:
    """The records as JSON of schema simt.microbenchmarks/1: `benchmarks[]` with name, what it determines,
    value, unit; and the device, the software that measured it and the date."""
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "device": device.name,
        "simulated": device.simulated,
        "sm_version": device.sm_version,
        "sms": device.sms,
        "core_mhz": device.core_mhz,
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "version": __version__,
        "provenance": device.provenance,
        "benchmarks": [
            {
                "name": m.name,
                "group": m.group,
                "determines": m.determines,
                "value": m.value,
                "unit": m.unit,
                "runs": m.runs,
                "low": m.low,
                "high": m.high,
                "expected": m.expected,
                "seconds": m.seconds,
                "note": m.note,
            }
            for m in measurements
        ],
    }
    return json.dumps(data, indent=1)
