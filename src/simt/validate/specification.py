"""Distance of a specification from the published values of its GPU, microbenchmark by microbenchmark.

The folder `published/gpus` has a table for each GPU with published values: CSV with the columns

    benchmark   a microbenchmark of `simt bench`, or one of `PROBES`
    bytes       size of the array, for those of `PROBES` that take one
    low, high   measured range; both are equal if one value is published
    unit        cycle, byte/cycle (of an SM), GB/s or us
    mark        P: in a paper; R: in a public repository's raw results; C: claimed in a third party's notes;
                K: generally known, not checked
    source      who measured it, on which GPU

The first row of a benchmark is the reference; further ones are other sources.
"""

from __future__ import annotations

import csv
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from simt.errors import SimtError
from simt.names import listed
from simt.progress import Progress
from simt.spec import load_spec
from simt.validate.device import Device, SimulatedDevice
from simt.validate.microbenchmark import microbenchmarks, run_microbenchmarks
from simt.validate.microbenchmarks.chases import (
    chase_latency,
    each_latency,
    evict,
    large_chase_latency,
    ring_of,
)

SCHEMA = "simt.specification-errors/1"
FOLDER = Path(__file__).parent / "published" / "gpus"
# Streams from device memory need arrays larger than the L2. With a small L2 they are short, and as fast.
STREAMS, STREAM_SETS = ("copy_bandwidth", "fill_bandwidth"), 16


@dataclass(frozen=True)
class Published:
    """One published value of a GPU; `low` and `high` are the ends of the measured range."""

    benchmark: str
    bytes: int | None
    low: float
    high: float
    unit: str
    mark: str
    source: str

    @property
    def name(self) -> str:
        """The microbenchmark, with the size of its array."""
        return f"{self.benchmark}, {self.bytes / 2**20:g} MiB" if self.bytes else self.benchmark

    def error(self, value: float) -> float:
        """Signed relative distance to the nearest measured value; 0 within the range."""
        nearest = min(max(value, self.low), self.high)
        return (value - nearest) / nearest


@dataclass(frozen=True)
class SpecComparison:
    """A published value and that of the simulated GPU. reference: the first value of its benchmark."""

    published: Published
    simulated: float
    reference: bool

    @property
    def error(self) -> float:
        return self.published.error(self.simulated)


def _load_latency(device: Device, size: int) -> float:
    """Cycles of a load, through all caches, in a ring of lines of `size` bytes that was traversed before."""
    return chase_latency(device, size, 128) if size < 4 << 20 else large_chase_latency(device, size, 128)


def _memory_load_latency(device: Device, _: int) -> float:
    """Cycles of a load, through all caches, that finds its sector in device memory only.

    The L2 has nothing to write back, as if a ring larger than the L2 were traversed repeatedly. The next load
    is 35 lines further, in another row; the number of lines is coprime to 35, so the lines form one ring.
    """
    lines = 2 * device.l2_bytes // 128 | 1
    while lines % 5 == 0 or lines % 7 == 0:
        lines += 2
    ring, _count = ring_of(device, 128 * lines, 128, jump=35)
    held = evict(device)
    latency = float(each_latency(device, ring, 1024, warm=4, cached="ca").mean())
    device.free(ring)
    device.free(held)
    return latency


def _l2_read_bandwidth(device: Device, _: int) -> float:
    """Bytes per core cycle that all SMs read from the L2; four loads of 16 bytes per thread in flight."""
    threads = 1024 if 4 * 1024 * 16 * device.sms <= device.l2_bytes // 2 else 512
    elements = 4 * threads * device.sms
    data, sink = device.zeros(4 * elements, np.uint32), device.zeros(1, np.uint32)
    kernel = device.kernel("bandwidth.cu", "whole")
    # The first walk brings the array into the L2.
    walks = (1, 8, 40)
    _first, some, more = (
        kernel(device.sms, threads, data, np.int64(elements), np.int32(n), sink) for n in walks
    )
    device.free(data)
    return 32 * 16 * elements / (more - some)


PROBES: dict[str, Callable[[Device, int], float]] = {
    "l2_load_latency": _load_latency,
    "memory_load_latency": _memory_load_latency,
    "l2_read_bandwidth": _l2_read_bandwidth,
}
"""Published values that correspond to no microbenchmark."""
_UNITS = {"l2_load_latency": "cycle", "memory_load_latency": "cycle"}  # others: byte/cycle


def published_gpus() -> list[str]:
    """Names of the specifications with published values."""
    return sorted(path.stem for path in FOLDER.glob("*.csv"))


def published_values(gpu: str) -> list[Published]:
    """The published values for a shipped specification's GPU; empty if there are none."""
    path = FOLDER / f"{gpu}.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Published(
                row["benchmark"],
                int(row["bytes"]) if row["bytes"] else None,
                float(row["low"]),
                float(row["high"]),
                row["unit"],
                row["mark"],
                row["source"],
            )
            for row in csv.DictReader(file)
        ]


def compare(
    gpu: str,
    benchmarks: Sequence[str] | None = None,
    *,
    set: Mapping[str, Any] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> list[SpecComparison]:
    """Runs the microbenchmarks with published values for a GPU on its shipped specification.

    benchmarks: only these.
    set: values of the specification to override.

    Raises SimtError for a benchmark without a published value for this GPU.
    """
    values = published_values(gpu)
    known = {value.benchmark for value in values}
    for name in benchmarks or []:
        if name not in known:
            raise SimtError(f"no value is published for {name} of {gpu}, only for {listed(sorted(known))}")
    values = [value for value in values if not benchmarks or value.benchmark in benchmarks]
    found: dict[tuple[str, int | None], float] = {}
    comparisons, start = [], time.monotonic()
    for i, value in enumerate(values):
        if progress is not None:
            elapsed = time.monotonic() - start
            progress(Progress(f"{gpu} {value.name}", i / len(values), elapsed, i, len(values)))
        key = (value.benchmark, value.bytes)
        reference = key not in found
        if reference:
            found[key] = _simulated(gpu, value, dict(set or {}))
        comparisons.append(SpecComparison(value, found[key], reference))
    return comparisons


def _simulated(gpu: str, value: Published, overrides: dict[str, Any]) -> float:
    """The simulated GPU's value, in the unit of the published one."""
    name = value.benchmark
    conditions = {"l2.slice.sets": STREAM_SETS} if name in STREAMS else {}
    if name == "l1_latency":  # Kepler and Pascal cache global loads only on request
        conditions = {"l1.bypass_global": False}
    device = SimulatedDevice(gpu, {**conditions, **overrides})
    if name in PROBES:
        measured, unit = PROBES[name](device, value.bytes or 0), _UNITS.get(name, "byte/cycle")
    else:
        (measurement,) = run_microbenchmarks(device, [name])
        if measurement.value is None:
            raise SimtError(f"{gpu}: {name} gives no value: {measurement.note}")
        measured, unit = measurement.value, microbenchmarks()[name].unit
    return _converted(measured, unit, value.unit, device.core_mhz)


def _converted(value: float, unit: str, wanted: str, core_mhz: float) -> float:
    if unit == wanted:
        return value
    if (unit, wanted) == ("byte/cycle", "GB/s"):
        return value * core_mhz / 1000
    if (unit, wanted) == ("cycle", "us"):
        return value / core_mhz
    raise SimtError(f"{unit} cannot be compared with {wanted}")


def mean_error(comparisons: Iterable[SpecComparison]) -> float | None:
    """Mean of the absolute errors against the references; None without any."""
    errors = [abs(c.error) for c in comparisons if c.reference]
    return sum(errors) / len(errors) if errors else None


@dataclass(frozen=True)
class SpecOrigins:
    """How many values of a specification are known from where.

    published: follow from what is published of this GPU, or of one with its chip or SM.
    general: general knowledge of this GPU, such as a data sheet.
    others: of another GPU's specification, whose sources say more.
    assumed: assumed, unknown, or of another simulator's configuration.
    """

    published: int
    general: int
    others: int
    assumed: int

    def __str__(self) -> str:
        every = self.published + self.general + self.others + self.assumed
        return (
            f"of {every} values, {self.published} follow from published ones, {self.general} are general "
            f"knowledge, {self.others} another GPU's, {self.assumed} assumed, unknown or another simulator's"
        )


def origins(gpu: str) -> SpecOrigins:
    """Counts the values of a shipped specification by their sources."""
    found: Counter[str] = Counter()
    for source in load_spec(gpu).sources.values():
        if source.startswith("as "):
            found["others"] += 1
        elif source.startswith(("assumed", "unknown", "not given")):
            found["assumed"] += 1
        elif "[K]" in source:
            found["general"] += 1
        else:
            found["published" if re.search(r"\[[PRCD]\]|fitted to", source) else "assumed"] += 1
    return SpecOrigins(*(found[field.name] for field in fields(SpecOrigins)))


def to_json(comparisons: dict[str, list[SpecComparison]]) -> str:
    """By GPU: published value, simulated one, error, source."""
    data = {
        "schema": SCHEMA,
        "gpus": [
            {
                "gpu": gpu,
                "mean_error": mean_error(rows),
                "values": [
                    {
                        **asdict(c.published),
                        "simulated": c.simulated,
                        "error": c.error,
                        "reference": c.reference,
                    }
                    for c in rows
                ],
            }
            for gpu, rows in comparisons.items()
        ],
    }
    return json.dumps(data, indent=1)
