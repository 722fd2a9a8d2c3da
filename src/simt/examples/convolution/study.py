"""Runs the algorithms on a simulated GPU, and puts what they did into tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

import simt
from simt.spec import load_spec

from . import ALGORITHMS
from .problem import Convolution

LAYERS = {
    "tiny": Convolution(n=1, c=4, h=14, w=14, k=8, r=3, s=3, pad_h=1, pad_w=1),
    "layer": Convolution(n=2, c=32, h=56, w=56, k=32, r=3, s=3, pad_h=1, pad_w=1),
    "lenet-1": Convolution(n=1, c=1, h=28, w=28, k=20, r=5, s=5),
    "lenet-2": Convolution(n=1, c=20, h=12, w=12, k=50, r=5, s=5),
}
TABLES = ("launches", "stalls", "timeline", "dram", "dram_banks")
COLD = "l2.copies_fill=false"
_SHARE = "stall_"


@dataclass(frozen=True)
class Run:
    """One algorithm in one direction, on a GPU of its own with cold caches."""

    algorithm: str
    direction: str
    problem: Convolution
    result: simt.Result
    error: float
    """Largest error, relative to the largest expected value."""
    seconds: float
    """Of the simulation."""

    def row(self) -> dict[str, Any]:
        """Its row of the summary: times in core cycles, shares in percent."""
        totals, machine = self.result.totals, self.result.machine
        busy = totals.cycles - totals.launch_latency
        cycles_by_reason = {reason: sum(row) for reason, row in totals.stalls.items()}
        scheduled = max(1, sum(cycles_by_reason.values()))
        return {
            "algorithm": self.algorithm,
            "direction": self.direction,
            "launches": totals.launches,
            "cycles": totals.cycles,
            "launch_latency": totals.launch_latency,
            "warp_instructions": totals.warp_instructions,
            "ipc": totals.warp_instructions / (machine.sm_count * totals.cycles),
            "share_of_fp32_peak": 200 * self.problem.multiplications / (busy * machine.fp32_flops_per_cycle),
            "dram_bytes": 32 * (totals.engine["dram_reads"] + totals.engine["dram_writes"]),
            "dram_utilisation": totals.counters["dram__throughput.avg.pct_of_peak_sustained_elapsed"],
            "dram_efficiency": totals.counters["simt__dram_efficiency.pct"],
            **{_SHARE + reason: 100 * n / scheduled for reason, n in cycles_by_reason.items()},
            "error": self.error,
            "simulation_seconds": self.seconds,
        }


def runs(
    gpu: str,
    problem: Convolution,
    algorithms: Iterable[str],
    directions: Sequence[str],
    *,
    set: Iterable[str] = (),
    timeline: int = 1000,
    threads: int = 1,
    announce: Callable[[str], None] = lambda text: None,
) -> Iterator[Run]:
    """Runs every algorithm in every direction, one after the other.

    Algorithms that cannot compute the problem are left out; `announce` is told of them and of each run.

    gpu, set, timeline, threads: as in `simt.GPU`. Unless `set` says otherwise, copies to the GPU leave
        nothing in its L2, so inputs come from DRAM.
    """
    spec = load_spec(gpu)
    x, w, dy = problem.inputs()
    arguments = {"forward": (x, w), "backward_data": (dy, w), "backward_filter": (x, dy)}
    expected = {direction: getattr(problem, direction)(*arguments[direction]) for direction in directions}
    for name in algorithms:
        if not ALGORITHMS[name].can_compute(problem):
            announce(f"{name}: left out; it supports {ALGORITHMS[name].supports}")
            continue
        for direction in directions:
            announce(f"{name}, {direction} ...")
            began = time.perf_counter()
            device = simt.GPU(spec, set=(COLD, *set), timeline=timeline, threads=threads)
            device.program = f"{name} {direction}"
            given = [device.array(array) for array in arguments[direction]]
            found = getattr(ALGORITHMS[name](device, problem), direction)(*given).numpy()
            reference = expected[direction]
            error = float(abs(found - reference).max() / abs(reference).max())
            yield Run(name, direction, problem, device.result(), error, time.perf_counter() - began)


def summary(done: Sequence[Run]) -> pl.DataFrame:
    """A row per run. Stall reasons that never occurred are left out."""
    table = pl.DataFrame([run.row() for run in done])
    return table.drop([name for name in table.columns if name.startswith(_SHARE) and not table[name].sum()])


def save(done: Sequence[Run], folder: Path) -> None:
    """Writes the summary, and the tables of all Results with the columns `algorithm` and `direction`, as
    Parquet files."""
    folder.mkdir(parents=True, exist_ok=True)
    summary(done).write_parquet(folder / "summary.parquet")
    for name in TABLES:
        frames = [
            run.result.to_polars(name).with_columns(
                pl.lit(run.algorithm).alias("algorithm"), pl.lit(run.direction).alias("direction")
            )
            for run in done
        ]
        if frames := [frame for frame in frames if frame.height]:
            pl.concat(frames, how="diagonal_relaxed").write_parquet(folder / f"{name}.parquet")


def printed(table: pl.DataFrame) -> str:
    """The summary as text: for each run its cycles, IPC, DRAM, and its two most frequent stall reasons."""
    lines = [
        f"{'algorithm':<18}{'direction':<16}{'launches':>8}{'cycles':>10}{'IPC':>6}{'FP32 peak':>11}"
        f"{'DRAM MB':>9}{'util.':>7}{'eff.':>6}{'error':>9}  schedulers' cycles"
    ]
    for row in table.iter_rows(named=True):
        shares = {name.removeprefix(_SHARE): row[name] for name in row if name.startswith(_SHARE)}
        selected = shares.pop("selected", 0)
        most = sorted(shares, key=lambda reason: -(shares[reason] or 0))[:2]
        waits = ", ".join(f"{reason} {shares[reason]:.0f} %" for reason in most)
        lines.append(
            f"{row['algorithm']:<18}{row['direction']:<16}{row['launches']:>8}{row['cycles']:>10,}"
            f"{row['ipc']:>6.2f}{row['share_of_fp32_peak']:>9.1f} %{row['dram_bytes'] / 1e6:>9.2f}"
            f"{row['dram_utilisation'] or 0:>5.0f} %{row['dram_efficiency'] or 0:>4.0f} %{row['error']:>9.1e}"
            f"  issued {selected:.0f} %, {waits}"
        )
    return "\n".join(lines)
