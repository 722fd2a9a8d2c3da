"""Photon's offline mode: a sweep with one analysis."""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path

import polars as pl
from papers import ROOT, Rows, Section, Steps, percent, table, times

from simt.control.photon import Photon
from simt.workloads import WORKLOADS

sys.path.insert(0, str(ROOT / "docs" / "records" / "scripts"))
import photon_study

SWEEP = tuple(range(20, 120))
"""Latencies of the L1, cycles."""
CHECKED = SWEEP[::25]
"""Points that are simulated in full, too, and with an analysis of their own."""
SWEPT = {"convolution": 1 << 14, "pagerank": 1 << 12}


def measure_offline(steps: Steps) -> pl.DataFrame:
    """A sweep of the L1's latency: Photon with the analysis of the first point; some points in full."""
    found: Rows = []
    for name, size in SWEPT.items():
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "analysis.json"
            for latency in SWEEP:
                piece = partial(point, name, size, latency, file)
                found += steps.rows(f"{name}:{size}, {latency} cycles", piece)
    return pl.DataFrame(found, infer_schema_length=None)


def point(name: str, size: int, latency: int, file: Path) -> Rows:
    """One point of the sweep, by method. file: the analysis, which the first point to be simulated saves."""
    rows: Rows = []
    for method in ("full", "online", "offline") if latency in CHECKED else ("offline",):
        known = file if method == "offline" and file.exists() else None
        controller = None if method == "full" else Photon(analysis=known)
        gpu = photon_study.TimedGPU("r9nano", set={"l1.latency": latency}, controller=controller, threads=1)
        WORKLOADS[name].run(gpu, size)
        if controller is not None and method == "offline" and not known:
            controller.save(file)
        rows.append(
            {
                "workload": name,
                "size": size,
                "latency": latency,
                "method": method,
                "cycles": sum(x.cycles for x in gpu.result().launches),
                "seconds": gpu.processor_seconds,
            }
        )
    return rows


def show_offline(section: Section, frame: pl.DataFrame) -> str:
    lines = []
    for (name, size), mine in frame.group_by("workload", "size", maintain_order=True):
        every = mine.filter(method="offline")
        checked = mine.pivot("method", index="latency", values=["cycles", "seconds"]).drop_nulls()
        full = len(every) * checked["seconds_full"].mean()  # type: ignore[operator]
        off = (checked["cycles_offline"] / checked["cycles_full"] - 1).abs()
        lines.append(
            [
                f"`{name}` {size:,}",
                len(every),
                len(checked),
                f"{checked['seconds_full'].mean():.1f}",
                f"{checked['seconds_online'].mean():.2f}",
                f"{every['seconds'].mean():.2f}",
                times(full / every["seconds"].sum()),
                percent(off.mean()),
                percent(off.max()),
                len(checked.filter(pl.col("cycles_offline") == pl.col("cycles_online"))),
            ]
        )
    return (
        f"A sweep of {len(SWEEP)} values of `l1.latency` on `r9nano` with Photon, which saves its analysis "
        "at the first point and reads it at the others (`photon.save`, `Photon(analysis=...)`). Some points "
        "are simulated in full, too, and with an analysis of their own (*online*); the speedup is that of "
        "the whole sweep, with the mean of these for all points in full. Seconds of the processor for a "
        "point, launches only.\n\n"
        + table(
            [
                "workload",
                "points",
                "in full, too",
                "full, s",
                "online, s",
                "offline, s",
                "speedup of the sweep",
                "mean error",
                "largest",
                "points with online's cycles",
            ],
            lines,
        )
        + "\nA preview costs little here, 1 % of the warps without timing, so keeping it gains little: what "
        "limits the speedup is what Photon has to simulate of each launch.\n"
    )
